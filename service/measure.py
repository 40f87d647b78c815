"""The measurement tick: every metric as of now, kept in the store and shown to Prometheus."""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Final, TypeAlias

from domain.errors import ProductError
from domain.metric import Measurement, Metric
from service.answers import Answers
from service.reading import Reader

log = logging.getLogger("gpuledger.measure")

Refresh: TypeAlias = Callable[[], int]
Publish: TypeAlias = Callable[[Sequence[Measurement], int], None]
_FAILED: Final = "metric_failed"


@dataclass(slots=True, kw_only=True)
class Measurer:
    """
    Brings the lives up to date and measures.

    Args:
        refresh: cuts anew what has news; gives how many workloads.
        publish: takes the measurements and their instant, for the exporter; called at each tick.
    """

    answers: Answers
    refresh: Refresh
    publish: Publish
    _last_ms: int | None = field(default=None, init=False)
    _failed: frozenset[str] = field(default=frozenset(), init=False)
    _last: list[Measurement] = field(default_factory=list, init=False)
    # Of metrics that are measured less often than at each tick.
    _slow: dict[str, list[Measurement]] = field(default_factory=dict, init=False)

    @property
    def measured_ms(self) -> int:
        """The last instant of which everything was measured and published; 0 before the first."""
        return self._last_ms or 0

    @property
    def failed(self) -> frozenset[str]:
        """Metrics that could not be measured at the last tick."""
        return self._failed

    def tick(self) -> int:
        """
        Measure every metric that is exported; gives the number of series.

        The others are computed when somebody asks for them.

        A metric that fails is left out, so that the others are still seen; an alarm sounds until all are
        measured again. Where neither the clock nor the data moved, the last measurements still hold: they
        are published again, which shows that we are alive.
        """
        recut = self.refresh()
        as_of_ms = self.answers.clock.now_ms()
        if not recut and as_of_ms == self._last_ms:
            self.publish(self._last, as_of_ms)
            return len(self._last)
        with _uncollected():
            measurements = list(self._measured(as_of_ms))
            self.answers.store.publish([one for one in measurements if one.as_of_ms == as_of_ms])
            self.publish(measurements, as_of_ms)
        self._last_ms, self._last = as_of_ms, measurements
        return len(measurements)

    def _measured(self, as_of_ms: int) -> Iterator[Measurement]:
        metrics = sorted((each for each in self.answers.registry().values() if each.exported), key=_query)
        failed: list[str] = []
        for _, group in groupby(metrics, key=_query):
            alike = list(group)
            # Rows live as long as the metrics of one query are measured, not for the whole tick.
            reader = Reader.of(self.answers.store, alike)
            for metric in alike:
                try:
                    yield from self._of_metric(metric, as_of_ms, reader)
                except ProductError:
                    failed.append(metric.name)
                    log.exception("metric failed", extra={"metric": metric.name})
        self._tell(failed)

    def _tell(self, failed: Sequence[str]) -> None:
        """Nobody should take the silence of an alert on such a metric for good news."""
        self._failed = frozenset(failed)
        if not failed:
            self.answers.alarms.end(_FAILED)
            return
        named = ", ".join(sorted(failed))
        self.answers.alarms.sound(
            _FAILED, f"not measured: {named}; the log says why, and alerts on it can neither begin nor end"
        )

    def _of_metric(self, metric: Metric, as_of_ms: int, reader: Reader) -> list[Measurement]:
        """What it is now; of a slow metric what was found last, as of then, until it is time again."""
        if metric.every is None:
            return self.answers.measure(metric, as_of_ms, reader=reader)
        kept = self._slow.get(metric.name)
        # A clock that was set back must not keep it for ever.
        if not kept or not 0 <= as_of_ms - kept[0].as_of_ms < metric.every // timedelta(milliseconds=1):
            kept = self._slow[metric.name] = self.answers.measure(metric, as_of_ms, reader=reader)
        return kept


@contextmanager
def _uncollected() -> Iterator[None]:
    """
    Without the garbage collector.

    Rows and samples are some hundred thousand objects without a cycle: it would walk through all of them,
    again and again, to find nothing, for a twelfth of the time that a tick takes.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _query(metric: Metric) -> str:
    return metric.sql
