"""What the comparisons with public traces share: take one in, and ask the product."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl

from api.answers import Question
from collector.imports.row import Read
from domain.policy import Policy
from domain.tenant import Rule, Tenancy
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from service.books import books_of
from service.imported_file import Source
from service.job_imports import Summary, import_jobs
from service.wastage import Wastage
from store.embedded import Store
from tests.shared import shared

TENANCY = Tenancy(users=(Rule(from_label="user"),))
AS_OF_MS = parse_instant("2030-01-01T00:00:00Z")
EVER = timedelta(days=20_000)


def trace(name: str) -> Path:
    return shared(f"data/traces/{name}")


def reference(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trace(f"{folder}/reference.json").read_text())
    return found


def taken_in(
    source: Source[Read], store: Store, *, cluster: str | None = "c", hours: bool = False
) -> Summary:
    """Take in a file; with the hours of GPU-time where they are asked for."""
    books = books_of(store, tenancy=TENANCY, policy=Policy(), clock=FixedClock(AS_OF_MS))
    summary = import_jobs(source, store, cluster=cluster, now_ms=AS_OF_MS, refresh=books.lives_of)
    for stage in books.stages:
        if hours and isinstance(stage, Wastage):
            for name in summary.clusters:
                stage.refresh(name, AS_OF_MS)
    return summary


def said(store: Store, metric: str, *by: str, as_of_ms: int = AS_OF_MS, **labels: str) -> dict[str, float]:
    """
    What a metric says over all time, by the value of its first label.

    `labels` picks samples, for example quantile="0.5".
    """
    answers = Answers(store=store, tenancy=TENANCY, policy=Policy(), clock=FixedClock(as_of_ms))
    answer = answers.metric(metric, Question(as_of_ms=as_of_ms, window=EVER, by=by))
    return {
        row.labels[by[0]] if by else "": row.value
        for row in answer.rows
        if row.value is not None and all(row.labels.get(name) == value for name, value in labels.items())
    }


def same_waits(store: Store, by: str, expected: Mapping[str, Mapping[str, float]]) -> int:
    """
    The waits of those that started, by a label, or of all without one; gives how many figures are equal.

    How many, three quantiles interpolated (type 7) and as one of the waits, the mean and the longest. Where
    nobody waits any more the censored estimate is the latter: the smallest wait that so many do not exceed.
    """
    groups = {name if by else "": waits for name, waits in expected.items() if waits["n"]}
    labels = (by,) if by else ()
    figures = {"n": said(store, "first_placed_workloads", *labels)}
    for quantile, name in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99")):
        for estimator, kind in (("started", "cont"), ("censored", "disc")):
            figures[f"{name}_{kind}"] = said(
                store, "queue_wait_seconds", *labels, quantile=quantile, estimator=estimator
            )
    figures["max"] = said(store, "longest_queue_wait_seconds", *labels)
    hours = said(store, "xdmod_wait_per_job_hours", *labels, statistic="mean")
    figures["mean"] = {group: 3600 * mean for group, mean in hours.items()}
    for figure, ours in figures.items():
        assert {group: round(ours[group], 2) for group in groups} == {
            group: round(waits[figure], 2) for group, waits in groups.items()
        }, figure
    return len(figures) * len(groups)


STARTED = """
-- One row per value of $by: waits of the jobs that started, with and without GPUs, in seconds.
select
    case $by when 'team' then team when 'queue' then queue else priority_class end as label,
    count(*) as n,
    quantile_cont(first_placed_ms - submitted_ms, 0.5) / 1000 as p50_cont,
    quantile_cont(first_placed_ms - submitted_ms, 0.9) / 1000 as p90_cont,
    quantile_cont(first_placed_ms - submitted_ms, 0.99) / 1000 as p99_cont,
    max(first_placed_ms - submitted_ms) / 1000 as max
from workload
where first_placed_ms is not null
group by label
"""


def started_waits(store: Store, by: str, expected: Mapping[str, Mapping[str, float]]) -> None:
    """The same of all jobs that started: metrics count those with GPUs only."""
    ours = {str(row["label"]): row for row in store.rows(STARTED, {"by": by})}
    for name, waits in expected.items():
        for figure in ("n", "p50_cont", "p90_cont", "p99_cont", "max"):
            assert round(float(str(ours[name][figure])), 2) == round(waits[figure], 2), (name, figure)


def as_text(frame: pl.DataFrame, path: Path, delimiter: str = "|") -> Path:
    """A frame as sacct would print it: nothing is quoted."""
    frame.write_csv(path, separator=delimiter, quote_style="never")
    return path


def tell(text: str) -> None:
    """What was compared, for whoever reads the output of the tests (`-s`)."""
    print(text)  # noqa: T201 (a comparison that nobody reads is worth less)
