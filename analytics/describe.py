"""The page of metrics, made from their declarations."""

from collections.abc import Iterator, Mapping

from domain.metric import Metric, MetricKind

_HEAD = """\
# Metrics

Each is declared once, in `analytics/metrics/`; the API, the exporter, the alert rules and the pages are
made from the declarations. Series are called `gpuledger_<name>`; GPU-hours are exported in GPU-seconds,
for Prometheus wants base units. Exported figures of a window look back 24 hours, those by service class
over the window of the class's target (6 hours for interactive); both are settings. Values are as of an
instant: facts that happen later never change them. A value may be *undefined*, with a reason, or
*a lower bound*; zero never stands for unknown.
"""


def metrics_markdown(registry: Mapping[str, Metric]) -> str:
    """The page, Markdown: an overview, then a section per metric in the registry's order."""
    lines = [_HEAD, "| metric | unit | what |", "|---|---|---|"]
    lines += [
        f"| [`{name}`](#{name}) | {metric.unit} | {metric.title} |" for name, metric in registry.items()
    ]
    for metric in registry.values():
        lines += _section(metric)
    return "\n".join(lines) + "\n"


def _section(metric: Metric) -> Iterator[str]:
    yield f"\n## {metric.name}\n"
    yield f"**{metric.title}.** {metric.definition}\n"
    yield f"- Kind: {metric.kind}, in {metric.unit}; {_span(metric)}."
    if metric.kind is MetricKind.HISTOGRAM:
        yield "- Label `le`: the count up to each edge, `+Inf` for all, `sum` for the sum of the waits."
    if metric.exported:
        labels = _names((*metric.labels, *metric.extra_labels))
        yield f"- Exported as `gpuledger_{metric.series}` by: {labels}."
    else:
        yield "- Not exported: the API, the pages and the reports tell it."
    yield f"- Can be asked by: {_names(metric.dimensions)}."
    yield f"- Source: {metric.source}."
    if metric.pages:
        yield f"- Shown on: {', '.join(metric.pages)}."
    for alert in metric.alerts:
        yield f"- Alert [`{alert.name}`](runbooks/{alert.runbook}), {alert.severity}: {alert.summary}."


def _span(metric: Metric) -> str:
    if metric.windowed:
        return "over a window"
    return "since the beginning" if metric.kind is not MetricKind.GAUGE else "at an instant"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"
