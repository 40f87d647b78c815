"""
The answers of polars, straight from the file of jobs.

Written as one writes it there: whole columns and groups, no loop over jobs.
"""

from collections.abc import Callable
from typing import Any, Final

import polars as pl

from benchmarks.questions import MICRO, QUANTILES, Answer, Data, curve, named, priced, reached
from benchmarks.seeded_jobs import DAY_MS, START_MS


def answer(asked: dict[str, Any]) -> Answer:
    """The answer to `question` from the file of these data."""
    return _QUESTIONS[asked["question"]](Data.read(asked))


def _waits(data: Data) -> Answer:
    begin, now = data.window_start_ms, data.cluster.end_ms
    placed, until = pl.col("start_ms").is_not_null(), pl.coalesce("start_ms", "end_ms", pl.lit(now))
    jobs = (
        pl.scan_parquet(data.parquet)
        .select(
            "service_class", "team",
            placed=placed,
            until=until,
            entry=(begin - pl.col("submit_ms")).clip(lower_bound=0),
            leaving=until - pl.col("submit_ms"),
        )
        .filter((pl.col("until") >= begin) & ((pl.col("entry") < pl.col("leaving")) | pl.col("placed")))
        .collect()
    )  # fmt: skip
    found = []
    groups = jobs.partition_by("service_class", "team", as_dict=True, include_key=False)
    for (klass, team), group in groups.items():
        started = group.filter("placed")["leaving"]
        waited = group.filter((pl.col("entry") < pl.col("leaving")) | (pl.col("leaving") == 0))
        ages, survival, largest = curve(
            waited["entry"].to_numpy(), waited["leaving"].to_numpy(), waited["placed"].to_numpy()
        )
        for quantile in QUANTILES:
            middle = started.quantile(quantile, "linear")
            if middle is not None:
                found.append((klass, team, quantile, "started", middle, False))
            if waited.height:
                value, bound = reached(ages, survival, largest, quantile)
                found.append((klass, team, quantile, "censored", value, bound))
    return named(found)


def _depth(data: Data) -> Answer:
    jobs = (
        pl.scan_parquet(data.parquet)
        .select(
            "queue", "submit_ms", until=pl.coalesce("start_ms", "end_ms", pl.lit(data.cluster.end_ms))
        )
        .collect()
    )  # fmt: skip
    return {
        f"{at_ms}|{queue}": count
        for at_ms in data.instants_ms
        for queue, count in (
            jobs.filter((pl.col("submit_ms") < at_ms) & (pl.col("until") >= at_ms))
            .group_by("queue")
            .len()
            .iter_rows()
        )
    }


def _money(data: Data) -> Answer:
    start, end, day = pl.col("start_ms"), pl.col("end"), pl.col("day")
    begins = START_MS + day * DAY_MS
    lasted = pl.min_horizontal(end, begins + DAY_MS) - pl.max_horizontal(start, begins)
    rows = (
        pl.scan_parquet(data.parquet)
        .filter(start.is_not_null())
        .select("team", "gpu_model", "gpus", "start_ms", end=pl.col("end_ms").fill_null(data.cluster.end_ms))
        .filter(end > start)
        .with_columns(
            day=pl.int_ranges((start - START_MS) // DAY_MS, (end - 1 - START_MS) // DAY_MS + 1)
        )
        .explode("day")
        .group_by("day", "team", "gpu_model")
        .agg(held=(pl.col("gpus") * MICRO * lasted).sum())
        .collect()
    )  # fmt: skip
    return priced(((day, team, model), held) for day, team, model, held in rows.iter_rows())


_QUESTIONS: Final[dict[str, Callable[[Data], Answer]]] = {
    "waits": _waits,
    "depth": _depth,
    "money": _money,
}
