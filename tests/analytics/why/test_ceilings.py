"""Limits that lend nothing, against the sums of all that is held below them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.why.ceilings import Ceiling, of_kai, of_namespace, of_volcano, within
from analytics.why.reason import BlockerKind, Finding, Reason
from domain.objects import KaiQueue, ResourceQuota, VolcanoQueue
from domain.quantity import Quota
from tests.analytics.why.queues import GPU

R = Reason
Limits = tuple[str, int | None, int]


def gpus(written: int) -> dict[str, Quota]:
    return {GPU: Quota.of(written)}


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Limits]:
    """Queues of Volcano or KAI: the parent of each, its limit and what its own workloads have."""
    names = ["org", "team", "lab", "other"]
    return {
        name: (
            draw(st.sampled_from(["", *names[:number]])),
            draw(st.sampled_from([None, 4, 8, 12])),
            draw(st.integers(0, 4)),
        )
        for number, name in enumerate(names)
    }


def bound_by(tree: dict[str, Limits], queue: str, asked: int) -> list[str]:
    """Whose limit is passed once so much more is held in a queue: all sums are made."""

    def below(name: str) -> int:
        return tree[name][2] + sum(below(child) for child, (parent, _, _) in tree.items() if parent == name)

    found = []
    while queue:
        parent, limit, _ = tree[queue]
        if limit is not None and below(queue) + asked > limit:
            found.append(queue)
        queue = parent
    return found


@given(trees(), st.sampled_from(["org", "team", "lab", "other"]), st.integers(1, 9))
@settings(max_examples=60)
def test_limits_of_volcano_and_kai_are_those_that_sums_of_all_below_pass(
    tree: dict[str, Limits], queue: str, asked: int
) -> None:
    used = {name: own * 1000 for name, (_, _, own) in tree.items()}

    def found(of: dict[str, Limits]) -> list[tuple[Finding, ...]]:
        volcano = {
            name: VolcanoQueue(
                weight=1, parent=parent, reclaimable=True, deserved={}, guarantee={},
                capability={} if limit is None else gpus(limit),
            )
            for name, (parent, limit, _) in of.items()
        }  # fmt: skip
        kai = {
            name: KaiQueue(
                parent=parent, priority=None, quota=Quota.unlimited(), over_quota_weight_milli=1000,
                limit=Quota.unlimited() if limit is None else Quota.of(limit),
            )
            for name, (parent, limit, _) in of.items()
        }  # fmt: skip
        wanted = {GPU: asked * 1000}
        return [
            within(wanted, of_volcano(queue, GPU, volcano, used=used)),
            within(wanted, of_kai(queue, kai, used=used)),
        ]

    for findings in found(tree):
        named = {blocker.name for one in findings for blocker in one.blockers}
        assert named == set(bound_by(tree, queue, asked))
        never = {name for name in named if asked > (tree[name][1] or 0)}
        assert (R.NEVER_FITS in {one.reason for one in findings}) == bool(never)
        # Without the limits that are named it is let in; without all but one of them it is not.
        for kept in ["", *named]:
            lifted = {
                name: (parent, None if name in named and name != kept else limit, own)
                for name, (parent, limit, own) in tree.items()
            }
            assert [bool(one) for one in found(lifted)] == [bool(kept)] * 2


def test_a_resource_quota_is_exhausted_or_never_enough() -> None:
    quotas = {"proj": ResourceQuota(hard={GPU: Quota.of("16")}), "cpus": ResourceQuota(hard={})}
    ceilings = list(of_namespace(quotas, used={GPU: 12_000}))
    assert within({GPU: 4_000}, ceilings) == ()
    [short], [never] = (within({GPU: asked}, ceilings) for asked in (8_000, 17_000))
    assert (short.reason, short.evidence["missing"], short.blockers[0].name) == (
        R.QUOTA_EXHAUSTED,
        4_000,
        "proj",
    )
    assert short.evidence["namespace_free"] == 4_000
    assert (short.blockers[0].kind, never.reason, never.evidence["missing"]) == (
        BlockerKind.OBJECT,
        R.NEVER_FITS,
        1_000,
    )


def test_of_several_limits_all_that_bind_are_named() -> None:
    limits = [
        Ceiling(holder=name, resource=GPU, most=most, used=8)
        for name, most in (("a", 10), ("b", 9), ("c", 99))
    ]
    (found,) = within({GPU: 4}, limits)
    assert [blocker.name for blocker in found.blockers] == ["a", "b"]


def test_a_capability_binds_with_all_that_is_below_it() -> None:
    def queue(parent: str, **limits: int) -> VolcanoQueue:
        of = {
            name: gpus(limits[name]) if name in limits else {}
            for name in ("capability", "deserved", "guarantee")
        }
        return VolcanoQueue(weight=1, parent=parent, reclaimable=True, **of)

    queues = {
        "root": queue(""),
        "org": queue("root", capability=16),
        "team": queue("org"),
        "lab": queue("org"),
        "kept": queue("root", guarantee=20),
    }
    used = {"team": 4_000, "lab": 8_000}
    assert list(of_volcano("team", GPU, queues, used=used)) == [
        Ceiling(holder="org", resource=GPU, most=16_000, used=12_000)
    ]
    # 30 there are; 20 of them are promised to `kept`.
    (org,) = [
        one for one in of_volcano("team", GPU, queues, used=used, offered=30_000) if one.holder == "org"
    ]
    assert org.most == 10_000


def test_a_limit_of_kai_binds_and_its_quota_only_what_cannot_be_preempted() -> None:
    def queue(parent: str, quota: object, limit: object) -> KaiQueue:
        of = [Quota.unlimited() if one == -1 else Quota.of(one) for one in (quota, limit)]  # type: ignore[arg-type]
        return KaiQueue(parent=parent, priority=None, quota=of[0], limit=of[1], over_quota_weight_milli=1000)

    queues = {"dep": queue("", 8, -1), "q": queue("dep", 4, 6)}
    used = {"q": 2_000}
    assert [(one.holder, one.most) for one in of_kai("q", queues, used=used)] == [("q", 6_000)]
    strict = of_kai("q", queues, used=used, within_quota=True)
    assert [(one.holder, one.most, one.used) for one in strict] == [
        ("q", 4_000, 2_000),
        ("dep", 8_000, 2_000),
    ]
