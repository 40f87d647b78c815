"""The views that metrics read."""

import pytest

from store.embedded import Store
from store.migrate import migrations
from tests.golden.cases import store_of, values

_LINES = [line for migration in migrations() for line in migration.text.splitlines()]
VIEWS = sorted(
    {line.split()[2] for line in _LINES if line.startswith("create view ")}
    - {line.split()[2].rstrip(";") for line in _LINES if line.startswith("drop view ")}
)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_empty_store_is_empty(store: Store, view: str) -> None:
    frame = store.frame("select * from query_table($view)".replace("$view", f"'{view}'"))
    assert frame.height == 0
    assert "cluster" in frame.columns


def test_every_view_is_tried(store: Store) -> None:
    rows = store.rows("select view_name from duckdb_views() where not internal order by view_name")
    assert [row["view_name"] for row in rows] == VIEWS
    assert "gpu_workload" in VIEWS


NINE = "2026-03-02T09:00:00Z"
TIMES = ["2026-03-02T09:10:00Z", "2026-03-02T09:20:00Z", "2026-03-02T09:25:00Z", "2026-03-02T09:55:00Z"]
NOON = "2026-03-02T12:00:00Z"
# Waits 10 minutes, runs 10, is thrown out for 5, waits 30 and runs again.
COURSE = [
    {"workload_uid": "w", "state": state, "start_at": start, "end_at": end}
    for state, start, end in zip(
        ("queued", "running", "backoff", "queued", "running"), [NINE, *TIMES], [*TIMES, None], strict=True
    )
]


def test_waiting_spans_are_numbered_by_placement() -> None:
    with store_of({"span": COURSE}) as store:
        rows = store.rows(
            "select episode, (end_ms - start_ms) / 60000 as minutes, (placed_ms - end_ms) / 60000 as later"
            " from waiting_span order by start_ms"
        )
    assert rows == [
        {"episode": 0, "minutes": 10, "later": 0},
        {"episode": 1, "minutes": 30, "later": 0},
    ]


def test_a_wait_counts_once_in_the_figures() -> None:
    with store_of({"span": COURSE}) as store:
        assert values(store, "queue_wait_seconds", NOON)["0.5", "started"] == 600
        assert values(store, "requeue_wait_seconds", NOON)["0.5", "started"] == 1800


def test_who_queues_again_is_in_the_queue() -> None:
    again, between = "2026-03-02T09:40:00Z", "2026-03-02T09:22:00Z"
    with store_of({"span": COURSE}) as store:
        depth = [values(store, "queue_depth_workloads", at).values() for at in (again, between)]
        waited = values(store, "starvation_index_seconds", again).values()
    assert [sum(each) for each in depth] == [1, 0]
    assert max(waited) == 15 * 60


def test_held_time_before_the_first_placement_is_no_wait() -> None:
    held = {"workload_uid": "w", "state": "held", "start_at": NINE, "end_at": TIMES[0], "first_wait": True}
    waited = {"workload_uid": "w", "state": "queued", "start_at": TIMES[0], "end_at": TIMES[1]}
    running = {"workload_uid": "w", "state": "running", "start_at": TIMES[1]}
    with store_of({"span": [held, waited, running]}) as store:
        found = values(store, "queue_wait_seconds", NOON)
    assert {found["0.5", estimator] for estimator in ("started", "censored")} == {600}
