"""Debian's Prometheus with our rules, on a sample that is played: everything about alerts as much faster."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.alertmanagers import program
from tests.e2e.processes import Addresses, answers, fetch, free_ports, started, until


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running one; `output` is where its words go."""

    process: "subprocess.Popen[bytes]"
    url: str
    output: Path

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


@contextmanager
def prometheus(
    folder: Path, scraped: Addresses, alertmanager_url: str, *, speed: float
) -> Iterator[Prometheus]:
    """
    One that scrapes a demo, which need not be up yet, and tells an Alertmanager.

    Args:
        speed: lengths of rules are so much shorter; limits stay.
    """
    rules, file = folder / "rules.yml", folder / "prometheus.yml"
    options = ["--hold-scale", str(1 / speed), "--dashboard-url", scraped.dashboard, "--file", str(rules)]
    subprocess.run([sys.executable, "-m", "service.cli", "rules", *options], check=True)
    (port,) = free_ports(1)
    targets = [{"targets": [scraped.api.removeprefix("http://")]}]
    scrape = {"job_name": "gpuledger", "honor_labels": True, "static_configs": targets}
    target = {"static_configs": [{"targets": [alertmanager_url.removeprefix("http://")]}]}
    content = {
        # A scrape may take as long as its interval. One that takes longer counts as a ledger that is gone,
        # and keeps everybody quiet: on a loaded machine a second or two are not enough.
        "global": {"scrape_interval": "4s", "scrape_timeout": "4s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [scrape],
        "alerting": {"alertmanagers": [target]},
    }
    file.write_text(yaml.safe_dump(content))
    command = [
        program("prometheus", "prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    output, url = folder / "prometheus.txt", f"http://127.0.0.1:{port}"
    with started(command, output) as process:
        until(lambda: answers(f"{url}/-/ready"), process, output, seconds=60)
        yield Prometheus(process, url, output)
