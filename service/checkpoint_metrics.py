"""Checkpoints that a metric tells of: read again and again, and only what changed is told on."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from collector.dcgm.exposition import labels_of, readings
from collector.metrics_page import metrics_page
from domain.checkpoint import CheckpointReport, ToldBy
from domain.errors import NotYetError, ProductError, UnreachableError
from domain.window import LAST_KEPT_MS, MS_PER_SECOND
from service.checkpoint_settings import CheckpointMetricSettings
from service.checkpoints import Checkpoints
from service.token_files import token_of

if TYPE_CHECKING:
    from collector.dcgm.prometheus import Prometheus

log = logging.getLogger("gpuledger.checkpoints")

# What lies beyond, as milliseconds written for seconds do, is told as the last of all instants: so it is
# refused as of the future, and counted.
_LAST_SECONDS: Final = LAST_KEPT_MS / MS_PER_SECOND


class CheckpointPoller:
    """
    Reads one metric of checkpoints with each call of `poll`.

    Args:
        settings: where it comes from.
        checkpoints: takes what it tells.
    """

    def __init__(self, settings: CheckpointMetricSettings, checkpoints: Checkpoints) -> None:
        self._settings = settings
        self._checkpoints = checkpoints
        self._prometheus = _prometheus(settings)
        self._told: dict[tuple[str, str], int] = {}

    def poll(self) -> int:
        """Tell what changed since the last time; gives how many checkpoints were new."""
        new = 0
        found = self._read()
        if found:
            # Pods come and go; of a source that is away nothing is known.
            self._told = {pod: at_ms for pod, at_ms in self._told.items() if pod in found}
        for pod, at_ms in found.items():
            if self._told.get(pod) == at_ms:
                continue
            namespace, name = pod
            report = CheckpointReport(
                cluster=self._settings.cluster, namespace=namespace, pod=name, at_ms=at_ms
            )
            try:
                told = self._checkpoints.take(report, by=ToldBy.METRIC)
            except NotYetError:
                continue  # as a pod that we have not seen yet: it is asked for again
            except ProductError as error:
                log.warning("a checkpoint was not kept, it is read again: %s", error)
                continue
            # A pod that we have not seen yet is asked for again.
            if told is not None:
                self._told[pod] = at_ms
                new += told["new"]
        return new

    def close(self) -> None:
        """Let go of the connections."""
        if self._prometheus is not None:
            self._prometheus.close()

    def _read(self) -> dict[tuple[str, str], int]:
        """The last checkpoint of each pod; what does not answer is told, and the others count."""
        found: dict[tuple[str, str], int] = {}
        for labels, value in self._series():
            pod = pod_of(labels)
            if pod is not None and value > 0:
                found[pod] = max(found.get(pod, 0), round(min(value, _LAST_SECONDS) * MS_PER_SECOND))
        return found

    def _series(self) -> Iterator[tuple[Mapping[str, str], float]]:
        if self._prometheus is not None:
            try:
                yield from self._prometheus.at_instant(self._settings.query)
            except UnreachableError as error:
                log.warning("checkpoints were not read: %s", error)
            return
        for url in self._settings.targets:
            try:
                answer = metrics_page(url)
            except UnreachableError as error:
                log.warning("checkpoints were not read: %s", error)
                continue
            yield from series_of(answer, name_ends_with=self._settings.name_ends_with)


def series_of(answer: str, *, name_ends_with: str) -> Iterator[tuple[Mapping[str, str], float]]:
    """Labels and values of the families with such a name; a line that cannot be read is left out."""
    for reading in readings(answer, lambda name: name.endswith(name_ends_with), lambda _: None):
        try:
            labels = labels_of(reading.labels)
        except ValueError:
            continue
        yield labels, reading.value


def pod_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """
    Namespace and name of the pod that a series is about; None where it names none.

    A Prometheus that does not honour labels calls the exporter's own ones `exported_...`, and its target's
    pod is the exporter.

    >>> pod_of({"namespace": "monitoring", "pod": "x", "exported_namespace": "nlp", "exported_pod": "a-0"})
    ('nlp', 'a-0')
    """
    prefix = "exported_" if labels.get("exported_pod") else ""
    namespace, pod = labels.get(f"{prefix}namespace", ""), labels.get(f"{prefix}pod", "")
    return (namespace, pod) if namespace and pod else None


def checkpoint_pollers(
    settings: Iterable[CheckpointMetricSettings], checkpoints: Checkpoints
) -> Iterator[tuple[str, int, CheckpointPoller]]:
    """A poller for each source, with its name and how often to call it, in seconds."""
    for number, one in enumerate(settings):
        name = f"checkpoints/{one.cluster}/{number}"
        yield name, int(one.every.total_seconds()), CheckpointPoller(one, checkpoints)


def _prometheus(settings: CheckpointMetricSettings) -> "Prometheus | None":
    if settings.prometheus is None:
        return None
    from collector.dcgm.prometheus import Prometheus

    token = token_of(settings.token_file, "checkpoints.metrics.token_file")
    return Prometheus(settings.prometheus, token=token)
