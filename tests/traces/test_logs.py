"""
Public traces through the importers, against the answers that were computed for them independently.

The long ones have tens of thousands of jobs; see the README beside each trace for its quirks.
"""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collector.imports.keeping import CONTRADICTS
from collector.imports.mapping import mapping_of
from collector.imports.records import NO_STAMP
from collector.imports.row import Read
from collector.imports.swf import NO_WAIT, Log
from domain.window import parse_instant
from service.imported_file import Source
from service.job_imports import swf_source, table_source
from store.embedded import Store
from tests.traces.taking_in import reference, said, same_waits, started_waits, taken_in, tell, trace

pytestmark = [pytest.mark.recordings, pytest.mark.timeout(1200)]

# Traces whose seconds count from their own beginning, which nobody tells.
SECOND_0 = {"origin": "2020-01-01T00:00:00Z"}
LCG_START = parse_instant("2005-11-20T00:00:05Z")


def table(path: str, **written: Any) -> Source[Read]:
    return table_source(trace(path), mapping_of(written, name="map.yaml"))


def as_swf(folder: str, path: Path, *header: str) -> Path:
    """The log as the archive has it: the Parquet keeps its 18 columns."""
    frame = pl.read_parquet(trace(f"{folder}/jobs.parquet"))
    lines = frame.select(
        pl.concat_str([pl.col(name) for name in frame.columns[:18]], separator=" ")
    ).to_series()
    path.write_text("\n".join([*header, *lines]) + "\n")
    return path


def test_a_sample_of_eagle_has_its_waits_and_gpu_hours() -> None:
    store = Store.open(None)
    # Its job_id names a whole array, of which one has 452 tasks: each row is a job.
    source = table(
        "nrel-eagle-2019-sample/jobs.parquet",
        columns={
            "submit": "submit_time", "start": "start_time", "end": "end_time",
            "run": "run_time", "state": "state", "team": "account", "user": "user", "queue": "partition",
            "priority_class": "qos", "gpus": "gpus_req", "name": "name",
        },
    )  # fmt: skip
    summary = taken_in(source, store, hours=True)
    answers = reference("nrel-eagle-2019-sample")
    assert (summary.lines, summary.jobs, summary.aside, summary.closes) == (1000, 1000, {}, True)
    started_waits(store, "queue", answers["wait_by_partition"])
    hours = said(store, "held_gpu_hours", "user_name")
    assert {user: round(hours.get(user, 0), 3) for user in answers["gpu_hours_by_user"]} == {
        user: round(value, 3) for user, value in answers["gpu_hours_by_user"].items()
    }


def test_jobs_that_share_an_id_are_set_aside_and_not_lost() -> None:
    source = table(
        "nrel-eagle-2019-sample/jobs.parquet",
        columns={"id": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time"},
    )
    summary = taken_in(source, Store.open(None))
    assert (summary.lines, summary.job_lines, summary.aside) == (1000, 549, {CONTRADICTS: 451})
    assert summary.closes


METACENTRUM = {
    "id": "job", "submit": "submit", "wait": "wait", "run": "run", "gpus": "procs",
    "queue": "queue_name", "team": "user_id",
}  # fmt: skip


def test_a_run_of_less_than_nothing_is_set_aside(tmp_path: Path) -> None:
    jobs = pl.read_parquet(trace("metacentrum-wagap-2013/jobs.parquet"))
    path = tmp_path / "jobs.parquet"
    pl.concat([jobs.filter(pl.col("run") < 0), jobs.head(8)]).write_parquet(path)
    # Two jobs ran for minus 43 years.
    summary = taken_in(table_source(path, mapping_of({"columns": METACENTRUM}, name="map")), Store.open(None))
    assert (summary.lines, summary.jobs, summary.aside) == (10, 8, {NO_STAMP: 2})


@pytest.mark.long
def test_metacentrum_has_its_waits_and_its_deepest_queue(tmp_path: Path) -> None:
    jobs = pl.read_parquet(trace("metacentrum-wagap-2013/jobs.parquet"))
    spoilt = jobs.filter(pl.col("run") < 0)
    assert spoilt.height == 2
    # The reference has waits of these two, and no hours: how long they ran is not known.
    path = tmp_path / "jobs.parquet"
    known = pl.when(pl.col("run") < 0).then(None).otherwise(pl.col("run")).alias("run")
    jobs.with_columns(known).write_parquet(path)
    store = Store.open(None)
    summary = taken_in(
        table_source(path, mapping_of({"columns": METACENTRUM}, name="map")), store, hours=True
    )
    answers = reference("metacentrum-wagap-2013")
    assert (summary.lines, summary.jobs, summary.aside, summary.closes) == (17900, 17900, {}, True)
    equal = {
        "wait_by_queue": same_waits(store, "queue", answers["wait_by_queue"]),
        "wait_by_user_top15": same_waits(store, "team", answers["wait_by_user_top15"]),
        "wait_all": same_waits(store, "", answers["wait_all"]),
    }
    for label, name, column in (
        ("queue", "cpu_hours_by_queue", "queue_name"),
        ("team", "cpu_hours_by_user_top15", "user_id"),
    ):
        wrong = set(map(str, spoilt[column]))
        hours = said(store, "held_gpu_hours", label)
        theirs = {group: value for group, value in answers[name].items() if group not in wrong}
        assert {group: round(hours[group], 3) for group in theirs} == {
            group: round(value, 3) for group, value in theirs.items()
        }, name
        equal[name] = len(theirs)
    tell(f"metacentrum-wagap-2013: {equal}")
    assert equal == {
        "wait_by_queue": 99, "wait_by_user_top15": 135, "wait_all": 9,
        "cpu_hours_by_queue": 10, "cpu_hours_by_user_top15": 15,
    }  # fmt: skip
    depth = answers["queue_depth"]
    at_ms = round(depth["first_time_of_max"] * 1000)
    assert (
        sum(said(store, "queue_depth_workloads", "queue", as_of_ms=at_ms + 1).values()) == depth["max_depth"]
    )


@pytest.mark.long
def test_dlrm_has_its_waits_by_role_and_application() -> None:
    store = Store.open(None)
    source = table(
        "alibaba-dlrm-2025/instances.parquet",
        # Every instance asks CPUs, so that one question tells of those with GPUs and of those without.
        columns={
            "id": "instance_sn", "submit": "creation_time", "start": "scheduled_time", "end": "deletion_time",
            "gpus": "cpu_request", "team": "app_name", "queue": "role",
        },
        time=SECOND_0,
    )  # fmt: skip
    summary = taken_in(source, store)
    answers = reference("alibaba-dlrm-2025")
    assert summary.lines == 23871
    assert summary.closes
    equal = {
        "wait_by_role": same_waits(store, "queue", answers["wait_by_role"]),
        "wait_by_app": same_waits(store, "team", answers["wait_by_app_top20_by_gpu_hours"]),
    }
    tell(f"alibaba-dlrm-2025: {equal}")
    assert equal == {"wait_by_role": 18, "wait_by_app": 180}


@pytest.mark.long
def test_philly_has_its_gpu_hours_by_virtual_cluster_and_month(tmp_path: Path) -> None:
    store = Store.open(None)
    # The reference books all hours of a job on the month of its start: that month stands as its queue.
    jobs = pl.read_parquet(trace("philly-2017/jobs.parquet"))
    path = tmp_path / "jobs.parquet"
    jobs.with_columns(pl.col("timestamp").dt.strftime("%Y-%m").alias("month")).write_parquet(path)
    columns = {
        "submit": "timestamp", "run": "duration", "gpus": "num_gpus", "team": "cluster", "queue": "month",
    }  # fmt: skip
    source = table_source(path, mapping_of({"columns": columns, "starts_when_submitted": True}, name="map"))
    summary = taken_in(source, store, hours=True)
    answers = reference("philly-2017")
    assert (summary.lines, summary.jobs, summary.aside, summary.closes) == (82247, 82247, {}, True)
    assert said(store, "submitted_workloads", "team") == answers["jobs_by_vc"]
    equal = {}
    for label, name in (("team", "gpu_hours_by_vc"), ("queue", "gpu_hours_by_month")):
        hours = said(store, "held_gpu_hours", label)
        assert {group: round(value, 2) for group, value in hours.items()} == {
            group: round(value, 2) for group, value in answers[name].items()
        }
        equal[name] = len(hours)
    tell(f"philly-2017: {equal}")
    assert equal == {"gpu_hours_by_vc": 15, "gpu_hours_by_month": 4}


@pytest.mark.long
def test_nasa_has_its_jobs_and_hours_and_no_waits(tmp_path: Path) -> None:
    file = as_swf(
        "swf-nasa-ipsc-1993", tmp_path / "nasa.swf", "; UnixStartTime: 749458803", "; MaxJobs: 18239"
    )
    answers = reference("swf-nasa-ipsc-1993")
    # Its submissions are starts: that must be said, and is not made up.
    log = Log(starts_when_submitted=True)
    store = Store.open(None)
    summary = taken_in(swf_source(file, log), store, hours=True)
    assert summary.lines == summary.jobs == int(log.header["MaxJobs"])
    assert summary.closes
    hours = said(store, "held_gpu_hours", "team")
    assert {team: round(value, 3) for team, value in hours.items()} == {
        f"group{group}": round(value, 3) for group, value in answers["cpu_hours_by_group"].items()
    }


def test_a_log_without_waits_is_set_aside_unless_it_is_said_what_they_were(tmp_path: Path) -> None:
    file = as_swf("swf-nasa-ipsc-1993", tmp_path / "nasa.swf", "; UnixStartTime: 749458803")
    file.write_text("\n".join(file.read_text().splitlines()[:51]) + "\n")
    summary = taken_in(swf_source(file, Log()), Store.open(None))
    assert (summary.lines, summary.jobs, summary.aside) == (50, 0, {NO_WAIT: 50})


@pytest.mark.long
def test_lcg_streams_its_188041_jobs(tmp_path: Path) -> None:
    file = as_swf("swf-lcg-2005", tmp_path / "lcg.swf", "; MaxJobs: 188041")
    log = Log(started_ms=LCG_START, starts_when_submitted=True)
    store = Store.open(tmp_path / "lcg.duckdb")
    summary = taken_in(swf_source(file, log), store)
    answers = reference("swf-lcg-2005")
    assert summary.lines == summary.jobs == int(log.header["MaxJobs"])
    assert summary.closes
    [row] = store.rows("select count(distinct user_name) as users from workload")
    assert row["users"] == answers["users"]
    ours = {
        str(row["team"]): row["hours"]
        for row in store.rows(
            "select team, sum((released_ms - bound_ms) * micro_gpus) / 3.6e12 as hours"
            " from gpu_holding group by team"
        )
    }
    assert {team: round(float(str(value)), 3) for team, value in ours.items()} == {
        f"group{group}": round(value, 3) for group, value in answers["cpu_hours_by_group"].items()
    }
