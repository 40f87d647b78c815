"""Alerts about the ledger itself, minute by minute, on what the exporter tells of its own state."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.declared import OWN, Declared
from alerts.evaluation import Alert, Evaluation
from alerts.exporter import Exporter
from alerts.posting import Identity
from alerts.readings import Reading, annotations, readings
from alerts.rules import rules_file
from alerts.standing import State
from alerts.wording import Links
from analytics.metrics import REGISTRY
from domain.metric import Sample
from domain.policy import Policy
from tests.alerts.scraped import fires, firing, input_series

LINKS = Links(dashboard_url="https://gpu.example", runbooks_url="https://book.example")
RULES = rules_file(REGISTRY, Policy(), dashboard_url=LINKS.dashboard_url, runbooks_url=LINKS.runbooks_url)
UNTRUSTED = "What waits and who holds what may be old; silence of the other alerts means nothing."
MINUTE_MS = 60_000
OURS = {"ledger": "gpuledger", "cluster": "east"}


@dataclass(slots=True)
class Ledger:
    """A ledger without metrics, of which a minute at a time is scraped."""

    at_ms: int = 0
    alarms: dict[str, str] = field(default_factory=dict)
    measures: bool = True
    reads: bool = True
    runs: bool = True
    twin: bool = False
    twin_scrapes: list[str | None] = field(default_factory=list)
    scrapes: list[str | None] = field(default_factory=list)
    known: list[dict[str, list[Sample]]] = field(default_factory=list)
    _seen_ms: int = 0
    _measured_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms

    def play(self, minutes: int, exporter: Exporter) -> None:
        for _ in range(minutes):
            if self.reads:
                self._seen_ms = self.at_ms
            if self.measures:
                exporter.publish([], self.at_ms, {"east": self._seen_ms})
                self._measured_ms = self.at_ms
            self.scrapes.append(exporter.text().decode() if self.runs else None)
            # Another ledger of the same name.
            self.twin_scrapes.append(exporter.text().decode() if self.twin else None)
            self.known.append(self._known())
            self.at_ms += MINUTE_MS

    def _known(self) -> dict[str, list[Sample]]:
        """What it knows of itself without Prometheus."""
        ages = {
            "GpuledgerMeasurementsStale": (OURS, self._measured_ms),
            "GpuledgerSourceStale": (OURS, min(self._seen_ms, self._measured_ms)),
        }
        return {
            "GpuledgerAlarm": [
                Sample(labels={"ledger": "gpuledger", "alarm": name}, value=1.0) for name in self.alarms
            ],
            **{
                name: [Sample(labels=labels, value=(self.at_ms - since_ms) / 1000)]
                for name, (labels, since_ms) in ages.items()
            },
        }


def course(change: Callable[[Ledger], None], back: Callable[[Ledger], None]) -> Ledger:
    """Three good minutes, ten after a change, and eight after it was undone."""
    ledger = Ledger()
    exporter = Exporter({}, ledger, alarms=lambda: ledger.alarms)
    ledger.play(3, exporter)
    change(ledger)
    ledger.play(10, exporter)
    back(ledger)
    ledger.play(8, exporter)
    return ledger


def setting(name: str, value: Any) -> Callable[[Ledger], None]:
    return lambda ledger: setattr(ledger, name, value)


# What goes wrong and right; a letter per minute; what it says at minute 8, with its labels.
COURSES: dict[str, tuple[Ledger, str, dict[str, str], str, str, str]] = {
    "GpuledgerMeasurementsStale": (
        course(setting("measures", False), setting("measures", True)),
        # Measured last at minute 2: older than 3 minutes from 6 on, for a minute at 7; six more after 12.
        ".......!!!!!!!!!!!!..",
        OURS,
        "ledger gpuledger has not measured cluster east for 6m 0s",
        f"It answers scrapes with figures older than 3m 0s. {UNTRUSTED}",
        "critical",
    ),
    "GpuledgerMeasurementsAbsent": (
        course(setting("runs", False), setting("runs", True)),
        "....!!!!!!!!!!!!!!!..",
        OURS,
        "Prometheus gets no measurement of cluster east from ledger gpuledger",
        (
            "That ledger, or each where none is named, is down, cannot be reached, or has not measured yet."
            f" Where a ledger is named and no cluster, another ledger reads what it read. {UNTRUSTED}"
        ),
        "critical",
    ),
    "GpuledgerSourceStale": (
        course(setting("reads", False), setting("reads", True)),
        ".......!!!!!!!!!!!!..",
        OURS,
        "ledger gpuledger has not read all of cluster east for 6m 0s",
        (
            "At least one kind of its objects was not known to be current for more than 3m 0s:"
            f" `gpuledger doctor` and the page Sources say which, and why. {UNTRUSTED}"
        ),
        "critical",
    ),
    "GpuledgerAlarm": (
        course(setting("alarms", {"disk_full": "make room"}), setting("alarms", {})),
        "....!!!!!!!!!!.......",
        {"ledger": "gpuledger", "alarm": "disk_full"},
        "ledger gpuledger reports disk_full about itself",
        (
            "The page Sources and `/readyz?verbose` say why, and what to do. While it sounds, figures may be"
            " old or missing."
        ),
        "warning",
    ),
    "GpuledgerNameShared": (
        course(setting("twin", True), setting("twin", False)),
        "........!!!!!!.......",
        {"ledger": "gpuledger"},
        "2 instances call themselves ledger gpuledger",
        (
            "The end of one of them would not be told, and their alerts are taken for each other's. Give each"
            " ledger a `server.name` of its own, and let Prometheus scrape each once."
        ),
        "warning",
    ),
    "GpuledgerWatchdog": (
        course(setting("runs", False), setting("runs", True)),
        "!!!!!!!!!!!!!!!!!!!!!",
        {},
        "alerts of gpuledger reach you",
        (
            "It always fires. Let somebody outside of this Prometheus and its Alertmanager notice when it"
            " stops: then no alert gets through."
        ),
        "info",
    ),
}  # fmt: skip


def expected(name: str) -> dict[str, Any]:
    _, _, labels, summary, description, severity = COURSES[name]
    return {
        "exp_labels": {"severity": severity, **labels},
        "exp_annotations": {
            "summary": summary,
            "description": description,
            "runbook_url": f"https://book.example/{name}.md",
            "dashboard_url": "https://gpu.example/sources",
        },
    }


def test_every_alert_about_the_ledger_has_a_course() -> None:
    assert sorted(COURSES) == sorted(alert.rule.name for alert in OWN)


@pytest.mark.prometheus
def test_they_fire_and_resolve_on_what_was_scraped(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [
                *input_series(ledger.scrapes, instance="one"),
                *input_series(ledger.twin_scrapes, instance="another"),
            ],
            "alert_rule_test": [firing(name, 8 * 60, expected(name))],
            "promql_expr_test": [
                fires(name, minute * 60, alerts=int(state == "!")) for minute, state in enumerate(states)
            ],
        }
        for name, (ledger, states, *_) in COURSES.items()
    ]
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [each.rule.name for each in OWN if not each.only_prometheus])
def test_without_prometheus_they_say_the_same(name: str) -> None:
    (alert,) = [each for each in OWN if each.rule.name == name]
    labels = COURSES[name][2]
    value = 1.0 if name == "GpuledgerAlarm" else 360.0
    (reading,) = readings(alert, {name: [Sample(labels=labels, value=value)]}, Policy())
    assert reading.breaches
    wanted = expected(name)
    assert reading.labels == {"alertname": name, **wanted["exp_labels"]}
    assert annotations(alert, reading, LINKS) == wanted["exp_annotations"]


@pytest.mark.parametrize("name", [each.rule.name for each in OWN if not each.only_prometheus])
def test_without_prometheus_they_fire_and_resolve_in_the_same_minutes(name: str) -> None:
    (declared,) = [each for each in OWN if each.rule.name == name]
    ledger, states, *_ = COURSES[name]
    alerts: Mapping[Identity, Alert] = {}
    found = ""
    for minute, samples in enumerate(ledger.known):
        at_ms = minute * MINUTE_MS
        evaluation = Evaluation(
            declared=[declared],
            samples=samples,
            policy=Policy(),
            annotate=annotated,
            at_ms=at_ms,
            now_ms=at_ms,
        )
        alerts = evaluation.after(alerts)
        found += "!" if any(each.standing.state is State.FIRING for each in alerts.values()) else "."
    assert found == states


def annotated(declared: Declared, reading: Reading) -> Mapping[str, str]:
    return annotations(declared, reading, LINKS)


def test_that_something_is_so_is_no_length_of_time() -> None:
    assert {each.rule.name: each.words.write(3.0) for each in OWN} == {
        "GpuledgerMeasurementsStale": "3s",
        "GpuledgerMeasurementsAbsent": "3",
        "GpuledgerSourceStale": "3s",
        "GpuledgerNameShared": "3",
        "GpuledgerAlarm": "3",
        "GpuledgerWatchdog": "3",
    }
