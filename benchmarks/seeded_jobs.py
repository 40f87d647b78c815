"""
A cluster's jobs from a seed, day by day, so that memory does not grow with their number.

GPUs are cut into lanes of 1, 2, 4 or 8 of a node, or of 2, 4 or 8 whole nodes. On a lane one job follows
another, so that no GPU is ever held twice; how long each waited is drawn, and its submission lies before its
start by so much. Who has not started at the end still waits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from domain.window import MS_PER_HOUR

CLUSTER: Final = "north"
START_MS: Final = 1_767_225_600_000  # 2026-01-01
DAY_MS: Final = 24 * MS_PER_HOUR
GPUS: Final = 8
MODELS: Final = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB")
CLASSES: Final = ("interactive", "batch", "best_effort")
PRIORITIES: Final = ("high", "normal", "low")
TEAMS: Final = 50
QUEUES: Final = 200

# Of ten nodes: how many lanes of how many GPUs each is cut into; 0 belongs to a lane of whole nodes.
_LANES: Final = (1, 1, 1, 1, 2, 2, 4, 4, 8, 0)
_GANGS: Final = (2, 4, 8)
# Shares of the classes, and the medians of those waits that are not of no length, in minutes.
_CLASS_SHARES: Final = (0.2, 0.7, 0.1)
_WAIT_MINUTES: Final = (1.0, 20.0, 180.0)
_PLACED_AT_ONCE: Final = 0.3
_CANCELLED: Final = 0.02
_FAILED: Final = 0.08
# Longer than this nobody waits for a start; so far beyond the end who still waits is looked for.
_LONGEST_WAIT_MS: Final = 4 * DAY_MS
_IDLE_SHARE: Final = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """So many jobs, over so many days, on so many nodes of 8 GPUs; about, for a seed decides."""

    jobs: int
    days: int
    nodes: int
    seed: int = 7

    @property
    def end_ms(self) -> int:
        """Up to here everything is known."""
        return START_MS + self.days * DAY_MS

    def model(self, node: int) -> str:
        """The GPU model of a node: one of the first for six in ten."""
        return MODELS[node * 10 >= self.nodes * 6]


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Per lane: its first node, how many nodes, and GPUs in all."""

    node: "np.ndarray[Any, Any]"
    nodes: "np.ndarray[Any, Any]"
    gpus: "np.ndarray[Any, Any]"


class _Day(NamedTuple):
    """Per job: its lane, when it starts (or gives up) and ends, and whether it is ever placed."""

    lane: "np.ndarray[Any, Any]"
    start: "np.ndarray[Any, Any]"
    end: "np.ndarray[Any, Any]"
    placed: "np.ndarray[Any, Any]"


def _lanes(cluster: Cluster) -> _Lanes:
    # Whole nodes stand at the end of each model's nodes, so that a gang has one model.
    found: list[tuple[int, int, int]] = []
    for model in MODELS:
        nodes = [node for node in range(cluster.nodes) if cluster.model(node) == model]
        cut = {node: _LANES[place % len(_LANES)] for place, node in enumerate(nodes)}
        # Nodes of a gang follow one another: the last tenth.
        order = sorted(nodes, key=lambda node: (cut[node] == 0, node))
        whole = sum(size == 0 for size in cut.values())
        sizes = sorted((size for size in cut.values() if size), key=lambda size: size)
        for node, size in zip(sorted(order)[: len(sizes)], sizes, strict=True):
            found += [(node, 1, size)] * (GPUS // size)
        first, turn = len(sizes), 0
        while whole:
            gang = min(_GANGS[turn % len(_GANGS)], whole)
            found.append((nodes[first], gang, gang * GPUS))
            first, whole, turn = first + gang, whole - gang, turn + 1
    return _Lanes(*(np.array(column) for column in zip(*found, strict=True)))


SCHEMA: Final = {
    "job": pl.Int64, "team": pl.String, "user": pl.String, "queue": pl.String, "priority_class": pl.String,
    "service_class": pl.String, "gpu_model": pl.String, "node": pl.Int64, "nodes": pl.Int64, "gpus": pl.Int64,
    "submit_ms": pl.Int64, "start_ms": pl.Int64, "end_ms": pl.Int64, "state": pl.String,
}  # fmt: skip


def days_of_jobs(cluster: Cluster) -> Iterator[pl.DataFrame]:
    """
    Jobs by the day of their start, or of their submission where they never start; columns as `SCHEMA`.

    `start_ms` is null for who still waits or was cancelled, `end_ms` for who has not ended at the end; a
    job of several nodes has so many from its first one on.
    """
    rng = np.random.default_rng(cluster.seed)
    lanes = _lanes(cluster)
    cycle_ms = lanes.gpus.size * cluster.days * DAY_MS / (cluster.jobs * (1 - _CANCELLED))
    # The mean of a lognormal of sigma 1.2 is e^0.72 times its median.
    run_median = cycle_ms * (1 - _IDLE_SHARE) / np.exp(0.72)
    free_ms = START_MS + (rng.random(lanes.gpus.size) * cycle_ms).astype(np.int64)
    number = 0
    for day in range(cluster.days + _LONGEST_WAIT_MS // DAY_MS):
        until_ms = START_MS + (day + 1) * DAY_MS
        parts: list[tuple[Any, Any, Any]] = []
        while (ready := np.flatnonzero(free_ms < until_ms)).size:
            gap = rng.exponential(cycle_ms * _IDLE_SHARE, ready.size)
            run = np.maximum(rng.lognormal(np.log(run_median), 1.2, ready.size), 5_000)
            start = free_ms[ready] + gap.astype(np.int64)
            end = start + run.astype(np.int64)
            free_ms[ready] = end
            parts.append((ready, start, end))
        lane = np.concatenate([part[0] for part in parts])
        start = np.concatenate([part[1] for part in parts])
        end = np.concatenate([part[2] for part in parts])
        # Who is cancelled waits for a lane as others do, and never gets one.
        never = rng.poisson(cluster.jobs / cluster.days * _CANCELLED)
        lane = np.concatenate([lane, rng.integers(0, lanes.gpus.size, never)])
        start = np.concatenate([start, rng.integers(until_ms - DAY_MS, until_ms, never)])
        end = np.concatenate([end, np.zeros(never, dtype=np.int64)])
        placed = np.arange(lane.size) < lane.size - never
        frame = _described(cluster, lanes, rng, _Day(lane, start, end, placed))
        frame = frame.filter(pl.col("submit_ms") < cluster.end_ms).sort("submit_ms")
        yield frame.with_columns(job=pl.int_range(number, number + frame.height, dtype=pl.Int64)).select(
            list(SCHEMA)
        )
        number += frame.height


def _described(cluster: Cluster, lanes: _Lanes, rng: np.random.Generator, day: _Day) -> pl.DataFrame:
    lane, start, end, placed = day
    count = lane.size
    klass = rng.choice(3, count, p=_CLASS_SHARES)
    wait = rng.lognormal(np.log(np.array(_WAIT_MINUTES)[klass] * 60_000), 1.5)
    wait = np.where(placed & (rng.random(count) < _PLACED_AT_ONCE), 0, np.minimum(wait, _LONGEST_WAIT_MS))
    submit = np.maximum(start - wait.astype(np.int64), START_MS)
    team = (rng.random(count) ** 2 * TEAMS).astype(np.int64)
    queue = team * (QUEUES // TEAMS) + rng.integers(0, QUEUES // TEAMS, count)
    node = lanes.node[lane]
    model = np.array([cluster.model(number) for number in range(cluster.nodes)])[node]
    state = np.where(rng.random(count) < _FAILED, "failed", "succeeded")
    frame = pl.DataFrame(
        {
            "team": team, "user_no": rng.integers(0, 10, count), "queue": queue, "class_no": klass,
            "gpu_model": model, "node": node, "nodes": lanes.nodes[lane], "gpus": lanes.gpus[lane],
            "submit_ms": submit, "start_ms": start, "end_ms": end, "state": state, "placed": placed,
        }
    )  # fmt: skip
    now = cluster.end_ms
    started = pl.col("placed") & (pl.col("start_ms") < now)
    # Who is cancelled gives up at the instant at which another would have started.
    cancelled = ~pl.col("placed") & (pl.col("start_ms") < now)
    over = started & (pl.col("end_ms") < now)
    return frame.select(
        pl.format("team-{}", "team").alias("team"),
        pl.format("user-{}-{}", "team", "user_no").alias("user"),
        pl.format("queue-{}", "queue").alias("queue"),
        "gpu_model", "node", "nodes", "gpus", "submit_ms",
        priority_class=_named("class_no", PRIORITIES),
        service_class=_named("class_no", CLASSES),
        start_ms=pl.when(started).then("start_ms"),
        end_ms=pl.when(over).then("end_ms").when(cancelled).then("start_ms"),
        state=pl.when(over).then("state").when(cancelled).then(pl.lit("cancelled")).otherwise(pl.lit("open")),
    )  # fmt: skip


def _named(column: str, names: tuple[str, ...]) -> pl.Expr:
    return pl.col(column).replace_strict(range(len(names)), names, return_dtype=pl.String)
