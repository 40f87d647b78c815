"""Rows of metrics as they are read from the store: summed and narrowed to what is asked, and each once."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias, TypeVar

from analytics.evaluate import Rows, Shared, is_counter, parameters, query
from domain.metric import Ask, Metric
from service.counters import rows_of
from store.embedded import Store

_Answer = TypeVar("_Answer")

# Gives the answer of a query with its parameters.
Read: TypeAlias = Callable[[str, Mapping[str, int]], _Answer]


@dataclass(frozen=True, slots=True)
class Reader:
    """
    Reads rows for metrics that are measured together.

    What was asked is kept as long as the reader lives: let it go with the last of its metrics.
    """

    rows: Read[Rows]
    frames: Read[Rows]
    # Labels of all its metrics, so that one query may answer them all.
    labels: Collection[str] = field(default=())
    # Where counters are looked up that were counted before; without it they count anew.
    store: Store | None = None

    @classmethod
    def of(cls, store: Store, metrics: Collection[Metric] = ()) -> Self:
        """The reader of these metrics."""
        labels = {label for metric in metrics for label in metric.labels}
        return cls(
            read_once(lambda sql, asked: Shared(store.rows(sql, asked))),
            read_once(store.frame),
            labels,
            store,
        )

    def read(self, metric: Metric, ask: Ask) -> Rows:
        """The rows that the metric's question needs."""
        question = query(metric, ask, beside=self.labels)
        if self.store is not None and is_counter(metric):
            return rows_of(self.store, metric, ask, question)
        read = self.frames if metric.compute_frame is not None else self.rows
        return read(question, parameters(metric, ask))


def read_once(read: Read[_Answer]) -> Read[_Answer]:
    """The same reader, which asks each question once and keeps the rows."""
    kept: dict[tuple[str, tuple[tuple[str, int], ...]], _Answer] = {}

    def remembered(sql: str, parameters: Mapping[str, int]) -> _Answer:
        question = (sql, tuple(sorted(parameters.items())))
        if question not in kept:
            kept[question] = read(sql, parameters)
        return kept[question]

    return remembered
