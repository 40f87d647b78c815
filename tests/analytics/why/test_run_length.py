"""What is left of a run, against the lengths of all like runs that lasted longer."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from analytics.why.run_length import FEWEST, Kind, RunLengths

KINDS = st.builds(
    Kind,
    team=st.sampled_from(["nlp", "vision"]),
    service_class=st.sampled_from(["batch", "interactive"]),
    micro_gpus=st.sampled_from([None, 1_000_000, 8_000_000]),
)
RUNS = st.lists(st.tuples(KINDS, st.integers(0, 100)), max_size=60)


def alike(runs: list[tuple[Kind, int]], kind: Kind, age_ms: int) -> list[int]:
    """The lengths beyond the age of the first set of like runs that is large enough."""
    for rung in (
        lambda one: one == kind,
        lambda one: one[1:] == kind[1:],
        lambda one: one.service_class == kind.service_class,
        lambda _: True,
    ):
        lengths = sorted(length for one, length in runs if rung(one) and length > age_ms)
        if len(lengths) >= FEWEST:
            return lengths
    return []


@given(RUNS, KINDS, st.integers(0, 100))
def test_the_rest_of_a_run_is_that_of_like_runs_which_lasted_longer(
    runs: list[tuple[Kind, int]], kind: Kind, age_ms: int
) -> None:
    found = RunLengths.of(runs).expected(kind, age_ms)
    lengths = alike(runs, kind, age_ms)
    if not lengths:
        assert found is None
        return
    assert found is not None
    low, median, high = (lengths[ceil(share * len(lengths) / 10) - 1] - age_ms for share in (1, 5, 9))
    assert (found.low_ms, found.median_ms, found.high_ms) == (low, median, high)
    assert found.runs == len(lengths)
    assert found.low_ms > 0


def test_it_says_which_runs_it_rests_on() -> None:
    mine, theirs = Kind("nlp", "batch", 8_000_000), Kind("vision", "batch", 8_000_000)
    lengths = RunLengths.of([(theirs, length) for length in range(10, 30)] + [(mine, 5)] * FEWEST)
    young, older = lengths.expected(mine, 1), lengths.expected(mine, 6)
    assert young is not None
    assert older is not None
    assert young.like == "batch runs of team nlp with as many GPUs"
    assert (older.like, older.runs, older.median_ms) == ("batch runs with as many GPUs", 20, 13)
