"""The generated rules: promtool accepts them; silence and noise minute by minute."""

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.rules import rules_file
from analytics.metrics import REGISTRY
from domain.policy import Policy

RULES = rules_file(
    REGISTRY, Policy(), dashboard_url="https://gpu.example/", runbooks_url="https://book.example"
)
SERIES = 'gpuledger_starvation_index_seconds{cluster="east",queue="a b",service_class="%s",instance="i"}'
P99 = (
    'gpuledger_queue_wait_seconds{cluster="east",queue="q",service_class="%s",quantile="0.99",'
    'estimator="censored"}'
)


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]


def promtool(folder: Path, *arguments: str) -> str:
    """Its output; it must succeed."""
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def run(folder: Path, *tests: dict[str, Any]) -> None:
    """`promtool test rules`, one evaluation every 15 seconds."""
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "15s", "tests": list(tests)}
    (folder / "test.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    promtool(folder, "test", "rules", "test.yaml")


def expectation(minute: float, name: str, *alerts: dict[str, Any]) -> dict[str, Any]:
    return {"eval_time": f"{round(minute * 60)}s", "alertname": name, "exp_alerts": list(alerts)}


def starving(service_class: str, target: str, value: str) -> dict[str, Any]:
    """The alert as Alertmanager gets it."""
    return {
        "exp_labels": {
            "cluster": "east", "queue": "a b", "service_class": service_class, "severity": "warning",
        },
        "exp_annotations": {
            "summary": (
                f"{service_class} in queue a b of east: a workload waits longer than the target of its "
                "class, right now"
            ),
            "description": (
                f"Starvation index is {value}, the target of {service_class} is {target}. "
                f"{REGISTRY['starvation_index_seconds'].definition}"
            ),
            "runbook_url": "https://book.example/GpuWorkloadStarving.md",
            "dashboard_url": "https://gpu.example/queues?queue=a+b",
        },
    }  # fmt: skip


@pytest.mark.prometheus
def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    said = promtool(tmp_path, "check", "rules", "rules.yaml")
    assert "SUCCESS" in said
    assert "duplicate" not in said
    assert "lint" not in said


@pytest.mark.prometheus
def test_a_starving_interactive_workload_is_silent_at_4_minutes_fires_past_5_and_resolves(
    tmp_path: Path,
) -> None:
    # It waits from minute 0 on, 15 s more each 15 s, until it is placed at 10 min; then nobody waits.
    run(
        tmp_path,
        {
            "interval": "15s",
            "input_series": [{"series": SERIES % "interactive", "values": "0+15x40 0x60"}],
            "alert_rule_test": [
                expectation(4, "GpuWorkloadStarving"),
                expectation(5, "GpuWorkloadStarving"),
                expectation(6, "GpuWorkloadStarving"),
                expectation(6.5, "GpuWorkloadStarving", starving("interactive", "5m", "6m 30s")),
                expectation(9, "GpuWorkloadStarving", starving("interactive", "5m", "9m 0s")),
                # The last breach was 600 s at minute 10; for 5 min after it the alert stays, then resolves.
                expectation(14, "GpuWorkloadStarving", starving("interactive", "5m", "10m 0s")),
                expectation(16, "GpuWorkloadStarving"),
            ],
        },
    )


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("service_class", "below", "above", "target", "value"),
    [
        ("interactive", 300, 301, "5m", "5m 1s"),
        ("batch", 3600, 3601, "1h", "1h 0m 1s"),
        ("best_effort", 86400, 86401, "1d", "1d 0h 0m 1s"),
        ("unclassified", 3600, 3601, "1h", "1h 0m 1s"),
    ],
)
def test_each_class_is_held_to_its_own_target(
    service_class: str, below: int, above: int, target: str, value: str, tmp_path: Path
) -> None:
    alerts = {below: [], above: [starving(service_class, target, value)]}
    run(
        tmp_path,
        *(
            {
                "interval": "15s",
                "input_series": [{"series": SERIES % service_class, "values": f"{seconds}x40"}],
                "alert_rule_test": [expectation(5, "GpuWorkloadStarving", *expected)],
            }
            for seconds, expected in alerts.items()
        ),
    )


@pytest.mark.prometheus
def test_the_percentile_alerts_once_per_queue_and_class(tmp_path: Path) -> None:
    started = (P99 % "batch").replace("censored", "started")
    (percentile,) = [
        rule for rule in rules() if rule["alert"] == "GpuQueueWaitTooLong" and '"batch"' in rule["expr"]
    ]
    run(
        tmp_path,
        {
            "interval": "15s",
            "input_series": [
                {"series": P99 % "batch", "values": "4000x40"},
                {"series": started, "values": "9000x40"},
                {"series": P99 % "best_effort", "values": "4000x40"},
            ],
            "promql_expr_test": [
                {
                    "expr": percentile["expr"],
                    "eval_time": "3m",
                    "exp_samples": [
                        {"labels": '{cluster="east",queue="q",service_class="batch"}', "value": 4000}
                    ],
                }
            ],
        },
    )


@pytest.mark.prometheus
def test_stale_and_absent_measurements_wake_somebody(tmp_path: Path) -> None:
    def fires(name: str, minute: float, labels: dict[str, str], summary: str) -> dict[str, Any]:
        annotations = {
            "summary": summary,
            "description": (
                "Waits, queues and GPUs are as they were; alerts on them cannot be trusted to be silent."
            ),
            "runbook_url": f"https://book.example/{name}.md",
            "dashboard_url": "https://gpu.example/sources",
        }
        return expectation(
            minute, name, {"exp_labels": {"severity": "critical", **labels}, "exp_annotations": annotations}
        )

    run(
        tmp_path,
        {
            "interval": "15s",
            # Measured at second 0 and never again; the source is read until minute 2.
            "input_series": [
                {"series": "gpuledger_measured_timestamp_seconds", "values": "0x60"},
                {
                    "series": 'gpuledger_source_seen_timestamp_seconds{cluster="east"}',
                    "values": "0+15x8 120x60",
                },
            ],
            "alert_rule_test": [
                expectation(3, "GpuledgerMeasurementsStale"),
                fires("GpuledgerMeasurementsStale", 5, {}, "gpuledger has not measured for 5m 0s"),
                expectation(5, "GpuledgerMeasurementsAbsent"),
                expectation(5, "GpuledgerSourceStale"),
                fires(
                    "GpuledgerSourceStale", 8, {"cluster": "east"}, "cluster east has not been read for 6m 0s"
                ),
            ],
        },
        {
            "interval": "15s",
            "input_series": [{"series": "up", "values": "0x60"}],
            "alert_rule_test": [
                fires("GpuledgerMeasurementsAbsent", 2, {}, "Prometheus gets no measurement from gpuledger")
            ],
        },
    )


def test_a_faster_sample_shortens_the_hold_and_keeps_the_targets() -> None:
    fast = rules_file(REGISTRY, Policy(), dashboard_url="http://localhost", hold_scale=1 / 60)
    slow_rules, fast_rules = rules(), yaml.safe_load(fast)["groups"][0]["rules"]
    assert [rule["expr"] for rule in fast_rules] == [rule["expr"] for rule in slow_rules[: len(fast_rules)]]
    assert {(rule["for"], rule["keep_firing_for"]) for rule in fast_rules} == {("1s", "5s")}


def test_a_site_without_patience_gets_its_own_threshold() -> None:
    policy = Policy(source_stale_after=timedelta(minutes=7))
    assert "> 420" in rules_file(REGISTRY, policy, dashboard_url="http://localhost")


def test_every_rule_has_a_runbook_that_exists() -> None:
    folder = Path(__file__).parents[2] / "docs" / "runbooks"
    books = {rule["annotations"]["runbook_url"].rsplit("/", 1)[1] for rule in rules()}
    assert [book for book in sorted(books) if not (folder / book).exists()] == []
