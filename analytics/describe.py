"""The page of metrics, made from their declarations."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from domain.metric import Metric, MetricKind
from domain.policy import Policy

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
    yield f"- Kind: {metric.kind}, in {metric.unit}; {looks_back(metric)}."
    if metric.kind is MetricKind.HISTOGRAM:
        yield "- Label `le`: the count up to each edge, `+Inf` for all, `sum` for the sum of the waits."
    labels = _names((*metric.labels, *metric.extra_labels))
    if metric.exported and metric.scraped:
        only = "; ".join(f"{name} {', '.join(values)}" for name, values in metric.scraped_where.items())
        yield f"- Exported as `gpuledger_{metric.series}` by: {labels}{f'; of these {only}' if only else ''}."
        if metric.every is not None:
            yield f"- Measured anew every {_hours(metric.every)} only, and exported as of then in between."
    elif metric.exported:
        yield f"- Measured and kept by: {labels}; not exported, to keep the number of series small."
    else:
        yield "- Not exported: the API, the pages and the reports tell it."
    yield f"- Can be asked by: {_names(metric.dimensions)}."
    for label, values in metric.unless_asked.items():
        yield f"- Unless the question names `{label}`: {_names(values)} only."
    yield f"- Source: {metric.source}."
    if metric.pages:
        yield f"- Shown on: {', '.join(metric.pages)}."
    for alert in metric.alerts:
        yield f"- Alert [`{alert.name}`](runbooks/{alert.name}.md), {alert.severity}: {alert.summary}."


def looks_back(metric: Metric) -> str:
    """
    Over which time a metric's figures are, in words; windows are those of the settings' defaults.

    What is exported by service class has the window of the class's target, and an answer the one that is
    asked for: so the two may differ, and say so.
    """
    if not metric.windowed:
        return "since the beginning" if metric.kind is not MetricKind.GAUGE else "at an instant"
    policy = Policy()
    asked = f"over the window asked for, by default {_hours(metric.window or policy.window)}"
    if metric.window is not None or "service_class" not in metric.labels or not metric.exported:
        return asked
    windows = {name: target.window for name, target in policy.targets.items()}
    others = ", ".join(
        f"{name} over {_hours(window)}" for name, window in windows.items() if window != policy.window
    )
    return f"{asked}; exported over {_hours(policy.window)}, {others}"


def _hours(window: timedelta) -> str:
    return f"{window // timedelta(hours=1)} h"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"
