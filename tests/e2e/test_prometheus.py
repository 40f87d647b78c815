"""
A real Prometheus scrapes a sample that is played, loads our rules, and a breach fires and ends.

The sample runs twenty times as fast as the machine's clock, so the rules' holds are a twentieth;
the targets stay those of the sample's clock.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.e2e.processes import Demo, demo, fetch, free_ports, started, until

SPEED = 20
# The wait begins at minute 11 of the last hour and ends at minute 20: 60 s of playing.
FIRES_WITHIN_SECONDS = 110.0
RESOLVES_WITHIN_SECONDS = 60.0
ALERT = "GpuWorkloadStarving"

pytestmark = [pytest.mark.prometheus, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def prometheus_program() -> str:
    found = shutil.which("prometheus")
    if found is None:
        message = "prometheus is not installed: apt-get install --no-install-recommends prometheus"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture
def playing(prometheus_program: str, tmp_path: Path) -> Iterator[Demo]:
    with demo(tmp_path, "--sample", "small", "--play", str(SPEED)) as running:
        yield running


@pytest.fixture
def prometheus(prometheus_program: str, playing: Demo, tmp_path: Path) -> Iterator["Prometheus"]:
    rules = tmp_path / "rules.yml"
    options = ["--hold-scale", str(1 / SPEED), "--dashboard-url", playing.dashboard, "--file", str(rules)]
    subprocess.run([sys.executable, "-m", "service.cli", "rules", *options], check=True)
    (port,) = free_ports(1)
    scrape = {"job_name": "gpuledger", "static_configs": [{"targets": [playing.api.removeprefix("http://")]}]}
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [scrape],
    }
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    command = [
        prometheus_program,
        f"--config.file={file}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with started(command, tmp_path / "prometheus.txt") as process:
        running = Prometheus(process, f"http://127.0.0.1:{port}", tmp_path / "prometheus.txt")
        running.wait_until_ready()
        yield running


class Prometheus:
    """A running Prometheus."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str, output: Path) -> None:
        self.process = process
        self.url = url
        self.output = output

    def wait_until_ready(self) -> None:
        until(self._ready, self.process, self.output, seconds=30)

    def _ready(self) -> bool | None:
        try:
            return requests.get(f"{self.url}/-/ready", timeout=2).ok or None
        except requests.ConnectionError:
            return None

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or firing now."""
        return list(fetch(f"{self.url}/api/v1/alerts").json()["data"]["alerts"])

    def firing(self, **labels: str) -> dict[str, Any] | None:
        """The firing alert with these labels."""
        firing = [alert for alert in self.alerts() if alert["state"] == "firing"]
        return next((alert for alert in firing if labels.items() <= alert["labels"].items()), None)

    def highest(self, query: str) -> float:
        """The highest value of an instant query."""
        result = fetch(f"{self.url}/api/v1/query", query=query).json()["data"]["result"]
        return max(float(series["value"][1]) for series in result)


def test_a_wait_beyond_its_target_fires_and_resolves_when_the_job_is_placed(
    prometheus: Prometheus, playing: Demo
) -> None:
    labels = {"alertname": ALERT, "service_class": "interactive", "queue": "nlp", "cluster": "sample"}
    assert prometheus.firing(**labels) is None

    alert = until(
        lambda: prometheus.firing(**labels),
        prometheus.process,
        prometheus.output,
        seconds=FIRES_WITHIN_SECONDS,
    )

    assert alert["labels"]["severity"] == "warning"
    assert "value" not in alert["labels"]
    # Seen while it lasted: above the target of 300 s, and not more than the 540 s that it took.
    assert 300 < float(alert["value"]) <= 540
    annotations = alert["annotations"]
    assert "interactive in queue nlp of sample" in annotations["summary"]
    assert "the target of interactive is 5m" in annotations["description"]
    assert annotations["runbook_url"].endswith(f"{ALERT}.md")
    assert annotations["dashboard_url"] == f"{playing.dashboard}/queues?queue=nlp"

    until(
        lambda: True if prometheus.firing(**labels) is None else None,
        prometheus.process,
        prometheus.output,
        seconds=RESOLVES_WITHIN_SECONDS,
    )

    starvation = 'gpuledger_starvation_index_seconds{service_class="interactive"}'
    assert prometheus.highest(f'max_over_time({starvation[:-1]},queue="nlp"}}[3m])') > 300
    assert prometheus.highest(starvation) < 60
    # The product was read all the time: silence came from good news.
    assert prometheus.highest("absent_over_time(gpuledger_measured_timestamp_seconds[1m]) or vector(0)") == 0
    assert not [
        alert for alert in prometheus.alerts() if alert["labels"]["alertname"].startswith("Gpuledger")
    ]
    assert time.time() - prometheus.highest("gpuledger_measured_timestamp_seconds") < 30
