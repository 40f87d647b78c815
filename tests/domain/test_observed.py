"""Laws of what was observed: neither order nor batches matter, and halves make the whole."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.observed import Interval, Stretch, before, coverage_words, covered_ms, joined, merged
from domain.policy import Policy, patience_ms
from domain.window import Window

PATIENCE = 5
INSTANTS = st.integers(0, 60)
SIGHTS = st.lists(
    st.builds(Stretch, start_ms=INSTANTS, end_ms=st.just(0), resumed=st.booleans()), max_size=12
)
INTERVALS = st.lists(st.tuples(INSTANTS, INSTANTS).map(lambda pair: (min(pair), max(pair))), max_size=6)
NODES = st.lists(st.tuples(INTERVALS.map(joined), INTERVALS.map(joined)), max_size=3)


def points(sights: list[Stretch]) -> list[Stretch]:
    return [Stretch(start_ms=one.start_ms, end_ms=one.start_ms, resumed=one.resumed) for one in sights]


@given(SIGHTS, SIGHTS, st.randoms(use_true_random=False))
def test_stretches_do_not_depend_on_the_order_in_which_sights_came_in(
    some: list[Stretch], others: list[Stretch], chance: object
) -> None:
    everything = points(some) + points(others)
    shuffled = sorted(everything, key=lambda _: chance.random())  # type: ignore[attr-defined]
    at_once = merged(everything, PATIENCE)
    assert merged(shuffled, PATIENCE) == at_once
    in_batches = merged([*merged(points(some), PATIENCE), *merged(points(others), PATIENCE)], PATIENCE)
    assert in_batches == merged([*at_once, *points(some)], PATIENCE) == at_once


@given(SIGHTS)
def test_between_two_stretches_lies_a_longer_silence(some: list[Stretch]) -> None:
    found = merged(points(some), PATIENCE)
    assert all(b.start_ms - a.end_ms > PATIENCE for a, b in pairwise(found))


@given(SIGHTS, INSTANTS)
def test_what_was_observed_by_an_instant_is_a_matter_of_sights_before_it(
    some: list[Stretch], as_of_ms: int
) -> None:
    def told(sights: list[Stretch]) -> list[Interval]:
        known = [(one.start_ms, one.end_ms) for one in merged(sights, PATIENCE)]
        return before(known, as_of_ms, PATIENCE)

    assert told(points(some)) == told([one for one in points(some) if one.start_ms < as_of_ms])


@given(INTERVALS.map(joined), NODES, INSTANTS, INSTANTS, INSTANTS)
def test_the_parts_of_a_window_make_the_whole(
    observed: list[Interval],
    nodes: list[tuple[list[Interval], list[Interval]]],
    a: int,
    b: int,
    c: int,
) -> None:
    a, b, c = sorted((a, b, c))
    left, right, whole = (
        covered_ms(Window(start_ms=start, end_ms=end), observed, nodes)
        for start, end in ((a, b), (b, c), (a, c))
    )
    assert left + right == whole <= c - a


@given(INTERVALS.map(joined), NODES)
def test_an_instant_counts_by_the_share_of_nodes_that_were_sampled(
    observed: list[Interval], nodes: list[tuple[list[Interval], list[Interval]]]
) -> None:
    def within(at_ms: int, intervals: list[Interval]) -> bool:
        return any(start <= at_ms < end for start, end in intervals)

    expected = Fraction(0)
    for at_ms in range(60):
        there = [sampled for exists, sampled in nodes if within(at_ms, exists)]
        share = Fraction(sum(within(at_ms, each) for each in there), len(there)) if there else Fraction(1)
        expected += share * within(at_ms, observed)
    assert covered_ms(Window(start_ms=0, end_ms=60), observed, nodes) == expected


def test_a_shorter_patience_than_the_usual_cannot_be_told() -> None:
    assert patience_ms("Pod") == 180_000
    assert patience_ms("Pod", Policy(source_stale_after=Policy().source_stale_after / 2)) == 180_000
    assert patience_ms("Pod", Policy(source_stale_after=Policy().source_stale_after * 2)) == 360_000


@pytest.mark.parametrize(
    ("coverage", "says"),
    [
        (0.0, "0 % of the window was observed"),
        (0.994, "99.4 % of the window was observed"),
        (0.99999, "99.9 % of the window was observed"),
        (1.0, ""),
        (None, ""),
    ],
)
def test_a_hundred_percent_is_said_of_all_only(coverage: float | None, says: str) -> None:
    assert coverage_words(coverage, windowed=True) == says
