"""
What Prometheus scrapes: series made from prepared measurements, never from a query.

A metric's series are `gpuledger_<name>`, in base units. An undefined value has no series; where an alert
reads it, a companion is 1 instead. A value that is only a lower bound is marked 1 by another one, which exact
values do not have. How many series that makes: docs/series.md.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

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

from alerts.budget import MOST, OWN, Budget, Series, Shown
from alerts.declared import declared, limit_gauges
from alerts.whose import CLUSTER, added_labels, of_clusters, of_ledger
from analytics.describe import looks_back
from analytics.histogram import SUM
from domain.errors import PolicyError
from domain.metric import Measurement, Metric, MetricKind, Sample, Unit
from domain.policy import Policy
from domain.window import MS_PER_SECOND, Clock, SystemClock

PREFIX = "gpuledger_"
_CLOCK = SystemClock()
_POLICY = Policy()
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# A label of a job, a pod or a person would make a new series with each of them.
LABELS = frozenset({
    "cluster", "queue", "service_class", "priority_class", "team", "pool", "gpu_model", "cause", "reason",
    "condition", "mechanism", "victim_class", "preemptor_class", "quantile", "estimator", "le", "metric",
    "because", "rule", "size", "xid", "component", "flow", "change", "capacity_type", "period", "fits",
})  # fmt: skip
LEFT_OUT: Final = f"more than {MOST:,} series in all: left out"
# The ledger's name where the settings give none.
LEDGER: Final = "gpuledger"
# More reasons of one metric than these are told as one.
_REASONS: Final = 5
# What breached is shown first for so long after it does no more: until Prometheus must have recorded it.
_RECOVERED_MS: Final = 5 * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A value that somebody else found, passed on with its source among the labels."""

    name: str
    about: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """All that a scrape shows, as it was measured once; the `clusters` are those that it tells of."""

    shown: Shown
    as_of_ms: int
    measured_ms: int
    sources: Mapping[str, int]
    failed: frozenset[str]
    clusters: frozenset[str]
    undefined: Counter[tuple[str, str]]


class Exporter(Collector):
    """
    Serves the newest snapshot as text; before the first one there is nothing to tell.

    Args:
        registry: metrics by name; measurements of others are not shown.
        clock: this machine's, which Prometheus shares and a played sample does not.
        alarms: the reason of each alarm that sounds now, by its name.
        outside: what others found, passed on beside our own.
        ledger: this ledger's name, which tells it from others below one Prometheus.
        policy: by which alerts breach: what breaches is shown first where there is no room for all.

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
        ledger: str = LEDGER,
        policy: Policy = _POLICY,
    ) -> None:
        for metric in registry.values():
            strangers = {*metric.labels, *metric.extra_labels} - LABELS
            if strangers and metric.exported:
                message = (
                    f"metric {metric.name}, exported labels {sorted(strangers)}: expected some of "
                    f"{sorted(LABELS)}; keep others among the dimensions, which the API answers"
                )
                raise PolicyError(message)
        self._metrics = {
            name: metric for name, metric in registry.items() if metric.exported and metric.scraped
        }
        alerts = declared(registry)
        limits = limit_gauges(alerts)
        self._added = {name: added_labels(metric, limits) for name, metric in self._metrics.items()}
        self._budget = Budget(metrics=self._metrics, alerts=alerts, policy=policy)
        self._breached_ms: dict[Series, int] = {}
        self._ledger = ledger
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
        *,
        failed: Iterable[str] = (),
    ) -> None:
        """
        Show this from the next scrape on; series that it does not have end.

        Args:
            measurements: all that was measured for one instant.
            as_of_ms: that instant.
            sources: when each live source last was good, by cluster; leave finished recordings out.
            failed: metrics that could not be measured.
        """
        found: dict[str, list[Sample]] = {}
        for one in measurements:
            if one.metric in self._metrics and self._metrics[one.metric].is_scraped(one.sample.labels):
                found.setdefault(one.metric, []).append(one.sample)
        clusters = told_of((one.sample for one in measurements), sources)
        if failed and self._snapshot is not None:
            # Those of which only they told are still there.
            clusters |= self._snapshot.clusters
        shown = self._shown({name: self._whose(name, of, clusters) for name, of in found.items()})
        self._snapshot = _Snapshot(
            shown=shown,
            as_of_ms=as_of_ms,
            measured_ms=self._clock.now_ms(),
            sources=dict(sources),
            failed=frozenset(failed),
            clusters=clusters,
            undefined=_undefined(found, shown.left_out),
        )

    def _whose(self, name: str, samples: Sequence[Sample], clusters: Iterable[str]) -> Sequence[Sample]:
        """The values with the labels that say whose they are."""
        if CLUSTER in self._added[name]:
            return of_clusters(samples, clusters)
        return of_ledger(samples, self._ledger) if self._added[name] else samples

    def _shown(self, found: Mapping[str, Sequence[Sample]]) -> Shown:
        """What there is room for; what breached lately is not left out before its end was seen."""
        now_ms = self._clock.now_ms()
        shown = self._budget.shown(found, self._breached_ms.keys())
        lately = {one: at for one, at in self._breached_ms.items() if now_ms - at < _RECOVERED_MS}
        self._breached_ms = lately | dict.fromkeys(shown.breaching, now_ms)
        return shown

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many values of which metrics have no series, because there are too many."""
        return self._snapshot.shown.left_out if self._snapshot else {}

    def text(self) -> bytes:
        """The exposition text, of type `CONTENT_TYPE`."""
        return generate_latest(self._own)

    def describe(self) -> Iterable[Family]:
        """Nothing beforehand: registering must not ask for values."""
        return ()

    @override
    def collect(self) -> Iterator[Family]:
        """What the ledger tells of itself, and the families of the newest snapshot."""
        snapshot = self._snapshot
        yield from _limited(self._about_itself(snapshot))
        if snapshot is not None:
            for name, metric in self._metrics.items():
                samples = snapshot.shown.samples.get(name, ())
                yield from _families(metric, samples, self._added[name], self._budget)

    def _about_itself(self, snapshot: _Snapshot | None) -> Iterator[Family]:
        """The most important first."""
        if snapshot is not None:
            yield from self._measured(snapshot)
            yield _seen(self._ledger, snapshot.sources)
            yield self._incomplete(snapshot)
        yield from _sounding(self._ledger, self._alarms())
        yield from _passed_on(self._outside())
        if snapshot is not None:
            yield _because(snapshot.undefined)

    def _measured(self, snapshot: _Snapshot) -> Iterator[Family]:
        measured = GaugeMetricFamily(
            f"{PREFIX}measured_timestamp_seconds",
            "When the values of a cluster were measured, by the clock of this machine.",
            labels=["ledger", "cluster"],
        )
        for cluster in sorted(snapshot.clusters):
            measured.add_metric([self._ledger, cluster], snapshot.measured_ms / MS_PER_SECOND)
        yield measured
        yield GaugeMetricFamily(
            f"{PREFIX}as_of_timestamp_seconds",
            "The instant that the values are about, by the clock of the data.",
            value=snapshot.as_of_ms / MS_PER_SECOND,
        )

    def _incomplete(self, snapshot: _Snapshot) -> Family:
        family = GaugeMetricFamily(
            f"{PREFIX}incomplete",
            "1 for each metric that alerts read and that failed, or that breaches where it is not shown; else"
            " nothing.",
            labels=["ledger", "metric"],
        )
        for name in sorted(self._budget.watched & (snapshot.failed | snapshot.shown.incomplete)):
            family.add_metric([self._ledger, name], 1)
        return family


def told_of(samples: Iterable[Sample], sources: Iterable[str]) -> frozenset[str]:
    """The clusters that a ledger tells of, and those that it reads; an empty name where there is none."""
    told = {sample.labels.get("cluster", "") for sample in samples} | {*sources}
    return frozenset(told - {""}) or frozenset({""})


def _limited(families: Iterable[Family]) -> Iterator[Family]:
    """As many series as are kept for them, and how many more there would be."""
    room, more = OWN - 1, 0
    for family in families:
        more += max(0, len(family.samples) - room)
        family.samples = family.samples[:room]
        room -= len(family.samples)
        yield family
    if more:
        about = f"Series about the ledger itself beyond the {OWN:,} that are shown."
        yield GaugeMetricFamily(f"{PREFIX}own_series_left_out", about, value=more)


def _undefined(
    found: Mapping[str, Sequence[Sample]], left_out: Mapping[str, int]
) -> Counter[tuple[str, str]]:
    """How many values of a metric are undefined for a reason, and how many are left out."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, samples in found.items():
        reasons = Counter(sample.undefined_because for sample in samples if sample.value is None)
        most = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        counts.update({(name, reason): count for reason, count in most[:_REASONS]})
        if others := sum(count for _, count in most[_REASONS:]):
            counts[name, "other reasons"] = others
    return counts + Counter({(name, LEFT_OUT): number for name, number in left_out.items()})


def _seen(ledger: str, sources: Mapping[str, int]) -> Family:
    family = GaugeMetricFamily(
        f"{PREFIX}source_seen_timestamp_seconds",
        "When a live source last was known to be good, by the clock of this machine.",
        labels=["ledger", "cluster"],
    )
    for cluster, seen_ms in sorted(sources.items()):
        family.add_metric([ledger, cluster], seen_ms / MS_PER_SECOND)
    return family


def _because(undefined: Mapping[tuple[str, str], int]) -> Family:
    family = GaugeMetricFamily(
        f"{PREFIX}undefined",
        "Values that have no series because they are undefined, or left out, by metric and reason.",
        labels=["metric", "because"],
    )
    for (name, reason), count in sorted(undefined.items()):
        family.add_metric([name, reason], count)
    return family


def _sounding(ledger: str, alarms: Mapping[str, str]) -> Iterator[Family]:
    if not alarms:
        return
    family = GaugeMetricFamily(
        f"{PREFIX}alarm",
        "1 for each alarm of gpuledger itself that sounds now.",
        labels=["ledger", "alarm"],
    )
    for name in alarms:
        family.add_metric([ledger, name], 1)
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


def _families(
    metric: Metric, samples: Sequence[Sample], added: Sequence[str], budget: Budget
) -> Iterator[Family]:
    """The metric's family, and its companions where values of its kind can be lower bounds, or unknown."""
    name, about = PREFIX + metric.series, f"{metric.title}, {looks_back(metric)}. {metric.definition}"
    names = [*metric.labels, *metric.extra_labels, *added]
    told = [sample for sample in samples if sample.value is not None]
    if metric.kind is MetricKind.HISTOGRAM:
        yield _histogram(metric, name, about, told)
        return
    # promtool wants the label quantile on summaries only, or on what has no type.
    gauge = UnknownMetricFamily if "quantile" in names else GaugeMetricFamily
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else gauge
    family = kind(name, about, labels=names)
    for sample in told:
        value = (sample.value or 0.0) * metric.series_scale
        family.add_metric([sample.labels[label] for label in names], value)
    yield family
    bounds = [sample for sample in told if sample.lower_bound]
    if bounds or "estimator" in names or metric.unit in {Unit.GPUS, Unit.GPU_HOURS}:
        about = f"1 where {name} is only known to be at least its value; else nothing."
        yield _marks(gauge(f"{name}_lower_bound", about, labels=names), names, bounds)
    if metric.name in budget.marked:
        unknown = [sample for sample in samples if budget.is_marked(metric.name, sample)]
        about = f"1 where {name} should have a value and is undefined; else nothing."
        yield _marks(gauge(f"{name}_unknown", about, labels=names), names, unknown)


def _marks(
    family: GaugeMetricFamily | UnknownMetricFamily, names: Sequence[str], samples: Iterable[Sample]
) -> Family:
    for sample in samples:
        family.add_metric([sample.labels.get(label, "") for label in names], 1.0)
    return family


def _histogram(metric: Metric, name: str, about: str, samples: Sequence[Sample]) -> Family:
    family = HistogramMetricFamily(name, about, labels=metric.labels)
    groups: dict[tuple[str, ...], dict[str, float]] = {}
    for sample in samples:
        key = tuple(sample.labels[label] for label in metric.labels)
        groups.setdefault(key, {})[sample.labels["le"]] = sample.value or 0.0
    for key, values in groups.items():
        total = values.pop(SUM)
        family.add_metric(list(key), sorted(values.items(), key=lambda edge: float(edge[0])), total)
    return family
