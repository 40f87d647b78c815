"""First waits of public traces, as the estimator takes them, with what peers would need: limits and use."""

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from analytics.censored import Floats, Longs
from analytics.eta.waits import FOREVER_MS, Waits
from tests.shared import shared


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Waits of one or several clusters, in order of submission; limits and uses in seconds and CPUs."""

    name: str
    waits: Waits
    classes: Sequence[str]
    cluster: Longs
    limit_seconds: Floats | None = None
    amount: Longs | None = None
    run_seconds: Floats | None = None


def codes(column: pl.Series) -> tuple[Longs, list[str]]:
    """A code for each name, and the names."""
    names = column.unique().sort()
    place = {name: at for at, name in enumerate(names.to_list())}
    return np.array([place[one] for one in column.to_list()], np.int64), [str(name) for name in names]


def history(name: str, frame: pl.DataFrame) -> History:
    """
    From a frame: submitted, placed and left in seconds (null: not); cluster, queue, class, user, size.

    `limit`, `amount` and `run` are taken where they are there.
    """
    frame = frame.sort("submitted", maintain_order=True)
    seconds = (pl.coalesce("placed", "left") * 1000).cast(pl.Int64).fill_null(FOREVER_MS)
    queue = frame["cluster"] + "/" + frame["queue"]
    classes, class_names = codes(frame["class"])
    return History(
        name=name,
        waits=Waits(
            submitted_ms=(frame["submitted"] * 1000).cast(pl.Int64).to_numpy(),
            until_ms=frame.select(seconds).to_series().to_numpy(),
            placed=frame["placed"].is_not_null().to_numpy(),
            queue=codes(queue)[0],
            service_class=classes,
            line=codes(queue + "/" + frame["user"])[0],
            size=np.floor(np.log2(np.maximum(frame["size"].to_numpy(), 1))).astype(np.int64),
            again=(frame["again"].to_numpy() if "again" in frame.columns else np.zeros(len(frame), np.bool_)),
        ),
        classes=class_names,
        cluster=codes(frame["cluster"])[0],
        limit_seconds=frame["limit"].cast(pl.Float64).to_numpy() if "limit" in frame.columns else None,
        amount=frame["size"].to_numpy() if "limit" in frame.columns else None,
        run_seconds=frame["run"].cast(pl.Float64).to_numpy() if "limit" in frame.columns else None,
    )


def metacentrum() -> History:
    """The queues are the classes; those that few stand in are one, as the site's rules may say."""
    few = ("backfill", "ops", "priority_long", "q_2w_plus")
    frame = pl.read_parquet(shared("data/traces/metacentrum-wagap-2013/jobs.parquet"))
    return history(
        "metacentrum",
        frame.select(
            submitted=pl.col("submit"),
            placed=pl.col("submit") + pl.col("wait"),
            left=pl.lit(None, pl.Int64),
            cluster=pl.lit("wagap"),
            queue=pl.col("queue_name"),
            user=pl.col("user_id").cast(pl.String),
            size=pl.col("procs"),
            limit=pl.col("req_time"),
            run=pl.col("run"),
        ).with_columns(
            pl.when(pl.col("queue").is_in(few)).then(pl.lit("others")).otherwise("queue").alias("class")
        ),
    )


def _seconds(name: str) -> pl.Expr:
    """[D-]HH:MM:SS as seconds; null where it is none."""
    parts = pl.col(name).str.extract_groups(r"^(?:(\d+)-)?(\d+):(\d+):(\d+)").struct
    days, hours, minutes, seconds = (parts.field(str(at)).cast(pl.Int64) for at in (1, 2, 3, 4))
    return days.fill_null(0) * 86_400 + hours * 3600 + minutes * 60 + seconds


def xdmod() -> History:
    """Two clusters; the QOS is the class, and those that few have are one."""
    frame = pl.read_parquet(shared("data/traces/xdmod-slurm-2017/jobs.parquet"))
    started = pl.col("nodelist") != "None assigned"

    def instant(name: str) -> pl.Expr:
        return pl.col(name).str.to_datetime(strict=False).dt.epoch("s")

    many = ("banana-cream", "apple")
    return history(
        "xdmod",
        frame.select(
            submitted=instant("submit"),
            placed=pl.when(started).then(instant("start")),
            left=pl.when(~started).then(instant("end")),
            cluster=pl.col("cluster"),
            queue=pl.col("partition"),
            user=pl.col("user"),
            size=pl.col("ncpus").cast(pl.Int64),
            limit=_seconds("timelimit"),
            run=instant("end") - instant("start"),
            qos=pl.col("qos"),
        ).with_columns(
            pl.when(pl.col("qos").is_in(many)).then("qos").otherwise(pl.lit("others")).alias("class")
        ),
    )


def dlrm() -> History:
    """Instances by role; the application is both queue and user."""
    frame = pl.read_parquet(shared("data/traces/alibaba-dlrm-2025/instances.parquet"))
    return history(
        "dlrm",
        frame.filter(pl.col("creation_time").is_not_null())
        .select(
            submitted=pl.col("creation_time"),
            placed=pl.col("scheduled_time"),
            left=pl.when(pl.col("scheduled_time").is_null()).then(pl.col("deletion_time")),
            cluster=pl.lit("dlrm"),
            queue=pl.col("app_name"),
            user=pl.lit(""),
            size=pl.col("gpu_request").fill_null(0).cast(pl.Int64),
        )
        .with_columns(frame.filter(pl.col("creation_time").is_not_null())["role"].alias("class")),
    )


HISTORIES: Final[dict[str, Callable[[], History]]] = {
    "xdmod": xdmod,
    "metacentrum": metacentrum,
    "dlrm": dlrm,
}


# Of the generated year: class, arrivals an hour, and hours that it runs: the median, and sigma of the log.
_CLASSES: Final = (("interactive", 2.5, 0.4, 0.9), ("batch", 1.3, 2.0, 1.1), ("best_effort", 0.8, 2.5, 1.3))
_GPUS: Final = 32


def year(seed: int = 7, days: int = 365) -> History:
    """
    A year of a cluster of 32 GPUs: three classes, weeks and days, drift, bursts, sizes of 1 to 16, give-ups.

    Waits are not drawn: they come of a schedule, by class, then by submission, where a smaller one may pass a
    larger one that has no room (backfill without reservation). So they depend on whatever else there is.
    """
    return _year("generated year", seed, days, evicts=False)


def evicting(seed: int = 7, days: int = 45) -> History:
    """Some weeks of the same, where interactive work throws out best-effort work, which goes on later."""
    return _year("generated weeks with evictions", seed, days, evicts=True)


def _year(name: str, seed: int, days: int, *, evicts: bool) -> History:
    random = np.random.default_rng(seed)
    jobs: list[_Job] = []
    for place, (_, rate, median, sigma) in enumerate(_CLASSES):
        at = 0.0
        while at < days * 24:
            hour, day = at % 24, at // 24
            busy = 0.55 + 0.75 * (8 <= hour < 20)
            week = 0.45 if day % 7 >= 5 else 1.1
            drift = 1 + 0.25 * np.sin(2 * np.pi * day / 120) + 0.15 * day / days
            at += random.exponential(1 / (rate * busy * week * drift))
            burst = int(random.integers(5, 40)) if random.random() < 0.012 else 1
            user, size = int(random.zipf(1.6)) % 12, int(2 ** min(random.geometric(0.55) - 1, 4))
            for number in range(burst):
                run = float(median * np.exp(sigma * random.standard_normal())) if burst == 1 else median
                patience = random.exponential(120.0)
                jobs.append(_Job(at + number * 0.003, place, user, size, min(run, 48.0), patience))
    jobs.sort()
    waits = _Schedule(jobs, evicts=evicts).waits()
    names = [class_name for class_name, *_ in _CLASSES]
    frame = pl.DataFrame(
        {
            "submitted": [wait.from_hour * 3600 for wait in waits],
            "placed": [wait.until_hour * 3600 if wait.placed else None for wait in waits],
            "left": [None if wait.placed else wait.until_hour * 3600 for wait in waits],
            "cluster": "year",
            "queue": [f"team-{jobs[wait.job].user % 4}" for wait in waits],
            "user": [str(jobs[wait.job].user) for wait in waits],
            "size": [jobs[wait.job].size for wait in waits],
            "class": [names[jobs[wait.job].place] for wait in waits],
            "again": [wait.again for wait in waits],
        },
        schema_overrides={"placed": pl.Float64, "left": pl.Float64},
    )
    return history(name, frame)


class _Job(NamedTuple):
    """Hours, except for its class, user and GPUs; it runs so long, and gives up a wait after its patience."""

    at: float
    place: int
    user: int
    size: int
    run: float
    patience: float


class _Wait(NamedTuple):
    job: int
    from_hour: float
    until_hour: float
    placed: bool
    again: bool


class _Schedule:
    """When each starts, is thrown out, or is given up; the latter is noticed when something else happens."""

    def __init__(self, jobs: Sequence[_Job], *, evicts: bool) -> None:
        self._jobs, self._evicts = jobs, evicts
        self._free, self._now = _GPUS, 0.0
        # By class, then by submission, also of what waits again.
        self._waiting: list[tuple[int, float, int]] = []
        # How long each has to run; of those that wait: since when, and whether again; of those that run:
        # from when and to when.
        self._runs = [job.run for job in jobs]
        self._since: dict[int, tuple[float, bool]] = {}
        self._running: dict[int, tuple[float, float]] = {}
        self._ends: list[tuple[float, int]] = []
        self._waits: list[_Wait] = []

    def waits(self) -> list[_Wait]:
        """All waits that came to an end, and none else: at last nothing waits or runs."""
        arrivals = iter([*enumerate(self._jobs), (-1, None)])
        number, job = next(arrivals)
        while job is not None or self._ends:
            if job is not None and (not self._ends or job.at <= self._ends[0][0]):
                self._now = job.at
                self._queue(number, again=False)
                number, job = next(arrivals)
            else:
                self._now, ended = heapq.heappop(self._ends)
                if self._running.get(ended, (0.0, -1.0))[1] != self._now:
                    continue
                self._stop(ended)
            self._place()
        return self._waits

    def _queue(self, number: int, *, again: bool) -> None:
        insort(self._waiting, (self._jobs[number].place, self._jobs[number].at, number))
        self._since[number] = self._now, again

    def _stop(self, number: int) -> None:
        self._runs[number] -= self._now - self._running.pop(number)[0]
        self._free += self._jobs[number].size

    def _place(self) -> None:
        for entry in list(self._waiting):
            job, (since, again) = self._jobs[entry[2]], self._since[entry[2]]
            gives_up = self._now > since + job.patience
            if not gives_up and not self._has_room(job):
                continue
            self._waiting.remove(entry)
            self._waits.append(_Wait(entry[2], since, self._now, not gives_up, again))
            if not gives_up:
                self._free -= job.size
                ends = self._now + self._runs[entry[2]]
                self._running[entry[2]] = self._now, ends
                heapq.heappush(self._ends, (ends, entry[2]))

    def _has_room(self, job: _Job) -> bool:
        victims = [] if job.place or not self._evicts else self._victims(job.size)
        for number in victims:
            self._stop(number)
            self._queue(number, again=True)
        return job.size <= self._free

    def _victims(self, size: int) -> list[int]:
        """Best-effort work that is in the way, what began last first; none where that is not enough."""
        found: list[int] = []
        free = self._free
        running = [number for number in self._running if self._jobs[number].place == len(_CLASSES) - 1]
        for number in sorted(running, key=lambda one: self._running[one][0], reverse=True):
            if free >= size:
                break
            found.append(number)
            free += self._jobs[number].size
        return found if free >= size else []


HISTORIES["generated year"] = year
