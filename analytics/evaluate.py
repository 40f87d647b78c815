"""A metric's rows become samples: filters, grouping, sums. The caller reads the rows."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar, cast

import polars as pl

from analytics.frames import TAKEN, one_by_one, passing
from analytics.targets import target
from domain import calendar
from domain.errors import DataError, UsageError
from domain.metric import Ask, Compute, Metric, Row, Sample, Takes, Unit
from domain.policy import Policy
from domain.quantity import MICRO_PER_GPU
from domain.window import Window
from domain.workload import ServiceClass

NOTHING_OBSERVED = "nothing of this kind was observed"
# The column of a row with the labels that it is shown under, where they are not its own.
SHOWN_AS = "shown as"

_Made = TypeVar("_Made")

# A frame is for metrics that compute from one.
Rows: TypeAlias = Sequence[Row] | pl.DataFrame


class Shared(list[Row]):
    """Rows of which several metrics are made: what they all need of them is made once, and never changed."""

    __slots__ = ("made",)

    def __init__(self, rows: Iterable[Row]) -> None:
        super().__init__(rows)
        self.made: dict[object, Any] = {}


def once(rows: Sequence[Row], make: Callable[..., _Made], *more: Hashable) -> _Made:
    """What is made of rows, and of whatever else; of shared rows it is made the first time only."""
    if not isinstance(rows, Shared):
        return make(rows, *more)
    if (make, more) not in rows.made:
        rows.made[make, more] = make(rows, *more)
    return cast("_Made", rows.made[make, more])


def evaluate(metric: Metric, rows: Rows, ask: Ask) -> list[Sample]:
    """
    The metric's samples, ordered by label; one undefined sample where there is nothing to tell.

    Args:
        metric: what is asked.
        rows: what `query(metric, ask)`, or all of `metric.sql`, gave with `parameters(metric, ask)`.
        ask: `by` is any subset of the metric's dimensions.

    Raises:
        UsageError: `by` or a filter names something that is not a dimension of the metric.
    """
    check(metric, ask)
    ask = completed(metric, ask)
    if metric.compute_frame is not None:
        samples = metric.compute_frame(passing(framed(rows), ask.filters), ask)
    else:
        kept = listed(rows)
        if not metric.filters_itself:
            for name, wanted in ask.filters.items():
                kept = once(kept, _passing, name, tuple(wanted))
        samples = (metric.compute or (gpu_sums if metric.unit is Unit.GPUS else sums))(kept, ask)
    return sorted(samples, key=lambda sample: tuple(sample.labels.values()))


def check(metric: Metric, ask: Ask) -> None:
    """
    Refuse a question that the metric cannot answer.

    Raises:
        UsageError: names the dimensions that the metric has.
    """
    for what, asked in (("by", ask.by), ("filter", tuple(ask.filters))):
        strangers = [name for name in asked if name not in metric.dimensions]
        if strangers:
            message = (
                f"metric {metric.name}, {what} {', '.join(strangers)}: expected one of "
                f"{', '.join(metric.dimensions) or 'none: it has no dimension'}"
            )
            raise UsageError(message)


def completed(metric: Metric, ask: Ask) -> Ask:
    """The question with the filters that the metric sets on dimensions that it does not name."""
    named = {*ask.by, *ask.filters}
    more = {name: values for name, values in metric.unless_asked.items() if name not in named}
    return replace(ask, filters={**ask.filters, **more}) if more else ask


def parameters(metric: Metric, ask: Ask) -> dict[str, int]:
    """
    The instants that the metric's SQL names, for the caller that reads its rows.

    A counter is asked since 0, of all time. Beside the two ends of the window there is the start of the
    day, week and month that goes on; where nobody has a budget of such a period nothing of it is read, and
    its start is the window's end.
    """
    known = {"as_of_ms": ask.window.end_ms, "window_start_ms": ask.window.start_ms, "since_ms": 0}
    for period in calendar.Unit:
        if f"${period}_start_ms" in metric.sql:
            going_on = calendar.running(ask.window.end_ms, ask.policy.budget_zone, period)
            has_budget = period in ask.policy.budget_periods
            known[f"{period}_start_ms"] = going_on.start_ms if has_budget else ask.window.end_ms
    return {name: value for name, value in known.items() if f"${name}" in metric.sql}


def is_counter(metric: Metric) -> bool:
    """Whether its rows of two stretches of time, one after the other, are those of both together."""
    return "$since_ms" in metric.sql


def query(metric: Metric, ask: Ask, *, beside: Collection[str] = ()) -> str:
    """
    The SQL of the rows that the question needs, for the caller that reads them.

    Rows that add up are summed by the labels of the question, so that of a large cluster few are read; of
    those that come as a frame only the columns are read that it needs, in a list for each combination of
    labels: so ten million rows need not repeat their labels, nor be grouped again. Cluster and team stay: by
    them is told what was observed, and what a viewer may see.

    Args:
        beside: further labels to keep, for questions of other metrics that the same rows answer.
    """
    if not (metric.adds or metric.takes.columns):
        return metric.sql
    asked = {*ask.by, *ask.filters, *metric.unless_asked, *beside, "cluster", "team"}
    apart = [name for name in dict.fromkeys((*metric.dimensions, *metric.apart))
             if name in asked or name in metric.apart]  # fmt: skip
    if metric.takes.columns:
        return f"""\
-- One row per combination of what a question keeps apart, with lists of what it needs of the rows below.
select {", ".join((*apart, *_lists(metric.takes)))}
from (
{metric.sql}) as fine
group by {", ".join(apart)}
"""  # noqa: S608 (names that metrics declare)
    summed = [f"sum({name}) as {name}" for name in metric.adds]
    return f"""\
-- One row per combination of what a question keeps apart, summed from the finer rows below.
select {", ".join((*apart, *summed))}
from (
{metric.sql}) as fine
group by {", ".join(apart)}
"""  # noqa: S608 (names that metrics declare)


def _lists(takes: Takes) -> list[str]:
    """A list of what is taken of each row; rows with usual values have one of their own beside those."""
    taken = f"list(struct_pack({', '.join(f'{name} := {name}' for name in takes.columns)}))"
    if not takes.usual:
        return [f"{taken} as {TAKEN}"]
    usual = " and ".join(f"{name} = {value}" for name, value in takes.usual.items())
    (alone,) = takes.varies
    return [
        f"{taken} filter (where not coalesce({usual}, false)) as {TAKEN}",
        f"list({alone}) filter (where {usual}) as {alone}",
        *(f"{value} as {name}" for name, value in takes.usual.items()),
    ]


def exported_asks(metric: Metric, as_of_ms: int, policy: Policy) -> list[Ask]:
    """
    The questions behind the exported series of a metric.

    A windowed metric by service class is asked once per window of the policy, each class over
    its own; any other metric once, over its own window or the policy's.
    """
    if not metric.windowed or metric.window is not None or "service_class" not in metric.labels:
        window = Window.before(as_of_ms, metric.window or policy.window)
        return [Ask(window=window, by=metric.labels, policy=policy)]
    classes: dict[timedelta, list[str]] = {}
    for service_class in ServiceClass:
        classes.setdefault(target(policy, service_class).window, []).append(service_class)
    return [
        Ask(
            window=Window.before(as_of_ms, length),
            by=metric.labels,
            filters={"service_class": tuple(names)},
            policy=policy,
        )
        for length, names in classes.items()
    ]


def framed(rows: Rows) -> pl.DataFrame:
    """Rows as a frame, with the labels under which they are shown."""
    if isinstance(rows, pl.DataFrame):
        return rows
    return pl.DataFrame([dict(shown(row)) for row in rows], infer_schema_length=None)


def listed(rows: Rows) -> Sequence[Row]:
    """Rows one by one."""
    return one_by_one(rows).to_dicts() if isinstance(rows, pl.DataFrame) else rows


def grouped(rows: Sequence[Row], by: tuple[str, ...]) -> Iterator[tuple[dict[str, str], list[Row]]]:
    """
    Rows by their labels. A row with null for a label says nothing about that question.

    So a row of zeros for an empty pool, whose team is null, answers "how many GPUs are held in
    the pool" and stays out of "which teams hold any".
    """
    return iter(once(rows, _grouped, by))


def _grouped(rows: Sequence[Row], by: tuple[str, ...]) -> list[tuple[dict[str, str], list[Row]]]:
    groups: defaultdict[object, list[Row]] = defaultdict(list)
    # Of one label it gives the value, of several a tuple.
    key_of: Callable[[Row], object] = itemgetter(*by) if by else lambda _: ()
    for row in rows:
        groups[key_of(row if SHOWN_AS not in row else shown(row))].append(row)
    keys = [(key,) for key in groups] if len(by) == 1 else cast("list[tuple[object, ...]]", list(groups))
    return [
        (dict(zip(by, map(str, key), strict=True)), members)
        for key, members in zip(keys, groups.values(), strict=True)
        if None not in key
    ]


def share(nothing: str, *, of: str = "") -> Compute:
    """
    The sum of the rows' values over their number; `few` on fewer than the policy's few.

    Args:
        nothing: why it is undefined without rows.
        of: the column with the number, where a row stands for several.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            number = sum(wholes(members, of)) if of else len(members)
            value = sum(wholes(members, "value")) / number
            samples.append(Sample(labels=labels, value=value, few=number < ask.policy.few_below))
        return samples or [Sample.undefined({}, nothing)]

    return compute


def whole(row: Row, column: str) -> int:
    """
    A column that holds a whole number.

    Raises:
        DataError: it holds something else.
    """
    value = row[column]
    if not isinstance(value, int):
        message = f"column {column} = {value!r}: expected a whole number; is it null in the metric's SQL?"
        raise DataError(message)
    return value


def wholes(rows: Sequence[Row], column: str) -> list[int]:
    """
    The same of many rows.

    Raises:
        DataError: one of them holds something else.
    """
    values: list[Any] = [row[column] for row in rows]
    if not {*map(type, values)} <= {int, bool}:
        return [whole(row, column) for row in rows]
    return values


def sums(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Column `value` summed; a null in it is unknown and makes the sum a lower bound."""
    return _summed(rows, ask, unit=1)


def gpu_sums(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Column `value`, micro-GPU, summed to GPUs; an unknown quantity makes a lower bound."""
    return _summed(rows, ask, unit=MICRO_PER_GPU)


def gpus_of(column: str) -> Compute:
    """The same of another column: so one query answers several metrics, each of which has a column."""
    return partial(_summed, unit=MICRO_PER_GPU, column=column)


def _summed(rows: Sequence[Row], ask: Ask, *, unit: int, column: str = "value") -> list[Sample]:
    samples = []
    for labels, members in grouped(rows, ask.by):
        known = wholes([row for row in members if row[column] is not None], column)
        samples.append(Sample(labels=labels, value=sum(known) / unit, lower_bound=len(known) < len(members)))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def _passing(rows: Sequence[Row], name: str, wanted: tuple[str, ...]) -> Sequence[Row]:
    """The rows that are shown with one of these values of a label."""
    kept = [row for row in rows if (row if SHOWN_AS not in row else shown(row))[name] in wanted]
    return Shared(kept) if isinstance(rows, Shared) else kept


def passes(row: Row, filters: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a row has, as it is shown, one of the values asked for of each label."""
    labels = shown(row)
    return all(labels[name] in wanted for name, wanted in filters.items())


def shown(row: Row) -> Row:
    """The row as it is named and filtered; what is computed rests on the row itself."""
    if SHOWN_AS not in row:
        return row
    labels = row[SHOWN_AS]
    return labels if isinstance(labels, dict) else row
