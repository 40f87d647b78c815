"""A refresh of the exported metrics reads as many rows after ten times the history."""

from random import Random
from typing import Any

import duckdb
import polars as pl
import pytest

from analytics.metrics import REGISTRY
from benchmarks.scanned import scanned, scans
from domain.policy import Policy
from service import listed_sql
from service.counters import keep_counted
from store.embedded import Store
from store.migrate import migrate
from tests.random_lives import CLUSTER, HOUR, completed, random_lives, write

# The smallest row group that DuckDB knows; its usual one is sixty times as large.
GROUP = 2_048
DAY = 24 * HOUR
NOW = 400 * DAY


class SmallGroups:
    """A connection to a database in memory of which every table has small row groups."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"attach ':memory:' as small (row_group_size {GROUP})")
        self._connection.execute("use small")
        self._connection.execute("set global TimeZone = 'UTC'")
        migrate(self._connection, now_ms=0, name="in memory")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute("use small")
        return cursor

    def close(self) -> None:
        self._connection.close()


def past(store: Store, workloads: int) -> dict[str, pl.DataFrame]:
    """Workloads that have ended long ago, with a row in each table."""
    number = pl.DataFrame({"number": pl.int_range(workloads, eager=True)})
    start_ms = pl.col("number") * (300 * DAY // workloads)
    given: dict[str, dict[str, Any]] = {
        "workload": {
            "submitted_ms": start_ms, "first_placed_ms": start_ms, "first_running_ms": start_ms,
            "ended_ms": start_ms + HOUR, "gang_size": 1, "requested_micro_gpus": 1_000_000,
            "team": "a", "queue": "q", "service_class": "batch", "gpu_model": "A100",
        },
        "span": {"state": "running", "start_ms": start_ms, "end_ms": start_ms + HOUR},
        "attempt": {"number": 1, "start_ms": start_ms, "end_ms": start_ms + HOUR, "source": "pods"},
        "holding": {
            "attempt": 1, "pod_uid": "pod", "node": "n0", "gpu_model": "A100", "micro_gpus": 1_000_000,
            "bound_ms": start_ms, "started_ms": start_ms, "released_ms": start_ms + HOUR, "restarts": 0,
        },
        "run": {"pod_uid": "pod", "start_ms": start_ms, "end_ms": start_ms + HOUR},
        "eviction": {"at_ms": start_ms, "preempted": True, "attempt": 1, "missed": 0},
        "member_wait": {"pod_uid": "pod", "start_ms": start_ms, "end_ms": start_ms + HOUR},
        "reservation": {"start_ms": start_ms, "end_ms": start_ms + HOUR},
        "quota_use": {"resources": "{}", "start_ms": start_ms, "end_ms": start_ms + HOUR},
        "member": {"object_uid": pl.format("old-{}", "number")},
        "workload_shape": {"part": 0, "pods": 1, "devices": 1, "resource": "nvidia.com/gpu"},
        "pod_device": {"pod_uid": "pod", "devices": 1, "resource": "nvidia.com/gpu"},
        "waste_piece": {
            "attempt": 1, "micro_gpus": 1_000_000, "start_ms": start_ms, "end_ms": start_ms + HOUR,
            "cause": "useful", "earlier_cause": "useful",
        },
    }  # fmt: skip
    found = {table: _frame(store, table, number, columns) for table, columns in given.items()}
    # What has ended is in that state for ever.
    ended = {"state": "ended", "start_ms": start_ms + HOUR, "end_ms": None}
    found["span"] = pl.concat([found["span"], _frame(store, "span", number, ended)])
    return found


def _frame(store: Store, table: str, number: pl.DataFrame, given: dict[str, Any]) -> pl.DataFrame:
    (blank,) = completed(store, table, [{}])
    columns = {**blank, "cluster": CLUSTER, "workload_uid": pl.format("old-{}", "number"), **given}
    return number.select(
        **{
            name: value
            if isinstance(value, pl.Expr)
            else pl.lit(value, None if value is not None else pl.Int64)
            for name, value in columns.items()
        }
    )


def rows_read(history: int) -> dict[str, int]:
    """Rows by metric that a question about now reads beside a history of so many workloads."""
    store = Store(SmallGroups, None)  # type: ignore[arg-type]
    tables = past(store, history)
    pieces = tables.pop("waste_piece")
    uids = tables["workload"]["workload_uid"].to_list()
    store.write_lives(CLUSTER, uids, tables, ("lives", 1))
    with store.transaction() as connection:
        names = store.schema("waste_piece").names
        connection.from_arrow(pieces.select(names).to_arrow()).insert_into("waste_piece")
    now = random_lives(Random(1), workloads=300, start_ms=NOW - DAY, end_ms=NOW)
    write(store, now)
    # As housekeeping does each hour.
    keep_counted(store, REGISTRY.values(), as_of_ms=NOW, policy=Policy())
    found = {name: scan.rows for scan in scans(store, NOW, Policy()) for name in scan.metrics}
    for name, (sql, given) in pages().items():
        by_table = scanned(store, sql, {"as_of_ms": NOW, **given}, (name,)).rows_by_table
        # Of the workloads themselves a list looks at those columns that it chooses and orders by.
        found[name] = sum(rows for table, rows in by_table.items() if table != "workload")
    store.close()
    return found


def pages() -> dict[str, tuple[str, dict[str, Any]]]:
    """What the pages of jobs and of the home ask of all workloads."""
    newest = listed_sql.page([], by_state=False, sort="submitted_ms", descending=True)
    waiting = listed_sql.page([], by_state=True, sort="waiting_ms", descending=True)
    ten = {"page_size": 10, "skipped": 0}
    states = {"states": ["queued", "checking", "placing"]}
    return {
        "the newest": (newest, ten),
        "the longest waiting": (waiting, ten | states),
        "how many wait": (listed_sql.count([], by_state=True), states),
    }


@pytest.mark.long
def test_ten_times_the_history_costs_a_refresh_nothing() -> None:
    once, ten_times = rows_read(2 * GROUP), rows_read(20 * GROUP)
    assert sum(once.values()) > 10_000
    grown = {name for name, rows in once.items() if ten_times[name] > rows * 1.1}
    assert grown == set()
    assert sum(ten_times.values()) < 1.1 * sum(once.values())
