"""What looks make of the time that workloads wait: every instant has one reason, whenever one looked."""

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from analytics.why.timeline import FOREVER, Found, Stretch, looked

STANDS_MS = 10
# What a workload did for how long: it waits for one of three reasons, or runs.
COURSES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(1, 12)), min_size=1, max_size=8
)
LOOKS = st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True).map(sorted)


def found_at(course: list[tuple[str, int]], at_ms: int) -> list[Found]:
    """What a look just before an instant finds of the one workload; its state begins anew after each run."""
    start_ms = since_ms = 0
    for reason, length_ms in course:
        if not reason:
            since_ms = start_ms + length_ms
        elif start_ms < at_ms <= start_ms + length_ms:
            return [Found(uid="w", since_ms=since_ms, reason=reason, source="placement")]
        start_ms += length_ms
    return []


def kept(course: list[tuple[str, int]], looks: list[int]) -> list[Stretch]:
    """All stretches after these looks, in order of time."""
    rows: list[Stretch] = []
    before_ms = looks[0] - STANDS_MS
    for at_ms in looks:
        standing = [one for one in rows if one.end_ms == FOREVER]
        changed = looked(
            standing, found_at(course, at_ms), at_ms=at_ms, before_ms=before_ms, stands_ms=STANDS_MS
        )
        rows = [one for one in rows if one.end_ms != FOREVER or one.uid not in {new.uid for new in changed}]
        rows += [one for one in changed if one.start_ms < one.end_ms]
        before_ms = at_ms
    return sorted(rows, key=lambda one: one.start_ms)


@given(COURSES, LOOKS)
def test_stretches_of_a_workload_never_overlap(course: list[tuple[str, int]], looks: list[int]) -> None:
    rows = kept(course, looks)
    assert all(one.end_ms <= after.start_ms for one, after in itertools.pairwise(rows))


@given(COURSES, LOOKS)
def test_at_each_look_the_reason_is_what_it_found_and_stands_until_the_next(
    course: list[tuple[str, int]], looks: list[int]
) -> None:
    rows = kept(course, looks)
    for at_ms, after_ms in zip(looks, [*looks[1:], looks[-1] + STANDS_MS], strict=True):
        told = found_at(course, at_ms)
        # Its state may have begun anew before the next look, and its reason then counts from there.
        later = found_at(course, after_ms)
        until_ms = min(
            after_ms, at_ms + STANDS_MS, later[0].since_ms if later and later[0].since_ms > at_ms else FOREVER
        )
        here = [one for one in rows if one.start_ms < until_ms and one.end_ms > at_ms]
        if told:
            assert {one.reason for one in here} == {told[0].reason}
            assert min(one.start_ms for one in here) <= at_ms
            assert max(one.end_ms for one in here) >= until_ms


@given(COURSES, LOOKS)
def test_nobody_is_told_a_reason_of_a_time_without_a_look_near(
    course: list[tuple[str, int]], looks: list[int]
) -> None:
    for one in kept(course, looks):
        end_ms = looks[-1] + STANDS_MS if one.end_ms == FOREVER else one.end_ms
        assert all(
            any(abs(at_ms - look) <= STANDS_MS for look in looks) for at_ms in range(one.start_ms, end_ms)
        )


def test_a_wait_that_began_since_the_last_look_counts_from_its_start() -> None:
    new = Found(uid="w", since_ms=17, reason="QUOTA_EXHAUSTED", source="quota", blocker="queue red")
    [one] = looked([], [new], at_ms=20, before_ms=15, stands_ms=STANDS_MS)
    assert (one.start_ms, one.end_ms, one.blocker) == (17, FOREVER, "queue red")
    assert looked([one], [replace(new, source="message")], at_ms=25, before_ms=20, stands_ms=STANDS_MS) == []
    again = looked([one], [replace(new, since_ms=23)], at_ms=25, before_ms=20, stands_ms=STANDS_MS)
    assert again == []
    ended, begun = looked(
        [one],
        [replace(new, since_ms=23, reason="FRAGMENTATION")],
        at_ms=25,
        before_ms=20,
        stands_ms=STANDS_MS,
    )
    assert (ended.end_ms, begun.start_ms, begun.reason) == (23, 23, "FRAGMENTATION")
