"""Derived rows are replaced by key, from an instant on or whole, together with their watermark."""

from collections.abc import Iterator
from typing import Any

import pytest

from domain.errors import StoreError
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books, make_workload

TABLE = "activity_span"


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open(None)
    yield opened
    opened.close()


def row(uid: str, start_ms: int, cluster: str = "north") -> dict[str, Any]:
    return {
        "cluster": cluster,
        "workload_uid": uid,
        "pod_uid": f"{uid}-0",
        "device": "GPU-1",
        "micro_gpus": 1_000_000,
        "start_ms": start_ms,
        "end_ms": start_ms + 60_000,
        "level": "high",
    }


def rows(store: Store) -> list[tuple[str, str, int]]:
    found = store.rows("select * from activity_span order by cluster, workload_uid, start_ms")
    return [(str(r["cluster"]), str(r["workload_uid"]), int(str(r["start_ms"]))) for r in found]


def fill(store: Store) -> None:
    for cluster in ("north", "south"):
        made = [row(uid, at, cluster) for uid in ("a", "b") for at in (0, 60_000)]
        store.replace(cluster, [Replacement(table=TABLE, rows=made)], ("activity", 1))


def test_rows_of_some_keys_are_replaced(store: Store) -> None:
    fill(store)
    store.replace("north", [Replacement(table=TABLE, rows=[row("a", 5)], keys=("workload_uid", ["a"]))])
    assert rows(store)[:3] == [("north", "a", 5), ("north", "b", 0), ("north", "b", 60_000)]
    assert len(rows(store)) == 7


def test_rows_from_an_instant_on_are_replaced(store: Store) -> None:
    fill(store)
    new = Replacement(table=TABLE, rows=[row("c", 90_000)], since=("start_ms", 60_000))
    store.replace("north", [new])
    assert rows(store)[:3] == [("north", "a", 0), ("north", "b", 0), ("north", "c", 90_000)]
    assert [uid for cluster, uid, _ in rows(store) if cluster == "south"] == ["a", "a", "b", "b"]


def test_a_wrong_row_leaves_everything_as_it_was(store: Store) -> None:
    fill(store)
    before = rows(store)
    with pytest.raises(StoreError, match="south"):
        store.replace("north", [Replacement(table=TABLE, rows=[row("a", 0, "south")])], ("activity", 9))
    with pytest.raises(StoreError, match="expected some of"):
        store.replace("north", [Replacement(table="workload; drop table span", rows=[])])
    assert rows(store) == before
    marks = store.rows("select seq from watermark where cluster = 'north' and job = 'activity'")
    assert [mark["seq"] for mark in marks] == [1]


def test_a_job_is_told_whose_lives_were_cut_since_its_watermark(store: Store) -> None:
    books = Books()
    make_workload(books, "a")
    make_workload(books, "b")
    store.write_lives("north", ["a", "b"], books.tables, ("lives", 4))
    assert list(store.cut_since("north", "wastage", most=9)) == [{"a", "b"}]
    assert list(store.cut_since("north", "wastage", most=1)) == [{"a"}, {"b"}]
    store.replace("north", [], ("wastage", 4))
    assert list(store.cut_since("north", "wastage", most=9)) == []
    # b was taken over by another workload: it has no rows any more, and that is news.
    store.write_lives("north", ["b"], {}, ("lives", 7))
    assert list(store.cut_since("north", "wastage", most=9)) == [{"b"}]
    assert list(store.cut_since("north", "lint", most=1)) == [{"a"}, {"b"}]
    assert list(store.cut_since("south", "wastage", most=9)) == []
