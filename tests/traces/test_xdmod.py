"""
Slurm's accounts of two clusters against what Open XDMoD's own tests expect of them, metric by metric.

An independent product computed these figures: see the README beside the data, which also says which of them
the two logs can tell. XDMoD answers a day from its sums of days, and the whole range from its sums of months:
so the whole is asked over the two months in which all jobs lie.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from api.answers import Question
from domain.policy import Policy
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from service.job_imports import Summary, sacct_source
from store.embedded import Store
from tests.traces.taking_in import AS_OF_MS, TENANCY, as_text, taken_in, tell, trace

pytestmark = pytest.mark.recordings

NEVER_STARTED = {"phillips": 239, "pozidriv": 419}  # XDMoD knows no job that never started
CLUSTERS = ("phillips", "pozidriv")
DAYS = [date(2016, 12, 22) + timedelta(days=number) for number in range(11)]
DAY, TWO_MONTHS = timedelta(days=1), timedelta(days=62)
WHOLE = ("2017-02-01T00:00:00Z", TWO_MONTHS)
EVERYBODY = {"population": ("gpu", "cpu")}

# XDMoD's name for a figure: our metric, with the labels that pick the sample.
Named = tuple[str, Mapping[str, str]]
TOTALS: Mapping[str, Named] = {
    "total_wallduration_hours": ("xdmod_used_hours", {"resource": "wall"}),
    "total_waitduration_hours": ("xdmod_wait_hours", {}),
    "total_cpu_hours": ("xdmod_used_hours", {"resource": "cpu"}),
    "total_gpu_hours": ("xdmod_used_hours", {"resource": "gpu"}),
    "total_node_hours": ("xdmod_used_hours", {"resource": "node"}),
}
BY_DAY: Mapping[str, Named] = {
    **TOTALS,
    "job_count": ("xdmod_ended_jobs", {}),
    "started_job_count": ("xdmod_started_jobs", {}),
    "running_job_count": ("xdmod_running_jobs", {}),
    "submitted_job_count": ("xdmod_submitted_jobs", {"period": "day"}),
}
AT_ALL: Mapping[str, Named] = {
    **BY_DAY,
    "submitted_job_count": ("xdmod_submitted_jobs", {"period": "month"}),
    "active_person_count": ("xdmod_active_users", {}),
    "expansion_factor": ("xdmod_expansion_factor_ratio", {}),
    "avg_waitduration_hours": ("xdmod_wait_per_job_hours", {"statistic": "mean"}),
    "avg_job_size_weighted_by_cpu_hours": ("xdmod_weighted_size_cpus", {"resource": "cpu"}),
    "avg_job_size_weighted_by_gpu_hours": ("xdmod_weighted_size_cpus", {"resource": "gpu"}),
    **{
        f"avg_{theirs}_hours": ("xdmod_used_per_job_hours", {"resource": ours, "statistic": "mean"})
        for theirs, ours in (("wallduration", "wall"), ("cpu", "cpu"), ("gpu", "gpu"), ("node", "node"))
    },
}
ERRORS: Mapping[str, Named] = {
    name: (metric, {**labels, "statistic": "standard_error"})
    for name, (metric, labels) in AT_ALL.items()
    # XDMoD has no error of the mean GPU-hours.
    if labels.get("statistic") == "mean" and labels.get("resource") != "gpu"
}

# Groups that the two logs alone have, by XDMoD's dimension: our label, and their names here and there.
GROUPS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "queue": (
        "queue",
        {name: name for name in ("bannock", "barm", "brioche", "chapti", "cornbread", "croutons",
                                 "crumpet", "focaccia")},
    ),
    "qos": ("priority_class", {name: name for name in ("blueberry", "butter", "chestnut", "coconut-cream")}),
    "gpucount": ("gpu_count", {"2": "2"}),
    "person": (
        "user_name",
        {
            "chaff": "Chaffinch", "turdo": "Dove, Turtle", "field": "Fieldfare", "noror": "Oriole, Baltimore",
            "ovenb": "Ovenbird", "yebsa": "Sapsucker, Yellow-bellied", "savsp": "Sparrow, Savannah",
            "alpsw": "Swift, Alpine", "sante": "Tern, Sandwich",
        },
    ),
}  # fmt: skip


def jobs(*clusters: str) -> pl.DataFrame:
    frame = pl.read_parquet(trace("xdmod-slurm-2017/jobs.parquet"))
    return frame.filter(pl.col("cluster").is_in(clusters))


def taken(rows: pl.DataFrame, folder: Path) -> tuple[Store, Summary]:
    file = as_text(rows, folder / "sacct.txt")
    store = Store.open(None)
    source = sacct_source(file, zone=ZoneInfo("UTC"), fields=None)
    return store, taken_in(source, store, cluster=None)


@cache
def expected(dimension: str, metric: str, kind: str) -> Mapping[tuple[str, date | None], tuple[float, float]]:
    """What XDMoD says, and its standard error, by label and day."""
    frame = pl.read_parquet(trace("xdmod-slurm-2017/expected.parquet")).filter(
        (pl.col("dimension") == dimension) & (pl.col("metric") == metric) & (pl.col("kind") == kind)
    )
    rows = frame.select("label", pl.col("date").cast(pl.Date), "value", "stderr").iter_rows()
    return {(label, day): (value, error) for label, day, value, error in rows}


def told(
    store: Store, named: Named, label: str, *, until: str, window: timedelta, clusters: tuple[str, ...] = ()
) -> dict[str, float]:
    """What a metric of the product says of all jobs, by the value of a label."""
    metric, picked = named
    answers = Answers(store=store, tenancy=TENANCY, policy=Policy(), clock=FixedClock(AS_OF_MS))
    filters = EVERYBODY | ({"cluster": clusters} if clusters else {})
    asked = Question(as_of_ms=parse_instant(until), window=window, by=(label,), filters=filters)
    rows = answers.metric(metric, asked).rows
    return {
        row.labels[label]: row.value
        for row in rows
        if row.value is not None
        and not row.lower_bound
        and all(row.labels[name] == value for name, value in picked.items())
    }


def of_days(store: Store, named: Named, label: str) -> Iterator[tuple[date, dict[str, float]]]:
    for day in DAYS:
        yield day, told(store, named, label, until=f"{day + DAY}T00:00:00Z", window=DAY)


def cells_of_days(store: Store, clusters: tuple[str, ...]) -> int:
    """How many cells of cluster and day are equal; each that is not fails."""
    equal = 0
    for metric, named in BY_DAY.items():
        theirs = expected("resource", metric, "day")
        for day, ours in of_days(store, named, "cluster"):
            for cluster in clusters:
                assert round(ours[cluster], 4) == theirs[cluster, day][0], (metric, cluster, day)
                equal += 1
    return equal


def cells_at_all(store: Store, clusters: tuple[str, ...]) -> tuple[int, int]:
    """How many cells of a cluster are equal: figures, to the digits that XDMoD has, and standard errors."""
    equal = errors = 0
    until, window = WHOLE
    for metric, named in AT_ALL.items():
        theirs, ours = (
            expected("resource", metric, "aggregate"),
            told(store, named, "cluster", until=until, window=window),
        )
        digits = 8 if metric in ERRORS or metric == "avg_gpu_hours" else 4
        for cluster in clusters:
            if metric == "avg_job_size_weighted_by_gpu_hours" and cluster not in ours:
                assert theirs[cluster, None][0] == 0  # where no GPU-hour was used we say nothing, and XDMoD 0
                continue
            assert round(ours[cluster], digits) == round(theirs[cluster, None][0], digits), (metric, cluster)
            equal += 1
    for metric, named in ERRORS.items():
        theirs = expected("resource", metric, "aggregate")
        ours = told(store, named, "cluster", until=until, window=window)
        for cluster in clusters:
            assert ours[cluster] == pytest.approx(theirs[cluster, None][1], rel=1e-11), (metric, cluster)
            errors += 1
    return equal, errors


def groups(store: Store) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """XDMoD's dimension, our label, and the groups that are told here: ours with theirs."""
    for dimension, (label, names) in GROUPS.items():
        known = told(store, BY_DAY["running_job_count"], label, until=WHOLE[0], window=WHOLE[1])
        yield dimension, label, {ours: theirs for ours, theirs in names.items() if ours in known}


def cells_of_groups(store: Store) -> tuple[int, int, int]:
    """How many groups there are, and how many of their totals are equal, at all and by day."""
    found = equal = by_day = 0
    for dimension, label, names in groups(store):
        found += len(names)
        for metric, named in TOTALS.items():
            ours = told(store, named, label, until=WHOLE[0], window=WHOLE[1])
            theirs = expected(dimension, metric, "aggregate")
            for here, there in names.items():
                assert round(ours[here], 4) == theirs[there, None][0], (dimension, metric, here)
                equal += 1
        for metric in ("total_wallduration_hours", "total_waitduration_hours", "total_cpu_hours"):
            theirs = expected(dimension, metric, "day")
            for day, ours in of_days(store, TOTALS[metric], label):
                for here, there in names.items():
                    # Before its first job nobody knows of a group; XDMoD says 0 of it then.
                    assert round(ours.get(here, 0), 4) == theirs[there, day][0], (
                        dimension,
                        metric,
                        here,
                        day,
                    )
                    by_day += 1
    return found, equal, by_day


@pytest.fixture(scope="module")
def phillips(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Summary]:
    return taken(jobs("phillips"), tmp_path_factory.mktemp("phillips"))


def test_every_row_of_the_accounts_is_a_job(phillips: tuple[Store, Summary]) -> None:
    _, summary = phillips
    assert (summary.lines, summary.jobs, summary.aside, summary.closes) == (4285, 4285, {}, True)


def test_a_cluster_has_the_figures_that_xdmod_has(phillips: tuple[Store, Summary]) -> None:
    store, _ = phillips
    counts = (cells_of_days(store, ("phillips",)), *cells_at_all(store, ("phillips",)))
    tell(f"phillips: {counts} cells by day, at all, and standard errors")
    assert counts == (99, 18, 4)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_both_clusters_and_their_groups_have_the_figures_that_xdmod_has(tmp_path: Path) -> None:
    store, summary = taken(jobs(*CLUSTERS), tmp_path)
    assert (summary.lines, summary.jobs, summary.aside, summary.closes) == (15989, 15989, {}, True)
    started = told(store, BY_DAY["job_count"], "cluster", until=WHOLE[0], window=WHOLE[1])
    assert sum(started.values()) + sum(NEVER_STARTED.values()) == summary.jobs
    by_day, (at_all, errors) = cells_of_days(store, CLUSTERS), cells_at_all(store, CLUSTERS)
    found, of_groups, of_groups_by_day = cells_of_groups(store)
    tell(f"{by_day} cells of cluster and day, {at_all} of clusters, {errors} standard errors;")
    tell(f"{found} groups with {of_groups} cells at all, and {of_groups_by_day} by day")
    assert (by_day, at_all, errors) == (198, 35, 8)
    assert (found, of_groups, of_groups_by_day) == (22, 110, 726)
    [row] = store.rows("select count(*) as jobs from attempt where outcome = 'preempted'")
    assert row["jobs"] == 86  # the README beside the data


def test_the_rows_may_come_in_any_order_and_again(tmp_path: Path) -> None:
    few = jobs("phillips").head(400)
    store, first = taken(few, tmp_path)
    tables = ("workload", "span", "attempt", "holding", "run")
    before = {name: store.frame(f"select * from {name} order by all") for name in tables}  # noqa: S608 (names from here)
    facts = store.rows("select count(*) as facts from transition")
    again = taken_in(
        sacct_source(tmp_path / "sacct.txt", zone=ZoneInfo("UTC"), fields=None), store, cluster=None
    )
    assert again.clusters["phillips"].new == again.clusters["phillips"].facts == 0
    assert store.rows("select count(*) as facts from transition") == facts
    other, second = taken(few.sample(fraction=1.0, shuffle=True, seed=7), tmp_path)
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
