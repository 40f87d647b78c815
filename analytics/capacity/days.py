"""How many of the last days speak for buying, by pool: the three conditions, one day at a time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from analytics.capacity.buy_or_tune import Day, Figure, advice
from analytics.capacity.ratios import held, part_of_capacity, productive
from analytics.censored import Stays
from analytics.evaluate import grouped
from analytics.waits import FIRST_WAITS, censored_median
from analytics.wastage.goodput import USE_AND_CAPACITY
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND

# As many as the text of the query names, one by one.
MOST_DAYS: Final = 7
_DAY_MS: Final = timedelta(days=1) // timedelta(milliseconds=1)
# In the place of a cause: the waits of batch.
_WAITS: Final = "waits"
_NO_NODE: Final = "no node with GPUs is known in the last days"
_TOO_MANY: Final = f"more than {MOST_DAYS} days are to be judged (policy.buy_of_days): the page Capacity does"
_HELD: Final = part_of_capacity(held)
_PRODUCTIVE: Final = part_of_capacity(productive)


def _of_day(sql: str, place: int) -> str:
    """The query of a window, asked of the 24 hours that ended so many days ago."""
    days = {"$window_start_ms": place + 1, "$as_of_ms": place}
    return re.sub(
        r"\$window_start_ms|\$as_of_ms", lambda found: f"($as_of_ms - {days[found[0]] * _DAY_MS})", sql
    )


def _rows_of_day(place: int) -> str:
    return f"""\
select
    {place} as day,
    *,
    null as entries,
    null as exits,
    null as ends
from (
{_of_day(USE_AND_CAPACITY, place)}) as used
union all
select
    {place} as day,
    cluster,
    gpu_model,
    '' as node,
    '{_WAITS}' as cause,
    '' as may_be,
    true as charged,
    false as restart,
    0 as amount,
    0 as unmeasured_ms,
    list(entry_ms) as entries,
    list(exit_ms) as exits,
    list(placed) as ends
from (
{_of_day(FIRST_WAITS, place)}) as waited
where service_class = 'batch'
group by cluster, gpu_model
"""  # noqa: S608 - put together of constants


DAYS: Final = (
    "-- One row per day, 0 the newest of the last ones, and node, model and cause of what was held; one per\n"
    "-- day and stretch of capacity; and one per day and model with the waits of batch.\n"
) + "union all\n".join(map(_rows_of_day, range(MOST_DAYS)))


def speaking_for_buying(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """
    On how many days all three conditions held; at least so many where one of them is not known.

    Labels under which no capacity was known on any day, as those of work without a model yet, have none.
    """
    if ask.policy.buy_of_days > MOST_DAYS:
        return [Sample.undefined({}, _TOO_MANY)]
    samples = []
    for labels, members in grouped(rows, ask.by):
        days = list(_days(members, replace(ask, by=())))
        if any(day.held.value is not None for day in days):
            told = advice(days, ask.policy)
            unknown = any(each.all_hold is None for each in told.days)
            samples.append(Sample(labels=labels, value=told.days_for, lower_bound=unknown))
    return samples or [Sample.undefined({}, _NO_NODE)]


def _days(members: Sequence[Row], ask: Ask) -> Iterator[Day]:
    for place in range(ask.policy.buy_of_days):
        of_day = [row for row in members if row["day"] == place]
        used = [row for row in of_day if row["cause"] != _WAITS]
        waits = [row for row in of_day if row["cause"] == _WAITS]
        (all_held,), (of_use,) = _HELD(used, ask), _PRODUCTIVE(used, ask)
        yield Day.told(_figure(all_held), _figure(of_use), _median(waits, ask))


def _median(rows: Sequence[Row], ask: Ask) -> Figure:
    def column(name: str) -> list[int]:
        return [value for row in rows for value in row[name]]  # type: ignore[attr-defined]  # a list

    stays = Stays(
        np.array(column("entries"), np.int64),
        np.array(column("exits"), np.int64),
        np.array(column("ends"), np.bool_),
    )
    found = censored_median(stays, ask)
    if found is None:
        return Figure(value=None)
    return Figure(value=found.value_ms / MS_PER_SECOND, lower_bound=found.lower_bound)


def _figure(sample: Sample) -> Figure:
    return Figure(value=sample.value, lower_bound=sample.lower_bound)
