"""Every alert about work while its cluster is not read: what was told before stands, both ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from alerts.declared import Declared, declared, factor, read_by
from alerts.evaluation import Alert, Evaluation, firing
from alerts.exporter import PREFIX
from alerts.posting import Identity
from alerts.readings import Reading
from alerts.rules import rules_file
from alerts.whose import LEDGER_LABEL
from analytics.metrics import REGISTRY
from domain.alert import Comparison
from domain.metric import Sample
from domain.policy import Policy
from tests.alerts.scraped import fires, promtool_tests

pytestmark = pytest.mark.prometheus

POLICY: Final = Policy()
OF_WORK: Final = [alert for alert in declared(REGISTRY) if alert.metric is not None]
STALE_MINUTES: Final = POLICY.source_stale_after // timedelta(minutes=1)
MINUTE_MS: Final = 60_000
GAUGE: Final = 100.0


def _nothing(_: Declared, __: Reading) -> Mapping[str, str]:
    return {}


@dataclass(slots=True)
class Course:
    """
    It breaches until it fires; then its cluster is not read, and the value falls only as its window ages.

    After more than its window and the time that an alert stays the cluster is read again, and all is well.
    """

    alert: Declared
    unread: int = field(init=False)
    fine: int = field(init=False)
    read: int = field(init=False)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        rule = self.alert.rule
        hold, window, keep = (
            length // timedelta(minutes=1) for length in (rule.hold, rule.window, rule.keep)
        )
        self.unread = hold + 3
        self.fine = self.unread + STALE_MINUTES + 2
        self.read = self.fine + window + keep + 5
        self.end = self.read + keep + 5

    @property
    def labels(self) -> dict[str, str]:
        known = {LEDGER_LABEL: "one", "cluster": "east", "service_class": "interactive"}
        named = {name: known.get(name, f"some {name}") for name in self.alert.identity}
        return {**named, **self.alert.rule.match}

    @property
    def limit(self) -> float:
        return factor(self.alert, POLICY) * (GAUGE if self.alert.rule.limit.gauge else 1.0)

    def seen_minute(self, minute: int) -> int:
        return minute if minute <= self.unread or minute >= self.read else self.unread

    def value(self, minute: int) -> float:
        below = self.alert.rule.comparison is Comparison.BELOW
        return self.limit * 2 + 1 if below is (minute >= self.fine) else self.limit / 2 - below

    def series(self) -> list[dict[str, str]]:
        metric, limit = self.alert.metric, self.alert.rule.limit
        assert metric is not None
        east, minutes = {"ledger": "one", "cluster": "east"}, range(self.end)
        found = [
            _typed("measured_timestamp_seconds", [60.0 * minute for minute in minutes], east),
            _typed(
                "source_seen_timestamp_seconds", [60.0 * self.seen_minute(each) for each in minutes], east
            ),
            _typed(metric.series, [self.value(each) * metric.series_scale for each in minutes], self.labels),
        ]
        if limit.gauge:
            on = {name: self.labels[name] for name in self.alert.limit_on}
            gauge = REGISTRY[limit.gauge]
            found.append(_typed(gauge.series, [GAUGE * gauge.series_scale] * self.end, on))
        return found

    def states(self) -> str:
        """Whether it fires after each minute, without Prometheus."""
        alerts: Mapping[Identity, Alert] = {}
        states, limit = "", self.alert.rule.limit
        for minute in range(self.end):
            samples = {self.alert.source: [Sample(labels=self.labels, value=self.value(minute))]}
            if limit.gauge:
                on = {name: self.labels[name] for name in limit.on}
                samples[limit.gauge] = [Sample(labels=on, value=GAUGE)]
            is_stale = minute - self.seen_minute(minute) > STALE_MINUTES
            alerts = Evaluation(
                declared=[self.alert],
                samples=samples,
                policy=POLICY,
                annotate=_nothing,
                at_ms=minute * MINUTE_MS,
                now_ms=minute * MINUTE_MS,
                stale={"east": "it is not read"} if is_stale else {},
            ).after(alerts)
            states += "!" if firing(alerts) else "."
        return states


def _typed(name: str, values: list[float], labels: Mapping[str, str]) -> dict[str, str]:
    named = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return {"series": f"{PREFIX}{name}{{{named}}}", "values": " ".join(map(repr, values))}


@pytest.mark.parametrize("course", [Course(alert) for alert in OF_WORK], ids=lambda one: one.alert.rule.name)
def test_it_stands_until_its_cluster_is_read_again_both_ways(course: Course, tmp_path: Path) -> None:
    states, name = course.states(), course.alert.rule.name
    assert states[course.unread : course.read + 1] == "!" * (course.read + 1 - course.unread)
    assert states[-1] == "."
    read = {each: REGISTRY[each] for each in read_by(course.alert)}
    known = [fires(name, at * 60, alerts=int(state == "!")) for at, state in enumerate(states)]
    test = {"interval": "1m", "input_series": course.series(), "promql_expr_test": known}
    promtool_tests(tmp_path, rules_file(read, POLICY, dashboard_url="https://gpu.example"), test)
