"""The dashboards for Grafana: each expression is one to Prometheus, and asks only for what is exported."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.grafana import dashboards
from analytics.metrics import REGISTRY
from service.cli import run

FILES = dashboards(REGISTRY, dashboard_url="https://gpu.example/")
DASHBOARDS: dict[str, dict[str, Any]] = {name: json.loads(text) for name, text in FILES.items()}
PANELS = [panel for each in DASHBOARDS.values() for panel in each["panels"]]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
SCRAPED = {
    f"gpuledger_{metric.series}": metric for metric in REGISTRY.values() if metric.exported and metric.scraped
}


@pytest.mark.prometheus
def test_every_expression_is_one_to_prometheus(tmp_path: Path) -> None:
    records = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(EXPRESSIONS)]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", "panels.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(EXPRESSIONS)} rules found" in done.stdout


def test_only_what_is_exported_is_asked_and_all_of_it_that_has_a_page() -> None:
    asked = {
        name.removesuffix("_bucket") for text in EXPRESSIONS for name in re.findall(r"gpuledger_\w+", text)
    }
    assert asked == {name for name, metric in SCRAPED.items() if metric.pages}


def test_labels_and_variables_of_a_panel_exist() -> None:
    for dashboard in DASHBOARDS.values():
        variables = {each["name"] for each in dashboard["templating"]["list"]}
        for panel in dashboard["panels"]:
            (target,) = panel["targets"]
            assert set(re.findall(r'"\$(\w+)"', target["expr"])) <= variables
            (name,) = {each.removesuffix("_bucket") for each in re.findall(r"gpuledger_\w+", target["expr"])}
            metric = SCRAPED[name]
            labels = {*metric.labels, *metric.extra_labels}
            assert set(re.findall(r"(\w+)=~", target["expr"])) <= labels
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels
            assert panel["title"] == metric.title
            assert metric.definition in panel["description"]


def test_dashboards_and_panels_have_identities_that_stay() -> None:
    for name, dashboard in DASHBOARDS.items():
        assert name == f"{dashboard['uid']}.json"
        assert [panel["id"] for panel in dashboard["panels"]] == [*range(1, len(dashboard["panels"]) + 1)]
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]}
        assert len(places) == len(dashboard["panels"])
    assert all(
        panel["fieldConfig"]["defaults"]["links"][0]["url"].startswith("https://gpu.example/")
        for panel in PANELS
    )


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["grafana", "--folder", str(tmp_path / "new"), "--dashboard-url", "https://gpu.example"]
    assert run(asked) == 0
    assert {file.name: file.read_text() for file in (tmp_path / "new").iterdir()} == FILES
    assert len(capsys.readouterr().out.splitlines()) == len(FILES)
    (tmp_path / "file").write_text("")
    assert run(["grafana", "--folder", str(tmp_path / "file")]) == 2
    assert "--folder" in capsys.readouterr().err
