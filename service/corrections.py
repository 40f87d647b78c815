"""What is learnt of closed months: found, numbered, and kept until an open month books it."""

import logging
from dataclasses import dataclass, field
from typing import Final

from analytics.chargeback.canonical import decode_lines, encode_lines
from analytics.chargeback.corrections import booked, difference
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR
from service.settlement import settled
from service.statements import called_by, closed_statement
from store import statements as kept
from store.embedded import Store
from store.retention import dropped_until
from store.statements import Correction

log = logging.getLogger("gpuledger.corrections")

# How often closed months are looked at.
EVERY_MS: Final = MS_PER_HOUR

# One row: what the figures of a month rest on, as a fingerprint. What lies beyond its end does not count.
_BASIS: Final = """
with held as (
    select
        bit_xor(hash(
            holding.cluster, holding.node, holding.gpu_model, holding.micro_gpus, holding.pod_uid,
            greatest(holding.bound_ms, $start_ms), least(coalesce(holding.released_ms, $end_ms), $end_ms),
            workload.team, workload.project, workload.user_name, workload.queue, workload.skewed
        )) as mark,
        count(*) as rows
    from holding
    inner join workload
        on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid
    where
        holding.bound_ms < $end_ms
        and holding.open_until_ms >= $start_ms
        and coalesce(holding.released_ms > $start_ms, true)
),

caused as (
    select
        bit_xor(hash(
            cluster, pod_uid, device, micro_gpus, gpu_model, team, user_name, queue,
            start_ms, least(coalesce(end_ms, $end_ms), $end_ms),
            case when known_ms > $end_ms then earlier_cause else cause end,
            case when known_ms <= $end_ms then known_ms end
        )) as mark,
        count(*) as rows
    from gpu_time
    where start_ms < $end_ms and coalesce(end_ms > $start_ms or known_ms > $start_ms, true)
),

there as (
    select
        bit_xor(hash(
            cluster, node, gpu_model,
            greatest(start_ms, $start_ms), least(coalesce(end_ms, $end_ms), $end_ms),
            capacity_micro_gpus, allocatable_micro_gpus, schedulable
        )) as mark,
        count(*) as rows
    from node_capacity
    where start_ms < $end_ms and coalesce(end_ms > $start_ms, true)
),

shares as (
    select
        bit_xor(hash(
            cluster, pool, entity, team, gpu_model, greatest(start_ms, $start_ms), least(until_ms, $end_ms),
            quota, held, lent, borrowed
        )) as mark,
        count(*) as rows
    from share_span
    where start_ms < $end_ms and until_ms > $start_ms
),

evicted as (
    select bit_xor(hash(cluster, workload_uid, at_ms, preemptor_uid)) as mark, count(*) as rows
    from eviction
    where preempted and at_ms >= $start_ms and at_ms < $end_ms
),

told as (
    select bit_xor(hash(cluster, uid, kind, from_ms, body)) as mark, count(*) as rows
    from description
    where kind in ('Node', 'ResourceFlavor') and from_ms < $end_ms
)

select concat_ws(
    ' ', held.mark, held.rows, caused.mark, caused.rows, there.mark, there.rows, shares.mark, shares.rows,
    evicted.mark, evicted.rows, told.mark, told.rows
) as basis
from held, caused, there, shares, evicted, told
"""


def find_corrections(store: Store, tenancy: Tenancy, *, now_ms: int) -> list[str]:
    """
    Settle closed months anew where what they rest on has changed, and keep what differs.

    A month is settled under what was agreed on when it was closed: a new price or policy corrects nothing.
    Where facts of it were dropped by retention, no more is learnt of it.

    Returns:
        Why months could not be settled anew; empty where all could.
    """
    dropped_ms, bases, trouble = dropped_until(store), kept.bases(store), []
    for head in kept.closed_months(store):
        if dropped_ms > head.start_ms:
            continue
        before, _ = bases.get(head.month, ("", 0))
        basis = _basis(store, head.start_ms, head.end_ms)
        if before == basis:
            kept.note_basis(store, head.month, basis, now_ms)
            continue
        closed = closed_statement(store, head.month)
        assert closed is not None
        because = _correct(store, tenancy, closed, now_ms)
        if because:
            trouble.append(f"{head.month} cannot be settled anew: {because}")
            log.warning("a closed month cannot be settled anew", extra={"month": head.month, "why": because})
        else:
            kept.note_basis(store, head.month, basis, now_ms)
    return trouble


def note_basis(store: Store, statement: MonthStatement, now_ms: int) -> None:
    """Remember what a month rests on that was settled just now."""
    basis = _basis(store, statement.start_ms, statement.whole_end_ms)
    kept.note_basis(store, statement.month, basis, now_ms)


def settled_anew(store: Store, tenancy: Tenancy, closed: MonthStatement) -> tuple[list[Line], str]:
    """The lines of a closed month by what is known now, teams called as in it; and why there are none."""
    found = settled(store, closed.agreement, closed.period)
    if found.no_money_because:
        return [], found.no_money_because
    return _called(found.lines, closed, tenancy), ""


def said(store: Store, tenancy: Tenancy, closed: MonthStatement) -> list[Line]:
    """A closed month as it was closed, and all that was learnt of it since; teams called as now."""
    own = [line for line in closed.lines if line.about is None]
    for each in kept.corrections(store):
        if each.month == closed.month:
            own += booked(decode_lines(each.content), month=each.month, number=each.number, day="")
    return _called(own, closed, tenancy)


def _correct(store: Store, tenancy: Tenancy, closed: MonthStatement, now_ms: int) -> str:
    now, because = settled_anew(store, tenancy, closed)
    if because:
        return because
    number = 1 + sum(each.month == closed.month for each in kept.corrections(store))
    lines = difference(now, said(store, tenancy, closed), closed.currency)
    if lines:
        # An answer uses what was known before its instant, and by a clock that stands there is no later one.
        found = Correction(
            month=closed.month, number=number, found_ms=now_ms - 1, content=encode_lines(lines)
        )
        # Another one of that number was found by somebody else meanwhile, who found the same.
        kept.correct(store, found)
    return ""


def _called(lines: tuple[Line, ...] | list[Line], closed: MonthStatement, tenancy: Tenancy) -> list[Line]:
    names = {line.row.team for line in lines}
    present = {name: tenancy.present(closed.teams.get(name, name)) for name in names}
    return called_by(lines, {name: tenancy.called(present[name], closed.end_ms) for name in names})


def _basis(store: Store, start_ms: int, end_ms: int) -> str:
    [row] = store.rows(_BASIS, {"start_ms": start_ms, "end_ms": end_ms})
    return str(row["basis"])


@dataclass(slots=True)
class Corrections:
    """The stage that looks at closed months: at the first refresh of the books, then once an hour."""

    store: Store
    tenancy: Tenancy
    _looked_ms: int | None = field(default=None, init=False)

    def refresh(self, cluster: str, as_of_ms: int) -> int:
        """Keep what was learnt of closed months, after the last cluster; gives how many corrections."""
        if cluster != self.store.clusters()[-1] or not kept.closed_months(self.store):
            return 0
        if self._looked_ms is not None and 0 <= as_of_ms - self._looked_ms < EVERY_MS:
            return 0
        before = len(kept.corrections(self.store))
        find_corrections(self.store, self.tenancy, now_ms=as_of_ms)
        self._looked_ms = as_of_ms
        return len(kept.corrections(self.store)) - before
