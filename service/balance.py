"""The reconciliation of a month, with what the store knows beside its lines."""

from typing import Final

from analytics.chargeback.month_statement import Check, MonthStatement
from analytics.chargeback.reconcile import reconciled
from domain.tenant import UNASSIGNED, Tenancy
from service.held_time import SET_ASIDE
from store.embedded import Store

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
    return reconciled(found, unassigned=[str(row["namespace"]) for row in rows], set_aside=SET_ASIDE)
