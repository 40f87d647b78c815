"""What is learnt of closed months: found, numbered, and kept until an open month books it."""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from analytics.chargeback.canonical import decode_lines, encode_lines
from analytics.chargeback.corrections import booked, difference
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from domain.tenant import Tenancy
from domain.window import CLOCK_SKEW_MS, MS_PER_HOUR
from service import unbooked
from service.forgotten_months import exchanged, forgotten_in
from service.refresh import JOB
from service.settlement import settled
from service.statements import called_by, closed_statement
from store import statements as kept
from store.embedded import Store
from store.facts import unseen
from store.retention import dropped_until
from store.statements import ClosedMonth, Correction

log = logging.getLogger("gpuledger.corrections")

# How often closed months are looked at.
EVERY_MS: Final = MS_PER_HOUR

# One row: what the figures of a month rest on, as a fingerprint. What lies beyond its end does not count.
# Owners are not joined to what they held, which would take six times as long: all that may have held count.
_BASIS: Final = """
with held as (
    select
        bit_xor(hash(
            cluster, workload_uid, node, gpu_model, micro_gpus, pod_uid,
            greatest(bound_ms, $start_ms), least(coalesce(released_ms, $end_ms), $end_ms)
        )) as mark,
        count(*) as rows
    from holding
    where
        bound_ms < $end_ms
        and open_until_ms >= $start_ms
        and coalesce(released_ms > $start_ms, true)
),

owners as (
    select
        bit_xor(hash(
            cluster, workload_uid, team, project, user_name, queue, skewed = '', is_copy
        )) as mark,
        count(*) as rows
    from workload
    where submitted_ms < $end_ms + $skew_ms and open_until_ms >= $start_ms
),

caused as (
    select
        bit_xor(hash(
            cluster, workload_uid, pod_uid, device, micro_gpus, gpu_model,
            start_ms, least(coalesce(end_ms, $end_ms), $end_ms),
            case when known_ms > $end_ms then earlier_cause else cause end,
            case when known_ms <= $end_ms then known_ms end
        )) as mark,
        count(*) as rows
    from waste_piece
    where
        start_ms < $end_ms
        and (coalesce(end_ms > $start_ms, true) or coalesce(known_ms > $start_ms, false))
),

known_late as (
    select
        bit_xor(hash(cluster, pod_uid, device, start_ms, team, user_name, queue)) as mark,
        count(*) as rows
    from gpu_time
    where end_ms <= $start_ms and known_ms > $start_ms
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

sharing as (
    select bit_xor(hash(cluster, pool, entity, team)) as mark, count(*) as rows
    from (
        select distinct cluster, pool, entity, team
        from team_share_span
        where start_ms < $end_ms and until_ms > $start_ms
    ) as shared
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
    ' ', held.mark, held.rows, owners.mark, owners.rows, caused.mark, caused.rows, known_late.mark,
    known_late.rows, there.mark, there.rows, shares.mark, shares.rows, sharing.mark, sharing.rows,
    evicted.mark, evicted.rows, told.mark, told.rows
) as basis
from held, owners, caused, known_late, there, shares, sharing, evicted, told
"""


def find_corrections(store: Store, tenancy: Tenancy, *, now_ms: int) -> list[str]:
    """
    Settle closed months anew where what they rest on has changed, and keep what differs.

    A month is settled under what was agreed on when it was closed: a new price or policy corrects nothing.
    Where facts of it were dropped by retention, what is learnt is counted (`service.unbooked`), not booked.
    Where facts of it are in no book yet, it is looked at later.

    Returns:
        Why months could not be settled anew; empty where all could.
    """
    dropped_ms, bases, trouble = dropped_until(store), kept.bases(store), []
    for head in kept.closed_months(store):
        if because := behind(store, head.end_ms):
            trouble.append(f"{head.month} cannot be settled anew: {because}")
            continue
        before, _ = bases.get(head.month, ("", 0))
        basis = _basis(store, head.start_ms, head.end_ms)
        if dropped_ms > head.start_ms:
            unbooked.look(store, head, basis)
            continue
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


def behind(store: Store, end_ms: int) -> str:
    """
    Why the books do not tell a month that ends then; empty where they do.

    After a rebuild, an import or an update there are facts that are in no book before the next measurement:
    what was held would look like idle time.
    """
    objects = unseen(store, JOB, before_ms=end_ms)
    return f"what {objects} objects did before its end is not in the books yet" if objects else ""


def note_basis(store: Store, statement: MonthStatement, now_ms: int) -> None:
    """Remember what a month rests on that was settled just now."""
    basis = _basis(store, statement.start_ms, statement.whole_end_ms)
    kept.note_basis(store, statement.month, basis, now_ms)


def note_left(store: Store) -> None:
    """Note what is left of closed months after facts of them were dropped, for later looks."""
    _of_left(store, unbooked.look)


@contextmanager
def unlearnt(store: Store) -> Iterator[None]:
    """What changes meanwhile, as a name that becomes another word, is nothing that is learnt."""
    _of_left(store, unbooked.look)
    yield
    _of_left(store, unbooked.note_anew)


def _of_left(store: Store, note: Callable[[Store, ClosedMonth, str], None]) -> None:
    dropped_ms = dropped_until(store)
    for head in kept.closed_months(store):
        if dropped_ms > head.start_ms and not behind(store, head.end_ms):
            note(store, head, _basis(store, head.start_ms, head.end_ms))


def settled_anew(store: Store, tenancy: Tenancy, closed: MonthStatement) -> tuple[list[Line], str]:
    """The lines of a closed month by what is known now, teams called as in it; and why there are none."""
    found = settled(store, closed.agreement, closed.period, tenancy=tenancy)
    if found.no_money_because:
        return [], found.no_money_because
    # These names are of now: one that a team bears now is no other team's, whoever bore it at the close.
    return _called(found.lines, closed, tenancy, now=set(tenancy.renamed.values())), ""


def said(store: Store, tenancy: Tenancy, closed: MonthStatement) -> list[Line]:
    """A closed month as it was closed, and all that was learnt of it since; teams and users called as now."""
    own = exchanged((line for line in closed.lines if line.about is None), forgotten_in(store, closed))
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


def _called(
    lines: Collection[Line], closed: MonthStatement, tenancy: Tenancy, now: Collection[str] = ()
) -> list[Line]:
    """The lines, with teams called as in the closed month; those in `now` are present names already."""
    names = {line.row.team for line in lines}
    present = {name: name if name in now else tenancy.present(closed.teams.get(name, name)) for name in names}
    return called_by(lines, {name: tenancy.called(present[name], closed.end_ms) for name in names})


def _basis(store: Store, start_ms: int, end_ms: int) -> str:
    # Who is bound longer before the submission is set aside, whoever it is.
    asked = {"start_ms": start_ms, "end_ms": end_ms, "skew_ms": CLOCK_SKEW_MS}
    [row] = store.rows(_BASIS, asked)
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
