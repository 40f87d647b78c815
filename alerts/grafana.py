"""
Dashboards for Grafana, made from the metrics' declarations: one for each page of the product.

They show what Prometheus has; each panel leads back to the page, where the jobs behind the figure are. A
variable of each dashboard says which Prometheus that is, so that a file works as it is: imported by hand, or
provisioned from a folder, where nobody would be asked for what `__inputs` names.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from alerts.declared import Declared, declared
from alerts.exporter import PREFIX
from analytics.describe import looks_back
from domain.alert import Comparison
from domain.metric import Metric, MetricKind, Page, Unit

# Of more lines nobody sees which is which.
_MOST_LINES: Final = 20
# Labels by which a viewer chooses; each is a variable of the dashboard.
_CHOSEN: Final = ("cluster", "queue", "team", "service_class", "gpu_model")
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
# Read by Grafana 10 and later.
_SCHEMA_VERSION: Final = 39
_UNITS: Final = {Unit.SECONDS: "s", Unit.RATIO: "percentunit"}
_COLUMNS, _WIDTH, _HEIGHT = 2, 12, 8


def dashboards(registry: Mapping[str, Metric], *, dashboard_url: str) -> dict[str, str]:
    """
    The dashboards, JSON, by the name of their file.

    Args:
        registry: metrics by name; those that Prometheus sees are shown, each where its first page is.
        dashboard_url: where the product's pages are.
    """
    by_page: dict[Page, list[Metric]] = {}
    for metric in registry.values():
        if metric.exported and metric.scraped and metric.pages:
            by_page.setdefault(metric.pages[0], []).append(metric)
    alerts: dict[str, list[Declared]] = {}
    for alert in declared(registry):
        if alert.metric is not None:
            alerts.setdefault(alert.metric.name, []).append(alert)
    return {
        f"gpuledger-{page}.json": _written(page, metrics, alerts, dashboard_url.rstrip("/"))
        for page, metrics in by_page.items()
    }


def expression(metric: Metric) -> str:
    """What a panel shows of a metric, in the metric's own unit."""
    name = f"{PREFIX}{metric.series}"
    selector = ",".join(f'{label}=~"${label}"' for label in _CHOSEN if label in metric.labels)
    chosen = f"{{{selector}}}" if selector else ""
    by = ", ".join(metric.labels)
    if metric.kind is MetricKind.HISTOGRAM:
        return f"histogram_quantile(0.99, sum by (le, {by}) (increase({name}_bucket{chosen}[1h])))"
    worst = "bottomk" if metric.worst is Comparison.BELOW else "topk"
    if metric.kind is MetricKind.COUNTER:
        return f"{worst}({_MOST_LINES}, sum by ({by}) (increase({name}{chosen}[1h])))"
    # Of several replicas of the exporter one is enough.
    labels = ", ".join((*metric.labels, *metric.extra_labels))
    value = f"max by ({labels}) ({name}{chosen})"
    scale = metric.series_scale
    return f"{worst}({_MOST_LINES}, {value if scale == 1 else f'{value} / {scale:.17g}'})"


def _written(
    page: Page, metrics: list[Metric], alerts: Mapping[str, Sequence[Declared]], dashboard_url: str
) -> str:
    content = {
        "uid": f"gpuledger-{page}",
        "title": f"gpuledger: {page}",
        "tags": ["gpuledger"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "time": {"from": "now-24h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": list(_variables(metrics))},
        "links": [{"title": "gpuledger", "type": "link", "url": f"{dashboard_url}/{page}"}],
        "panels": [
            _panel(number, metric, alerts.get(metric.name, ()), f"{dashboard_url}/{page}")
            for number, metric in enumerate(metrics)
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def _variables(metrics: list[Metric]) -> Iterator[dict[str, Any]]:
    """
    The Prometheus that is asked, by default Grafana's own; then each label by which some panel is chosen.

    A label is filled from the first metric that has it.
    """
    yield {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": "default", "value": "default"},
        "refresh": 1,
    }
    for label in _CHOSEN:
        first = next((metric for metric in metrics if label in metric.labels), None)
        if first is not None:
            suffix = "_bucket" if first.kind is MetricKind.HISTOGRAM else ""
            yield {
                "name": label,
                "type": "query",
                "datasource": _DATASOURCE,
                "query": f"label_values({PREFIX}{first.series}{suffix}, {label})",
                "includeAll": True,
                "allValue": ".*",
                "multi": True,
                "current": {"text": "All", "value": "$__all"},
                "refresh": 2,
            }


def _panel(number: int, metric: Metric, alerts: Sequence[Declared], address: str) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    chosen = "&".join(f"{label}=${{__field.labels.{label}}}" for label in _CHOSEN if label in metric.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in (*metric.labels, *metric.extra_labels) if label != "le")
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": metric.title,
        "description": f"{metric.definition} ({looks_back(metric)})" + _of_alerts(alerts),
        "datasource": _DATASOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {
            "defaults": {
                "unit": _UNITS.get(metric.unit, "short"),
                "links": [{"title": "In gpuledger", "url": f"{address}?{chosen}" if chosen else address}],
            },
            "overrides": [],
        },
        "targets": [
            {"refId": "A", "datasource": _DATASOURCE, "expr": expression(metric), "legendFormat": legend}
        ],
    }


def _of_alerts(alerts: Sequence[Declared]) -> str:
    names = ", ".join(alert.rule.name for alert in alerts)
    return f" {'Alerts' if len(alerts) > 1 else 'Alert'}: {names}." if names else ""
