"""
A month of jobs and of GPU-minute samples taken in from files: what it costs, and that pieces give the same.

All at once is one file of jobs and one of samples. In pieces is what a site would have exported each day: of
the jobs as they were known by then those of which something is new, and the day's samples.
"""

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np
import polars as pl

from benchmarks.refreshing import known_by
from benchmarks.seeded_jobs import CLUSTER, DAY_MS, START_MS, Cluster, days_of_jobs
from collector.dcgm.parquet import read_parquet
from collector.imports.mapping import mapping_of
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.books import books_of
from service.gpu_metrics import keep_parts
from service.job_imports import import_jobs, table_source
from store.embedded import Store
from store.lives import OF_WORKLOADS

MAPPING: Final = mapping_of(
    {
        "columns": {
            "id": "id", "submit": "submit_ms", "start": "start_ms", "end": "end_ms", "state": "state",
            "team": "team", "user": "user", "queue": "queue", "priority_class": "priority_class",
            "node": "host", "gpus": "gpus", "gpu_model": "gpu_model",
        },
        "time": {"unit": "ms"},
        "states": {word: word for word in ("succeeded", "failed", "cancelled", "open")},
    },
    name="benchmark",
)  # fmt: skip
_SAMPLE_MS: Final = 60_000
# What is compared: all that is derived, but for the numbers of the steps in which it was.
_DERIVED: Final = (
    *OF_WORKLOADS, "gpu_hour", "activity_span", "waste_piece", "own_failure_wait",
    "demand_step", "share_span", "team_share_span", "pool_span",
)  # fmt: skip
_MEMORY_MIB: Final = 81_920.0


def files(folder: Path, cluster: Cluster, *, sampled_days: int) -> tuple[list[Path], list[Path]]:
    """
    Write the files: what is imported at once, and day by day.

    Args:
        folder: where.
        cluster: of so few nodes that each of its jobs has one.
        sampled_days: of so many last days there are samples.
    """
    jobs = pl.concat(list(days_of_jobs(cluster)))
    assert jobs["nodes"].max() == 1, "a table of jobs tells one node of each"
    jobs = jobs.with_columns(id=pl.format("job-{}", "job"), host=pl.format("node-{}", "node"))
    first_sampled = cluster.days - sampled_days
    once, pieces, before = [folder / "jobs.parquet"], list[Path](), jobs.clear()
    jobs.write_parquet(once[0])
    for day in range(cluster.days):
        at_ms = START_MS + (day + 1) * DAY_MS
        known = known_by(jobs, at_ms)
        pieces.append(folder / f"jobs-{day:03}.parquet")
        known.join(before, on=known.columns, how="anti", nulls_equal=True).write_parquet(pieces[-1])
        before = known
        if day >= first_sampled:
            pieces.append(folder / f"samples-{day:03}.parquet")
            _samples(jobs, cluster, at_ms - DAY_MS).write_parquet(pieces[-1])
    if sampled_days:
        once.append(folder / "samples.parquet")
        days = [pl.read_parquet(file) for file in pieces if file.name.startswith("samples-")]
        pl.concat(days).write_parquet(once[-1])
    return once, pieces


def _samples(jobs: pl.DataFrame, cluster: Cluster, from_ms: int) -> pl.DataFrame:
    """One row per GPU that is held and minute of a day, with the pod on it."""
    rng = np.random.default_rng(cluster.seed + from_ms)
    now = pl.lit(cluster.end_ms)
    there = jobs.filter(
        (pl.col("start_ms") < from_ms + DAY_MS)
        & (pl.coalesce("end_ms", now) > from_ms)
        & pl.col("start_ms").is_not_null()
    )
    first = pl.max_horizontal("start_ms", pl.lit(from_ms)) + _SAMPLE_MS - 1
    until = pl.min_horizontal(pl.coalesce("end_ms", now), pl.lit(from_ms + DAY_MS)) + _SAMPLE_MS - 1
    rows = (
        there.with_columns(minute=pl.int_ranges(first // _SAMPLE_MS, until // _SAMPLE_MS))
        .explode("minute", empty_as_null=False)
        .with_columns(gpu=pl.int_ranges(0, "gpus"))
        .explode("gpu")
    )  # fmt: skip
    # One in nine jobs does nothing with its GPUs.
    activity = pl.Series(rng.integers(20, 100, rows.height) / 100)
    return rows.select(
        at_ms=pl.col("minute") * _SAMPLE_MS, node="host", instance=pl.lit(""), profile=pl.lit(""),
        uuid=pl.format("GPU-{}-{}", "job", "gpu"), gpu_model="gpu_model", namespace="team", pod="id",
        activity=pl.when(pl.col("job") % 9 == 0).then(0.0).otherwise(activity),
        fb_used_mib=pl.lit(_MEMORY_MIB / 4), fb_total_mib=pl.lit(_MEMORY_MIB),
    )  # fmt: skip


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """
    Import files into a new store, one after the other, as `gpuledger import` does.

    Returns:
        How many jobs and samples were read, CPU seconds of keeping them and of the books, and what the store
        then holds: rows and a digest by table.
    """
    cluster = Cluster(**asked["cluster"])
    store = Store.open(Path(asked["store"]))
    try:
        policy, clock = Policy(), FixedClock(cluster.end_ms)
        books = books_of(store, tenancy=Tenancy(), policy=policy, clock=clock)
        jobs = samples = 0
        spent = dict.fromkeys(("jobs", "samples", "books"), 0.0)
        for file in map(Path, asked["files"]):
            began = process_time()
            if file.name.startswith("jobs"):
                told = import_jobs(
                    table_source(file, MAPPING), store, cluster=CLUSTER, now_ms=cluster.end_ms,
                    refresh=books.lives_of,
                )  # fmt: skip
                assert not told.aside, told.aside
                jobs += told.jobs
            else:
                parts = read_parquet(file, source="parquet/benchmark")
                samples += keep_parts(store, CLUSTER, parts, now_ms=cluster.end_ms).new
            read = process_time()
            spent["jobs" if file.name.startswith("jobs") else "samples"] += read - began
            books.refresh()
            spent["books"] += process_time() - read
        return {"jobs": jobs, "samples": samples, "spent": spent, "holds": dict(digests(store))}
    finally:
        store.close()


def digests(store: Store) -> Iterator[tuple[str, list[int]]]:
    """What a store holds that is derived: rows by table, and a number that does not depend on their order."""
    for table in _DERIVED:
        columns = ", ".join(store.schema(table).names)
        # Hashes are summed, so that the order of rows does not matter and a row that stands twice does.
        sql = f"select count(*) as number, coalesce(sum(hash({columns})), 0) as digest from {table}"  # noqa: S608
        (row,) = store.rows(sql)
        yield table, [int(str(row["number"])), int(str(row["digest"])) % 2**53]
