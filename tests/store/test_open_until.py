"""Until when rows of a workload count: the latest end of anything of it, for ever while something goes on."""

from typing import Any

import pyarrow as pa
import pytest

from store.embedded import Store
from store.lives import OF_WORKLOADS
from store.open_until import FOREVER, open_until
from tests.random_lives import CLUSTER, completed

OVER = {"submitted_ms": 1, "first_placed_ms": 2, "first_running_ms": 3, "ended_ms": 9}


def rows(store: Store, table: str, **columns: Any) -> list[dict[str, Any]]:
    return completed(store, table, [{"cluster": CLUSTER, "workload_uid": "w", **columns}])


def workload(store: Store, **columns: Any) -> list[dict[str, Any]]:
    return rows(store, "workload", gang_size=1, **(OVER | columns))


def until(store: Store, tables: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    schemas = {table: store.schema(table) for table in tables}
    return open_until(
        {table: pa.Table.from_pylist(found, schema=schemas[table]) for table, found in tables.items()}
    )


@pytest.mark.parametrize(
    ("table", "columns", "expected"),
    [
        ("span", {"start_ms": 1, "end_ms": 5}, 9),
        ("span", {"start_ms": 1, "end_ms": 20}, 20),
        ("span", {"start_ms": 1, "end_ms": None}, FOREVER),
        ("span", {"state": "ended", "start_ms": 9, "end_ms": None}, 9),
        ("holding", {"bound_ms": 2, "released_ms": 21}, 21),
        ("holding", {"bound_ms": 2, "released_ms": 4, "cut_known_ms": 22}, 22),
        ("holding", {"bound_ms": 2, "released_ms": None}, FOREVER),
        ("eviction", {"at_ms": 23}, 23),
        ("run", {"start_ms": 3, "end_ms": None}, 9),
    ],
)
def test_the_latest_end_of_anything_counts(
    store: Store, table: str, columns: dict[str, Any], expected: int
) -> None:
    given = {"workload": workload(store), table: rows(store, table, **columns)}
    assert until(store, given) == {"w": expected}


def test_a_workload_without_an_end_or_without_a_row_counts_for_ever(store: Store) -> None:
    assert until(store, {"workload": workload(store, ended_ms=None)}) == {"w": FOREVER}
    assert until(store, {"span": rows(store, "span", start_ms=1, end_ms=5)}) == {"w": FOREVER}


def test_what_is_cut_anew_is_found_again_whatever_it_counted_until(store: Store) -> None:
    for ended_ms, expected in ((None, FOREVER), (9, 9), (30, 30), (None, FOREVER), (7, 7)):
        span = rows(store, "span", state="running", start_ms=1, end_ms=ended_ms)
        tables = {"workload": workload(store, ended_ms=ended_ms), "span": span}
        store.write_lives(CLUSTER, {"w"}, tables, ("lives", 1))
        for table in ("workload", "span"):
            found = store.rows(f"select open_until_ms from {table}")  # noqa: S608 (ours)
            assert found == [{"open_until_ms": expected}]
        assert store.counting(CLUSTER, {"w"}) == (expected, expected)
    store.write_lives(CLUSTER, {"w"}, {}, ("lives", 2))
    left = [table for table in OF_WORKLOADS if store.rows(f"select 1 from {table}")]  # noqa: S608 (ours)
    assert left == []
    assert store.counting(CLUSTER, {"w", "never cut"}) == (0, FOREVER)
