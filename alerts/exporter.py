"""
What Prometheus scrapes: series made from prepared measurements, never from a query.

A metric's series are `gpuledger_<name>`, in base units. An undefined value has no series; a value that is
only a lower bound is marked 1 by a companion, which exact values do not have. How many series that makes:
docs/series.md.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from typing_extensions import override

from analytics.describe import looks_back
from analytics.histogram import SUM
from domain.errors import PolicyError
from domain.metric import Measurement, Metric, MetricKind, Sample, Unit
from domain.window import MS_PER_SECOND, Clock, SystemClock

PREFIX = "gpuledger_"
_CLOCK = SystemClock()
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# A label of a job, a pod or a person would make a new series with each of them.
LABELS = frozenset({
    "cluster", "queue", "service_class", "priority_class", "team", "pool", "gpu_model", "cause", "reason",
    "condition", "mechanism", "victim_class", "preemptor_class", "quantile", "estimator", "le", "metric",
    "because", "rule", "size", "xid", "component", "flow", "change", "capacity_type", "period", "fits",
})  # fmt: skip
# Of one metric. The largest at 200 queues has 3 classes x 3 percentiles of each, docs/series.md.
SERIES_BUDGET = 720 * 6
OVER_BUDGET = f"more than {SERIES_BUDGET} series: left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A value that somebody else found, passed on with its source among the labels."""

    name: str
    about: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """All that a scrape shows, as it was measured once."""

    measurements: Sequence[Measurement]
    as_of_ms: int
    measured_ms: int
    sources: Mapping[str, int]


class Exporter(Collector):
    """
    Serves the newest snapshot as text; before the first one there is nothing to tell.

    Args:
        registry: metrics by name; measurements of others are not shown.
        clock: this machine's, which Prometheus shares and a played sample does not.
        alarms: the reason of each alarm that sounds now, by its name.
        outside: what others found, passed on beside our own.

    Raises:
        PolicyError: a metric exports a label that is not among `LABELS`.
    """

    def __init__(
        self,
        registry: Mapping[str, Metric],
        clock: Clock = _CLOCK,
        *,
        alarms: Callable[[], Mapping[str, str]] = dict,
        outside: Callable[[], Iterable[Outside]] = tuple,
    ) -> None:
        for metric in registry.values():
            strangers = {*metric.labels, *metric.extra_labels} - LABELS
            if strangers and metric.exported:
                message = (
                    f"metric {metric.name}, exported labels {sorted(strangers)}: expected some of "
                    f"{sorted(LABELS)}; keep others among the dimensions, which the API answers"
                )
                raise PolicyError(message)
        self._metrics = registry
        self._clock = clock
        self._alarms = alarms
        self._outside = outside
        self._snapshot: _Snapshot | None = None
        self._own = CollectorRegistry()
        self._own.register(self)

    def publish(
        self,
        measurements: Sequence[Measurement],
        as_of_ms: int,
        sources: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """
        Show this from the next scrape on; series that it does not have end.

        Args:
            measurements: all that was measured for one instant.
            as_of_ms: that instant.
            sources: when each live source last was good, by cluster; leave finished recordings out.
        """
        self._snapshot = _Snapshot(
            measurements=tuple(measurements),
            as_of_ms=as_of_ms,
            measured_ms=self._clock.now_ms(),
            sources=dict(sources),
        )

    def text(self) -> bytes:
        """The exposition text, of type `CONTENT_TYPE`."""
        return generate_latest(self._own)

    def describe(self) -> Iterable[Family]:
        """Nothing beforehand: registering must not ask for values."""
        return ()

    @override
    def collect(self) -> Iterator[Family]:
        """The alarms of now, and the families of the newest snapshot."""
        yield from _sounding(self._alarms())
        yield from _passed_on(self._outside())
        snapshot = self._snapshot
        if snapshot is None:
            return
        by_metric: dict[str, list[Sample]] = {}
        for measurement in snapshot.measurements:
            by_metric.setdefault(measurement.metric, []).append(measurement.sample)
        undefined: Counter[tuple[str, str]] = Counter()
        for name, metric in self._metrics.items():
            if not (metric.exported and metric.scraped):
                continue
            samples = [sample for sample in by_metric.get(name, []) if metric.is_scraped(sample.labels)]
            told = [sample for sample in samples if sample.value is not None]
            undefined.update((name, sample.undefined_because) for sample in samples if sample.value is None)
            undefined.update((name, OVER_BUDGET) for _ in told[SERIES_BUDGET:])
            yield from _families(metric, told[:SERIES_BUDGET])
        yield from _about_itself(snapshot, undefined)


def _sounding(alarms: Mapping[str, str]) -> Iterator[Family]:
    if not alarms:
        return
    family = GaugeMetricFamily(
        f"{PREFIX}alarm", "1 for each alarm of gpuledger itself that sounds now.", labels=["alarm"]
    )
    for name in alarms:
        family.add_metric([name], 1)
    yield family


def _passed_on(values: Iterable[Outside]) -> Iterator[Family]:
    families: dict[str, GaugeMetricFamily] = {}
    for one in values:
        family = families.get(one.name)
        if family is None:
            family = GaugeMetricFamily(PREFIX + one.name, one.about, labels=list(one.labels))
            families[one.name] = family
        family.add_metric(list(one.labels.values()), one.value)
    yield from families.values()


def _families(metric: Metric, samples: list[Sample]) -> Iterator[Family]:
    """The metric's family, and its companion where a value of its kind can be a lower bound."""
    name, about = PREFIX + metric.series, f"{metric.title}, {looks_back(metric)}. {metric.definition}"
    names = [*metric.labels, *metric.extra_labels]
    if metric.kind is MetricKind.HISTOGRAM:
        yield _histogram(metric, name, about, samples)
        return
    # promtool wants the label quantile on summaries only, or on what has no type.
    gauge = UnknownMetricFamily if "quantile" in names else GaugeMetricFamily
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else gauge
    family = kind(name, about, labels=names)
    for sample in samples:
        value = (sample.value or 0.0) * metric.series_scale
        family.add_metric([sample.labels[label] for label in names], value)
    yield family
    bounded = any(sample.lower_bound for sample in samples)
    if bounded or "estimator" in names or metric.unit in {Unit.GPUS, Unit.GPU_HOURS}:
        bound = gauge(
            f"{name}_lower_bound",
            f"1 where {name} is only known to be at least its value; else nothing.",
            labels=names,
        )
        for sample in (each for each in samples if each.lower_bound):
            bound.add_metric([sample.labels[label] for label in names], 1.0)
        yield bound


def _histogram(metric: Metric, name: str, about: str, samples: list[Sample]) -> Family:
    family = HistogramMetricFamily(name, about, labels=metric.labels)
    groups: dict[tuple[str, ...], dict[str, float]] = {}
    for sample in samples:
        key = tuple(sample.labels[label] for label in metric.labels)
        groups.setdefault(key, {})[sample.labels["le"]] = sample.value or 0.0
    for key, values in groups.items():
        total = values.pop(SUM)
        family.add_metric(list(key), sorted(values.items(), key=lambda edge: float(edge[0])), total)
    return family


def _about_itself(snapshot: _Snapshot, undefined: Counter[tuple[str, str]]) -> Iterator[Family]:
    because = GaugeMetricFamily(
        f"{PREFIX}undefined",
        "Values that have no series because they are undefined, by metric and reason.",
        labels=["metric", "because"],
    )
    for (name, reason), count in sorted(undefined.items()):
        because.add_metric([name, reason], count)
    yield because
    yield GaugeMetricFamily(
        f"{PREFIX}measured_timestamp_seconds",
        "When the values were measured, by the clock of this machine.",
        value=snapshot.measured_ms / MS_PER_SECOND,
    )
    yield GaugeMetricFamily(
        f"{PREFIX}as_of_timestamp_seconds",
        "The instant that the values are about, by the clock of the data.",
        value=snapshot.as_of_ms / MS_PER_SECOND,
    )
    seen = GaugeMetricFamily(
        f"{PREFIX}source_seen_timestamp_seconds",
        "When a live source last was known to be good, by the clock of this machine.",
        labels=["cluster"],
    )
    for cluster, seen_ms in sorted(snapshot.sources.items()):
        seen.add_metric([cluster], seen_ms / MS_PER_SECOND)
    yield seen
