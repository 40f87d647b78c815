"""Every alert about work while nobody knows its value: what was told before stands, both ways."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
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
from tests.alerts.scraped import GONE, NONE, fires, promtool_tests

pytestmark = pytest.mark.prometheus

POLICY: Final = Policy()
OF_WORK: Final = [alert for alert in declared(REGISTRY) if alert.metric is not None]
STALE_MINUTES: Final = POLICY.source_stale_after // timedelta(minutes=1)
MINUTE_MS: Final = 60_000
GAUGE: Final = 100.0


class Trouble(StrEnum):
    """Why a value says nothing, or is not there."""

    NOT_READ = "its cluster is not read"
    FAILED = "its metric fails"
    UNDEFINED = "it is undefined"
    SILENT = "its ledger is silent"


def _nothing(_: Declared, __: Reading) -> Mapping[str, str]:
    return {}


@dataclass(slots=True)
class Course:
    """
    It breaches until it fires; then there is trouble, and what is measured falls only as its window ages.

    After more than its window and the time that an alert stays the trouble ends, and all is well.
    """

    alert: Declared
    trouble: Trouble
    begin: int = field(init=False)
    fine: int = field(init=False)
    over: int = field(init=False)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        rule = self.alert.rule
        lengths = (rule.hold, rule.window, rule.keep)
        hold, window, keep = (length // timedelta(minutes=1) for length in lengths)
        self.begin = hold + 3
        self.fine = self.begin + STALE_MINUTES + 2
        self.over = self.fine + window + keep + 5
        self.end = self.over + keep + 5

    @property
    def labels(self) -> dict[str, str]:
        known = {LEDGER_LABEL: "one", "cluster": "east", "service_class": "interactive"}
        named = {name: known.get(name, f"some {name}") for name in self.alert.identity}
        return {**named, **self.alert.rule.match}

    @property
    def limit(self) -> float:
        return factor(self.alert, POLICY) * (GAUGE if self.alert.rule.limit.gauge else 1.0)

    def during(self, minute: int) -> Trouble | None:
        return self.trouble if self.begin < minute < self.over else None

    def seen_minute(self, minute: int) -> int:
        return self.begin if self.during(minute) is Trouble.NOT_READ else minute

    def value(self, minute: int) -> float | None:
        if self.during(minute) in {Trouble.FAILED, Trouble.UNDEFINED}:
            return None
        below = self.alert.rule.comparison is Comparison.BELOW
        return self.limit * 2 + 1 if below is (minute >= self.fine) else self.limit / 2 - below

    def series(self) -> list[dict[str, str]]:
        metric, limit = self.alert.metric, self.alert.rule.limit
        assert metric is not None
        east, labels = {"ledger": "one", "cluster": "east"}, self.labels
        found = [
            self._told("measured_timestamp_seconds", east, lambda minute: 60.0 * minute),
            self._told("source_seen_timestamp_seconds", east, lambda minute: 60.0 * self.seen_minute(minute)),
            self._told(metric.series, labels, self.value, metric.series_scale),
        ]
        failed = {"ledger": "one", "metric": metric.name}
        for name, of, trouble in (
            ("incomplete", failed, Trouble.FAILED),
            (f"{metric.series}_unknown", labels, Trouble.UNDEFINED),
        ):
            if trouble is self.trouble:
                found.append(self._told(name, of, lambda minute: 1.0 if self.during(minute) else None))
        if limit.gauge:
            on = {name: labels[name] for name in self.alert.limit_on}
            gauge = REGISTRY[limit.gauge]
            found.append(self._told(gauge.series, on, lambda _: GAUGE, gauge.series_scale))
        return found

    def _told(
        self,
        name: str,
        labels: Mapping[str, str],
        value: Callable[[int], float | None],
        scale: float = 1.0,
    ) -> dict[str, str]:
        told, is_there = [], False
        for minute in range(self.end):
            found = None if self.during(minute) is Trouble.SILENT else value(minute)
            told.append(repr(found * scale) if found is not None else GONE if is_there else NONE)
            is_there = found is not None
        named = ",".join(f'{label}="{each}"' for label, each in labels.items())
        return {"series": f"{PREFIX}{name}{{{named}}}", "values": " ".join(told)}

    def states(self) -> str:
        """Whether it fires after each minute, without Prometheus."""
        alerts: Mapping[Identity, Alert] = {}
        states = ""
        for minute in range(self.end):
            if self.during(minute) is not Trouble.SILENT:
                alerts = self._evaluated(alerts, minute)
            states += "!" if firing(alerts) else "."
        return states

    def _evaluated(self, before: Mapping[Identity, Alert], minute: int) -> Mapping[Identity, Alert]:
        limit, value = self.alert.rule.limit, self.value(minute)
        samples = {
            self.alert.source: [
                Sample.undefined(self.labels, "nobody knows")
                if value is None
                else Sample(labels=self.labels, value=value)
            ]
        }
        if self.during(minute) is Trouble.FAILED:
            samples = {}
        if limit.gauge:
            on = {name: self.labels[name] for name in limit.on}
            samples[limit.gauge] = [Sample(labels=on, value=GAUGE)]
        is_stale = minute - self.seen_minute(minute) > STALE_MINUTES
        return Evaluation(
            declared=[self.alert],
            samples=samples,
            policy=POLICY,
            annotate=_nothing,
            at_ms=minute * MINUTE_MS,
            now_ms=minute * MINUTE_MS,
            stale={"east": "it is not read"} if is_stale else {},
            resumes=self.trouble is Trouble.SILENT and minute == self.over,
        ).after(before)


COURSES: Final = [
    pytest.param(
        Course(alert, trouble),
        id=f"{alert.rule.name}: {trouble}",
        marks=() if trouble is Trouble.NOT_READ else pytest.mark.long,
    )
    for alert in OF_WORK
    for trouble in Trouble
    if not (alert.rule.fine_if_undefined and trouble is Trouble.UNDEFINED)
]


@pytest.mark.parametrize("course", COURSES)
def test_it_stands_until_its_value_is_known_again_both_ways(course: Course, tmp_path: Path) -> None:
    states, name = course.states(), course.alert.rule.name
    assert states[course.begin : course.over + 1] == "!" * (course.over + 1 - course.begin)
    assert states[-1] == "."
    read = {each: REGISTRY[each] for each in read_by(course.alert)}
    known = [fires(name, at * 60, alerts=int(state == "!")) for at, state in enumerate(states)]
    test = {"interval": "1m", "input_series": course.series(), "promql_expr_test": known}
    promtool_tests(tmp_path, rules_file(read, POLICY, dashboard_url="https://gpu.example"), test)
