"""What lies in `deploy/` is what the commands write, and asks for what is exported."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest
import yaml

from alerts.operator import service_monitor
from analytics.metrics import REGISTRY

ROOT = Path(__file__).parents[2]
WRITTEN = runpy.run_path(str(ROOT / "docs/generate.py"))["deployed"]()


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_a_generated_file_is_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == WRITTEN[name], "run `make docs`"


def test_no_dashboard_is_left_of_a_page_that_has_none() -> None:
    there = {f"../deploy/grafana/{file.name}" for file in (ROOT / "deploy/grafana").iterdir()}
    assert there == {name for name in WRITTEN if "/grafana/" in name}


@pytest.mark.prometheus
def test_the_example_of_a_scrape_is_accepted_and_asks_as_the_operator_does(tmp_path: Path) -> None:
    """The file of the token and that of the rules are the site's own: their contents are not looked at."""
    page = (ROOT / "docs/alerting.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (example,) = (block for block in blocks if "scrape_configs" in block)
    (tmp_path / "prometheus.yaml").write_text(example)
    done = subprocess.run(
        ["promtool", "check", "config", "--syntax-only", str(tmp_path / "prometheus.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (scrape,) = yaml.safe_load(example)["scrape_configs"]
    (endpoint,) = yaml.safe_load(service_monitor())["spec"]["endpoints"]
    names = ("honor_labels", "metrics_path", "scrape_interval", "scrape_timeout")
    asked = [endpoint[name] for name in ("honorLabels", "path", "interval", "scrapeTimeout")]
    assert [scrape[name] for name in names] == asked
    assert scrape["honor_labels"] is True
    assert "`honor_labels: true`" in (ROOT / "deploy/README.md").read_text(encoding="utf-8")


@pytest.mark.prometheus
def test_the_scaler_asks_prometheus_for_what_is_exported_and_takes_no_answer_for_no_zero(
    tmp_path: Path,
) -> None:
    content = yaml.safe_load((ROOT / "deploy/keda.yaml").read_text(encoding="utf-8"))
    (trigger,) = content["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    (series,) = set(re.findall(r"gpuledger_\w+", query))
    metric = REGISTRY[series.removeprefix("gpuledger_")]
    assert metric.scraped
    # Where a scrape has no room for all, it is among what goes first.
    assert metric.acted_on
    selected = set(re.findall(r'(\w+)="', query))
    # Several series of one scrape are added, the same series of two pods are not.
    assert [set(names.split(", ")) for names in re.findall(r"max by \(([^)]+)\)", query)] == [
        set(metric.labels) - selected
    ] * 2
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert "fallback" in content["spec"]
    rules = {"groups": [{"name": "keda", "rules": [{"record": "a:b:c", "expr": query}]}]}
    (tmp_path / "keda.yaml").write_text(yaml.safe_dump(rules))
    done = subprocess.run(
        ["promtool", "check", "rules", str(tmp_path / "keda.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
