"""What is waited for: hours by reason, of all queues together and of each."""

from collections.abc import Iterable, Mapping
from typing import Final

import streamlit as st

from dashboard.shared import data, filters, frame, tables
from dashboard.shared import format as text
from dashboard.shared.data import MetricInfo
from dashboard.shared.tables import Cell, Column

METRIC: Final = "wait_reason_hours"
_NAMED: Final = 3
_BY: Final = ("queue", "reason")


def show(registry: dict[str, MetricInfo], asked: Mapping[str, str]) -> None:
    """The section of a page; nothing where nobody waited, or the API does not tell."""
    if METRIC not in registry:
        return
    answer = data.metric(METRIC, by=_BY, asked=asked)
    hours = {(row.labels["queue"], row.labels["reason"]): row.value for row in answer.by(*_BY) if row.value}
    if not hours:
        return
    window = filters.window_name(answer.window)
    st.subheader(f"What is waited for, {window}", anchor=False, help=frame.help_of(registry, METRIC))
    st.caption(f"Of {sum(hours.values()):,.1f} hours waited: {most(hours)}.")
    queues = sorted(
        {queue for queue, _ in hours}, key=lambda queue: (-_total(hours, queue), text.natural(queue))
    )
    columns = (
        Column(key="queue", title="Queue"),
        Column(key="hours", title="Hours waited", number=True),
        Column(key="reasons", title="For"),
    )
    rows: list[dict[str, Cell | str]] = [
        {
            "queue": queue or text.NO_QUEUE,
            "hours": f"{_total(hours, queue):,.1f}",
            "reasons": most({key: value for key, value in hours.items() if key[0] == queue}),
        }
        for queue in queues
    ]
    tables.show(columns, rows, caption="what is waited for, by queue")


def most(hours: Mapping[tuple[str, str], float]) -> str:
    """
    The reasons with most hours, and what is left.

    >>> most({("a", "QUOTA"): 2.0, ("b", "QUOTA"): 1.0, ("a", "GANG"): 0.5})
    '3.0 QUOTA, 0.5 GANG'
    """
    summed: dict[str, float] = {}
    for (_, reason), amount in hours.items():
        summed[reason] = summed.get(reason, 0.0) + amount
    ordered = sorted(summed.items(), key=lambda one: (-one[1], one[0]))
    rest = _sum(amount for _, amount in ordered[_NAMED:])
    named = [f"{amount:,.1f} {reason}" for reason, amount in ordered[:_NAMED]]
    return ", ".join([*named, f"{rest:,.1f} for other reasons"] if rest else named)


def _total(hours: Mapping[tuple[str, str], float], queue: str) -> float:
    return _sum(amount for (of, _), amount in hours.items() if of == queue)


def _sum(amounts: Iterable[float]) -> float:
    return sum(amounts, 0.0)
