"""
Counters since ever: what was counted up to an instant is kept, and what came since is added to it.

A counter names `$since_ms` beside `$as_of_ms` in its SQL, and its rows add up: those since an instant and
those kept of the time before it are the rows of all time. See docs/adr/0054.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final

from analytics.evaluate import exported_asks, is_counter, parameters, query
from domain.metric import Ask, Metric, Row
from domain.policy import Policy
from domain.window import MS_PER_HOUR, MS_PER_SECOND
from store.counted import Counted
from store.embedded import Store

# What is learnt of the last day is learnt often; of earlier ones seldom.
_OPEN: Final = timedelta(days=1)


def keep_counted(store: Store, metrics: Collection[Metric], *, as_of_ms: int, policy: Policy) -> int:
    """Bring what is kept of exported counters up to a day ago; gives how many questions were counted."""
    open_ms = as_of_ms - round(_OPEN.total_seconds()) * MS_PER_SECOND
    until_ms = open_ms // MS_PER_HOUR * MS_PER_HOUR

    def counted() -> Iterator[tuple[str, Counted]]:
        for metric, ask, question in questions(metrics, until_ms, policy):
            kept = store.counted(question)
            if kept is None or kept.until_ms < until_ms:
                rows = rows_of(store, metric, ask, question)
                yield question, Counted(until_ms, _added(rows, metric.adds))

    return store.keep_counted(counted)


def questions(
    metrics: Collection[Metric], as_of_ms: int, policy: Policy
) -> Iterator[tuple[Metric, Ask, str]]:
    """The exported questions of counters, with the text by which they are read when all are measured."""
    exported = sorted((each for each in metrics if each.exported and is_counter(each)), key=_sql)
    for _, group in groupby(exported, key=_sql):
        alike = list(group)
        labels = {label for metric in alike for label in metric.labels}
        for metric in alike:
            for ask in exported_asks(metric, as_of_ms, policy):
                yield metric, ask, query(metric, ask, beside=labels)


def rows_of(store: Store, metric: Metric, ask: Ask, question: str) -> list[Row]:
    """The rows of a counter: what is kept of the question, if that is no later, and what came since."""
    kept = store.counted(question)
    if kept is None or kept.until_ms > ask.as_of_ms:
        return list(store.rows(question, parameters(metric, ask)))
    since = parameters(metric, ask) | {"since_ms": kept.until_ms}
    return [*kept.rows, *store.rows(question, since)]


def _added(rows: Sequence[Row], adds: Collection[str]) -> list[Row]:
    """Rows that differ only in what adds up as one."""
    sums: dict[tuple[tuple[str, object], ...], Counter[str]] = {}
    for row in rows:
        rest = tuple((name, value) for name, value in row.items() if name not in adds)
        sums.setdefault(rest, Counter()).update({name: int(str(row[name])) for name in adds})
    return [dict(rest) | {name: amounts[name] for name in adds} for rest, amounts in sums.items()]


def _sql(metric: Metric) -> str:
    return metric.sql
