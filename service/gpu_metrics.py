"""Reading GPU metrics: from files once, from a running source again and again, on from where it stopped."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from collector.dcgm.answers import Part, read_saved
from collector.dcgm.exporter import Scraped, read_file
from collector.dcgm.health import of_series
from collector.dcgm.samples import OF_THE_FUTURE
from collector.kube.client import Connection
from domain.errors import RecordingError, UnreachableError, UsageError
from domain.gpu_fault import HealthReading
from domain.window import CLOCK_SKEW_MS, MS_PER_SECOND, Clock, parse_duration, parse_instant
from service.gpu_faults import GpuFaults
from service.gpu_metrics_settings import GpuMetricsSettings
from service.lacking import Lacking
from service.scraping import Scraper
from service.token_files import token_of
from store.embedded import Store
from store.gpu_samples import Read

if TYPE_CHECKING:
    from collector.dcgm.prometheus import Prometheus

log = logging.getLogger("gpuledger.gpu_metrics")
_MS = timedelta(milliseconds=1)


@dataclass(slots=True)
class Taken:
    """
    What was taken in: samples that were read, those that were new, and what was set aside by cause.

    `cut` says which files end before their end, and where; `lacking` which answers of a server may lack
    samples, and why.
    """

    read: int = 0
    new: int = 0
    failed: int = 0
    cut: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    set_aside: Counter[str] = field(default_factory=Counter)


def prometheus_parts(  # noqa: PLR0913 (what a command's options say)
    origins: Sequence[str],
    *,
    start: str | None,
    end: str | None,
    step: str | None,
    match: str,
    token_file: Path | None,
    clock: Clock,
) -> Iterator[Part]:
    """
    GPU metrics of a server, or of saved answers; what the arguments mean is checked before it is read.

    Raises:
        UsageError: an address comes with others, or without a start, or a length or instant is wrong.
    """
    length = None if step is None else parse_duration(step)
    if not any(origin.startswith(("http://", "https://")) for origin in origins):
        return read_saved(map(Path, origins), step_ms=_in_ms(length))
    if len(origins) > 1 or start is None:
        message = f"{' '.join(origins)}: expected one address, with --start INSTANT"
        raise UsageError(message)
    from collector.dcgm.prometheus import Prometheus, Range

    asked = Range(
        start_ms=parse_instant(start),
        end_ms=clock.now_ms() if end is None else parse_instant(end),
        step_seconds=30 if length is None else length // timedelta(seconds=1),
    )
    token = token_of(token_file, "--token-file")
    return Prometheus(origins[0], token=token, match=match).parts(asked)


def scrape_files(paths: Iterable[Path], step: str | None) -> Iterator[tuple[Path, Scraped]]:
    """
    Recorded scrapes of these files, and of all files in these folders.

    Raises:
        UsageError: the step is no length.
        RecordingError: a file is missing, or holds no scrape.
    """
    length = None if step is None else parse_duration(step)
    for path in paths:
        if not path.exists():
            message = f"{path}: no such file; expected answers of dcgm-exporter"
            raise RecordingError(message)
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            read_at_ms = int(file.stat().st_mtime * MS_PER_SECOND)
            yield file, read_file(file, step_ms=_in_ms(length), single_at_ms=read_at_ms)


def noting_silences(
    parts: Iterable[Part], silences: list[tuple[int, int]], *, from_ms: int
) -> Iterator[Part]:
    """The parts of one server, oldest first; `silences` fills with stretches of which it told nothing."""
    reach_ms = until_ms = from_ms
    for part in parts:
        told = part.samples.frame.select("at_ms", "step_ms").unique("at_ms").sort("at_ms")
        for at_ms, step_ms in told.iter_rows():
            # A reading stands for its step, and for half of the next one.
            if 2 * (at_ms - reach_ms) > step_ms:
                silences.append((reach_ms, at_ms))
            reach_ms = at_ms + step_ms
        until_ms = part.until_ms
        yield part
    if reach_ms < until_ms:
        silences.append((reach_ms, until_ms))


class _Told(NamedTuple):
    """What a part or a file told, without what has not happened yet."""

    frame: pl.DataFrame
    set_aside: Counter[str]
    health: list[HealthReading]
    until_ms: int

    @classmethod
    def up_to(cls, now_ms: int | None, told: Part | Scraped) -> "_Told":
        """What is of the future by this machine's clock is set aside; nothing where that is not given."""
        frame, health, aside = told.samples.frame, list(told.health), Counter(told.samples.set_aside)
        if now_ms is None:
            return cls(frame, aside, health, told.until_ms)
        last_ms = now_ms + CLOCK_SKEW_MS
        kept, past = frame.filter(pl.col("at_ms") <= last_ms), [one for one in health if one.at_ms <= last_ms]
        if ahead := frame.height - kept.height + len(health) - len(past):
            aside[OF_THE_FUTURE] += ahead
        return cls(kept, aside, past, min(told.until_ms, last_ms))


def keep_parts(  # noqa: PLR0913 (what is known of the parts, each by name)
    store: Store,
    cluster: str,
    parts: Iterable[Part],
    progress: Callable[[int], None] | None = None,
    *,
    now_ms: int | None = None,
    of_files: bool = False,
    lacking: str = "",
) -> Taken:
    """
    Append parts as they come, each with its mark: a stop between two loses none and repeats none.

    From the first part on that may lack samples nothing counts as read, and the mark says why; from the
    beginning where it is known why what came before is `lacking` some.

    `progress` is told the number of samples read so far. What lies ahead of `now_ms`, the machine's clock, is
    set aside; with None everything counts. Parts `of_files` may come again: what they set aside is
    counted once.
    """
    taken = Taken()
    asides = _Asides(store, cluster) if of_files else None
    faults = GpuFaults(store, cluster)
    for part in parts:
        frame, aside, health, until_ms = _Told.up_to(now_ms, part)
        faults.take(health, until_ms)
        lacking = lacking or part.lacking
        taken.lacking += [part.lacking] if part.lacking else []
        mark = Read(until_ms=0 if lacking else until_ms, seen_ms=until_ms, error=lacking)
        new = aside if asides is None else asides.new(part.source, aside)
        taken.new += store.append_samples(cluster, part.source, frame, mark, set_aside=new)
        taken.read += frame.height
        taken.set_aside += aside
        if progress is not None:
            progress(taken.read)
    return taken


def keep_scrapes(
    store: Store,
    cluster: str,
    files: Iterable[tuple[Path, Scraped]],
    progress: Callable[[int], None] | None = None,
    *,
    now_ms: int | None = None,
) -> Taken:
    """Append recorded scrapes; each file is a source of its own, called after it. See `keep_parts`."""
    taken = Taken()
    asides = _Asides(store, cluster)
    faults = GpuFaults(store, cluster)
    for path, scraped in files:
        frame, aside, health, until_ms = _Told.up_to(now_ms, scraped)
        faults.take(health, until_ms)
        mark = Read(until_ms=until_ms, seen_ms=until_ms, error=scraped.broken)
        source = f"exporter/{path.name.partition('.')[0]}"
        aside.update({f"a scrape that failed: {why}": count for why, count in scraped.failed.items()})
        new = asides.new(source, aside)
        taken.new += store.append_samples(cluster, source, frame, mark, set_aside=new)
        taken.read += frame.height
        taken.failed += scraped.failed.total()
        taken.cut += [scraped.broken] if scraped.broken else []
        taken.set_aside += aside
        if progress is not None:
            progress(taken.read)
    return taken


class _Asides:
    """What sources set aside that was not counted before, so that reading a file again adds nothing."""

    def __init__(self, store: Store, cluster: str) -> None:
        self._counted: Counter[tuple[str, str]] = Counter()
        self._seen: Counter[tuple[str, str]] = Counter()
        for row in store.set_aside_counts():
            if row["cluster"] == cluster:
                self._counted[str(row["source"]), str(row["because"])] += int(str(row["count"]))

    def new(self, source: str, told: Mapping[str, int]) -> Counter[str]:
        """How often which cause came that was not counted before; what it gives is counted."""
        self._seen.update({(source, because): count for because, count in told.items()})
        more = Counter({
            because: self._seen[source, because] - self._counted[source, because] for because in told
        })  # fmt: skip
        more = +more
        self._counted.update({(source, because): count for because, count in more.items()})
        return more


class Poller:
    """
    Reads the GPU metrics of one cluster, again with each call of `poll`.

    Args:
        settings: where they come from.
        store: keeps them, and knows up to where they were read.
        clock: what now is.
        faults: takes what is told of the health of its GPUs.
        connection: to the cluster, where its exporters are to be discovered.
    """

    def __init__(
        self,
        settings: GpuMetricsSettings,
        store: Store,
        clock: Clock,
        faults: GpuFaults | None = None,
        *,
        connection: Callable[[], Connection] | None = None,
    ) -> None:
        # One that remembers nothing yet has no length.
        self._faults = GpuFaults(store, settings.cluster, live=True) if faults is None else faults
        self._settings = settings
        self._store = store
        self._clock = clock
        self._step_ms = int(settings.step.total_seconds()) * MS_PER_SECOND
        self._prometheus = _prometheus(settings)
        self._scraper = Scraper(settings, store, clock, faults=self._faults, connection=connection)
        # Up to where this process has read a Prometheus: a mark may come of a clock that was ahead.
        self._reached_ms: int | None = None
        self._lacking = Lacking()

    def poll(self) -> int:
        """Read what is new; gives the number of new samples. What does not answer is marked and told."""
        if self._prometheus is not None:
            return self._ask(self._prometheus)
        return self._scraper.round()

    def forget(self) -> None:
        """The store holds other facts now: what was remembered of GPUs is asked of it again."""
        self._faults.forget()
        self._reached_ms = None
        self._lacking = Lacking()

    def close(self) -> None:
        """Let go of the connections."""
        self._scraper.close()
        if self._prometheus is not None:
            self._prometheus.close()

    def _ask(self, prometheus: "Prometheus") -> int:
        from collector.dcgm.prometheus import Range

        now_ms = self._clock.now_ms()
        until_ms = self._read_until_ms(prometheus.source)
        if until_ms is not None and self._reached_ms is not None:
            until_ms = min(until_ms, self._reached_ms)
        if until_ms is not None and until_ms > now_ms + CLOCK_SKEW_MS:
            until_ms = None  # nobody knows what was read, and what is stored is not stored again
        start_ms = now_ms - int(self._settings.backfill.total_seconds()) * MS_PER_SECOND
        start_ms = start_ms if until_ms is None else max(until_ms, start_ms)
        reached_ms, before = self._reached_ms, self._lacking.because
        if reached_ms is not None and self._lacking.is_early(now_ms):
            start_ms = max(start_ms, reached_ms)
        is_new = reached_ms is not None and start_ms >= reached_ms
        # The newest step is left for the next time: Prometheus may not have stored all of it yet.
        end_ms = max(now_ms - self._step_ms, start_ms)
        asked = Range(start_ms=start_ms, end_ms=end_ms, step_seconds=self._step_ms // MS_PER_SECOND)
        if not (is_new and before):
            self._lacking.ask(now_ms, length_ms=end_ms - start_ms, step_ms=self._step_ms)
        try:
            for answered in prometheus.health(asked):
                self._faults.take(of_series(answered), now_ms)
            parts = prometheus.parts(asked)
            known = before if is_new else ""
            taken = keep_parts(self._store, self._settings.cluster, parts, now_ms=now_ms, lacking=known)
        except UnreachableError as error:
            self._failed(prometheus.source, error)
            return 0
        self._reached_ms = end_ms
        self._lacking.take(next(iter(taken.lacking), ""), of_new=is_new)
        self._tell(prometheus.source, before)
        return taken.new

    def _tell(self, source: str, before: str) -> None:
        """Log a server that begins to answer in part only, and one that is whole again; not each time."""
        about, now = {"cluster": self._settings.cluster, "source": source}, self._lacking.because
        if now and not before:
            log.warning("GPU metrics may lack samples, asking again", extra=about | {"error": now})
        elif before and not now:
            log.info("GPU metrics are whole again", extra=about)

    def _read_until_ms(self, source: str) -> int | None:
        for mark in self._store.sample_marks():
            if (mark["cluster"], mark["source"]) == (self._settings.cluster, source):
                until_ms = mark["read_until_ms"]
                return until_ms if isinstance(until_ms, int) and until_ms else None
        return None

    def _failed(self, source: str, error: UnreachableError) -> None:
        log.warning(
            "GPU metrics were not read",
            extra={"cluster": self._settings.cluster, "source": source, "error": str(error)},
        )
        self._store.mark_samples(
            self._settings.cluster, {source: Read(until_ms=0, seen_ms=0, error=str(error))}
        )


def pollers(
    settings: Iterable[GpuMetricsSettings],
    store: Store,
    clock: Clock,
    *,
    connect: Callable[[str], Connection] | None = None,
) -> Iterator[tuple[str, int, Poller]]:
    """
    A poller for each source, with its name and how often to call it, in seconds.

    `connect` gives a connection to the cluster of that name, where exporters are to be discovered.
    """
    faults: dict[str, GpuFaults] = {}
    for number, one in enumerate(settings):
        if one.cluster not in faults:
            faults[one.cluster] = GpuFaults(store, one.cluster, live=True)
        connection = None if connect is None else partial(connect, one.cluster)
        poller = Poller(one, store, clock, faults[one.cluster], connection=connection)
        yield f"gpu-metrics/{one.cluster}/{number}", int(one.step.total_seconds()), poller


def _prometheus(settings: GpuMetricsSettings) -> "Prometheus | None":
    if settings.prometheus is None:
        return None
    from collector.dcgm.prometheus import Prometheus

    token = token_of(settings.token_file, "gpu_metrics.token_file")
    return Prometheus(settings.prometheus, token=token, match=settings.match)


def _in_ms(length: timedelta | None) -> int | None:
    return None if length is None else length // _MS
