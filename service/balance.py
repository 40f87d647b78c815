"""The reconciliation of a month, with what the store knows beside its lines."""

from collections.abc import Iterator
from typing import Final

from analytics.chargeback.month_statement import Check, MonthStatement
from analytics.chargeback.reconcile import reconciled
from domain.calendar import Unit, running
from domain.tenant import UNASSIGNED, Tenancy
from domain.window import MS_PER_HOUR, format_instant
from service.held_time import SET_ASIDE
from store.embedded import Store
from store.retention import dropped_until
from store.statements import closed_months

# Namespaces whose work held GPUs in the window, and that no rule gives a team.
_UNASSIGNED: Final = """
select distinct workload.namespace
from holding
inner join workload
    on holding.cluster = workload.cluster and holding.workload_uid = workload.workload_uid
where
    workload.team = $unassigned
    and (holding.micro_gpus is null or holding.micro_gpus > 0)
    and holding.bound_ms < $end_ms
    and holding.open_until_ms >= $start_ms
    and coalesce(holding.released_ms > $start_ms, true)
order by workload.namespace
"""


def checks_of(store: Store, tenancy: Tenancy, found: MonthStatement) -> tuple[Check, ...]:
    """Every check of a whole month; without team rules a namespace is a team, and none is unassigned."""
    window = {"start_ms": found.start_ms, "end_ms": found.end_ms, "unassigned": UNASSIGNED}
    rows = store.rows(_UNASSIGNED, window) if tenancy.teams else []
    told = reconciled(found, unassigned=[str(row["namespace"]) for row in rows], set_aside=SET_ASIDE)
    return (*told, _all_kept(dropped_until(store), found.start_ms), _once(store, found))


def _all_kept(dropped_ms: int, start_ms: int) -> Check:
    """What was dropped leaves no hole in the sums: what was held then would stand there as idle."""
    kept, until = dropped_ms <= start_ms, format_instant(dropped_ms)
    return Check(
        name="facts", left="all kept" if kept else f"dropped before {until}", right="all kept", holds=kept,
        words="nothing that is known of the month was dropped"
        + ("" if kept else f": keeping.retention dropped work that ended before {until}, and it is missing"),
        may_be_forced=True,
    )  # fmt: skip


def _once(store: Store, found: MonthStatement) -> Check:
    """A month closed in another zone ends elsewhere: hours between them are billed twice, or never."""
    wrong = list(_beside(store, found))
    return Check(
        name="calendar", left=", ".join(wrong) or "once", right="once", holds=not wrong,
        words="no hour is in two months or in none"
        + (f": {', '.join(wrong)}; was money.zone another one then?" if wrong else ""),
        may_be_forced=True,
    )  # fmt: skip


def _beside(store: Store, found: MonthStatement) -> Iterator[str]:
    zone = found.agreement.zone
    before = running(found.start_ms, zone, Unit.MONTH).label
    after = running(found.whole_end_ms + 1, zone, Unit.MONTH).label
    for head in closed_months(store):
        gaps = {before: found.start_ms - head.end_ms, after: head.start_ms - found.whole_end_ms}
        apart_ms = max(head.start_ms, found.start_ms) - min(head.end_ms, found.whole_end_ms)
        if head.month == found.month or not (apart_ms < 0 or gaps.get(head.month, 0) > 0):
            continue
        where = f"are in {head.month} too" if apart_ms < 0 else f"between it and {head.month} are in none"
        yield f"{abs(apart_ms) / MS_PER_HOUR:g} h {where}"
