"""Figures of the pages about capacity and policy, in the manner of `dashboard.shared.charts`."""

from collections.abc import Mapping

import plotly.graph_objects as go

from dashboard.shared import format as text
from dashboard.shared import node_grid
from dashboard.shared.charts import ACCENT, Figure, Labelled

# Of each day's capacity; what was held holds what was productive.
_PART_COLOURS = {"held": "#7FB2D9", "productive": "#0072B2"}
_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "title": None}
_MARGIN = {"l": 10, "r": 10, "t": 10, "b": 40}
_ROW_PIXELS = 30
# Models are told apart by pattern: colours have other meanings.
_PATTERNS = ("", "/", ".", "x", "-", "+")


def ladder(left: Mapping[tuple[str, str], Labelled]) -> Figure:
    """
    What pods of each size leave over of what is free: bars by size, a group per model.

    Args:
        left: ratio by model and size; sizes are numbers of devices, perhaps with their kind.
    """
    sizes = sorted(
        {size for _, size in left}, key=lambda size: (size.partition(" ")[2], int(size.split()[0]))
    )
    figure = go.Figure()
    for place, model in enumerate(sorted({model for model, _ in left})):
        figure.add_bar(
            x=sizes,
            y=[left[model, size].length if (model, size) in left else None for size in sizes],
            customdata=[left[model, size].shown if (model, size) in left else "" for size in sizes],
            name=model or "(not known)",
            marker={"color": ACCENT, "pattern": {"shape": _PATTERNS[place % len(_PATTERNS)]}},
            hovertemplate=f"{model}, size %{{x}}: %{{customdata}} of what is free<extra></extra>",
        )
    figure.update_layout(
        barmode="group",
        bargap=0.25,
        height=280,
        margin=_MARGIN,
        xaxis={"title": "GPUs that one pod asks", "type": "category"},
        yaxis={"title": "left over, of what is free", "tickformat": ".0%", "range": [0, 1.02]},
        showlegend=True,
        legend=_LEGEND,
    )
    return figure


def parts_by_day(parts: Mapping[tuple[str, str], Labelled]) -> Figure:
    """
    What was held and productive of each day's capacity, side by side.

    Args:
        parts: ratio by day, such as 2026-10-25, and `held` or `productive`.
    """
    days = sorted({day for day, _ in parts})
    figure = go.Figure()
    for part, colour in _PART_COLOURS.items():
        figure.add_bar(
            x=days,
            y=[parts[day, part].length if (day, part) in parts else None for day in days],
            customdata=[parts[day, part].shown if (day, part) in parts else "" for day in days],
            name=part,
            marker_color=colour,
            hovertemplate=f"%{{x}}: %{{customdata}} {part}<extra></extra>",
        )
    figure.update_layout(
        barmode="group",
        height=280,
        margin=_MARGIN,
        # A day is a name here: as an instant it would be moved to the browser's zone.
        xaxis={"type": "category", "title": None},
        yaxis={"title": "of the capacity", "tickformat": ".0%", "rangemode": "tozero"},
        showlegend=True,
        legend=_LEGEND,
    )
    return figure


def findings(counted: Mapping[tuple[str, str], float]) -> Figure:
    """Workloads that break each rule: one bar per rule and team, by rule; small teams have one together."""
    rules = sorted({rule for _, rule in counted}, reverse=True)
    amounts: dict[str, float] = {}
    for (team, _), number in counted.items():
        amounts[team] = amounts.get(team, 0.0) + number
    of_team = node_grid.colours(amounts)
    rest = node_grid.others(amounts, of_team)
    summed: dict[tuple[str, str], float] = {}
    for (team, rule), number in counted.items():
        key = (team if team in of_team else rest), rule
        summed[key] = summed.get(key, 0.0) + number
    figure = go.Figure()
    for team, colour in (of_team | ({rest: node_grid.OTHER_COLOUR} if rest else {})).items():
        figure.add_bar(
            x=[summed.get((team, rule), 0.0) for rule in rules],
            y=[text.words(rule) for rule in rules],
            name=team,
            orientation="h",
            marker={"color": colour},
            hovertemplate=f"%{{y}}, {team}: %{{x:,}} workloads<extra></extra>",
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=110 + _ROW_PIXELS * len(rules),
        margin=_MARGIN,
        xaxis={"title": "workloads", "rangemode": "tozero", "tickformat": ",d"},
        yaxis={"title": None},
        showlegend=True,
        legend=_LEGEND,
    )
    return figure
