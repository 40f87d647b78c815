"""
A recording is played, measured and scraped step by step: what Prometheus makes of it, and what we do.

What promtool makes of the scrapes with the rule file is held against our own evaluation of the same samples:
which alerts fire at each step, by all their labels, and what they say.
"""

import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

import yaml

from alerts.declared import Declared, declared, read_by
from alerts.evaluation import Alert, Evaluation, firing
from alerts.exporter import LEDGER, Exporter
from alerts.posting import Identity
from alerts.readings import Reading, annotations
from alerts.rules import rules_file
from alerts.whose import of_ledger
from alerts.wording import Links
from analytics.evaluate import evaluate, exported_asks
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.window import FixedClock
from service.reading import Reader
from store.embedded import Store
from tests.alerts.scraped import input_series

LINKS: Final = Links(dashboard_url="https://gpu.example", runbooks_url="https://book.example")
OF_WORK: Final = {alert.rule.name: alert for alert in declared(REGISTRY) if alert.metric is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    How a recording is played, whose time is compressed.

    Args:
        step_ms: between two measurements, of which there are `times`, from the first span on.
        scale: lengths of rules are so much shorter.
        names: the alerts that are looked at; all by default.
    """

    policy: Policy
    step_ms: int
    times: int
    scale: float
    names: Collection[str] = tuple(OF_WORK)

    @property
    def alerts(self) -> list[Declared]:
        """The alerts with their lengths, as the rule file has them."""
        return [self._scaled(OF_WORK[name]) for name in self.names]

    def _scaled(self, alert: Declared) -> Declared:
        rule, scale = alert.rule, self.scale
        shorter = {"hold": rule.hold * scale, "keep": rule.keep * scale, "window": rule.window * scale}
        return replace(alert, rule=replace(rule, **shorter))  # type: ignore[arg-type]  # lengths

    def measured(self, store: Store, as_of_ms: int) -> dict[str, list[Sample]]:
        """All that the alerts read, by metric."""
        reader = Reader.of(store)
        return {
            name: [
                sample
                for ask in exported_asks(REGISTRY[name], as_of_ms, self.policy)
                for sample in evaluate(REGISTRY[name], reader.read(REGISTRY[name], ask), ask)
            ]
            for name in dict.fromkeys(name for alert in self.alerts for name in read_by(alert))
        }


@dataclass(slots=True)
class Played:
    """What was scraped at each step, and how alerts stood then."""

    course: Course
    scrapes: list[str] = field(default_factory=list)
    stood: list[Mapping[Identity, Alert]] = field(default_factory=list)

    @classmethod
    def of(cls, store: Store, course: Course) -> Self:
        """The recording of a store whose books are kept."""
        (first,) = store.rows("select min(start_ms) as at_ms from span")
        played = cls(course)
        for place in range(course.times):
            at_ms = place * course.step_ms
            played._step(course.measured(store, int(str(first["at_ms"])) + at_ms), at_ms)
        return played

    def courses_of(self, name: str) -> list[str]:
        """Of each alert of that name that ever fires a letter per step: `!` where it does, else a dot."""
        fired = [{one.identity for one in _of(name, alerts)} for alerts in self.stood]
        return [
            "".join("!" if identity in found else "." for found in fired)
            for identity in sorted({identity for found in fired for identity in found})
        ]

    def check(self, folder: Path) -> None:
        """Prometheus fires, says and resolves the same at each step."""
        course = self.course
        text = rules_file(
            REGISTRY,
            course.policy,
            dashboard_url=LINKS.dashboard_url,
            runbooks_url=LINKS.runbooks_url,
            hold_scale=course.scale,
        )
        step = f"{course.step_ms // 1000}s"
        test = {
            "interval": step,
            "input_series": input_series(self.scrapes),
            "promql_expr_test": [*self._expectations()],
            "alert_rule_test": [*self._texts()],
        }
        content = {"rule_files": ["rules.yaml"], "evaluation_interval": step, "tests": [test]}
        (folder / "rules.yaml").write_text(text)
        (folder / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
        command = ["promtool", "test", "rules", "test.yaml"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _step(self, samples: Mapping[str, Sequence[Sample]], at_ms: int) -> None:
        evaluation = Evaluation(
            declared=self.course.alerts,
            samples={name: of_ledger(found, LEDGER) for name, found in samples.items()},
            policy=self.course.policy,
            annotate=_said,
            at_ms=at_ms,
            now_ms=at_ms,
        )
        self.stood.append(evaluation.after(self.stood[-1] if self.stood else {}))
        self.scrapes.append(_scraped(samples, at_ms))

    def _expectations(self) -> Iterator[dict[str, Any]]:
        """At each step exactly the alerts that fire here."""
        for place, alerts in enumerate(self.stood):
            series = sorted(map(_series, firing(alerts)))
            yield {
                "expr": f'ALERTS{{alertstate="firing",alertname=~"{"|".join(self.course.names)}"}}',
                "eval_time": f"{place * self.course.step_ms // 1000}s",
                "exp_samples": [{"labels": labels, "value": 1} for labels in series],
            }

    def _texts(self) -> Iterator[dict[str, Any]]:
        """All alerts of a name, with what they say, where the first of them fires."""
        for name in sorted(self.course.names):
            told = ((place, found) for place, alerts in enumerate(self.stood) if (found := _of(name, alerts)))
            for place, found in islice(told, 1):
                yield {
                    "eval_time": f"{place * self.course.step_ms // 1000}s",
                    "alertname": name,
                    "exp_alerts": [
                        {
                            "exp_labels": {
                                key: text for key, text in one.labels.items() if key != "alertname"
                            },
                            "exp_annotations": dict(one.annotations),
                        }
                        for one in found
                    ],
                }


def _of(name: str, alerts: Mapping[Identity, Alert]) -> list[Alert]:
    """Those of a name that fire."""
    return [one for one in firing(alerts) if one.labels["alertname"] == name]


def _said(alert: Declared, reading: Reading) -> dict[str, str]:
    """What Prometheus would say: without the name of who it is about."""
    told = annotations(alert, reading, LINKS)
    return {name: text for name, text in told.items() if name != alert.rule.example}


def _scraped(samples: Mapping[str, Sequence[Sample]], at_ms: int) -> str:
    exporter = Exporter({name: REGISTRY[name] for name in samples}, FixedClock(at_ms))
    told = [
        Measurement(metric=name, as_of_ms=at_ms, sample=sample)
        for name, found in samples.items()
        for sample in found
    ]
    exporter.publish(told, at_ms)
    return exporter.text().decode()


def _series(alert: Alert) -> str:
    labels = {**alert.labels, "alertstate": "firing"}
    written = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"ALERTS{{{written}}}"
