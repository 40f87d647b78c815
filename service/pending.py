"""Workloads that wait for quota, in the order in which Kueue would admit them."""

from typing import Any, Final

import polars as pl

from api.answers import Listing, ListQuestion, Record
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_SECOND, format_instant
from service import workloads
from service.positions import Order
from store.embedded import Store

_TEXTS: Final = ("cluster", "queue", "uid", "kind", "namespace", "name", "team", "user")
_CLASSES: Final = ("priority_class", "service_class")
_LAST: Final = float("inf")


def listing(store: Store, question: ListQuestion, as_of_ms: int) -> Listing:
    """
    A page of the workloads that ask GPUs and wait in a queue for quota, queue by queue.

    Within a queue Kueue's order counts; whom Kueue does not tell of comes last, by ours. Positions count
    all that wait in a queue, those without GPUs too.
    """
    order = Order(store, as_of_ms)
    frame = workloads.as_they_stood(store, order.uids(), as_of_ms, listed=True)
    for dimension, values in question.filters.items():
        frame = frame.filter(pl.col(dimension).is_in(list(values)))
    rows = [
        _record(row) | place for row in frame.iter_rows(named=True) if (place := order.place(row)) is not None
    ]
    rows.sort(key=_place)
    start = (question.page - 1) * question.page_size
    return Listing(
        as_of_ms=as_of_ms,
        rows=rows[start : start + question.page_size],
        total=len(rows),
        page=question.page,
        page_size=question.page_size,
    )


def _record(row: dict[str, Any]) -> Record:
    quantity, waiting_ms = row["requested_micro_gpus"], row["waiting_ms"]
    return {
        **{name: row[name] for name in (*_TEXTS, *_CLASSES)},
        "requested_gpus": None if quantity is None else quantity / MICRO_PER_GPU,
        "submitted_at": format_instant(row["submitted_ms"]),
        "waiting_seconds": None if waiting_ms is None else waiting_ms / MS_PER_SECOND,
    }


def _place(row: Record) -> tuple[str, str, float, int]:
    ahead = _LAST if row["ahead"] is None else row["ahead"]
    return row["cluster"], row["queue"], ahead, row["ahead_by_our_order"]
