"""
The answers of pandas, straight from the file of jobs.

Written as one writes it there: whole columns and groups, no loop over jobs.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.questions import MICRO, QUANTILES, Answer, Data, curve, named, priced, reached
from benchmarks.seeded_jobs import DAY_MS, START_MS


def answer(asked: dict[str, Any]) -> Answer:
    """The answer to `question` from the file of these data."""
    return _QUESTIONS[asked["question"]](Data.read(asked))


def _waits(data: Data) -> Answer:
    columns = ["service_class", "team", "submit_ms", "start_ms", "end_ms"]
    jobs = pd.read_parquet(data.parquet, columns=columns)
    begin, now = data.window_start_ms, data.cluster.end_ms
    jobs["placed"] = jobs.start_ms.notna()
    until = jobs.start_ms.fillna(jobs.end_ms).fillna(now).astype("int64")
    jobs["entry"] = (begin - jobs.submit_ms).clip(lower=0)
    jobs["leaving"] = until - jobs.submit_ms
    jobs = jobs[(until >= begin) & ((jobs.entry < jobs.leaving) | jobs.placed)]
    found = []
    for (klass, team), group in jobs.groupby(["service_class", "team"], sort=False):
        started = group.leaving[group.placed].quantile(list(QUANTILES)).dropna()
        found += [(klass, team, quantile, "started", value, False) for quantile, value in started.items()]
        waited = group[(group.entry < group.leaving) | (group.leaving == 0)]
        ages, survival, largest = curve(
            waited.entry.to_numpy(), waited.leaving.to_numpy(), waited.placed.to_numpy()
        )
        for quantile in QUANTILES if len(waited) else ():
            value, bound = reached(ages, survival, largest, quantile)
            found.append((klass, team, quantile, "censored", value, bound))
    return named(found)


def _depth(data: Data) -> Answer:
    jobs = pd.read_parquet(data.parquet, columns=["queue", "submit_ms", "start_ms", "end_ms"])
    until = jobs.start_ms.fillna(jobs.end_ms).fillna(data.cluster.end_ms)
    return {
        f"{at_ms}|{queue}": int(count)
        for at_ms in data.instants_ms
        for queue, count in jobs.queue[(jobs.submit_ms < at_ms) & (until >= at_ms)].value_counts().items()
    }


def _money(data: Data) -> Answer:
    columns = ["team", "gpu_model", "gpus", "start_ms", "end_ms"]
    jobs = pd.read_parquet(data.parquet, columns=columns).dropna(subset=["start_ms"])
    start = jobs.start_ms.astype("int64")
    end = jobs.end_ms.fillna(data.cluster.end_ms).astype("int64")
    jobs = jobs.assign(start=start, end=end)[end > start]
    first = (jobs.start - START_MS) // DAY_MS
    days = (jobs.end - 1 - START_MS) // DAY_MS - first + 1
    split = jobs.loc[jobs.index.repeat(days), ["team", "gpu_model", "gpus", "start", "end"]]
    nth = np.arange(len(split)) - np.repeat((days.cumsum() - days).to_numpy(), days)
    split["day"] = np.repeat(first.to_numpy(), days) + nth
    begins = START_MS + split.day * DAY_MS
    lasted = np.minimum(split.end, begins + DAY_MS) - np.maximum(split.start, begins)
    split["held"] = split.gpus * MICRO * lasted
    return priced(split.groupby(["day", "team", "gpu_model"]).held.sum().items())


_QUESTIONS: Final[dict[str, Callable[[Data], Answer]]] = {
    "waits": _waits,
    "depth": _depth,
    "money": _money,
}
