"""Causes of GPU-time as metrics ask for them: rows of the store become bills, and bills become figures."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from analytics.evaluate import grouped, whole
from analytics.wastage.bill import Bill
from analytics.wastage.causes import Cause
from analytics.wastage.lost import LossKind
from analytics.wastage.ratios import Ratio, self_inflicted
from analytics.wastage.rules import rules_of
from domain.metric import DIMENSIONS, Ask, Compute, Row, Sample
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR

WASTE_DIMENSIONS: Final = (*DIMENSIONS, "user_name", "node")
GPU_HOUR: Final = MICRO_PER_GPU * MS_PER_HOUR
NOTHING_HELD: Final = "no GPU was held in the window"

# The columns of the queries below that add up, and those that tell rows of `GPU_TIME` apart.
TIME_ADDS: Final = ("amount", "unmeasured_ms")
TIME_APART: Final = ("cause", "may_be", "charged", "restart")
# Rows of `LOST` are not added up there, because whoever reads them does so, by fewer labels.
LOST_ADDS: Final = ("low", "at_most", "running", "unknown", "unmeasured")

# Waiting is not held time, so it is no cause; its rows are told apart by this word in its place.
_WAIT: Final = "own_failure_wait"

# Pieces of GPU-time within the window, with the cause as it was known at $as_of_ms.
PIECE: Final = """\
piece as (
    select
        *,
        least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms) as ms,
        coalesce(known_ms <= $as_of_ms, true) as is_known
    from gpu_time
    where
        start_ms < $as_of_ms
        and (end_ms > $window_start_ms or end_ms is null)
        and open_until_ms >= $window_start_ms"""

_AS_KNOWN: Final = """
),

told as (
    select
        *,
        case when is_known then cause else earlier_cause end as told_cause,
        case when is_known then may_be else '' end as told_may_be
    from piece
)"""
TOLD: Final = f"with {PIECE}{_AS_KNOWN}"
# The same of the workloads of a table `wanted` alone.
TOLD_OF_WANTED: Final = f"{PIECE}\n        and workload_uid in (select workload_uid from wanted){_AS_KNOWN}"  # noqa: S608

GPU_TIME: Final = f"""\
-- One row per combination of dimensions and cause: GPU-time held in the window, micro-GPU times
-- milliseconds, with the cause as it was known at $as_of_ms; and rows of waiting after own failures.
{TOLD}

select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    user_name,
    node,
    told_cause as cause,
    told_may_be as may_be,
    charged,
    restart,
    coalesce(sum(micro_gpus::hugeint * ms), 0) as amount,
    coalesce(sum(ms) filter (where micro_gpus is null), 0) as unmeasured_ms
from told
group by
    cluster, queue, service_class, priority_class, team, gpu_model, gang_size, user_name, node, told_cause,
    told_may_be, charged, restart
union all
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    user_name,
    null as node,
    'own_failure_wait' as cause,
    '' as may_be,
    false as charged,
    false as restart,
    coalesce(sum(
        micro_gpus::hugeint
        * (least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms))
    ), 0) as amount,
    count(*) - count(micro_gpus) as unmeasured_ms
from own_failure_waiting
where
    start_ms < $as_of_ms
    and (end_ms > $window_start_ms or end_ms is null)
    and open_until_ms >= $window_start_ms
group by cluster, queue, service_class, priority_class, team, gpu_model, gang_size, user_name
"""  # noqa: S608 (ours)


# Everybody who held has a row of each kind, with the running time of which nobody knows whether it was work.
LOST: Final = """\
-- One row per piece of GPU-time in the window and kind of loss: what was surely lost, as known at $as_of_ms,
-- and what was lost if nothing of it was saved; and what ran, with the part of which the activity is unknown.
-- Micro-GPU times milliseconds.
with piece as (
    select
        *,
        micro_gpus::hugeint
        * (least(coalesce(end_ms, $as_of_ms), $as_of_ms) - greatest(start_ms, $window_start_ms)) as amount,
        cause in ('infra_lost', 'preempted_lost', 'crash_lost') as is_lost,
        coalesce(known_ms <= $as_of_ms, true) as is_known,
        cause not in ('gang_hold', 'startup', 'startup_over_limit', 'draining', 'backoff') as runs
    from gpu_time
    where
        start_ms < $as_of_ms
        and (end_ms > $window_start_ms or end_ms is null)
        and open_until_ms >= $window_start_ms
),

kind as (
    select unnest(['infra_lost', 'preempted_lost', 'crash_lost']) as kind
)

select
    piece.cluster,
    piece.queue,
    piece.service_class,
    piece.priority_class,
    piece.team,
    piece.gpu_model,
    piece.gang_size,
    piece.user_name,
    piece.node,
    kind.kind as cause,
    case
        when piece.is_known and piece.is_lost and piece.cause = kind.kind then coalesce(piece.amount, 0)
        else 0
    end as low,
    case
        when piece.is_known and (piece.may_be = kind.kind or (piece.is_lost and piece.cause = kind.kind))
            then coalesce(piece.amount, 0)
        else 0
    end as at_most,
    case when piece.runs then coalesce(piece.amount, 0) else 0 end as running,
    case when piece.is_known and piece.cause = 'unknown' then coalesce(piece.amount, 0) else 0 end as unknown,
    case when piece.amount is null then 1 else 0 end as unmeasured
from piece
cross join kind
"""


def bill_of(rows: Iterable[Row]) -> Bill:
    """What rows of `GPU_TIME` add up to."""
    by_cause = dict.fromkeys(Cause, 0)
    may_be = dict.fromkeys(LossKind, 0)
    exempt = restart = waited = unmeasured_ms = 0
    waits_known = True
    for row in rows:
        amount, unmeasured = whole(row, "amount"), whole(row, "unmeasured_ms")
        if row["cause"] == _WAIT:
            waited += amount
            waits_known = waits_known and not unmeasured
            continue
        cause = Cause(str(row["cause"]))
        by_cause[cause] += amount
        unmeasured_ms += unmeasured
        if row["may_be"]:
            may_be[LossKind(str(row["may_be"]))] += amount
        if cause is Cause.RESIDENT_IDLE and not row["charged"]:
            exempt += amount
        if row["restart"] and cause in {Cause.STARTUP, Cause.STARTUP_OVER_LIMIT}:
            restart += amount
    return Bill(
        by_cause=by_cause,
        resident_idle_exempt=exempt,
        restart_startup=restart,
        own_failure_wait=waited if waits_known else None,
        may_be_lost=may_be,
        unmeasured_ms=unmeasured_ms,
    )


def held_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of held time."""
    return [row for row in rows if row["cause"] != _WAIT]


def ratios(ratio: Callable[[Bill, Ask], Ratio]) -> Compute:
    """A ratio of each group's bill."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = [sample(labels, ratio(bill_of(members), ask)) for labels, members in grouped(rows, ask.by)]
        return samples or [Sample.undefined({}, NOTHING_HELD)]

    return compute


def hours(amount: Callable[[Bill], int], *, at_least: Callable[[Bill], bool] = lambda _: False) -> Compute:
    """
    GPU-hours of each group's bill.

    Args:
        amount: micro-GPU times milliseconds.
        at_least: whether the amount is a lower bound; it always is where a share is unknown.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(held_rows(rows), ask.by):
            bill = bill_of(members)
            value = amount(bill) / GPU_HOUR
            bound = bill.unmeasured_ms > 0 or at_least(bill)
            samples.append(Sample(labels=labels, value=value, lower_bound=bound))
        return samples or [Sample.undefined({}, NOTHING_HELD)]

    return compute


HELD_HOURS: Final = hours(lambda bill: bill.held)
WASTED_HOURS: Final = hours(self_inflicted, at_least=lambda bill: bill.by_cause[Cause.UNKNOWN] > 0)


def lost_hours(column: str) -> Compute:
    """
    GPU-hours of a column of `LOST`.

    A lower bound where the activity of more running time is unknown than an accusation allows, and
    undefined where all of it is: what nobody saw is not work that was lost.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        least = rules_of(ask.policy).least_samples
        samples = []
        for labels, members in grouped(rows, ask.by):
            total = {
                name: sum(whole(row, name) for row in members)
                for name in (column, "running", "unknown", "unmeasured")
            }
            known = total["running"] - total["unknown"]
            if total["running"] > 0 and known == 0:
                samples.append(Sample.undefined(labels, "no activity is known in the window"))
                continue
            bound = total["unmeasured"] > 0 or known < least * total["running"]
            samples.append(Sample(labels=labels, value=total[column] / GPU_HOUR, lower_bound=bool(bound)))
        return samples or [Sample.undefined({}, NOTHING_HELD)]

    return compute


def sample(labels: dict[str, str], ratio: Ratio) -> Sample:
    """A ratio as a sample."""
    if ratio.value is None:
        return Sample.undefined(labels, ratio.undefined_because)
    return Sample(labels=labels, value=float(ratio.value), lower_bound=ratio.lower_bound)
