"""Product and peers give equal answers to the questions of the benchmark, at a size that costs nothing."""

import json
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchmarks import backfill, by_pandas, by_polars, by_product, by_prometheus, month, refreshing
from benchmarks.analytics import (
    FULL,
    QUESTIONS,
    QUICK,
    Size,
    prometheus_figures,
    refresh_figures,
    same,
    seeded,
)
from benchmarks.backfill import digests
from benchmarks.questions import Data
from benchmarks.seeded_jobs import GPUS, Cluster, days_of_jobs
from benchmarks.seeded_store import ALL, written
from store.embedded import Store

SMALL = Cluster(jobs=600, days=4, nodes=42)
TINY = Size(
    questions=SMALL, month=SMALL, prometheus=SMALL, refresh=SMALL, longer=2, rounds=1,
    backfill=Cluster(jobs=30, days=2, nodes=1),
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return seeded(SMALL, tmp_path_factory.mktemp("seeded"))


def test_no_gpu_is_held_twice_and_jobs_wait_are_cancelled_and_go_on() -> None:
    jobs = pl.concat(list(days_of_jobs(SMALL)))
    states = set(jobs["state"])
    assert states == {"succeeded", "failed", "cancelled", "open"}
    assert jobs.filter(pl.col("start_ms").is_null(), state="open").height
    there = jobs.filter(pl.col("start_ms").is_not_null()).with_columns(
        pl.col("end_ms").fill_null(SMALL.end_ms), node=pl.int_ranges("node", pl.col("node") + pl.col("nodes"))
    )
    held = there.explode("node").with_columns(gpus=pl.min_horizontal("gpus", GPUS))
    changes = pl.concat(
        [
            held.select("node", at_ms="start_ms", change="gpus"),
            held.select("node", at_ms="end_ms", change=-pl.col("gpus")),
        ]
    )
    level = changes.sort("node", "at_ms", "change").select(pl.col("change").cum_sum().over("node"))
    assert set(level["change"]) <= set(range(GPUS + 1))
    assert held.filter(pl.col("nodes") > 1).height


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_product_and_its_peers_give_the_same_answer(question: str, data: Data) -> None:
    asked = data.told() | {"question": question}
    # As children tell them.
    ours, pandas, polars = (
        json.loads(json.dumps(of.answer(asked))) for of in (by_product, by_pandas, by_polars)
    )
    assert len(ours) > 50
    same(ours, pandas)
    same(ours, polars)


def test_a_month_from_facts_and_from_kept_days_is_what_peers_tell(data: Data) -> None:
    told = json.loads(json.dumps(month.answer(data.told())))
    for peer in (by_pandas, by_polars):
        same(told["answer"], json.loads(json.dumps(peer.answer(data.told() | {"question": "money"}))))


def test_answers_that_differ_are_refused() -> None:
    same({"a": [1.5, "2.00"]}, {"a": [1.5, "2.01"]})
    for theirs in ({"a": [1.5, "2.02"]}, {"a": [1.25, "2.00"]}, {"b": [1.5, "2.00"]}):
        with pytest.raises(AssertionError):
            same({"a": [1.5, "2.00"]}, theirs)
    with pytest.raises(AssertionError):
        same({"a": 1}, {"a": 2})


def test_seeded_rows_are_what_writing_lives_leaves() -> None:
    cluster = replace(SMALL, jobs=60, days=2)
    held = []
    for only in (ALL, ()):
        store = Store.open(None)
        assert written(store, days_of_jobs(cluster), cluster, only=only)
        held.append(dict(digests(store)) | {"seen": store.rows("select * from dimensions_seen order by all")})
        store.close()
    assert held[0] == held[1]


def filled(tmp_path: Path, cluster: Cluster, *, sampled_days: int) -> list[dict[str, Any]]:
    """The back-fill of a cluster's jobs at once, and day by day."""
    once, pieces = backfill.files(tmp_path, cluster, sampled_days=sampled_days)
    return [
        backfill.answer(
            {
                "cluster": asdict(cluster),
                "store": str(tmp_path / name),
                "files": [str(each) for each in files],
            }
        )
        for name, files in {"once": once, "pieces": pieces}.items()
    ]


def test_a_back_fill_leaves_the_ledger_that_days_leave(tmp_path: Path) -> None:
    once, pieces = filled(tmp_path, Cluster(jobs=30, days=2, nodes=1), sampled_days=0)
    assert once["holds"] == pieces["holds"]
    kept = {table for table, (rows, _) in once["holds"].items() if rows}
    assert kept >= {"workload", "waste_piece", "demand_step", "share_span", "team_share_span", "pool_span"}
    assert once["jobs"] < pieces["jobs"], "some job ended on a later day than it was first told of"


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_back_fill_with_samples_gives_the_books_of_its_days(tmp_path: Path) -> None:
    once, pieces = filled(tmp_path, Cluster(jobs=600, days=5, nodes=3), sampled_days=1)
    assert once["holds"] == pieces["holds"]
    assert once["samples"] == pieces["samples"] > 1000


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_later_all_is_measured_with_what_is_new(tmp_path: Path) -> None:
    cluster = replace(SMALL, days=2)
    path = tmp_path / "store.duckdb"
    told = refreshing.filled(path, cluster)
    store = Store.open(path)
    (before,) = store.rows("select count(*) as workloads from workload")
    store.close()
    news = pl.concat(list(days_of_jobs(cluster))).tail(1)
    news.write_parquet(told)
    answer = refreshing.answer({"cluster": asdict(cluster), "store": str(path), "news": str(told)})
    assert answer["changed"] == 1
    assert answer["series"] > 500
    assert answer["rows"] > int(str(before["workloads"]))


def test_full_and_quick_are_what_they_say() -> None:
    assert FULL.questions.jobs == 10_000_000
    assert FULL.refresh.nodes * GPUS == 8_000
    assert QUICK.rounds < FULL.rounds


@pytest.mark.long
@pytest.mark.timeout(600)
def test_rows_that_are_read_are_counted_with_and_without_a_longer_history(tmp_path: Path) -> None:
    figures = {one.name: one for one in refresh_figures(TINY, tmp_path)}
    assert figures["refresh of all metrics"].ours > 0
    assert figures["rows read with 2 times the history"].ours > 0


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.prometheus
@pytest.mark.skipif(bool(by_prometheus.missing()), reason="prometheus is not installed")
def test_a_prometheus_is_near_in_depth_and_off_in_waits(tmp_path: Path) -> None:
    figures = {one.name: one for one in prometheus_figures(TINY, tmp_path)}
    assert figures["depth, error in all"].peer is not None
    assert figures["depth, error in all"].peer < 0.2
    assert figures["p99 of waits, largest error"].peer
    assert Decimal(figures["memory, Prometheus"].peer or 0) > 0
