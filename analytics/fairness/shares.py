"""What entities have and are owed: the rows and rules that the metrics of fairness share."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, TypedDict

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.fairness.debt import carry_debt, forgiven_debt
from domain.errors import DataError
from domain.metric import Ask, Compute, Row, Sample
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR

GPU_HOUR: Final = MICRO_PER_GPU * MS_PER_HOUR
DIMENSIONS = ("cluster", "pool", "queue", "team", "gpu_model")
LABELS = ("cluster", "pool", "queue", "team")
POOL_DIMENSIONS = ("cluster", "pool", "gpu_model")
SEVERAL_MODELS = "debts of pools with different GPU models are not added: ask by pool or gpu_model"
SEVERAL_POOLS = "pools are not added: ask by cluster and pool"


# What teams have: a column for each metric, so that all are read at once; likewise below.
SHARES_NOW: Final = """\
-- One row per pool, queue and team just before $as_of_ms, and a row of zero per queue: its team is null.
select cluster, pool, queue, team, gpu_model, entitled, demand, held
from team_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
union all
select cluster, pool, queue, null as team, gpu_model, 0 as entitled, 0 as demand, 0 as held
from entity_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""

# What only the holder of a quota has.
QUOTAS_NOW: Final = """\
-- One row per pool and queue just before $as_of_ms. Where several teams share the queue, team names them
-- all; it is '' where no team has used it yet.
with sharing as (
    select cluster, pool, queue, string_agg(distinct team, ', ' order by team) as names
    from team_share
    where start_ms < $as_of_ms and until_ms >= $as_of_ms
    group by cluster, pool, queue
    having count(distinct team) > 1
)

select
    entity_share.cluster,
    entity_share.pool,
    entity_share.queue,
    coalesce(nullif(entity_share.team, ''), 'shared by ' || sharing.names, '') as team,
    entity_share.gpu_model,
    entity_share.quota,
    entity_share.lent,
    entity_share.borrowed,
    entity_share.over_quota
from entity_share
left join sharing
    on entity_share.cluster = sharing.cluster
    and entity_share.pool = sharing.pool
    and entity_share.queue = sharing.queue
where entity_share.start_ms < $as_of_ms and entity_share.until_ms >= $as_of_ms
"""

# Figures of whole pools.
POOLS_NOW: Final = """\
-- One row per pool just before $as_of_ms.
select
    cluster, pool, gpu_model, capacity, without_quota, from_unassigned, jain, error_ratio, undefined_because
from pool_state
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""

DEBTS_NOW = """\
-- One row per pool, queue and team just before $as_of_ms, and a row of zeros per queue: its team is null.
select cluster, pool, queue, team, gpu_model, start_ms, entitled, held, opening_debt
from team_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
union all
select cluster, pool, queue, null as team, gpu_model, start_ms, 0 as entitled, 0 as held, 0.0 as opening_debt
from entity_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""

# What was forgiven in a window lies between the running totals at its ends, and the rest adds up exactly:
# so the ledger of a month reads as few rows as that of an hour.
FORGIVEN_AT_THE_ENDS = """\
-- One row per pool, queue and team just before $as_of_ms, one at $window_start_ms where they differ, and
-- rows of zeros per queue: their team is null.
select
    cluster, pool, queue, team, gpu_model, start_ms, until_ms, entitled, held, opening_debt, opening_forgiven
from team_share
where
    (start_ms < $as_of_ms and until_ms >= $as_of_ms)
    or (start_ms <= $window_start_ms and until_ms > $window_start_ms)
union all
select
    cluster, pool, queue, null as team, gpu_model, start_ms, until_ms, 0 as entitled, 0 as held,
    0.0 as opening_debt, 0.0 as opening_forgiven
from entity_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""


def gpu_time(column: str) -> str:
    """The query for GPU-time of teams in a window: entitled or held."""
    return f"""\
-- One row per pool, queue and team: micro-GPU times milliseconds in [$window_start_ms, $as_of_ms); and a
-- row of zero per queue: its team is null.
select
    cluster,
    pool,
    queue,
    team,
    gpu_model,
    sum({column}::hugeint * (least(until_ms, $as_of_ms) - greatest(start_ms, $window_start_ms))) as amount
from team_share
where start_ms < $as_of_ms and until_ms > $window_start_ms
group by cluster, pool, queue, team, gpu_model
union all
select cluster, pool, queue, null as team, gpu_model, 0 as amount
from entity_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""  # noqa: S608 (the column is one of ours)


class _Passed(TypedDict):
    """The arguments that carrying a debt and forgiving it share."""

    gap_gpus: float
    elapsed_ms: int
    half_life: timedelta | None


def debts(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-hours that the cluster owes at the instant asked about."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        if len({row["gpu_model"] for row in members}) > 1:
            samples.append(Sample.undefined(labels, SEVERAL_MODELS))
            continue
        owed = sum(_debt_at(row, ask, ask.as_of_ms) for row in members)
        samples.append(Sample(labels=labels, value=owed))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def gpu_hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Column `amount` of `gpu_time` as GPU-hours; pools of several models may be added."""
    samples = [
        Sample(labels=labels, value=sum(whole(row, "amount") for row in members) / GPU_HOUR)
        for labels, members in grouped(rows, ask.by)
    ]
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def forgiven(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-hours of debt that faded in the window: the running totals at its end less those at its start."""
    start_ms, end_ms = ask.window.start_ms, ask.window.end_ms
    samples = []
    for labels, members in grouped(rows, ask.by):
        if len({row["gpu_model"] for row in members}) > 1:
            samples.append(Sample.undefined(labels, SEVERAL_MODELS))
            continue
        # An account that began in the window had nothing forgiven before.
        at_start = sum(_forgiven_by(row, ask, start_ms) for row in members if _holds_at(row, start_ms))
        at_end = sum(_forgiven_by(row, ask, end_ms) for row in members if whole(row, "until_ms") >= end_ms)
        samples.append(Sample(labels=labels, value=at_end - at_start))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def one_pool(column: str) -> Compute:
    """A ratio of a pool; several pools have none together."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            if len(members) > 1:
                samples.append(Sample.undefined(labels, SEVERAL_POOLS))
            elif members[0][column] is None:
                samples.append(Sample.undefined(labels, str(members[0]["undefined_because"])))
            else:
                samples.append(Sample(labels=labels, value=_real(members[0], column)))
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    return compute


def _holds_at(row: Row, at_ms: int) -> bool:
    return whole(row, "start_ms") <= at_ms < whole(row, "until_ms")


def _forgiven_by(row: Row, ask: Ask, at_ms: int) -> float:
    """What was forgiven from the beginning of the account to an instant in this stretch of it."""
    return _real(row, "opening_forgiven") + forgiven_debt(
        _real(row, "opening_debt"), **_passed(row, ask, at_ms)
    )


def _debt_at(row: Row, ask: Ask, at_ms: int) -> float:
    return carry_debt(_real(row, "opening_debt"), **_passed(row, ask, at_ms))


def _passed(row: Row, ask: Ask, at_ms: int) -> _Passed:
    """What went on in a stretch up to an instant."""
    return _Passed(
        gap_gpus=(whole(row, "entitled") - whole(row, "held")) / MICRO_PER_GPU,
        elapsed_ms=at_ms - whole(row, "start_ms"),
        half_life=ask.policy.debt_half_life,
    )


def _real(row: Mapping[str, object], column: str) -> float:
    value = row[column]
    if not isinstance(value, (int, float)):
        message = f"column {column} = {value!r}: expected a number; is it null in the metric's SQL?"
        raise DataError(message)
    return float(value)
