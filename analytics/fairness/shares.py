"""What entities have and are owed: the rows and rules that the metrics of fairness share."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.fairness.debt import Ledger, Stretch, carry_debt, ledger
from domain.errors import DataError
from domain.metric import Ask, Row, Sample
from domain.quantity import MICRO_PER_GPU

DIMENSIONS = ("cluster", "pool", "queue", "team", "gpu_model")
LABELS = ("cluster", "pool", "queue", "team")
POOL_DIMENSIONS = ("cluster", "pool", "gpu_model")
SEVERAL_MODELS = "debts of pools with different GPU models are not added: ask by pool or gpu_model"
SEVERAL_POOLS = "pools are not added: ask by cluster and pool"


def shares_now(column: str) -> str:
    """The query for a quantity that teams have: entitled, demand or held."""
    return f"""\
-- One row per pool, queue and team just before $as_of_ms, and a row of zero per queue: its team is null.
select cluster, pool, queue, team, gpu_model, {column} as value
from team_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
union all
select cluster, pool, queue, null as team, gpu_model, 0 as value
from entity_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""  # noqa: S608 (the column is one of ours)


def quotas_now(column: str) -> str:
    """The query for a quantity that only the holder of a quota has: quota, lent, borrowed, over_quota."""
    return f"""\
-- One row per pool and queue just before $as_of_ms; team is '' where several share the queue.
select cluster, pool, queue, team, gpu_model, {column} as value
from entity_share
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""  # noqa: S608 (the column is one of ours)


def pools_now(column: str) -> str:
    """The query for a figure of whole pools."""
    return f"""\
-- One row per pool just before $as_of_ms.
select cluster, pool, gpu_model, {column} as value, undefined_because
from pool_state
where start_ms < $as_of_ms and until_ms >= $as_of_ms
"""  # noqa: S608 (the column is one of ours)


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

LEDGER_ROWS = """\
-- One row per pool, queue, team and stretch that reaches into [$window_start_ms, $as_of_ms), and rows of
-- zeros per stretch of a queue: their team is null.
select cluster, pool, queue, team, gpu_model, start_ms, until_ms, entitled, held, opening_debt
from team_share
where start_ms < $as_of_ms and until_ms > $window_start_ms
union all
select
    cluster, pool, queue, null as team, gpu_model, start_ms, until_ms, 0 as entitled, 0 as held,
    0.0 as opening_debt
from entity_share
where start_ms < $as_of_ms and until_ms > $window_start_ms
"""


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


def from_ledger(
    part: Callable[[Ledger], float], *, across_models: bool
) -> Callable[[Sequence[Row], Ask], list[Sample]]:
    """
    GPU-hours of one line of the ledger over the window.

    Args:
        part: the line.
        across_models: whether the line may be added over pools with different GPU models.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            if not across_models and len({row["gpu_model"] for row in members}) > 1:
                samples.append(Sample.undefined(labels, SEVERAL_MODELS))
                continue
            value = sum(part(account) for account in ledgers(members, ask))
            samples.append(Sample(labels=labels, value=value))
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    return compute


def ledgers(rows: Sequence[Row], ask: Ask) -> list[Ledger]:
    """The account of each team in each queue and pool over the window, GPU-hours."""
    accounts: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        accounts[row["cluster"], row["pool"], row["queue"], row["team"]].append(row)
    return [_ledger(account, ask) for account in accounts.values()]


def one_pool(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """A ratio of a pool; several pools have none together."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        if len(members) > 1:
            samples.append(Sample.undefined(labels, SEVERAL_POOLS))
        elif members[0]["value"] is None:
            samples.append(Sample.undefined(labels, str(members[0]["undefined_because"])))
        else:
            samples.append(Sample(labels=labels, value=_real(members[0], "value")))
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]


def _ledger(account: list[Row], ask: Ask) -> Ledger:
    account.sort(key=lambda row: whole(row, "start_ms"))
    start_ms = max(whole(account[0], "start_ms"), ask.window.start_ms)
    stretches = [
        Stretch(
            start_ms=max(whole(row, "start_ms"), start_ms),
            end_ms=min(whole(row, "until_ms"), ask.window.end_ms),
            entitled=whole(row, "entitled"),
            received=whole(row, "held"),
        )
        for row in account
    ]
    return ledger(stretches, opening=_debt_at(account[0], ask, start_ms), half_life=ask.policy.debt_half_life)


def _debt_at(row: Row, ask: Ask, at_ms: int) -> float:
    return carry_debt(
        _real(row, "opening_debt"),
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
