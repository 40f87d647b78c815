"""Who is behind whom, against cycles of admission played with the sums of every cohort."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.why.order import MOST_NAMED, Waiting, in_order, positions, queue_order
from analytics.why.quota import PodSetAsk, Request
from analytics.why.reason import Finding
from tests.analytics.why.queues import GPU, Site, Terms, lines, sites


def height(site: Site, name: str) -> int:
    return max((1 + height(site, child) for child in site.below(name)), default=0)


def level(site: Site, queue: str, taken: dict[tuple[str, str], int]) -> int:
    """The height of the lowest one in the line that uses no more than there is below it."""
    after = site.with_use(queue, taken)
    return max(
        next(
            (height(site, n) for n in site.line(queue) if after.uses(n, kind) <= site.has(n, kind)),
            height(site, list(site.line(queue))[-1]),
        )
        for kind in taken
    )


def admitted(site: Site, waiting: list[Waiting], strict: set[str]) -> list[str]:
    """Cycle by cycle: the heads of the queues that fit, who borrows least first."""
    left = {queue: [one for one in in_order(waiting) if one.queue == queue] for queue in site.parents}
    done: list[str] = []
    while True:
        heads = []
        for queue, line in left.items():
            if line:
                assert line[0].request
                taken = site.assigned(line[0].request)
                if taken is not None:
                    heads.append((level(site, queue, taken), line[0]))
                elif queue in strict:
                    line.clear()
                else:
                    line.pop(0)
        if not heads and not any(left.values()):
            return done
        heads.sort(key=lambda head: (head[0], -head[1].priority, head[1].since_ms, head[1].uid))
        for _, one in heads:
            assert one.request
            taken = site.assigned(one.request)
            if taken is not None:
                site = site.with_use(one.queue, taken)
                left[one.queue].remove(one)
                done.append(one.uid)


def answer(site: Site, waiting: list[Waiting], strict: set[str]) -> dict[str, Finding]:
    quota = site.quota()
    before = [quota.admits(one.request) for one in waiting if one.request]
    found = queue_order(waiting, quota, strict=strict)
    assert [quota.admits(one.request) for one in waiting if one.request] == before, (
        "the quota was left changed"
    )
    return found


def check(site: Site, waiting: list[Waiting], strict: set[str]) -> None:
    done = admitted(site, waiting, strict)
    ahead = positions(waiting)
    expected = {
        one.uid
        for one in waiting
        if one.uid not in done
        and one.request
        and ((one.queue in strict and ahead[one.uid]) or site.assigned(one.request) is not None)
    }
    found = answer(site, waiting, strict)
    assert set(found) == expected
    for uid, finding in found.items():
        assert finding.evidence["ahead"] == ahead[uid]
        assert len(finding.blockers) == min(MOST_NAMED, int(str(finding.evidence["ahead_taking"])))
        (mine,) = (one for one in waiting if one.uid == uid)
        lets_through(site, mine, waiting, strict)


def lets_through(site: Site, mine: Waiting, waiting: list[Waiting], strict: set[str]) -> None:
    """Those who are named go, and those who step into their place, until nobody is in the way any more."""
    assert mine.request
    order = [one.uid for one in in_order(waiting) if one.queue == mine.queue]
    while finding := answer(site, waiting, strict).get(mine.uid):
        named = {blocker.name for blocker in finding.blockers}
        assert named, "behind nobody"
        done = admitted(site, waiting, strict)
        for one in waiting:
            if one.uid in named:
                # Ahead in the same queue, or it gets there first from another one.
                before = order.index(one.uid) < order.index(mine.uid) if one.queue == mine.queue else False
                assert before or one.uid in done
        waiting = [one for one in waiting if one.uid not in named]
    is_first = positions(waiting)[mine.uid] == 0
    if site.assigned(mine.request) is not None and (mine.queue not in strict or is_first):
        assert mine.uid in admitted(site, waiting, strict)


@given(st.data(), sites())
@settings(max_examples=25)
def test_behind_is_who_would_be_admitted_but_for_those_before_him(data: st.DataObject, site: Site) -> None:
    waiting = data.draw(lines(site))
    check(site, waiting, data.draw(st.sets(st.sampled_from(sorted(site.parents)))))


@pytest.mark.long
@pytest.mark.timeout(1_200)
@given(st.data(), sites())
@settings(max_examples=1_500)
def test_behind_in_thousands_of_queues_is_as_in_cycles_played(data: st.DataObject, site: Site) -> None:
    waiting = data.draw(lines(site))
    check(site, waiting, data.draw(st.sets(st.sampled_from(sorted(site.parents)))))


# ------------------------------------------------------------ small enough to check by hand


def one(uid: str, queue: str = "q", *, gpus: int = 4, priority: int = 0, since_ms: int = 0) -> Waiting:
    request = Request(queue=queue, pod_sets=(PodSetAsk(amounts={GPU: gpus}),))
    return Waiting(uid=uid, queue=queue, priority=priority, since_ms=since_ms, request=request)


def site(**nominal: int) -> Site:
    """Queues in one cohort with so many GPUs each."""
    terms = {name: {("a100", GPU): Terms(nominal=gpus)} for name, gpus in nominal.items()}
    return Site(parents=dict.fromkeys(nominal, "top"), cohorts={"top": ""}, terms=terms)


def test_priority_comes_before_time_and_time_before_the_uid() -> None:
    waiting = [
        one("d", since_ms=5),
        one("c", since_ms=5),
        one("b", since_ms=1),
        one("a", priority=9, since_ms=9),
    ]
    assert [each.uid for each in in_order(waiting)] == ["a", "b", "c", "d"]
    assert positions([*waiting, one("e", "other")]) == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 0}


def test_who_is_ahead_and_why() -> None:
    waiting = [one("a", priority=9), one("b"), one("c", since_ms=1)]
    found = answer(site(q=4), waiting, set())
    assert set(found) == {"b", "c"}
    told = found["c"].evidence
    assert [told[name] for name in ("ahead", "ahead_by_priority", "ahead_taking", "strategy")] == [
        2, 1, 1, "BestEffortFIFO",
    ]  # fmt: skip
    assert [blocker.name for blocker in found["c"].blockers] == ["a"]


def test_a_strict_head_that_never_fits_blocks_what_would() -> None:
    waiting = [one("giant", gpus=99), one("small", gpus=1, since_ms=1)]
    found = answer(site(q=4), waiting, {"q"})
    assert set(found) == {"small"}
    assert found["small"].evidence["strict_head"] == 1
    assert [blocker.name for blocker in found["small"].blockers] == ["giant"]
    assert answer(site(q=4), waiting, set()) == {}


def test_whoever_borrows_comes_after_whose_own_quota_it_is() -> None:
    # Both want the same 4: `lends` has them, and `q` would borrow them, though its priority is higher.
    waiting = [one("borrower", priority=9), one("owner", "lends")]
    found = answer(site(q=0, lends=4), waiting, set())
    assert set(found) == {"borrower"}
    assert found["borrower"].evidence["ahead_in_other_queues"] == 1
    assert set(answer(site(q=4, lends=0), waiting, set())) == {"owner"}


def test_of_whom_it_is_not_known_what_he_asks_keeps_his_place() -> None:
    unknown = Waiting(uid="x", queue="q", priority=9, since_ms=0)
    assert answer(site(q=4), [unknown, one("a")], set()) == {}
    assert set(answer(site(q=4), [unknown, one("a")], {"q"})) == {"a"}
