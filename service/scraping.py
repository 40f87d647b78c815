"""Rounds of scrapes of a cluster's exporters: found, asked, read and kept, group by group."""

import logging
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from collector.dcgm.discovery import Asked, By, discover
from collector.dcgm.exporter_http import ExporterAddress, Scraped, ScrapePace, grouped, scrape
from collector.dcgm.health import forget, of_answer
from collector.dcgm.rounds import Answer, Exporters
from collector.kube.client import Connection
from domain.errors import UnreachableError
from domain.gpu_fault import HealthReading
from domain.window import MS_PER_HOUR, MS_PER_SECOND, Clock
from service.gpu_faults import GpuFaults
from service.gpu_metrics_settings import GpuMetricsSettings
from store.embedded import Store
from store.gpu_samples import Read

log = logging.getLogger("gpuledger.gpu_metrics")
# A group's samples are one commit: with 8 GPUs each, about as many as a batch of facts has.
GROUP: Final = 1_000
_DISCOVER_MS: Final = 60 * MS_PER_SECOND
# Of a step, this much is for the first questions, and as much at most for an answer.
_SPREAD: Final = 0.4
_LONGEST_SPREAD_SECONDS: Final = 0.01
_LONGEST_ANSWER_SECONDS: Final = 10.0


class Scraper:
    """
    Scrapes the exporters of one cluster, all of them with each call of `round`.

    Args:
        settings: which exporters, and how often.
        store: keeps what they tell.
        clock: stamps the questions.
        faults: takes what is told of the health of GPUs.
        connection: to the cluster, where its exporters are to be discovered.
    """

    def __init__(
        self,
        settings: GpuMetricsSettings,
        store: Store,
        clock: Clock,
        *,
        faults: GpuFaults,
        connection: Callable[[], Connection] | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._faults = faults
        self._connection: Connection | None = None
        self._step_ms = int(settings.step.total_seconds()) * MS_PER_SECOND
        # With a slash at its end an address is another text and the same exporter.
        listed = map(ExporterAddress, settings.exporters)
        self._found = list({one.source: one for one in listed}.values())
        self._found_ms: int | None = None
        if connection is not None and settings.discover is not None:
            # A wrong kubeconfig fails here, at start.
            self._connection = connection()
        self._readers = [Exporters(self._step_ms) for _ in grouped(self._found, GROUP)]
        self._failing: set[str] = set()
        self._new = 0
        self._forgot_ms = 0

    def round(self) -> int:
        """Ask every exporter once, and mark those that do not answer; gives the number of new samples."""
        self._find()
        groups = grouped(self._found, GROUP)
        if len(groups) != len(self._readers):
            self._readers = [Exporters(self._step_ms) for _ in groups]
        self._new = 0
        step_seconds = self._step_ms / MS_PER_SECOND
        pace = ScrapePace(
            seconds=min(_LONGEST_ANSWER_SECONDS, max(1.0, step_seconds * _SPREAD)),
            spread_seconds=min(step_seconds * _SPREAD, _LONGEST_SPREAD_SECONDS * len(self._found)),
        )
        scrape(groups, self.take, clock=self._clock, pace=pace)
        self._failing &= {one.source for one in self._found}
        return self._new

    def take(self, group: int, scraped: list[Scraped]) -> None:
        """Keep what one group of exporters told, in one commit."""
        answered = [one for one in scraped if not one.error]
        answers = [Answer(one.exporter.source, one.text, one.at_ms, one.exporter.node) for one in answered]
        read = self._readers[group].samples(answers)
        marks = {one.source: Read(until_ms=one.at_ms + self._step_ms, seen_ms=one.at_ms) for one in answers}
        for one in scraped:
            source = one.exporter.source
            because = one.error or read.troubles.get(source, "")
            if because:
                marks[source] = Read(until_ms=0, seen_ms=0 if one.error else one.at_ms, error=because)
            self._tell(source, because)
        if answers:
            told = map(_health, answers)
            newest_ms = max(one.at_ms for one in answers)
            self._faults.take(chain.from_iterable(told), newest_ms)
            if newest_ms - self._forgot_ms >= MS_PER_HOUR:
                self._forgot_ms = newest_ms
                forget()
        self._new += self._store.append_round(
            self._settings.cluster, read.frame, marks, set_aside=read.set_aside
        )

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _find(self) -> None:
        """Look once a minute where exporters run; while nobody tells, those known are asked on."""
        wanted = self._settings.discover
        now_ms = self._clock.now_ms()
        # Of a clock that was ahead and is set right it is long ago, however far ahead it was.
        if wanted is None or (self._found_ms is not None and 0 <= now_ms - self._found_ms < _DISCOVER_MS):
            return
        self._found_ms = now_ms
        asked = Asked(
            by=By(wanted.by),
            namespace=wanted.namespace,
            selector=wanted.selector,
            port=wanted.port,
            scheme=wanted.scheme,
        )
        because = ""
        if self._connection is None:
            because = f"cluster {self._settings.cluster} is not among the clusters of the settings"
        else:
            try:
                self._found = discover(self._connection, asked)
            except UnreachableError as error:
                because = f"exporters were not looked for: {error}"
        if not because and not self._found:
            because = f"no exporter was found: no {wanted.by} with {wanted.selector!r} tell where one runs"
        self._note(f"discovery/{wanted.by}", because)

    def _note(self, source: str, because: str) -> None:
        """A search that found none is a source that was never read, until an exporter is found."""
        cluster = self._settings.cluster
        if because:
            log.warning("exporters were not found", extra={"cluster": cluster, "error": because})
            self._store.mark_samples(cluster, {source: Read(until_ms=0, seen_ms=0, error=because)})
        else:
            self._store.unmark_samples(cluster, source)

    def _tell(self, source: str, because: str) -> None:
        """Log an exporter that stops to answer, and one that answers again; not each time."""
        about = {"cluster": self._settings.cluster, "source": source}
        if because and source not in self._failing:
            self._failing.add(source)
            log.warning("GPU metrics were not read", extra=about | {"error": because})
        elif not because and source in self._failing:
            self._failing.discard(source)
            log.info("GPU metrics are read again", extra=about)


def _health(answer: Answer) -> Iterator[HealthReading]:
    """What an answer says of health; where it is known on which node, of that one."""
    told = of_answer(answer.text, answer.at_ms)
    return (one._replace(node=answer.node) for one in told) if answer.node else told
