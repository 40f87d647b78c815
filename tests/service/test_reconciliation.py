"""The totals of a file against those of the books: each stay by itself, and every difference is told."""

import polars as pl
import pytest

from service.reconciliation import Reconciliation, reconciled

GPU = 1_000_000
HOUR = 3_600_000


def told(*stays: tuple[str, int, str, int, int]) -> pl.DataFrame:
    """Stays of a file: pod, GPUs, outcome, hours told and hours between start and end."""
    rows = [
        {
            "pod_uid": pod, "progress": 1, "line": number, "team": "red", "outcome": outcome,
            "micro_gpus": gpus * GPU, "told_ms": hours * HOUR, "between_ms": between * HOUR,
        }
        for number, (pod, gpus, outcome, hours, between) in enumerate(stays)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def booked(*stays: tuple[str, int, str, int]) -> pl.DataFrame:
    """Stays of the books: pod, GPUs, outcome and hours held."""
    rows = [
        {
            "pod_uid": pod, "team": "red", "skewed": False, "outcome": outcome, "micro_gpus": gpus * GPU,
            "held_ms": hours * HOUR,
        }
        for pod, gpus, outcome, hours in stays
    ]  # fmt: skip
    return pl.DataFrame(rows)


FILE = told(("a", 4, "succeeded", 2, 2), ("b", 4, "succeeded", 3, 5))


def verdict(found: Reconciliation) -> tuple[bool, float, int]:
    return found.closes, found.unexplained_micro_ms / GPU / HOUR, found.unexplained_stays


@pytest.mark.parametrize(
    ("books", "expected"),
    [
        # For two hours b was suspended: the books count them as held, and that is explained.
        (booked(("a", 4, "succeeded", 2), ("b", 4, "succeeded", 5)), (True, 0, 0)),
        # An hour more here and one less there make the same sum, and are two mistakes.
        (booked(("a", 4, "succeeded", 3), ("b", 4, "succeeded", 4)), (False, 8, 0)),
        (booked(("a", 4, "failed", 2), ("b", 4, "succeeded", 5)), (False, 0, 1)),
        # A stay that the books lack: its outcome, and its hours.
        (booked(("b", 4, "succeeded", 5)), (False, 8, 1)),
    ],
)
def test_a_difference_that_nothing_explains_is_told(
    books: pl.DataFrame, expected: tuple[bool, float, int]
) -> None:
    found = reconciled(FILE, books)
    assert verdict(found) == expected
    assert found.suspended_hours == 8
    assert sum(line.file_hours for line in found.lines) == 20
