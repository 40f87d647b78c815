"""
Slurm's accounts of two clusters against what Open XDMoD's own tests expect of them.

An independent product computed these figures: see the README beside the data. XDMoD's wait is start
less submission, the product's time to placement.
"""

from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from domain.window import parse_instant
from service.job_imports import Summary, sacct_source
from store.embedded import Store
from tests.traces.taking_in import as_text, said, taken_in, trace

pytestmark = pytest.mark.recordings

# XDMoD leaves out jobs that never started. Hours, to four decimals.
PUBLISHED = {
    "phillips": {"jobs": 4046, "wait": 18829.9292, "wall": 438.8203, "gpu": 506.9128, "node": 1344.8686},
    "pozidriv": {"jobs": 11285, "wait": 20964.2772, "wall": 6717.9861, "gpu": 0.0, "node": 6922.8794},
}
NEVER_STARTED = {"phillips": 239, "pozidriv": 419}

STARTED = """
-- One row: the jobs that started.
select
    count(*) as jobs,
    sum(workload.first_placed_ms - workload.submitted_ms) / 3.6e6 as wait,
    sum(holding.released_ms - holding.bound_ms) / 3.6e6 as wall,
    sum((holding.released_ms - holding.bound_ms) * holding.micro_gpus) / 3.6e12 as gpu
from workload
inner join holding
    on workload.cluster = holding.cluster and workload.workload_uid = holding.workload_uid
"""
BY_DAY = """
-- One row per day: jobs by the day of their start, and the hours that they had waited.
select
    strftime(make_timestamp_ms(first_placed_ms), '%Y-%m-%d') as date,
    count(*) as job_started,
    sum(first_placed_ms - submitted_ms) / 3.6e6 as wait
from workload
where first_placed_ms is not null
group by date
order by date
"""


def jobs(cluster: str) -> pl.DataFrame:
    frame = pl.read_parquet(trace("xdmod-slurm-2017/jobs.parquet"))
    return frame.filter(pl.col("cluster") == cluster)


def taken(cluster: str, folder: Path, *, rows: pl.DataFrame | None = None) -> tuple[Store, Summary]:
    file = as_text(jobs(cluster) if rows is None else rows, folder / "sacct.txt")
    store = Store.open(None)
    summary = taken_in(
        sacct_source(file, zone=ZoneInfo("UTC"), fields=None),
        store,
        cluster=None,
        hours=True,
    )
    return store, summary


BY_DAY_OVERLAP = """
-- One row per day: hours of the stays, split over days by overlap.
select
    strftime(day, '%Y-%m-%d') as date,
    sum(overlap_ms) / 3.6e6 as wall,
    sum(overlap_ms * micro_gpus) / 3.6e12 as gpu
from (
    select
        day,
        micro_gpus,
        greatest(
            least(released_ms, epoch_ms(day) + 86400000) - greatest(bound_ms, epoch_ms(day)), 0
        ) as overlap_ms
    from
        holding,
        unnest(generate_series(timestamp '2016-12-22', timestamp '2017-01-01', interval 1 day)) as days(day)
) as piece
group by date
order by date
"""
BY_QUEUE = """
-- One row per queue: the jobs that started.
select
    workload.queue,
    sum(workload.first_placed_ms - workload.submitted_ms) / 3.6e6 as wait,
    sum(holding.released_ms - holding.bound_ms) / 3.6e6 as wall
from workload
inner join holding
    on workload.cluster = holding.cluster and workload.workload_uid = holding.workload_uid
group by workload.queue
"""
# Queues that the two logs alone have, so that XDMoD's figures for them are those of these logs.
QUEUES = ("bannock", "barm", "brioche", "chapti", "cornbread", "croutons", "crumpet", "focaccia")


def expected(dimension: str, metric: str, kind: str) -> dict[tuple[str, str], float]:
    """What XDMoD says, by label and day."""
    frame = pl.read_parquet(trace("xdmod-slurm-2017/expected.parquet")).filter(
        (pl.col("dimension") == dimension) & (pl.col("metric") == metric) & (pl.col("kind") == kind)
    )
    return {
        (label, str(day)): value for label, day, value in frame.select("label", "date", "value").iter_rows()
    }


def check(cluster: str, store: Store, summary: Summary) -> None:
    published = PUBLISHED[cluster]
    assert summary.aside == {}
    assert summary.lines == summary.jobs == published["jobs"] + NEVER_STARTED[cluster]
    assert summary.closes
    [row] = store.rows(STARTED)
    assert {name: round(float(str(value)), 4) for name, value in row.items()} == {
        name: published[name] for name in ("jobs", "wait", "wall", "gpu")
    }
    started = {str(row["date"]): row for row in store.rows(BY_DAY)}
    overlap = {str(row["date"]): row for row in store.rows(BY_DAY_OVERLAP)}
    for ours, name, metric in (
        (started, "job_started", "started_job_count"),
        (started, "wait", "total_waitduration_hours"),
        (overlap, "wall", "total_wallduration_hours"),
        (overlap, "gpu", "total_gpu_hours"),
    ):
        cells = {
            day: value
            for (label, day), value in expected("resource", metric, "day").items()
            if label == cluster
        }
        assert len(cells) == 11, metric
        assert cells == {day: round(float(str(ours[day][name])), 4) if day in ours else 0 for day in cells}, (
            metric
        )


@pytest.fixture(scope="module")
def phillips(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Summary]:
    return taken("phillips", tmp_path_factory.mktemp("phillips"))


def test_a_cluster_with_gpus_has_the_hours_that_xdmod_has(phillips: tuple[Store, Summary]) -> None:
    store, _ = phillips
    check("phillips", *phillips)
    # The metrics rest on the same stays: the two jobs with GPUs.
    assert round(said(store, "held_gpu_hours", "cluster")["phillips"], 4) == 506.9128
    assert said(store, "first_placed_workloads", "cluster")["phillips"] == 2


def test_queues_have_the_hours_that_xdmod_has(phillips: tuple[Store, Summary]) -> None:
    store, _ = phillips
    waits, walls = (
        expected("queue", f"total_{name}duration_hours", "aggregate") for name in ("wait", "wall")
    )
    ours = {str(row["queue"]): row for row in store.rows(BY_QUEUE)}
    compared = 0
    for (label, _day), hours in waits.items():
        if label in QUEUES and label in ours:
            [wall] = [value for (other, _), value in walls.items() if other == label]
            assert (round(float(str(ours[label]["wait"])), 4), round(float(str(ours[label]["wall"])), 4)) == (
                hours,
                wall,
            ), label
            compared += 1
    assert compared >= 2


@pytest.mark.long
def test_a_cluster_with_preemptions_has_the_hours_that_xdmod_has(tmp_path: Path) -> None:
    store, summary = taken("pozidriv", tmp_path)
    check("pozidriv", store, summary)
    [row] = store.rows("select count(*) as jobs from attempt where outcome = 'preempted'")
    assert row["jobs"] == 86  # the README beside the data


def test_the_rows_may_come_in_any_order_and_again(tmp_path: Path) -> None:
    few = jobs("phillips").head(400)
    store, first = taken("phillips", tmp_path, rows=few)
    tables = ("workload", "span", "attempt", "holding", "run")
    before = {name: store.frame(f"select * from {name} order by all") for name in tables}  # noqa: S608 (names from here)
    facts = store.rows("select count(*) as facts from transition")
    again = taken_in(
        sacct_source(tmp_path / "sacct.txt", zone=ZoneInfo("UTC"), fields=None), store, cluster=None
    )
    assert again.clusters["phillips"].new == again.clusters["phillips"].facts == 0
    assert store.rows("select count(*) as facts from transition") == facts
    other, second = taken("phillips", tmp_path, rows=few.sample(fraction=1.0, shuffle=True, seed=7))
    assert first.jobs == second.jobs == 400
    for name in tables:
        assert before[name].equals(other.frame(f"select * from {name} order by all")), name  # noqa: S608 (as above)


def test_waits_as_of_an_instant_are_those_of_the_rows(phillips: tuple[Store, Summary]) -> None:
    store, _ = phillips
    as_of_ms = parse_instant("2016-12-30T12:00:00Z")
    rows = jobs("phillips").filter(
        (pl.col("submit") < "2016-12-30T12:00:00") & (pl.col("start") >= "2016-12-30T12:00:00")
    )
    [row] = store.rows(
        "select count(*) as waiting from span where start_ms < $at and coalesce(end_ms > $at, true)"
        " and state = 'queued'",
        {"at": as_of_ms - 1},
    )
    assert row["waiting"] == rows.height
