"""The measurement tick: every metric as of now, kept in the store and shown to Prometheus."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from domain.errors import ProductError
from domain.metric import Measurement, Metric, Row
from service.answers import Answers, Read

log = logging.getLogger("gpuledger.measure")

Refresh: TypeAlias = Callable[[], int]
Publish: TypeAlias = Callable[[Sequence[Measurement], int], None]


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
    _last: list[Measurement] = field(default_factory=list, init=False)

    def tick(self) -> int:
        """
        Measure every metric; gives the number of series.

        A metric that fails is logged and left out, so that the others are still seen. Where neither
        the clock nor the data moved, the last measurements still hold: they are published again,
        which shows that we are alive.
        """
        recut = self.refresh()
        as_of_ms = self.answers.clock.now_ms()
        if not recut and as_of_ms == self._last_ms:
            self.publish(self._last, as_of_ms)
            return len(self._last)
        measurements = list(self._measured(as_of_ms))
        self.answers.store.publish(measurements)
        self.publish(measurements, as_of_ms)
        self._last_ms, self._last = as_of_ms, measurements
        return len(measurements)

    def _measured(self, as_of_ms: int) -> Iterator[Measurement]:
        metrics = sorted(self.answers.registry().values(), key=_query)
        for _, alike in groupby(metrics, key=_query):
            # Rows live as long as the metrics of one query are measured, not for the whole tick.
            read = read_once(self.answers.store.rows)
            for metric in alike:
                try:
                    yield from self.answers.measure(metric, as_of_ms, read=read)
                except ProductError:
                    log.exception("metric failed", extra={"metric": metric.name})


def read_once(read: Read) -> Read:
    """The same reader, which asks each question once and keeps the rows."""
    kept: dict[tuple[str, tuple[tuple[str, int], ...]], Sequence[Row]] = {}

    def remembered(sql: str, parameters: Mapping[str, int]) -> Sequence[Row]:
        question = (sql, tuple(sorted(parameters.items())))
        if question not in kept:
            kept[question] = read(sql, parameters)
        return kept[question]

    return remembered


def _query(metric: Metric) -> str:
    return metric.sql
