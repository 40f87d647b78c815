"""Figures by Open XDMoD's rules against brute force, and the laws that they keep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import sqrt
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters, query
from analytics.metrics import REGISTRY
from analytics.xdmod.rows import POPULATION
from domain.errors import PolicyError
from domain.metric import Ask
from domain.window import Window, parse_instant
from store.embedded import Store
from tests.golden.cases import fill, store_of

HOUR = 3_600_000
# The night in which a year ends lies in the middle.
FIRST_MS = parse_instant("2025-12-30T00:00:00Z")
HOURS = 96
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
# Figures of which those of two windows add up to that of both.
SUMS = ("xdmod_ended_jobs", "xdmod_started_jobs", "xdmod_wait_hours", "xdmod_used_hours")
Told = dict[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Job:
    """A stay; instants are hours since the first, of which all are multiples of a quarter."""

    team: str
    user: str
    submitted: float
    start: float
    end: float | None
    gpus: int
    cpus: int | None
    nodes: int | None
    # MultiKueue gave it to another cluster: there are the pods, and a workload of its own.
    copied: bool = False

    def wall(self, since: float, until: float) -> float:
        """Hours of a window in which it ran."""
        return max(min(until if self.end is None else self.end, until) - max(self.start, since), 0)

    def runs(self, since: float, until: float) -> bool:
        return self.start < until and (self.end is None or self.end >= since)

    def ends(self, since: float, until: float) -> bool:
        return self.end is not None and since <= self.end < until


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    quarter = st.integers(0, 4 * HOURS).map(lambda number: number / 4)
    found = []
    for _ in range(draw(st.integers(1, 8))):
        submitted, wait, run = draw(quarter), draw(quarter) / 4, draw(st.none() | quarter)
        start = submitted + wait
        found.append(
            Job(
                team=draw(st.sampled_from(["nlp", "cv"])),
                user=draw(st.sampled_from(["ada", "eve", ""])),
                submitted=submitted,
                start=start,
                end=None if run is None else start + run / 2,
                gpus=draw(st.integers(0, 3)),
                cpus=draw(st.sampled_from([None, 1, 12])),
                nodes=draw(st.sampled_from([None, 1, 3])),
                copied=draw(st.booleans()),
            )
        )
    return found


def ms(hours: float) -> int:
    return FIRST_MS + round(hours * HOUR)


@dataclass(slots=True)
class Books:
    """A store in which each set of jobs has a cluster of its own: to open one takes longer than to ask it."""

    store: Store
    clusters: int = 0

    def keep(self, found: Sequence[Job]) -> str:
        """The name of the cluster with these jobs."""
        self.clusters += 1
        cluster = {"cluster": f"c{self.clusters}"}
        tables: dict[str, list[dict[str, Any]]] = {
            table: [] for table in ("workload", "attempt", "holding", "workload_copy")
        }
        for number, job in enumerate(found):
            uid = cluster | {"workload_uid": f"w{number}"}
            end_ms = None if job.end is None else ms(job.end)
            copy = {"cluster": f"c{self.clusters}-worker", "workload_uid": f"w{number}"}
            if job.copied:
                of = {f"of_{name}": value for name, value in uid.items()}
                tables["workload_copy"].append(copy | of)
            for place in (uid, copy) if job.copied else (uid,):
                tables["workload"].append({
                    **place, "kind": "ImportedJob", "team": job.team, "user_name": job.user,
                    "requested_micro_gpus": job.gpus * 1_000_000, "submitted_ms": ms(job.submitted),
                })  # fmt: skip
                attempt = {"number": 1, "start_ms": ms(job.start), "end_ms": end_ms}
                tables["attempt"].append(place | attempt)
            tables["holding"].append({
                **(copy if job.copied else uid), "attempt": 1, "pod_uid": f"p{number}",
                "micro_gpus": job.gpus * 1_000_000, "nodes": job.nodes,
                "milli_cpus": None if job.cpus is None else job.cpus * 1000,
                "bound_ms": ms(job.start), "released_ms": end_ms,
            })  # fmt: skip
        fill(self.store, tables)
        return f"c{self.clusters}"

    def told(
        self,
        cluster: str,
        name: str,
        window: tuple[float, float],
        *by: str,
        population: tuple[str, ...] = ("gpu", "cpu"),
    ) -> Told:
        """What a metric says, exactly; what is undefined or a lower bound is left out."""
        metric = REGISTRY[name]
        filters = {"cluster": (cluster, f"{cluster}-worker")} | (
            {"population": population} if population else {}
        )
        ends = Window(start_ms=ms(window[0]), end_ms=ms(window[1]))
        ask = Ask(window=ends, by=by, filters=filters)
        samples = evaluate(metric, self.store.kept_rows(query(metric, ask), parameters(metric, ask)), ask)
        return {
            tuple(one.labels.values()): one.value
            for one in samples
            if one.value is not None and not one.lower_bound
        }


@pytest.fixture(scope="module")
def books() -> Iterator[Books]:
    with store_of({}) as store:
        yield Books(store)


def at(hours: float) -> datetime:
    return datetime.fromtimestamp(ms(hours) / 1000, UTC)


def truth(found: Sequence[Job], since: float, until: float) -> dict[str, Told]:
    """The same of all jobs, by brute force."""
    known = [job for job in found if job.start < until]
    ran = [job for job in known if job.runs(since, until)]
    begun = [job for job in known if job.start >= since]
    over = [job for job in known if job.ends(since, until)]
    sent = [job for job in known if job.submitted >= since]
    waits = [job.start - job.submitted for job in begun]
    told: dict[str, Told] = {
        "xdmod_ended_jobs": {(): len(over)},
        "xdmod_started_jobs": {(): len(begun)},
        "xdmod_running_jobs": {(): len(ran)},
        "xdmod_submitted_jobs": {
            ("day",): sum(at(job.submitted).date() == at(job.start).date() for job in sent),
            ("month",): sum(at(job.submitted).month == at(job.start).month for job in sent),
        },
        "xdmod_wait_hours": {(): sum(waits)},
        "xdmod_wait_per_job_hours": {},
        "xdmod_used_hours": {("wall",): sum(job.wall(since, until) for job in ran)},
        "xdmod_expansion_factor_ratio": {},
        "xdmod_active_users": {},
    }
    if begun:
        mean = sum(waits) / len(waits)
        error = sqrt(sum((wait - mean) ** 2 for wait in waits) / len(waits) / len(waits))
        told["xdmod_wait_per_job_hours"] = {("mean",): mean, ("standard_error",): error}
    for resource, name in (("cpu", "cpus"), ("gpu", "gpus"), ("node", "nodes")):
        counts = [(getattr(job, name), job) for job in ran]
        if all(count is not None for count, _ in counts):
            hours = sum(count * job.wall(since, until) for count, job in counts)
            told["xdmod_used_hours"][resource,] = hours
    weighed = [job for job in over if job.end is not None and job.end > job.start]
    if all(job.nodes is not None for job in weighed):
        weights = [(job.nodes or 0) * job.wall(since, until) for job in weighed]
        factors = [((job.end or 0) - job.submitted) / ((job.end or 0) - job.start) for job in weighed]
        if sum(weights):
            told["xdmod_expansion_factor_ratio"][()] = sum(
                weight * factor for weight, factor in zip(weights, factors, strict=True)
            ) / sum(weights)
    if all(job.user for job in ran):
        told["xdmod_active_users"] = {(): len({job.user for job in ran})}
    return told if known else {name: {} for name in told}


@given(found=jobs(), since=st.integers(0, HOURS), length=st.integers(1, HOURS))
@settings(max_examples=12, phases=WITHOUT_SHRINKING)
def test_figures_are_those_of_brute_force(books: Books, found: list[Job], since: int, length: int) -> None:
    cluster, window = books.keep(found), (since, since + length)
    for name, expected in truth(found, *window).items():
        assert books.told(cluster, name, window) == pytest.approx(expected, abs=1e-6), name


@given(found=jobs(), since=st.integers(0, HOURS), first=st.integers(1, HOURS), then=st.integers(1, HOURS))
@settings(max_examples=6, phases=WITHOUT_SHRINKING)
def test_sums_of_a_window_are_those_of_its_parts(
    books: Books, found: list[Job], since: int, first: int, then: int
) -> None:
    cluster = books.keep([replace(job, cpus=job.cpus or 1, nodes=job.nodes or 1) for job in found])
    middle, until = since + first, since + first + then
    for name in SUMS:
        parts = [books.told(cluster, name, ends, "team") for ends in ((since, middle), (middle, until))]
        by_team = books.told(cluster, name, (since, until), "team")
        for labels, value in by_team.items():
            assert sum(part.get(labels, 0) for part in parts) == pytest.approx(value), (name, labels)
        for labels, value in books.told(cluster, name, (since, until)).items():
            mine = [each for (_, *rest), each in by_team.items() if tuple(rest) == labels]
            assert sum(mine) == pytest.approx(value), (name, labels)


@given(found=jobs(), times=st.integers(2, 5))
@settings(max_examples=5, phases=WITHOUT_SHRINKING)
def test_jobs_of_more_gpus_use_so_many_times_the_gpu_hours_and_nothing_else(
    books: Books, found: list[Job], times: int
) -> None:
    cluster = books.keep(found)
    larger = books.keep([replace(job, gpus=job.gpus * times) for job in found])
    window = (0, HOURS)
    for name in ("xdmod_used_hours", "xdmod_used_per_job_hours"):
        before, after = (books.told(one, name, window) for one in (cluster, larger))
        expected = {labels: value * (times if "gpu" in labels else 1) for labels, value in before.items()}
        assert after == pytest.approx(expected), name
    for name in (*SUMS[:-1], "xdmod_running_jobs", "xdmod_expansion_factor_ratio"):
        assert books.told(cluster, name, window) == books.told(larger, name, window), name


@given(found=jobs())
@settings(max_examples=5, phases=WITHOUT_SHRINKING)
def test_where_nobody_waits_nothing_is_stretched(books: Books, found: list[Job]) -> None:
    cluster = books.keep([replace(job, start=job.submitted, nodes=1) for job in found])
    window = (0, 3 * HOURS)
    assert set(books.told(cluster, "xdmod_wait_hours", window).values()) <= {0}
    assert set(books.told(cluster, "xdmod_wait_per_job_hours", window).values()) <= {0}
    assert set(books.told(cluster, "xdmod_expansion_factor_ratio", window).values()) <= {1}


def test_work_without_gpus_counts_only_if_it_is_asked_for(books: Books) -> None:
    job = Job(team="nlp", user="ada", submitted=0, start=1, end=2, gpus=0, cpus=4, nodes=1)
    cluster = books.keep([job, replace(job, gpus=2), replace(job, gpus=2)])
    name, window = "xdmod_ended_jobs", (0, 9)
    assert books.told(cluster, name, window, population=()) == {(): 2}
    assert books.told(cluster, name, window, population=("cpu",)) == {(): 1}
    assert books.told(cluster, name, window) == {(): 3}
    assert books.told(cluster, name, window, "population", population=()) == {("cpu",): 1, ("gpu",): 2}
    assert books.told(cluster, name, window, "gpu_count", population=()) == {("2",): 2}


def test_a_default_filter_is_on_a_dimension_of_the_metric() -> None:
    with pytest.raises(PolicyError, match="labels \\['population'\\] are not among its dimensions"):
        replace(REGISTRY["free_gpus"], unless_asked=POPULATION)
