"""What stands in an alert's sentences where a label has no value, or the site has set the limit."""

import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
import yaml

from alerts.declared import SOURCE_STALE, Declared, declared
from alerts.readings import annotations, readings
from alerts.rules import rules_file
from alerts.wording import Links
from analytics.metrics import REGISTRY
from domain.errors import PolicyError
from domain.metric import Sample
from domain.policy import Policy
from service.sources import last_good
from tests.alerts.scraped import firing

ALERTS: Final = {alert.rule.name: alert for alert in declared(REGISTRY)}
LINKS: Final = Links(dashboard_url="https://gpu.example")


def said(alert: Declared, samples: dict[str, list[Sample]], policy: Policy) -> dict[str, str]:
    """The annotations of the one breach."""
    (reading,) = readings(alert, samples, policy)
    return annotations(alert, reading, LINKS)


@pytest.mark.prometheus
def test_work_in_no_queue_is_said_to_be_in_none_both_ways(tmp_path: Path) -> None:
    labels = {"cluster": "east", "queue": "", "service_class": "batch"}
    samples = {
        "starvation_index_seconds": [Sample(labels=labels, value=4000.0)],
        "wait_target_seconds": [Sample(labels={"service_class": "batch"}, value=3600.0)],
        "past_target_workloads": [Sample(labels=labels, value=2.0)],
    }
    told = said(ALERTS["GpuQueueWaitTooLong"], samples, Policy())
    assert told["summary"] == "batch in queue (none) of east: somebody waits for 1h 6m 40s"
    of_none = '{cluster="east",queue="",service_class="batch"}'
    values = {
        f"gpuledger_starvation_index_seconds{of_none}": "4000x5",
        'gpuledger_wait_target_seconds{cluster="east",service_class="batch"}': "3600x5",
        f"gpuledger_past_target_workloads{of_none}": "2x5",
        "gpuledger_measured_timestamp_seconds": "0+60x5",
    }
    series = [{"series": name, "values": given} for name, given in values.items()]
    expected = {
        "exp_labels": {"severity": "warning", "cluster": "east", "service_class": "batch"},
        "exp_annotations": told,
    }
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series,
                "alert_rule_test": [firing("GpuQueueWaitTooLong", 180, expected)],
            }
        ],
    }
    (tmp_path / "rules.yaml").write_text(rules_file(REGISTRY, Policy(), dashboard_url=LINKS.dashboard_url))
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("limit", "written"), [(None, "100%"), (0.9, "90%")])
def test_what_is_said_of_a_budget_follows_the_limit_of_the_site(limit: float | None, written: str) -> None:
    policy = Policy(alert_limits={} if limit is None else {"GpuHourBudgetBurned": limit})
    samples = {"budget_burned_ratio": [Sample(labels={"team": "nlp", "period": "day"}, value=1.3)]}
    told = said(ALERTS["GpuHourBudgetBurned"], samples, policy)
    assert told["summary"] == f"team nlp has burned 130% of its GPU-hours of the day, {written} or more"
    assert f", {written} or more" in rules_file(REGISTRY, policy, dashboard_url="https://gpu.example")


# What may be said of a limit that a site can set to anything: not what it is by default.
TRUE_OF_ANY: Final = (
    r"the limit is {limit}\.|; expected {limit}\.|this is told from {limit} on\.|, {limit} or more$"
)


@pytest.mark.parametrize("name", [n for n, one in ALERTS.items() if one.metric and one.rule.limit.is_own])
def test_what_is_said_of_a_limit_is_true_of_any_that_the_site_sets(name: str) -> None:
    for template in (ALERTS[name].rule.summary, ALERTS[name].rule.description):
        assert "{limit}" not in re.sub(TRUE_OF_ANY, "", template)
        assert "most " not in template


def test_an_idle_gpu_is_told_with_the_limit_of_the_site() -> None:
    labels = {"cluster": "east", "team": "nlp", "cause": "idle"}
    policy = Policy(alert_limits={"GpuIdle": 48}, window=timedelta(hours=6))
    told = said(ALERTS["GpuIdle"], {"held_gpu_hours": [Sample(labels=labels, value=60.0)]}, policy)
    assert "; the limit is 48. One GPU that is idle for a whole day makes 24." in told["description"]


def test_one_kind_of_objects_that_is_stale_is_not_said_to_be_the_whole_cluster() -> None:
    minute, now = 60_000, 10_000_000_000
    ages = {"Pod": 0, "Node": 0, "Workload": 0, "AdmissionCheck": 60}
    marks = [
        {"cluster": "east", "kind": kind, "seen_ms": now - age * minute, "last_error": ""}
        for kind, age in ages.items()
    ]
    seen = last_good(marks, now, policy=Policy(), clusters=["east"], since_ms=0)
    sample = Sample(labels={"ledger": "here", "cluster": "east"}, value=(now - seen["east"]) / 1000)
    told = said(ALERTS[SOURCE_STALE], {SOURCE_STALE: [sample]}, Policy())
    assert told["summary"] == "ledger here has not read all of cluster east for 1h 0m 0s"
    assert told["description"].startswith("At least one kind of its objects was not known to be current")


@pytest.mark.parametrize(
    "limits", [{"GpuHourBudgetBurned": 0.5}, {"GpuHourBudgetNearlyBurned": 1.2}, {"GpuMoneyBudgetBurned": 0}]
)
def test_an_alert_is_not_told_before_the_one_that_it_silences(limits: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=r"BudgetBurned = .*: expected at least .* which it silences"):
        rules_file(REGISTRY, Policy(alert_limits=limits), dashboard_url="https://gpu.example")
    same = Policy(alert_limits={"GpuHourBudgetBurned": 0.8})
    assert "0.8" in rules_file(REGISTRY, same, dashboard_url="https://gpu.example")
