"""The dashboards for Grafana: each expression is one to Prometheus, and asks only for what is exported."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.grafana import dashboards, expression
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


def panel_of(name: str) -> dict[str, Any]:
    panel: dict[str, Any]
    (panel,) = [one for one in PANELS if one["title"] == REGISTRY[name].title]
    return panel


def shown(name: str) -> str:
    return str(panel_of(name)["targets"][0]["expr"])


def test_every_question_goes_to_the_prometheus_that_the_dashboard_was_told() -> None:
    """No placeholder that only an import by hand fills: a provisioned file is taken as it is."""
    for dashboard in DASHBOARDS.values():
        first, *labels = dashboard["templating"]["list"]
        assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
        # Until somebody chooses: Grafana's own Prometheus, and everything.
        assert first["current"]["value"] == "default"
        assert {(one["includeAll"], one["allValue"], one["current"]["value"]) for one in labels} == {
            (True, ".*", "$__all")
        }
        asked = [*labels, *dashboard["panels"], *(one["targets"][0] for one in dashboard["panels"])]
        assert {one["datasource"]["uid"] for one in asked} == {"${datasource}"}
        assert "__inputs" not in dashboard


def test_a_panel_shows_the_worst_in_the_metrics_own_unit_and_leads_to_the_page() -> None:
    # Series are in base units: an hour is 3,600 s, a thousand GPU-hours are 3,600,000 GPU-seconds.
    assert shown("fairness_debt_gpu_hours").endswith(") / 3600)")
    assert shown("restarts_per_1000_gpu_hours").endswith(f" / {1 / 3_600_000:.17g})")
    assert "/" not in shown("held_gpus")
    # Where little is bad the lowest are the worst: as declared, or as its alert says.
    for low in ("goodput_ratio", "gpu_activity_ratio", "gpu_sample_coverage_ratio", "queue_cap_seconds"):
        assert shown(low).startswith("bottomk(20, max by "), low
    for high in ("wastage_ratio", "starvation_index_seconds", "preemptions_total"):
        assert shown(high).startswith("topk(20, "), high
    # Of several replicas one; what differs in a label of any kind is another line.
    by = "max by (cluster, queue, service_class, quantile, estimator)"
    assert shown("queue_wait_seconds").startswith(f"topk(20, {by} (gpuledger_queue_wait_seconds{{")
    units = {
        name: panel_of(name)["fieldConfig"]["defaults"]["unit"]
        for name in ("goodput_ratio", "starvation_index_seconds", "held_gpus")
    }
    assert units == {
        "goodput_ratio": "percentunit", "starvation_index_seconds": "s", "held_gpus": "short",
    }  # fmt: skip
    (link,) = panel_of("starvation_index_seconds")["fieldConfig"]["defaults"]["links"]
    assert link["url"] == "https://gpu.example/home?" + "&".join(
        f"{label}=${{__field.labels.{label}}}" for label in ("cluster", "queue", "service_class")
    )


def test_of_what_only_counts_up_a_panel_shows_the_last_hour() -> None:
    assert expression(REGISTRY["first_wait_seconds"]) == (
        "histogram_quantile(0.99, sum by (le, cluster, service_class) (increase("
        'gpuledger_first_wait_seconds_bucket{cluster=~"$cluster",service_class=~"$service_class"}[1h])))'
    )
    assert expression(REGISTRY["preemptions_total"]) == (
        "topk(20, sum by (cluster, victim_class, preemptor_class, mechanism) (increase("
        'gpuledger_preemptions_total{cluster=~"$cluster"}[1h])))'
    )


def test_a_panel_names_every_alert_of_its_metric() -> None:
    said = panel_of("budget_burned_ratio")["description"]
    assert said.endswith(" Alerts: GpuHourBudgetNearlyBurned, GpuHourBudgetBurned.")
    assert panel_of("fragmented_gpus")["description"].endswith(" Alert: GpuFragmented.")


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
