"""Rows of counts: what they say, and how they become stretches."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.imports.records import NO_STAMP, RAGGED
from collector.imports.row import Aside
from collector.imports.state_table import (
    NO_COUNT,
    NO_QUEUE,
    NO_TIME,
    TOO_MUCH,
    StateMapping,
    StateRead,
    StateRow,
    read_state_csv,
    state_mapping_of,
)
from collector.imports.states import CONTRADICTS, NEARER, taken
from domain.errors import RecordingError, SettingsError
from domain.quantity import MICRO_PER_GPU
from domain.queue_state import Counts, QueueState
from domain.window import parse_instant

COLUMNS = {
    "at": "at", "queue": "q", "running_jobs": "run", "waiting_jobs": "wait", "jobs": "jobs",
    "held_gpus": "held", "idle_gpus": "idle", "total_gpus": "gpus", "waiting_gpus": "asked",
}  # fmt: skip
MAPPING = state_mapping_of({"columns": COLUMNS}, name="map.yaml")
HEAD = "at,q,run,wait,jobs,held,idle,gpus,asked"
NINE = parse_instant("2026-03-02T09:00:00Z")
STEP = 60_000


def read(*lines: str, mapping: StateMapping = MAPPING) -> list[StateRead]:
    return list(read_state_csv([line.encode() for line in (HEAD, *lines)], mapping, name="x.csv"))


def test_a_row_says_what_was_counted_and_what_follows_from_it() -> None:
    [row] = read("2026-03-02T09:00:00,a,3,2,,6,,8,4.5")
    assert row == StateRow(
        line=2,
        cluster="",
        queue="a",
        at_ms=NINE,
        counts=Counts(
            running_workloads=3,
            waiting_workloads=2,
            held_micro_gpus=6 * MICRO_PER_GPU,
            waiting_micro_gpus=4_500_000,
            idle_micro_gpus=2 * MICRO_PER_GPU,
            total_micro_gpus=8 * MICRO_PER_GPU,
        ),
    )


def test_what_is_not_counted_is_unknown_and_not_zero() -> None:
    [row] = read("2026-03-02T09:00:00,a,,2,,,,,")
    assert isinstance(row, StateRow)
    assert row.counts == Counts(waiting_workloads=2)


BAD = {
    "yesterday,a,1,1,2,,,,": NO_STAMP,
    ",a,1,1,2,,,,": NO_TIME,
    "2026-03-02T09:00:00,,1,1,2,,,,": NO_QUEUE,
    "2026-03-02T09:00:00,a,many,1,2,,,,": NO_COUNT,
    "2026-03-02T09:00:00,a,-1,1,2,,,,": NO_COUNT,
    "2026-03-02T09:00:00,a,2,1,2,,,,": TOO_MUCH,
    "2026-03-02T09:00:00,a,,,,9,,8,": TOO_MUCH,
    "2026-03-02T09:00:00,a": RAGGED,
}


@pytest.mark.parametrize(("line", "because"), BAD.items())
def test_a_row_that_says_nothing_is_set_aside(line: str, because: str) -> None:
    [aside] = read(line)
    assert isinstance(aside, Aside)
    assert (aside.because, aside.line) == (because, 2)


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"columns": {"at": "t"}}, "queue"),
    ({"columns": {"at": "t", "queue": "q"}}, "nothing is counted"),
    ({"columns": {"at": "t", "queue": "q", "jobs": "n"}, "step": "0s"}, "step"),
    ({"columns": {"at": "t", "queue": "q", "jobs": "n"}, "step": "2d"}, "between 1s and 1d"),
    ({"columns": {"at": "t", "queue": "q", "waiting": "n"}}, "waiting"),
)


@pytest.mark.parametrize(("written", "told"), WRONG)
def test_a_mapping_that_makes_no_sense_says_why(written: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        state_mapping_of(written, name="map.yaml")
    assert str(caught.value).startswith("map.yaml")


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(RecordingError, match=r"no column wait \(mapped to waiting_jobs\)"):
        list(read_state_csv([b"at,q,run,jobs,held,idle,gpus,asked"], MAPPING, name="x.csv"))


def row(minute: float, waiting: int, *, line: int = 1) -> StateRow:
    return StateRow(
        line=line,
        cluster="",
        queue="a",
        at_ms=round(minute * STEP),
        counts=Counts(waiting_workloads=waiting),
    )


def stretch(start: float, end: float, waiting: int) -> QueueState:
    return QueueState(
        queue="a",
        start_ms=round(start * STEP),
        end_ms=round(end * STEP),
        counts=Counts(waiting_workloads=waiting),
    )


def test_equal_rows_that_follow_each_other_are_one_stretch_and_a_gap_ends_it() -> None:
    found = taken([row(0, 1), row(1, 1), row(2, 3), row(4, 3)], {}, step_ms=STEP)
    assert found.stretches == [stretch(0, 2, 1), stretch(2, 3, 3), stretch(4, 5, 3)]
    assert (found.new, found.known, found.aside) == (4, 0, [])


@pytest.mark.parametrize("known", [[], [stretch(0, 2, 1)], [stretch(0, 1, 1), stretch(1, 2, 1)]])
def test_what_contradicts_what_is_known_or_stands_into_it_is_set_aside(known: list[QueueState]) -> None:
    rows = [row(0, 1, line=1), row(1, 1, line=2), row(1, 2, line=3), row(0.5, 1, line=4), row(1, 1, line=5)]
    found = taken(rows, {"a": known}, step_ms=STEP)
    assert sorted((aside.line, aside.because) for aside in found.aside) == [(3, CONTRADICTS), (4, NEARER)]
    assert (found.new, found.known) == ((0, 3) if known else (2, 1))


def test_a_row_that_would_stand_into_a_later_one_is_set_aside() -> None:
    found = taken([row(0.5, 1)], {"a": [stretch(1, 2, 1)]}, step_ms=STEP)
    assert [aside.because for aside in found.aside] == [NEARER]


def joined(stretches: Sequence[QueueState]) -> list[QueueState]:
    """Stretches that touch and say the same are one."""
    found: list[QueueState] = []
    for each in sorted(stretches, key=lambda one: one.start_ms):
        if found and (found[-1].end_ms, found[-1].counts) == (each.start_ms, each.counts):
            found[-1] = QueueState(
                queue="a", start_ms=found[-1].start_ms, end_ms=each.end_ms, counts=each.counts
            )
        else:
            found.append(each)
    return found


@given(
    minutes=st.dictionaries(st.integers(0, 9), st.integers(0, 2), max_size=10),
    places=st.permutations(range(10)),
    cut=st.integers(0, 10),
)
def test_in_whatever_order_and_pieces_rows_come_the_books_are_the_same(
    minutes: dict[int, int], places: list[int], cut: int
) -> None:
    rows = [row(minute, minutes[minute]) for minute in places if minute in minutes]
    whole = taken(rows, {}, step_ms=STEP).stretches
    first = taken(rows[:cut], {}, step_ms=STEP).stretches
    second = taken(rows[cut:], {"a": first}, step_ms=STEP)
    assert joined([*first, *second.stretches]) == joined(whole)
    again = taken(
        rows, {"a": sorted([*first, *second.stretches], key=lambda one: one.start_ms)}, step_ms=STEP
    )
    assert (again.new, again.known, again.stretches, again.aside) == (0, len(rows), [], [])
