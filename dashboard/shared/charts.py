"""
Every figure that a page draws. Plotly has no types: this module is its only door.

The colours are those of Okabe and Ito, and IBM's set for classes, safe for colour-blind eyes.
Each has one meaning on every page, and a text beside it says the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any, TypeAlias

import plotly.express as px
import plotly.graph_objects as go
import polars as pl

from dashboard.shared import format as text
from dashboard.shared.longest import longest

Figure: TypeAlias = Any

ACCENT = "#0072B2"
PAST_TARGET = "#D55E00"
STATE_COLOURS = {
    "held": "#9AA0A6",
    "queued": "#E69F00",
    "checking": "#F0E442",
    "placing": "#D55E00",
    "starting": "#56B4E9",
    "running": "#009E73",
    "backoff": "#CC79A7",
    "draining": "#0072B2",
    "ended": "#4D5156",
}
STATE_MEANINGS = {
    "held": "kept back by its owner",
    "queued": "waits for quota",
    "checking": "quota reserved, admission checks pending",
    "placing": "admitted, not all pods bound",
    "starting": "bound, containers not yet running",
    "running": "runs",
    "backoff": "between the end of an attempt and its re-queueing",
    "draining": "thrown out or deleted, pods still end",
    "ended": "over",
}
CLASS_COLOURS = {
    "interactive": "#785EF0",
    "batch": "#DC267F",
    "best_effort": "#648FFF",
    "unclassified": "#8A8F98",
}
# What became of GPU-time in a month's statement; a share is what a team bears of the common cost.
KIND_COLOURS = {
    "held": "#0072B2",
    "idle_share": "#7FB2D9",
    "idle": "#C9CED4",
    "unavailable_share": "#8D7B68",
    "unavailable": "#6B7076",
}
# What held GPU-time was for: useful green, what others did blue, what the holder did orange to purple.
CAUSE_COLOURS = {
    "useful": "#009E73",
    "startup": "#56B4E9",
    "gang_hold": "#7FB2D9",
    "draining": "#0072B2",
    "infra_lost": "#3B5B92",
    "preempted_lost": "#648FFF",
    "unknown": "#C9CED4",
    "startup_over_limit": "#F0E442",
    "backoff": "#CC79A7",
    "crash_lost": "#D55E00",
    "idle": "#E69F00",
    "resident_idle": "#B8860B",
}
CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"]}

_SHORTEST_SECONDS = 1.0
_WAIT_TICKS = (1, 10, 60, 300, 900, 3600, 4 * 3600, 86_400, 3 * 86_400, 14 * 86_400)
_QUANTILE_SYMBOLS = {"0.5": "circle-open", "0.9": "diamond", "0.99": "circle"}
_LINE_SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")
_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "title": None}
_ROW_PIXELS = 30
_MARGIN = {"l": 10, "r": 10, "t": 10, "b": 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of time on a line of the timeline."""

    line: str
    state: str
    start_at: datetime
    end_at: datetime
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitDot:
    """A wait of one queue and class; quantile is the label of the metric."""

    line: str
    quantile: str
    service_class: str
    seconds: float
    lower_bound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The length of a bar, and its text with what limits it, such as `≥`."""

    length: float
    shown: str


_NO_BAR = Labelled(length=0.0, shown="0")


def naive_utc(at: datetime) -> datetime:
    """The instant as Plotly wants it: UTC without a zone, or it would follow the browser's."""
    return at.astimezone(UTC).replace(tzinfo=None)


def timeline(bars: Sequence[Bar]) -> Figure:
    """A Gantt chart of spans and pods: one colour per state, the lines in the order given."""
    lines = list(dict.fromkeys(bar.line for bar in bars))
    states = [state for state in STATE_COLOURS if any(bar.state == state for bar in bars)]
    frame = pl.DataFrame(
        {
            "line": [bar.line for bar in bars],
            "state": [bar.state for bar in bars],
            "start": [naive_utc(bar.start_at) for bar in bars],
            "end": [naive_utc(bar.end_at) for bar in bars],
            "from": [text.instant(bar.start_at) for bar in bars],
            "to": [text.instant(bar.end_at) for bar in bars],
            "lasted": [text.duration((bar.end_at - bar.start_at) / timedelta(seconds=1)) for bar in bars],
            "note": [bar.note or STATE_MEANINGS.get(bar.state, "") for bar in bars],
        }
    )
    figure = px.timeline(
        frame,
        x_start="start",
        x_end="end",
        y="line",
        color="state",
        color_discrete_map=STATE_COLOURS,
        category_orders={"line": lines, "state": states},
        custom_data=["state", "from", "to", "lasted", "note"],
    )
    figure.update_traces(
        hovertemplate=(
            "<b>%{customdata[0]}</b> for %{customdata[3]}<br>%{customdata[1]}<br>"
            "to %{customdata[2]}<br>%{customdata[4]}<extra></extra>"
        )
    )
    figure.update_layout(
        height=110 + _ROW_PIXELS * len(lines),
        margin=_MARGIN,
        xaxis_title="time, UTC",
        yaxis_title=None,
        bargap=0.25,
        legend=_LEGEND,
    )
    return figure


def depth_bars(depth: Mapping[tuple[str, str], float], unit: str) -> Figure:
    """Waiting workloads, or their GPUs: one bar per queue, of many the longest, its classes stacked."""
    depth = longest(depth, float)
    queues = _from_below({queue for queue, _ in depth})
    figure = go.Figure()
    for service_class in text.CLASSES:
        values = [depth.get((queue, service_class), 0.0) for queue in queues]
        if any(values):
            figure.add_bar(
                x=values,
                y=queues,
                name=text.class_name(service_class),
                orientation="h",
                marker_color=CLASS_COLOURS[service_class],
                text=[text.gpus(value) if value else "" for value in values],
                # Turned to fit a short bar, a number reads badly.
                textangle=0,
                hovertemplate=f"%{{y}}, {text.class_name(service_class)}: %{{x}} {unit}<extra></extra>",
            )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=110 + _ROW_PIXELS * len(queues),
        margin=_MARGIN,
        xaxis={
            "title": unit,
            "rangemode": "tozero",
            "tickformat": ",d",
            "dtick": _unit_ticks(depth.values()),
        },
        showlegend=True,
        legend={**_LEGEND, "traceorder": "normal"},
    )
    return figure


def cause_bars(hours: Mapping[tuple[str, str], Labelled]) -> Figure:
    """
    GPU-hours held by cause: one bar per line, of many the longest.

    Its causes are stacked in the order of `CAUSE_COLOURS`.

    Args:
        hours: by line, for example a team, and cause.
    """
    hours = longest(hours, lambda bar: bar.length)
    lines = _from_below({line for line, _ in hours})
    figure = go.Figure()
    for cause, colour in CAUSE_COLOURS.items():
        bars = [hours.get((line, cause), _NO_BAR) for line in lines]
        if any(bar.length for bar in bars):
            figure.add_bar(
                x=[bar.length for bar in bars],
                y=lines,
                name=text.words(cause),
                orientation="h",
                marker_color=colour,
                customdata=[bar.shown for bar in bars],
                hovertemplate=f"%{{y}}, {text.words(cause)}: %{{customdata}} GPU-hours<extra></extra>",
            )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=150 + _ROW_PIXELS * len(lines),
        margin=_MARGIN,
        xaxis={"title": "GPU-hours held", "rangemode": "tozero"},
        yaxis={"type": "category"},
        showlegend=True,
        legend={**_LEGEND, "traceorder": "normal"},
    )
    return figure


def day_bars(hours: Mapping[tuple[str, str], float], unit: str) -> Figure:
    """
    One bar per day, its parts stacked in the order of `KIND_COLOURS`.

    Args:
        hours: by day, such as 2026-10-25, and kind.
    """
    days = sorted({day for day, _ in hours})
    figure = go.Figure()
    for kind, colour in KIND_COLOURS.items():
        values = [hours.get((day, kind), 0.0) for day in days]
        if any(values):
            figure.add_bar(
                x=days,
                y=values,
                name=text.words(kind),
                marker_color=colour,
                hovertemplate=f"%{{x}}, {text.words(kind)}: %{{y:,.1f}} {unit}<extra></extra>",
            )
    figure.update_layout(
        barmode="stack",
        bargap=0.2,
        height=320,
        margin=_MARGIN,
        # A day is a name here: as an instant it would be moved to the browser's zone.
        xaxis={"type": "category", "title": None},
        yaxis={"title": unit, "rangemode": "tozero"},
        showlegend=True,
        legend={**_LEGEND, "traceorder": "normal"},
    )
    return figure


def _from_below(lines: Iterable[str]) -> list[str]:
    """In the order in which an axis takes them, so that the first by name is the uppermost."""
    return sorted(lines, key=text.natural, reverse=True)


def _unit_ticks(values: Iterable[float]) -> int | None:
    # Short axes would otherwise repeat whole numbers; None leaves longer ones to Plotly.
    return 1 if max(values, default=0) <= 10 else None


def _wait_axis(longest: float) -> dict[str, Any]:
    ticks = [tick for tick in _WAIT_TICKS if tick <= longest * 4] or [1, 10]
    return {
        "type": "log",
        "title": "wait (logarithmic)",
        "tickvals": ticks,
        "ticktext": [
            "≤ 1 s" if tick == 1 else text.target(tick) if tick < 2 * 86_400 else text.duration(tick)
            for tick in ticks
        ],
    }


def _add_dots(figure: Figure, dots: Sequence[WaitDot], *, name: str, symbol: str) -> None:
    colours = [CLASS_COLOURS.get(dot.service_class, ACCENT) for dot in dots]
    figure.add_scatter(
        x=[max(_SHORTEST_SECONDS, dot.seconds) for dot in dots],
        y=[dot.line for dot in dots],
        mode="markers",
        name=name,
        marker={"size": 13, "symbol": symbol, "color": colours, "line": {"width": 2, "color": colours}},
        customdata=[
            f"p{float(dot.quantile) * 100:g}: "
            + text.bounded(dot.seconds, "seconds", lower_bound=dot.lower_bound)
            for dot in dots
        ],
        hovertemplate="%{y}<br>%{customdata}<extra></extra>",
    )


def wait_dots(dots: Sequence[WaitDot], targets: Mapping[str, float]) -> Figure:
    """
    Waits per line on a logarithmic axis: p50, p90 and p99, and the class's target as a bar.

    The lines come in the order of their first dot. A lower bound is drawn as a triangle that points to where
    the true value lies. Waits below a second sit at the axis' left end.
    """
    lines = list(dict.fromkeys(dot.line for dot in dots))[::-1]
    figure = go.Figure()
    for quantile, symbol in _QUANTILE_SYMBOLS.items():
        exact = [dot for dot in dots if dot.quantile == quantile and not dot.lower_bound]
        _add_dots(figure, exact, name=f"p{float(quantile) * 100:g}", symbol=symbol)
    bounds = [dot for dot in dots if dot.lower_bound]
    if bounds:
        _add_dots(figure, bounds, name="at least (lower bound)", symbol="triangle-right")
    promised = {dot.line: targets[dot.service_class] for dot in dots if dot.service_class in targets}
    figure.add_scatter(
        x=list(promised.values()),
        y=list(promised),
        mode="markers",
        name="target",
        marker={"symbol": "line-ns", "size": 20, "line": {"width": 3, "color": "#7F7F7F"}},
        customdata=[text.target(seconds) for seconds in promised.values()],
        hovertemplate="%{y}<br>target: %{customdata}<extra></extra>",
    )
    longest = max([dot.seconds for dot in dots] + list(promised.values()) + [1.0])
    figure.update_layout(
        height=120 + _ROW_PIXELS * len(lines),
        margin=_MARGIN,
        xaxis=_wait_axis(longest),
        yaxis={"categoryorder": "array", "categoryarray": lines},
        legend=_LEGEND,
    )
    return figure


def debt_lines(debts: Mapping[str, Sequence[tuple[datetime, float]]]) -> Figure:
    """Fairness debts over time, GPU-hours: one line per name; above zero the cluster owes."""
    figure = go.Figure()
    for (name, points), symbol in zip(debts.items(), cycle(_LINE_SYMBOLS), strict=False):
        figure.add_scatter(
            x=[naive_utc(at) for at, _ in points],
            y=[debt for _, debt in points],
            name=name,
            mode="lines+markers",
            marker={"symbol": symbol, "size": 6},
            hovertemplate=f"{name}<br>%{{x}} UTC: %{{y:,.1f}} GPU-hours<extra></extra>",
        )
    figure.add_hline(y=0, line_width=1, line_color="#7F7F7F")
    figure.update_layout(
        height=340,
        margin=_MARGIN,
        xaxis_title="time, UTC",
        yaxis_title="GPU-hours owed by the cluster",
        legend=_LEGEND,
    )
    return figure
