"""
Which series a scrape shows where there are more than Prometheus should bear of one exporter.

What alerts read, or an autoscaler, goes before all else: of it what breaches, with what was shown so a
short while ago, then what is unknown, then the worst. Within each of the two a metric has the room that it
needs, and those that need most share what is left alike. What does not fit is counted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from alerts.declared import Declared, read_by
from alerts.readings import readings
from analytics.histogram import SUM
from domain.alert import Comparison
from domain.metric import Metric, MetricKind, Sample
from domain.policy import Policy

# Series on /metrics in all: what Prometheus should bear of one exporter.
MOST: Final = 19_500
# Those of them that are about the ledger itself, and about what it does not know.
OWN: Final = 1_000

Found = Mapping[str, Sequence[Sample]]
# A metric and the labels of one of its values.
Series: TypeAlias = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    What a scrape shows, by metric, and of how many values of which metrics it does not.

    Args:
        incomplete: metrics of which something breaches, or is unknown, that is not shown. What is left out
            of others breaches nothing.
        breaching: what is shown and breaches, where something is left out.
    """

    samples: Found
    left_out: Mapping[str, int] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()
    breaching: frozenset[Series] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Budget:
    """
    So many series, and what goes first.

    Args:
        metrics: by name, those that may be shown.
        alerts: whose metrics go before all others.
        policy: by which they breach.
        room: for the series of metrics, with their marks of lower bounds and of unknown values.
    """

    metrics: Mapping[str, Metric]
    alerts: Sequence[Declared]
    policy: Policy = field(default_factory=Policy)
    room: int = MOST - OWN

    @cached_property
    def watched(self) -> frozenset[str]:
        """Metrics that alerts read, or that somebody acts on."""
        return self._alerting | {name for name, metric in self.metrics.items() if metric.acted_on}

    @cached_property
    def marked(self) -> frozenset[str]:
        """Those that alerts read whose undefined values say that nobody knows, and not that all is well."""
        return self._alerting - {alert.source for alert in self._of_work if alert.rule.fine_if_undefined}

    def shown(self, found: Found, recovered: Collection[Series] = ()) -> Shown:
        """
        What is shown of these values: all, where there is room for all.

        Args:
            found: values by metric, those of a metric in an order that stays the same.
            recovered: what was shown as breaching a short while ago. It goes first, so that its end is seen.
        """
        needed = {name: self._cost(name, samples) for name, samples in found.items()}
        if sum(needed.values()) <= self.room:
            return Shown(samples=found)
        kept, room, incomplete = dict(found), self.room, set[str]()
        urgent = {name: self._breaching(name, found) for name in found if name in self.watched}
        first = [name for name in found if name in self.watched]
        for names in (first, [name for name in found if name not in self.watched]):
            share = _share([needed[name] for name in names], room)
            for name in names:
                if needed[name] > share:
                    kept[name], whole = self._cut(name, found[name], urgent.get(name, ()), recovered, share)
                    incomplete |= set() if whole else {name}
                room -= self._cost(name, kept[name])
        less = {name: len(samples) - len(kept[name]) for name, samples in found.items()}
        return Shown(
            samples=kept,
            left_out={name: number for name, number in less.items() if number},
            incomplete=frozenset(incomplete),
            breaching=frozenset(
                series_of(name, found[name][place])
                for name, places in urgent.items()
                for place in places & _places(found[name], kept[name])
            ),
        )

    def cost(self, name: str, sample: Sample) -> int:
        """How many series a value has: itself or its mark, and both where it is a lower bound."""
        metric = self.metrics[name]
        if sample.value is None:
            return int(self.is_marked(name, sample))
        if metric.kind is MetricKind.HISTOGRAM:
            # With the sum comes the count.
            return 2 if sample.labels["le"] == SUM else 1
        return 2 if sample.lower_bound else 1

    def is_marked(self, name: str, sample: Sample) -> bool:
        """Whether a value is unknown, with a mark that says of what."""
        placed = sample.labels.keys() >= {*self.metrics[name].labels}
        return sample.value is None and name in self.marked and placed

    @cached_property
    def _alerting(self) -> frozenset[str]:
        return frozenset(name for alert in self._of_work for name in read_by(alert))

    @property
    def _of_work(self) -> Iterable[Declared]:
        return (alert for alert in self.alerts if alert.metric is not None)

    def _cost(self, name: str, samples: Iterable[Sample]) -> int:
        return sum(self.cost(name, sample) for sample in samples)

    def _cut(
        self,
        name: str,
        samples: Sequence[Sample],
        breaching: Collection[int],
        recovered: Collection[Series],
        share: int,
    ) -> tuple[list[Sample], bool]:
        """As many as fit, in their order; and whether that is all that breaches or is unknown."""
        over = {
            place
            for place, one in enumerate(samples)
            if recovered and place not in breaching and series_of(name, one) in recovered
        }
        kept, whole = set[int](), True
        for place in self._by_urgency(name, samples, over, breaching):
            cost = self.cost(name, samples[place])
            if cost <= share:
                kept.add(place)
                share -= cost
            elif place in breaching or place in over or self.is_marked(name, samples[place]):
                whole = False
        cut = [sample for place, sample in enumerate(samples) if place in kept]
        if self.metrics[name].kind is MetricKind.HISTOGRAM:
            cut = _whole(cut, samples)
        return cut, whole

    def _by_urgency(
        self, name: str, samples: Sequence[Sample], over: Collection[int], breaching: Collection[int]
    ) -> list[int]:
        """Places: what is over, breaches, is unknown, and is worst; without an alert as they are."""
        alerts = self._about(name)
        if not alerts:
            return [*range(len(samples))]
        lowest = all(alert.source == name and alert.rule.comparison is Comparison.BELOW for alert in alerts)

        def urgency(place: int) -> tuple[bool, bool, bool, float]:
            value = samples[place].value
            known = value or 0.0
            worse = known if lowest else -known
            return place not in over, place not in breaching, value is not None, worse

        return sorted(range(len(samples)), key=urgency)

    def _about(self, name: str) -> list[Declared]:
        """The alerts that tell of a metric's values."""
        return [alert for alert in self._of_work if name in (alert.source, alert.rule.counted)]

    def _breaching(self, name: str, found: Found) -> frozenset[int]:
        """The places of a metric's values that breach; of a limit all, for each is needed."""
        places, about = set[int](), self._about(name)
        if not about:
            return frozenset(range(len(found[name])))
        for alert in about:
            told = {
                tuple(reading.identity.values())
                for reading in readings(alert, found, self.policy)
                if reading.breaches
            }
            places |= {
                place
                for place, sample in enumerate(found[name])
                if tuple(sample.labels.get(label, "") for label in alert.identity) in told
            }
        return frozenset(places)


def _places(samples: Sequence[Sample], kept: Iterable[Sample]) -> set[int]:
    """The places of those that are kept."""
    there = {id(one) for one in kept}
    return {place for place, one in enumerate(samples) if id(one) in there}


def series_of(name: str, sample: Sample) -> Series:
    """By what a value is known again in the next measurement."""
    return name, frozenset(sample.labels.items())


def _share(needs: Iterable[int], room: int) -> int:
    """
    The most that one may have, where who needs less leaves the rest to the others.

    >>> _share([5, 100, 200], 105), _share([5, 10], 105)
    (50, 100)
    """
    by_size = sorted(needs)
    for place, need in enumerate(by_size):
        share = room // (len(by_size) - place)
        if need > share:
            return share
        room -= need
    return max(by_size, default=0) + room


def _whole(cut: Sequence[Sample], samples: Iterable[Sample]) -> list[Sample]:
    """Those of histograms that were not cut."""
    before, after = Counter(map(_of_histogram, samples)), Counter(map(_of_histogram, cut))
    return [sample for sample in cut if before[_of_histogram(sample)] == after[_of_histogram(sample)]]


def _of_histogram(sample: Sample) -> tuple[tuple[str, str], ...]:
    return tuple(item for item in sample.labels.items() if item[0] != "le")
