"""A counter that goes on from what was counted before tells what it tells when all is counted anew."""

import re
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, is_counter
from analytics.metrics import REGISTRY
from domain.metric import Sample
from domain.policy import Policy
from service.counters import keep_counted, questions, rows_of
from service.reading import Reader
from store import forgetting, retention
from store.embedded import Store
from store.lives import OF_WORKLOADS
from tests.laws import law
from tests.random_lives import CLUSTER, HOUR, Tables, completed, random_lives, write

DAY = 24 * HOUR
KEPT = 3 * DAY
POLICY = Policy()
COUNTERS = [metric for metric in REGISTRY.values() if is_counter(metric)]


def told(store: Store, as_of_ms: int, *, anew: bool = False) -> dict[str, list[Sample]]:
    """The exported samples by metric."""
    return {
        metric.name: evaluate(
            metric,
            Reader(store.rows, store.frame, metric.labels).read(metric, ask)
            if anew
            else rows_of(store, metric, ask, question),
            ask,
        )
        for metric, ask, question in questions(COUNTERS, as_of_ms, POLICY)
    }


def counted(store: Store) -> list[int]:
    """Up to when each counter is kept."""
    return [int(str(row["until_ms"])) for row in store.rows("select until_ms from counted")]


def rewritten(store: Store, tables: Tables, uids: Iterable[str]) -> None:
    """Write what is known of these workloads now; of one without rows there is nothing any more."""
    chosen = set(uids)
    rows = {
        table: completed(store, table, [row for row in found if row["workload_uid"] in chosen])
        for table, found in tables.items()
        if table in OF_WORKLOADS
    }
    store.write_lives(CLUSTER, chosen, rows, ("lives", 1))


def of_five_days() -> tuple[Store, Tables]:
    """A store, counted up to the end of its third day."""
    store, tables = Store.open(None), random_lives(Random(3), workloads=60, end_ms=5 * DAY)
    write(store, tables)
    assert keep_counted(store, COUNTERS, as_of_ms=KEPT + DAY, policy=POLICY) == len(COUNTERS) == 3
    assert set(counted(store)) == {KEPT}
    return store, tables


@law(12, few=3)
@given(st.integers(0, 2**32), st.integers(0, 6), st.integers(0, 6), st.sets(st.integers(0, 39)))
def test_counting_on_is_counting_anew(seed: int, first: int, second: int, news: set[int]) -> None:
    store, random = Store.open(None), Random(seed)
    write(store, random_lives(random, workloads=30, end_ms=5 * DAY))
    for day in (first, second):
        keep_counted(store, COUNTERS, as_of_ms=day * DAY, policy=POLICY)
    rewritten(store, random_lives(random, workloads=40, end_ms=6 * DAY), {f"w{number}" for number in news})
    for as_of_ms in (2 * DAY + 1, 4 * DAY, 7 * DAY):
        assert told(store, as_of_ms) == told(store, as_of_ms, anew=True)
    store.close()


def test_no_counter_is_kept_by_a_label_that_changes_with_the_instant() -> None:
    assert [metric.name for metric in COUNTERS if "gpu_model" in metric.labels] == []


def test_a_counter_rests_on_no_setting_for_what_is_kept_outlives_its_change() -> None:
    assert COUNTERS
    for metric in COUNTERS:
        assert set(re.findall(r"\$(\w+)", metric.sql)) == {"since_ms", "as_of_ms"}, metric.name


def test_what_is_kept_is_told_and_not_counted_again() -> None:
    store, _ = of_five_days()
    before = told(store, 6 * DAY)
    with store.transaction() as connection:
        # Nobody does so: lives are written by `write_lives`, which drops what they change.
        connection.execute(
            "update workload set first_wait_ms = 0 where first_placed_ms < $until_ms", {"until_ms": KEPT}
        )
        connection.execute("delete from eviction where at_ms < $until_ms", {"until_ms": KEPT})
    assert told(store, 6 * DAY) == before
    # A question about an earlier instant counts anew.
    assert told(store, 2 * DAY) == told(store, 2 * DAY, anew=True)
    store.close()


def _early(tables: Tables) -> dict[str, Any]:
    return next(row for row in tables["workload"] if (row["first_placed_ms"] or KEPT) < KEPT)


def _later(tables: Tables) -> str:
    """A workload that is told of only since the third day, and has preempted nobody before."""
    early = {row["workload_uid"] for row in tables["workload"] if (row["first_placed_ms"] or KEPT) < KEPT}
    early |= {row["workload_uid"] for row in tables["eviction"] if row["at_ms"] < KEPT}
    early |= {row["preemptor_uid"].removesuffix("-p") for row in tables["eviction"] if row["at_ms"] < KEPT}
    return next(str(row["workload_uid"]) for row in tables["workload"] if row["workload_uid"] not in early)


@pytest.mark.parametrize("column", ["service_class", "team", "skewed", "first_placed_ms"])
def test_news_of_what_counted_before_drops_what_is_kept(column: str) -> None:
    store, tables = of_five_days()
    row = _early(tables)
    row[column] = row[column] + 1 if column == "first_placed_ms" else "other"
    rewritten(store, tables, [row["workload_uid"]])
    assert counted(store) == []
    assert told(store, 6 * DAY) == told(store, 6 * DAY, anew=True)
    store.close()


def test_news_of_what_counts_since_drops_nothing() -> None:
    store, tables = of_five_days()
    row, later = _early(tables), _later(tables)
    # That it ends says nothing of its first wait.
    row["ended_ms"] = 5 * DAY
    of_later = next(each for each in tables["workload"] if each["workload_uid"] == later)
    of_later["service_class"] = "best_effort"
    rewritten(store, tables, [row["workload_uid"], later])
    assert set(counted(store)) == {KEPT}
    assert told(store, 6 * DAY) == told(store, 6 * DAY, anew=True)
    store.close()


def test_another_class_of_who_preempted_drops_what_is_kept() -> None:
    store, tables = of_five_days()
    preemptors = {row["preemptor_uid"] for row in tables["eviction"] if row["at_ms"] < KEPT}
    uid = min(preemptors).removesuffix("-p")
    row = next(each for each in tables["workload"] if each["workload_uid"] == uid)
    row["service_class"] = "best_effort"
    rewritten(store, tables, [uid])
    assert counted(store) == []
    store.close()


def test_retention_and_forgetting_drop_what_is_kept() -> None:
    store, _ = of_five_days()
    retention.drop_before(store, [CLUSTER], DAY)
    assert counted(store) == []
    keep_counted(store, COUNTERS, as_of_ms=KEPT + DAY, policy=POLICY)
    forgetting.forget(store, "ada", "somebody", labels=())
    assert counted(store) == []
    store.close()
