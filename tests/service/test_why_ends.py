"""When those who hold something may end: by their own limit, by like runs, or nobody knows."""

from collections.abc import Iterator
from typing import Any

import pytest

from domain.window import format_instant
from service.why_ends import UNKNOWN, ends, first_end
from store.embedded import Store
from tests.golden.cases import store_of

MINUTE = 60_000
HOUR = 60 * MINUTE
NOW = 20 * HOUR


def work(uid: str, start_ms: int, end_ms: int | None, **differs: Any) -> dict[str, list[dict[str, Any]]]:
    """A workload that ran from one instant to another."""
    one = {"workload_uid": uid}
    attempt = {"number": 1, "start_ms": start_ms, "end_ms": end_ms}
    outcome = differs.pop("outcome", "succeeded" if end_ms else "open")
    return {
        "workload": [{**one, "submitted_ms": start_ms, "ended_ms": end_ms, **differs}],
        "attempt": [{**one, **attempt, "outcome": outcome}],
    }


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Ten runs of 1 to 10 hours, one preempted; free and limited hold GPUs since 18:00, odd is odd."""
    given: dict[str, list[dict[str, Any]]] = {"workload": [], "attempt": []}
    parts = [work(f"r{hours}", 0, hours * HOUR) for hours in range(1, 11)]
    parts += [
        work("cut", 0, 3 * HOUR, outcome="preempted"),
        work("free", 18 * HOUR, None),
        work("limited", 18 * HOUR, None),
        work("odd", 2 * HOUR, None, service_class="interactive"),
    ]
    for part in parts:
        for table, rows in part.items():
            given[table] += rows
    given["member"] = [{"workload_uid": "limited", "object_uid": "job", "kind": "Job"}]
    with store_of(given) as made:
        with made.transaction() as connection:
            connection.execute(
                "insert into description values ('east', 'job', 'Job', 'nlp', 'limited', 0, null, 0,"
                """ '{"most_seconds": 10800}', 1)"""
            )
        yield made


def test_a_run_of_two_hours_has_what_is_left_of_like_ones(store: Store) -> None:
    found = ends(store, "east", {"free": 19 * HOUR}, NOW)["free"]
    # Eight ran longer than 2 h: 3 to 10 hours.
    assert (found["ends_earliest"], found["ends_at"], found["ends_latest"]) == tuple(
        format_instant(18 * HOUR + hours * HOUR) for hours in (3, 6, 10)
    )
    assert found["ends_by"] == "like_runs"
    assert found["ends_because"].startswith("8 batch runs of team nlp with as many GPUs")


def test_nobody_runs_longer_than_he_may(store: Store) -> None:
    found = ends(store, "east", {"limited": 18 * HOUR}, NOW)["limited"]
    assert found["ends_at"] == found["ends_latest"] == format_instant(21 * HOUR)
    assert found["ends_by"] == "limit"
    assert found["ends_because"].endswith("it may run for 10,800 s at most")


def test_of_a_run_longer_than_all_others_nothing_is_known(store: Store) -> None:
    found = ends(store, "east", {"odd": 2 * HOUR, "free": 18 * HOUR}, NOW)
    assert found["odd"] == UNKNOWN
    assert first_end(list(found.values())) == found["free"]["ends_at"]
    assert first_end([UNKNOWN]) is None
