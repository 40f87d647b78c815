"""Lives: what is derived of a workload is replaced whole, together with its watermark."""

from typing import Any

import polars as pl
import pytest

from domain.errors import StoreError
from domain.workload import State
from store.derived import TABLES
from store.embedded import Store

CLUSTER = "city"


def span(uid: str, start_ms: int, **other: Any) -> dict[str, Any]:
    row = {
        "cluster": CLUSTER,
        "workload_uid": uid,
        "state": State.QUEUED,
        "start_ms": start_ms,
        "end_ms": None,
        "start_earliest_ms": None,
        "reason": "",
        "first_wait": True,
    }
    return row | other


def attempt(uid: str, number: int) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "workload_uid": uid,
        "number": number,
        "start_ms": 5,
        "end_ms": None,
        "outcome": "open",
        "reason": "",
        "preempted_by": "",
        "source": "pods",
    }


def queue(name: str, cluster: str = CLUSTER) -> dict[str, Any]:
    return {"cluster": cluster, "queue": name, "kind": "ClusterQueue", "start_ms": 1, "end_ms": None}


def spans(store: Store) -> list[tuple[object, object]]:
    rows = store.rows("select workload_uid, start_ms from span order by workload_uid, start_ms")
    return [(row["workload_uid"], row["start_ms"]) for row in rows]


def test_a_workload_that_is_cut_anew_keeps_nothing_of_the_old_cut(store: Store) -> None:
    first = {"span": [span("a", 1), span("a", 2), span("b", 3)], "attempt": [attempt("a", 1)]}
    store.write_lives(CLUSTER, {"a", "b"}, first, ("lives", 10))
    store.write_lives(CLUSTER, {"a"}, {"span": [span("a", 7)]}, ("lives", 20))
    assert spans(store) == [("a", 7), ("b", 3)]
    assert store.rows("select number from attempt") == []
    assert store.rows("select job, seq from watermark") == [{"job": "lives", "seq": 20}]


def test_a_frame_is_taken_in_any_order_of_its_columns(store: Store) -> None:
    frame = pl.DataFrame([span("a", 1)], schema_overrides={"end_ms": pl.Int64, "start_earliest_ms": pl.Int64})
    store.write_lives(CLUSTER, {"a"}, {"span": frame.select(reversed(frame.columns))}, ("lives", 1))
    assert store.rows("select state, start_ms, end_ms, first_wait from span") == [
        {"state": "queued", "start_ms": 1, "end_ms": None, "first_wait": True}
    ]


def test_a_column_without_a_single_value_fits_any_type(store: Store) -> None:
    store.write_lives(CLUSTER, {"a"}, {"span": pl.DataFrame([span("a", 1)])}, ("lives", 1))
    assert spans(store) == [("a", 1)]


def test_queues_and_nodes_are_replaced_for_their_cluster_only_when_given(store: Store) -> None:
    store.write_lives("other", [], {"queue_span": [queue("far", "other")]}, ("lives", 1))
    store.write_lives(CLUSTER, [], {"queue_span": [queue("x"), queue("y")]}, ("lives", 1))
    store.write_lives(CLUSTER, [], {"queue_span": [queue("z")]}, ("lives", 2))
    store.write_lives(CLUSTER, [], {"node_span": []}, ("lives", 3))
    names = store.rows("select queue from queue_span order by queue")
    assert [row["queue"] for row in names] == ["far", "z"]


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"spans": []}, "'spans'.*expected some of"),
        (
            {"span": [{**span("a", 1), "stat": 1}]},
            r"table span: missing columns \[\], unknown columns \['stat'\]",
        ),
        ({"attempt": [{"cluster": CLUSTER}]}, r"table attempt: missing columns \['end_ms', 'number'"),
        (
            {"attempt": pl.DataFrame({"cluster": [CLUSTER]})},
            r"table attempt: missing columns \['end_ms', 'number'",
        ),
        ({"span": [span("a", 1), span("a", 2, end_ms=1.5)]}, "table span: .*expected cluster string"),
        ({"span": [span("a", 1, end_ms="soon")]}, "table span: .*expected cluster string"),
        ({"span": pl.DataFrame([span("a", 1, end_ms="soon")])}, "table span: .*expected cluster string"),
        ({"span": [span("a", 1, reason=7)]}, "table span: .*expected cluster string"),
        ({"span": [span("a", 1, reason=None)]}, "span.reason"),
        ({"span": [span("stranger", 1)]}, "table span: workload_uid 'stranger' is not among those"),
        ({"span": [span("a", 1, cluster="other")]}, "table span: cluster 'other' is not among those"),
        ({"queue_span": [queue("q", "other")]}, "table queue_span: cluster 'other' is not among those"),
    ],
)
def test_rows_that_do_not_fit_change_nothing_and_are_named(
    store: Store, tables: dict[str, Any], told: str
) -> None:
    store.write_lives(CLUSTER, {"a"}, {"span": [span("a", 1)]}, ("lives", 1))
    with pytest.raises(StoreError, match=told):
        store.write_lives(CLUSTER, {"a"}, tables, ("lives", 2))
    assert spans(store) == [("a", 1)]
    assert store.rows("select seq from watermark") == [{"seq": 1}]


def test_every_derived_table_is_replaced(store: Store) -> None:
    tables = store.rows(
        "select table_name from duckdb_columns() where column_name = 'workload_uid' and table_name in"
        " (select table_name from duckdb_tables()) order by table_name"
    )
    with store.transaction() as connection:
        for row in tables:
            table = str(row["table_name"])
            columns = store.schema(table)
            blank = [_blank(column.name, str(column.type)) for column in columns]
            connection.table(table).insert(blank)
    store.write_lives(CLUSTER, {"a"}, {}, ("lives", 1))
    names = {str(row["table_name"]) for row in tables}
    kept = {name for name in names if store.frame(f"select * from {name}").height}  # noqa: S608
    # What stages derive of lives is theirs to replace, by these tables that tell them what is new.
    assert kept - TABLES == {"activity_cut", "activity_holding", "workload_cut"}
    assert len(tables) >= 7


def _blank(name: str, kind: str) -> object:
    if name in {"cluster", "workload_uid"}:
        return {"cluster": CLUSTER, "workload_uid": "a"}[name]
    return {"string": "", "int64": 0, "bool": False}[kind]
