"""On `city` Prometheus finds the breaches that we find without it: the same alerts, labels and values."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.declared import Declared, Reading, declared, readings
from alerts.exporter import Exporter
from alerts.rules import rules_file
from analytics.evaluate import evaluate, exported_asks, parameters
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.window import FixedClock
from domain.workload import ServiceClass
from store.embedded import Store
from tests.alerts.scraped import input_series

pytestmark = [pytest.mark.recordings, pytest.mark.prometheus, pytest.mark.long]

# The recording stands for two days in 44 minutes: targets that its waits pass.
POLICY = Policy(
    targets={
        name: replace(target, wait=timedelta(seconds=20 if name is ServiceClass.INTERACTIVE else 300))
        for name, target in Policy().targets.items()
    }
)
ALERTS = [alert for alert in declared(REGISTRY) if alert.metric is not None]
# The recording is 44 minutes long; as of ten instants of it.
EVERY_MS = 4 * 60_000
TIMES = 10
# What goes wrong in the recording, so that the comparison says something.
BREACHING = {
    "GpuCumulativeWaitTooLong",
    "GpuInteractiveReserveShort",
    "GpuMetricsMissing",
    "GpuPreemptionStorm",
    "GpuProtectionBroken",
    "GpuQueueWaitP99TooLong",
    "GpuQueueWaitTooLong",
    "GpuRestartStorm",
    "GpuTierRuleBroken",
    "GpuWastageTooHigh",
}


def measured(store: Store, as_of_ms: int) -> dict[str, list[Sample]]:
    """All that alerts read, by metric."""
    names = dict.fromkeys(name for alert in ALERTS for name in (alert.source, alert.rule.limit.gauge) if name)
    found = {}
    for name in names:
        metric = REGISTRY[name]
        found[name] = [
            sample
            for ask in exported_asks(metric, as_of_ms, POLICY)
            for sample in evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
        ]
    return found


def as_scraped(samples: Mapping[str, Sequence[Sample]], as_of_ms: int) -> str:
    exporter = Exporter({name: REGISTRY[name] for name in samples}, FixedClock(as_of_ms))
    told = [
        Measurement(metric=name, as_of_ms=as_of_ms, sample=sample)
        for name, found in samples.items()
        for sample in found
    ]
    exporter.publish(told, as_of_ms)
    return exporter.text().decode()


def _own(reading: Reading) -> str:
    """The labels of the series behind an alert, as promtool reads them."""
    own = (f'{name}="{value}"' for name, value in reading.labels.items() if name in reading.identity)
    return f"{{{','.join(own)}}}"


def expectation(
    alert: Declared, expression: str, seconds: int, samples: Mapping[str, Sequence[Sample]]
) -> dict[str, Any]:
    breaches = [each for each in readings(alert, samples, POLICY) if each.breaches]
    return {
        # A sum has no name, as an alert has none.
        "expr": f"({expression}) + 0",
        "eval_time": f"{seconds}s",
        "exp_samples": [
            {
                "labels": _own(each),
                "value": each.value,
            }
            for each in breaches
        ],
    }


def test_prometheus_finds_what_we_find(city_store: Store, tmp_path: Path) -> None:
    (first,) = city_store.rows("select min(start_ms) as at_ms from span")
    began_ms = int(str(first["at_ms"]))
    text = rules_file(REGISTRY, POLICY, dashboard_url="https://gpu.example")
    expressions = {
        rule["alert"]: rule["expr"]
        for group in yaml.safe_load(text)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    # A test for each instant: nothing is kept from the one before.
    tests, breaching = [], set()
    for number in range(1, TIMES + 1):
        samples = measured(city_store, began_ms + number * EVERY_MS)
        expected = [expectation(alert, expressions[alert.rule.name], 60, samples) for alert in ALERTS]
        breaching |= {
            alert.rule.name for alert, each in zip(ALERTS, expected, strict=True) if each["exp_samples"]
        }
        scrape = as_scraped(samples, 0)
        tests.append(
            {"interval": "1m", "input_series": input_series([scrape] * 2), "promql_expr_test": expected}
        )
    assert breaching == BREACHING
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "rules.yaml").write_text(text)
    (tmp_path / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
