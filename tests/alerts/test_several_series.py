"""What Prometheus makes of series that are missing for a while, and of the same one from several pods."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from alerts.rules import rules_file
from analytics.metrics import REGISTRY
from domain.policy import Policy
from tests.alerts.scraped import fires

RULES: Final = rules_file(REGISTRY, Policy(), dashboard_url="https://gpu.example")
# A scrape fails from minute 9 on, for longer than Prometheus looks back and shorter than any window.
MISSED: Final = "x9 _x11 {0}x10"


def asked_for_a_count() -> str:
    """The series that the annotation of waits asks for the number of those who wait."""
    (rule,) = [
        rule
        for group in yaml.safe_load(RULES)["groups"]
        for rule in group["rules"]
        if rule.get("alert") == "GpuQueueWaitTooLong"
    ]
    (name,) = re.findall(r'printf "([^"{]+){', rule["annotations"]["breached_jobs"])
    return str(name)


@pytest.mark.prometheus
def test_of_two_pods_the_one_that_saw_more_counts_and_a_number_stands_as_long_as_its_value(
    tmp_path: Path,
) -> None:
    measured = {"series": "gpuledger_measured_timestamp_seconds", "values": "0+60x40"}
    seen = 'gpuledger_source_seen_timestamp_seconds{cluster="east",pod="%s"}'
    labels = '{cluster="east",queue="red",service_class="interactive"}'
    pods: dict[str, Any] = {
        # The old one answers on, and reads nothing any more.
        "input_series": [
            measured,
            {"series": seen % "old", "values": "0x40"},
            {"series": seen % "new", "values": "0+60x20 1200x20"},
        ],
        # The new one, too, reads nothing after minute 20.
        "promql_expr_test": [
            fires("GpuledgerSourceStale", minute * 60, alerts=int(minute >= 25)) for minute in range(41)
        ],
    }
    missed: dict[str, Any] = {
        "input_series": [
            measured,
            {"series": f"gpuledger_starvation_index_seconds{labels}", "values": "400" + MISSED.format(400)},
            {"series": f"gpuledger_past_target_workloads{labels}", "values": "7" + MISSED.format(7)},
        ],
        "promql_expr_test": [
            {
                "eval_time": f"{minute}m",
                "expr": f"sum({asked_for_a_count()})",
                "exp_samples": [{"labels": "{}", "value": 7}],
            }
            for minute in range(30)
        ],
    }
    (tmp_path / "rules.yaml").write_text(RULES)
    tests = [{"interval": "1m", **test} for test in (pods, missed)]
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
