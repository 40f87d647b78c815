"""Kueue's own metrics beside our figures: read again and again, kept in memory, never mixed."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from analytics.kueue_check import FAMILIES, Compared, Figure, Key, Labelled, compared, theirs_of
from api.answers import Listing, Record
from collector.addresses import shown
from collector.dcgm.exposition import labels_of, readings
from collector.metrics_page import metrics_page
from domain.errors import UnreachableError
from domain.quantity import MICRO_PER_GPU
from domain.window import Clock, format_instant
from service.outside_settings import KueueMetricsSettings
from service.token_files import token_of
from store.embedded import Store

if TYPE_CHECKING:
    from collector.dcgm.prometheus import Prometheus

log = logging.getLogger("gpuledger.kueue_checks")

# One row per queue: workloads that wait for quota at $as_of_ms, with GPUs or without.
_PENDING: Final = """
select workload.queue, count(*) as value
from span
inner join workload
    on span.cluster = workload.cluster and span.workload_uid = workload.workload_uid
where
    span.cluster = $cluster
    and span.state = 'queued'
    and span.start_ms < $as_of_ms
    and coalesce(span.end_ms >= $as_of_ms, true)
group by workload.queue
"""
# One row per queue and flavor: GPUs reserved at $as_of_ms.
_RESERVED: Final = """
select workload.queue, reservation.flavor, sum(reservation.micro_gpus)::double as value
from reservation
inner join workload
    on reservation.cluster = workload.cluster and reservation.workload_uid = workload.workload_uid
where
    reservation.cluster = $cluster
    and reservation.start_ms < $as_of_ms
    and coalesce(reservation.end_ms >= $as_of_ms, true)
group by workload.queue, reservation.flavor
"""
# One row per queue: the mean wait of workloads from submission to admission, as far as we saw it.
_WAITED: Final = """
with waited as (
    select
        workload.queue,
        workload.workload_uid,
        sum(span.end_ms - span.start_ms) as wait_ms
    from workload
    inner join span
        on workload.cluster = span.cluster and workload.workload_uid = span.workload_uid
    where
        workload.cluster = $cluster
        and workload.first_placed_ms < $as_of_ms
        and span.first_wait
        and span.state in ('queued', 'checking')
        and span.end_ms is not null
    group by workload.queue, workload.workload_uid
)

select queue, avg(wait_ms) / 1000 as value from waited group by queue
"""


def ours_of(store: Store, cluster: str, as_of_ms: int) -> dict[Figure, dict[Key, float]]:
    """Our figures by queue and flavor at an instant."""
    asked = {"cluster": cluster, "as_of_ms": as_of_ms}

    def by_queue(sql: str) -> dict[Key, float]:
        rows: Sequence[Mapping[str, Any]] = store.rows(sql, asked)
        return {(str(row["queue"]), ""): float(row["value"]) for row in rows}

    reserved: Sequence[Mapping[str, Any]] = store.rows(_RESERVED, asked)
    return {
        Figure.PENDING: by_queue(_PENDING),
        Figure.RESERVED: {
            (str(row["queue"]), str(row["flavor"])): float(row["value"] or 0) / MICRO_PER_GPU
            for row in reserved
        },
        Figure.ADMISSION_WAIT: by_queue(_WAITED),
    }


def series_in(answer: str) -> Iterator[Labelled]:
    """Kueue's families in an answer of its `/metrics`; a line that cannot be read is left out."""
    for reading in readings(answer, FAMILIES.__contains__, lambda _: None):
        try:
            yield reading.name, labels_of(reading.labels), reading.value
        except ValueError:
            continue


@dataclass(slots=True)
class _Checked:
    """The last comparison of one source, and how often in a row each figure lay apart."""

    at_ms: int = 0
    error: str = ""
    rows: list[Compared] = field(default_factory=list)
    apart: dict[tuple[Figure, str, str], int] = field(default_factory=dict)


class KueueChecks:
    """
    Compares one source after the other; safe to use from many threads.

    A difference is told when it was there so often in a row as the settings say: the two are never read at
    the very same instant.
    """

    def __init__(self, store: Store, settings: Sequence[KueueMetricsSettings], clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._prometheus = [_prometheus(one) for one in settings]
        self._checked = [_Checked() for _ in settings]

    def poll(self, number: int) -> None:
        """Read the source of that number in the settings, and compare."""
        settings, checked = self._settings[number], self._checked[number]
        try:
            series = list(self._read(number))
        except UnreachableError as error:
            log.warning("Kueue's metrics were not read: %s", error)
            with self._lock:
                checked.error = str(error)
            return
        at_ms = self._clock.now_ms()
        self.take(number, series, ours_of(self._store, settings.cluster, at_ms), at_ms)

    def take(
        self, number: int, series: Sequence[Labelled], ours: Mapping[Figure, Mapping[Key, float]], at_ms: int
    ) -> None:
        """Compare what a source told with our figures of the same instant."""
        settings, checked = self._settings[number], self._checked[number]
        rows = compared(theirs_of(series), ours)
        apart = {
            (one.figure, one.queue, one.flavor)
            for one in rows
            if one.differs(tolerated=settings.tolerated, tolerated_ratio=settings.tolerated_ratio)
        }
        with self._lock:
            checked.apart = {key: checked.apart.get(key, 0) + 1 for key in apart}
            checked.at_ms, checked.rows = at_ms, rows
            checked.error = "" if rows else "it tells nothing of ClusterQueues: is this Kueue's /metrics?"

    def listing(self) -> Listing:
        """One row per source, figure, queue and flavor; one without a figure where a source tells nothing."""
        with self._lock:
            rows = [
                row
                for settings, checked in zip(self._settings, self._checked, strict=True)
                for row in _rows(settings, checked)
            ]
        return Listing(as_of_ms=None, rows=rows, total=len(rows), page_size=max(len(rows), 1))

    def close(self) -> None:
        """Let go of the connections."""
        for line in self._prometheus:
            if line is not None:
                line.close()

    def _read(self, number: int) -> Iterator[Labelled]:
        settings, line = self._settings[number], self._prometheus[number]
        if line is None:
            for target in settings.targets:
                yield from series_in(metrics_page(target))
            return
        names = "|".join(sorted(FAMILIES))
        more = f",{settings.match}" if settings.match else ""
        for labels, value in line.at_instant(f'{{__name__=~"{names}"{more}}}'):
            yield labels.get("__name__", ""), labels, value


def _rows(settings: KueueMetricsSettings, checked: _Checked) -> Iterator[Record]:
    head: Record = {
        "cluster": settings.cluster,
        "source": ", ".join(map(shown, [settings.prometheus] if settings.prometheus else settings.targets)),
        "seen_at": format_instant(checked.at_ms) if checked.at_ms else None,
        "error": checked.error,
    }
    nothing = {"figure": "", "queue": "", "flavor": "", "theirs": None, "ours": None, "differs": False}
    if checked.error or not checked.rows:
        yield head | nothing
    for one in checked.rows:
        times = checked.apart.get((one.figure, one.queue, one.flavor), 0)
        yield head | {
            "figure": str(one.figure),
            "queue": one.queue,
            "flavor": one.flavor,
            "theirs": one.theirs,
            "ours": one.ours,
            "differs": times >= settings.times,
        }


def _prometheus(settings: KueueMetricsSettings) -> "Prometheus | None":
    if settings.prometheus is None:
        return None
    from collector.dcgm.prometheus import Prometheus

    return Prometheus(settings.prometheus, token=token_of(settings.token_file, "kueue_metrics.token_file"))
