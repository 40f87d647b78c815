"""
What the product says is inhibited, against what Debian's Alertmanager inhibits by the example configuration.

Two ledgers tell one Alertmanager that nearly everything breaches in their clusters. It is asked what it
inhibits by what: while all is read, while a cluster of one ledger is stale, once it is read again, and while
the other ledger measures nothing.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from alerts.alertmanager import Access
from alerts.alertmanager import Alertmanager as Line
from alerts.declared import declared
from alerts.inhibition import inhibited_by, inhibitions
from alerts.posting import WATCHDOG
from alerts.wording import Links
from analytics.metrics import REGISTRY
from api.answers import ReportQuestion
from domain.alert import Comparison
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import SystemClock
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.answers import Answers
from store.embedded import Store
from tests.e2e.alertmanagers import Alertmanager, Receiver, alertmanager
from tests.e2e.processes import free_ports

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(600)]

MINUTE_MS: Final = 60_000
Labels: TypeAlias = tuple[tuple[str, str], ...]
# By the labels of an alert, the names of those by which it is not told; Alertmanager names the first only.
Inhibited: TypeAlias = dict[Labels, list[str]]
VALUES: Final[Mapping[str, Sequence[str]]] = {
    # Work in no queue has a label without a value.
    "queue": ("red", ""),
    "service_class": ("interactive", "batch"),
    "period": ("week", "month"),
    "pool": ("a100",),
    "gpu_model": ("A100",),
}
# What has one of these values of a label is not as bad as all the rest, which breaches every limit.
BETTER: Final[Mapping[tuple[str, str], float]] = {
    ("starvation_index_seconds", "red"): 0.0,
    ("queue_cap_ratio", "west"): 0.0,
    ("budget_burned_ratio", "week"): 0.9,
}
STALE, UNMEASURED, P99 = "GpuledgerSourceStale", "GpuledgerMeasurementsStale", "GpuQueueWaitP99TooLong"
NEARLY, ABSENT = "GpuHourBudgetNearlyBurned", "GpuledgerMeasurementsAbsent"
# Longer than an Alertmanager takes to hear of something, also on a machine with much else to do.
PATIENCE_SECONDS: Final = 60


@dataclass(slots=True)
class Clock:
    """Moved by hand, and hours behind the machine's: what has ended by it has to Alertmanager too."""

    at_ms: int = field(default_factory=lambda: SystemClock().now_ms() - 180 * MINUTE_MS)

    def now_ms(self) -> int:
        return self.at_ms


@dataclass(slots=True)
class Ledger:
    """One of several, which has one team of its own."""

    clusters: Sequence[str]
    team: str
    clock: Clock
    answers: Answers
    alerting: Alerting
    measures: bool = True
    read_ms: dict[str, int] = field(default_factory=dict)

    def tick(self, *, stale: Sequence[str]) -> None:
        """Measure, if it does, and tell what is due."""
        at_ms = self.clock.at_ms
        self.read_ms |= {name: at_ms for name in self.clusters if name not in stale}
        if self.measures:
            self.alerting.take(
                [
                    Measurement(metric=name, as_of_ms=at_ms, sample=sample)
                    for name, samples in breaching(self.clusters, self.team).items()
                    for sample in samples.values()
                ],
                at_ms,
                self.read_ms,
            )
        self.alerting.watch()
        (announcer,) = self.alerting._announcers
        announcer.send()
        assert announcer._line.failures == 0

    def inhibited(self) -> Inhibited:
        """What the API says of what fires."""
        rows = self.answers.alerts(ReportQuestion(as_of_ms=self.clock.at_ms)).rows
        return {
            identity(row["labels"] | {"alertname": row["alert"]}): [
                name for name in row["inhibited_by"].split(", ") if name
            ]
            for row in rows
            if row["state"] == "firing"
        }


def breaching(clusters: Sequence[str], team: str) -> dict[str, dict[Labels, Sample]]:
    """Samples of every metric with an alert that breach it, and of the gauges that they are held against."""
    ranges = {**VALUES, "cluster": clusters, "team": [team]}
    found: dict[str, dict[Labels, Sample]] = {}

    def put(metric: str, names: Sequence[str], more: Mapping[str, str], value: float) -> None:
        for each in product(*(ranges[name] for name in names)):
            labels = {**dict(zip(names, each, strict=True)), **more}
            better = [BETTER[metric, one] for one in labels.values() if (metric, one) in BETTER]
            sample = Sample(labels=labels, value=better[0] if better else value)
            found.setdefault(metric, {})[identity(labels)] = sample

    for alert in declared(REGISTRY):
        rule = alert.rule
        if alert.metric is not None:
            put(alert.source, rule.identity, rule.match, 0.0 if rule.comparison is Comparison.BELOW else 1e9)
            if rule.limit.gauge:
                put(rule.limit.gauge, rule.limit.on, {}, 1.0)
    return found


def identity(labels: Mapping[str, str]) -> Labels:
    """As Alertmanager has it: a label without a value is none. The severity follows from the name."""
    return tuple(sorted((name, value) for name, value in labels.items() if value and name != "severity"))


@contextmanager
def ledger(name: str, clusters: Sequence[str], team: str, clock: Clock, url: str) -> Iterator[Ledger]:
    store = Store.open(None)
    settings = AlertingSettings.model_validate({"alertmanagers": [{"url": url}]})
    answers = Answers(store, Tenancy(), Policy(), clock)
    links, every = Links(dashboard_url="https://gpu.example"), timedelta(minutes=5)
    alerting = Alerting(answers, settings, links=links, every=every, clock=clock, ledger=name)
    try:
        yield Ledger(clusters, team, clock, answers, alerting)
    finally:
        alerting.stop()
        store.close()


@dataclass(slots=True)
class Site:
    """Two ledgers, and the Alertmanager that both tell."""

    clock: Clock
    ledgers: Sequence[Ledger]
    running: Alertmanager

    def after(self, *minutes: int, stale: Sequence[str] = ()) -> Inhibited:
        """What the ledgers say after these."""
        for one in minutes:
            self.clock.at_ms += one * MINUTE_MS
            for ledger in self.ledgers:
                ledger.tick(stale=stale)
        return {labels: names for each in self.ledgers for labels, names in each.inhibited().items()}

    def told(self, wanted: Inhibited) -> Inhibited:
        """What Alertmanager has, the watchdogs left out; once it is as wanted, or for long enough is not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := self._told()) != wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        return found

    def _told(self) -> Inhibited:
        alerts = [one for one in self.running.alerts() if one["labels"]["alertname"] != WATCHDOG]
        names = {one["fingerprint"]: one["labels"]["alertname"] for one in alerts}
        return {
            identity(one["labels"]): [names[each] for each in one["status"]["inhibitedBy"]] for one in alerts
        }


def first(ours: Inhibited) -> Inhibited:
    """What Alertmanager should say where ledgers say this: of several it names the first."""
    return {labels: names[:1] for labels, names in ours.items()}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock = Clock()
    with ExitStack() as stack:
        (port,) = free_ports(1)
        # Nobody listens to what it tells.
        nobody = Receiver(url="http://127.0.0.1:1/")
        running = stack.enter_context(alertmanager(tmp_path / "am", port, nobody))
        ledgers = [
            stack.enter_context(ledger(name, clusters, team, clock, running.url))
            for name, clusters, team in (("one", ["east", "west"], "nlp"), ("two", ["north"], "ads"))
        ]
        yield Site(clock, ledgers, running)


def by(found: Inhibited, **labels: str) -> list[str]:
    """The names by which those with these labels are inhibited, each way of it once."""
    return sorted({", ".join(names) for one, names in found.items() if labels.items() <= dict(one).items()})


def test_the_product_names_what_alertmanager_inhibits_by(site: Site) -> None:
    # Until all of them fire, which the slowest do after an hour.
    calm = site.after(0, 14, 14, 14, 14, 14, 5, 5, 5)
    every = {each.rule.name for each in declared(REGISTRY) if each.metric is not None}
    assert {dict(one)["alertname"] for one in calm} == every
    assert by(calm, alertname=P99, queue="red") == [""]
    assert by(calm, alertname=P99) == ["", "GpuQueueWaitTooLong"]
    assert by(calm, alertname=NEARLY, period="week") == [""]
    assert by(calm, alertname=NEARLY, period="month") == ["GpuHourBudgetBurned"]
    assert site.told(calm) == first(calm)

    # A cluster of the first ledger is stale. What is of no cluster rests on all that its own ledger reads.
    found = site.after(5, 5, stale=["west"])
    assert by(found, cluster="west", alertname="GpuIdle") == [STALE]
    assert by(found, cluster="east", alertname="GpuIdle") == [""]
    assert by(found, team="nlp", alertname="GpuHourBudgetBurned") == [STALE]
    assert by(found, team="ads", alertname="GpuHourBudgetBurned") == [""]
    assert site.told(first(found)) == first(found)

    # The other one measures nothing beside.
    site.ledgers[1].measures = False
    found = site.after(5, 5, stale=["west"])
    assert by(found, cluster="north", alertname="GpuIdle") == [f"{UNMEASURED}, {STALE}"]
    assert site.told(first(found)) == first(found)

    site.ledgers[1].measures = True
    assert site.after(5, 5, 5) == calm
    assert site.told(calm) == first(calm)

    # That a ledger is absent only Prometheus tells, so it is compared with the rules themselves.
    absent = {"alertname": ABSENT, "ledger": "two", "cluster": "north"}
    line = Line(site.running.url, Access(), timeout_seconds=60)
    line.post([{"labels": absent}])
    line.close()
    rules, firing = inhibitions(declared(REGISTRY)), [*map(dict, calm), absent]
    expected = {one: inhibited_by(dict(one), firing, rules)[:1] for one in [*calm, identity(absent)]}
    assert by(expected, cluster="north", alertname="GpuIdle") == [ABSENT]
    assert by(expected, team="ads", alertname="GpuHourBudgetBurned") == [ABSENT]
    assert site.told(expected) == expected
