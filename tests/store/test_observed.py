"""Stretches of sights in the store: few, the same in any order of arrival, and as known by an instant."""

from collections.abc import Iterator

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.facts import Batch, ObjectKind
from domain.observed import Observed, Stretch
from store.embedded import Store
from store.observed import of_samples
from tests.laws import law

MINUTE = 60_000
# Minutes of sights, and whether a list told; a watch is silent too long after three of them.
SIGHTS = st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=8)
COUNT = iter(range(1_000_000))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    store = Store.open(None)
    yield store
    store.close()


def sight(minute: float, *, resumed: bool = False) -> Stretch:
    at_ms = round(minute * MINUTE)
    return Stretch(start_ms=at_ms, end_ms=at_ms, resumed=resumed)


def give(store: Store, cluster: str, *sights: Stretch) -> None:
    store.append(Batch(cluster=cluster, sights={ObjectKind.POD: list(sights)}))


def told(store: Store, cluster: str, as_of: float = 1_000) -> list[tuple[float, float]]:
    """Minutes of the stretches as known by a minute, cut there as a question cuts them."""
    end_ms = round(as_of * MINUTE)
    return [
        (int(str(row["start_ms"])) / MINUTE, min(int(str(row["end_ms"])), end_ms) / MINUTE)
        for row in store.stretches(start_ms=0, as_of_ms=end_ms)
        if row["cluster"] == cluster
    ]


def test_sights_within_the_patience_are_one_row_and_a_list_after_a_silence_begins_another(
    store: Store,
) -> None:
    give(store, "north", sight(0), sight(2), sight(5))
    give(store, "north", sight(7))
    give(store, "north", sight(20), sight(21))
    assert told(store, "north") == [(0, 7), (20, 21)]
    # What is read again changes nothing.
    give(store, "north", sight(0), sight(21))
    assert told(store, "north") == [(0, 7), (20, 21)]


def test_a_sight_between_two_stretches_makes_them_one(store: Store) -> None:
    for minute in (0, 6, 3):
        give(store, "east", sight(minute))
    assert told(store, "east") == [(0, 6)]


def test_a_watch_that_goes_on_after_a_silence_has_missed_nothing_and_nobody_knew_before(
    store: Store,
) -> None:
    give(store, "south", sight(0), sight(10, resumed=True), sight(30, resumed=True))
    assert told(store, "south") == [(0, 30)]
    assert told(store, "south", as_of=20) == [(0, 10)]
    assert told(store, "south", as_of=10) == [(0, 10)]
    assert told(store, "south", as_of=9.9) == [(0, 0)]


def test_what_is_told_by_itself_goes_on_within_the_patience_and_begins_anew_after_it(store: Store) -> None:
    for minute in (0, 1, 30, 31):
        give(store, "bit-by-bit", sight(minute))
    assert told(store, "bit-by-bit") == [(0, 1), (30, 31)]


@law(100, few=20)
@given(SIGHTS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(
    store: Store, sights: list[tuple[int, bool]], chance: object
) -> None:
    one, other = f"one-{next(COUNT)}", f"other-{next(COUNT)}"
    give(store, one, *(sight(minute, resumed=not listed) for minute, listed in sorted(sights)))
    for minute, listed in sorted(sights, key=lambda _: chance.random()):  # type: ignore[attr-defined]
        give(store, other, sight(minute, resumed=not listed))
    assert told(store, one) == told(store, other)


@law(100, few=20)
@given(SIGHTS, st.integers(1, 60))
def test_asked_later_the_past_is_told_as_it_was_known(
    store: Store, sights: list[tuple[int, bool]], as_of: int
) -> None:
    whole, part = f"whole-{next(COUNT)}", f"part-{next(COUNT)}"
    give(store, whole, *(sight(minute, resumed=not listed) for minute, listed in sights))
    give(store, part, *(sight(minute, resumed=not listed) for minute, listed in sights if minute <= as_of))
    # A stretch in progress was seen within the patience: that counts as observed either way.
    ends = [(a, min(b + 3, as_of)) for a, b in told(store, whole, as_of)]
    assert ends == [(a, min(b + 3, as_of)) for a, b in told(store, part, as_of)]


def test_a_sample_stands_for_one_and_a_half_of_its_steps() -> None:
    frame = pl.DataFrame(
        {
            "source": ["x", "x", "x", "x", "y"],
            "node": ["a", "a", "a", "b", "a"],
            "at_ms": [0, 100, 300, 50, 150],
            "step_ms": [100, 100, 100, 10, 100],
        }
    )
    assert of_samples(frame) == {
        Observed("GPU metrics", "x", "a"): [
            Stretch(start_ms=0, end_ms=250),
            Stretch(start_ms=300, end_ms=450),
        ],
        Observed("GPU metrics", "x", "b"): [Stretch(start_ms=50, end_ms=65)],
        Observed("GPU metrics", "y", "a"): [Stretch(start_ms=150, end_ms=300)],
    }
