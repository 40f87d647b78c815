"""Quota proposals: what they rest on, how they stand, and an audit row for every change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from store.engine import Engine
from store.lives import fitting

# One row per proposal that was made by $as_of_ms, newest first, in the state of then; without that instant
# every proposal as it stands.
_PROPOSALS: Final = """
with stood as (
    select cluster, proposal_id, to_state
    from proposal_audit
    where at_ms <= $as_of_ms
    qualify row_number() over (partition by cluster, proposal_id order by at_ms desc, rowid desc) = 1
)

select proposal.* replace (coalesce(stood.to_state, proposal.state) as state)
from proposal
left join stood on proposal.cluster = stood.cluster and proposal.proposal_id = stood.proposal_id
where
    ($proposal_id is null or proposal.proposal_id = $proposal_id)
    and coalesce(proposal.made_ms <= $as_of_ms, true)
order by proposal.made_ms desc, proposal.cluster, proposal.pool, proposal.holder
"""
_AUDIT: Final = """
select proposal_audit.* from proposal_audit
where proposal_id = $proposal_id and coalesce(at_ms <= $as_of_ms, true)
order by at_ms, rowid
"""
# One row per holder: its newest week before an instant, and what was agreed in its first one.
_WEEKS: Final = """
select
    pool,
    holder,
    arg_max(good_weeks, end_ms) as good_weeks,
    arg_max(agreed, end_ms) as agreed
from quota_week
where cluster = $cluster and end_ms <= $before_ms
group by pool, holder
order by pool, holder
"""
_LAST_WEEK: Final = "select max(end_ms) as end_ms from quota_week where cluster = $cluster"
# One row per holder: what was measured of it in that week.
_WEEK: Final = """
select pool, holder, live, ratio, debt_gpu_hours, gpu_hours, coverage from quota_week
where cluster = $cluster and week = $week
order by pool, holder
"""
# One row per cluster and week: when it began and ended.
_BOUNDS: Final = """
select distinct cluster, week, start_ms, end_ms from quota_week
order by cluster, week
"""
# A pool's week that is made anew.
_FORGET_WEEK: Final = "delete from quota_week where cluster = $cluster and week = $week and pool = $pool"
_SET_STATE: Final = """
update proposal set state = $to_state
where cluster = $cluster and proposal_id = $proposal_id and state = $from_state
returning proposal_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A proposal goes from one state to another; `from_state` empty: it was made."""

    proposal_id: str
    at_ms: int
    from_state: str
    to_state: str
    who: str
    note: str = ""


def proposals(
    engine: Engine, proposal_id: str | None = None, *, as_of_ms: int | None = None
) -> list[dict[str, object]]:
    """
    All proposals, newest first, or the one with that identity.

    Args:
        as_of_ms: those that were made by then, in the state of then; None: as they stand.
    """
    return engine.rows(_PROPOSALS, {"proposal_id": proposal_id, "as_of_ms": as_of_ms})


def audit(engine: Engine, proposal_id: str, *, as_of_ms: int | None = None) -> list[dict[str, object]]:
    """Every change of a proposal, oldest first; with an instant, those until then."""
    return engine.rows(_AUDIT, {"proposal_id": proposal_id, "as_of_ms": as_of_ms})


def last_weeks(engine: Engine, cluster: str, before_ms: int) -> list[dict[str, object]]:
    """Pool, holder, good weeks in a row and agreed quota at the end of the newest week by then."""
    return engine.rows(_WEEKS, {"cluster": cluster, "before_ms": before_ms})


def last_week_end(engine: Engine, cluster: str) -> int | None:
    """When the newest week ended for which proposals were made; None before the first."""
    [row] = engine.rows(_LAST_WEEK, {"cluster": cluster})
    return row["end_ms"] if isinstance(row["end_ms"], int) else None


def week(engine: Engine, cluster: str, label: str) -> list[dict[str, object]]:
    """What was measured of each holder in that week."""
    return engine.rows(_WEEK, {"cluster": cluster, "week": label})


def week_bounds(engine: Engine) -> dict[tuple[str, str], tuple[int, int]]:
    """When each week of a cluster began and ended, by cluster and label; milliseconds."""
    rows: list[dict[str, Any]] = engine.rows(_BOUNDS, {})
    return {(row["cluster"], row["week"]): (row["start_ms"], row["end_ms"]) for row in rows}


def record(
    engine: Engine,
    cluster: str,
    *,
    weeks: Sequence[Mapping[str, object]],
    made: Sequence[Mapping[str, object]],
    moves: Iterable[Move],
) -> None:
    """
    Write a week's measurements, anew for pools that have some, proposals, and what becomes of earlier ones.

    Raises:
        StoreError: a column or type is wrong, or one of them is there already; nothing was written.
    """
    found = list(moves)
    created = [move for move in found if not move.from_state]
    with engine.transaction() as connection:
        for label, pool in {(row["week"], row["pool"]) for row in weeks}:
            connection.execute(_FORGET_WEEK, {"cluster": cluster, "week": label, "pool": pool})
        for table, rows in (("quota_week", weeks), ("proposal", made)):
            if rows:
                connection.from_arrow(fitting(table, engine.schema(table), rows)).insert_into(table)
        audits = [_audit_row(cluster, move) for move in created]
        audits += [
            _audit_row(cluster, move)
            for move in found
            if move.from_state and connection.execute(_SET_STATE, _place(cluster, move)).fetchall()
        ]
        if audits:
            table = fitting("proposal_audit", engine.schema("proposal_audit"), audits)
            connection.from_arrow(table).insert_into("proposal_audit")


def move(engine: Engine, cluster: str, change: Move) -> bool:
    """Move one proposal; False where it is not in the state that it is to leave."""
    with engine.transaction() as connection:
        if not connection.execute(_SET_STATE, _place(cluster, change)).fetchall():
            return False
        row = fitting("proposal_audit", engine.schema("proposal_audit"), [_audit_row(cluster, change)])
        connection.from_arrow(row).insert_into("proposal_audit")
    return True


def _place(cluster: str, change: Move) -> dict[str, object]:
    return {
        "cluster": cluster,
        "proposal_id": change.proposal_id,
        "from_state": change.from_state,
        "to_state": change.to_state,
    }


def _audit_row(cluster: str, change: Move) -> dict[str, object]:
    return {
        "cluster": cluster,
        "proposal_id": change.proposal_id,
        "at_ms": change.at_ms,
        "from_state": change.from_state,
        "to_state": change.to_state,
        "who": change.who,
        "note": change.note,
    }
