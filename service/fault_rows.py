"""What happened to GPUs, for the API: newest first."""

from collections.abc import Mapping
from typing import Any, Final

from api.answers import Listing, Record
from domain.window import format_instant
from store.embedded import Store

# One row per thing that happened to a GPU before $as_of_ms, and per pod that was on it.
_FAULTS: Final = """
select
    gpu_fault.*,
    coalesce(workload.team, '') as team,
    coalesce(workload.namespace, '') as namespace,
    coalesce(workload.name, '') as workload
from gpu_fault
left join workload
    on gpu_fault.cluster = workload.cluster and gpu_fault.workload_uid = workload.workload_uid
where gpu_fault.at_ms < $as_of_ms and ($uid is null or gpu_fault.workload_uid = $uid)
order by gpu_fault.at_ms desc, gpu_fault.cluster, gpu_fault.node, gpu_fault.device, gpu_fault.pod_uid
limit $most
"""
_MOST: Final = 1_000
_OF_THE_POD: Final = ("pod_uid", "workload_uid", "workload", "namespace", "team")


def listing(store: Store, as_of_ms: int) -> Listing:
    """The newest thousand."""
    rows = rows_of(store, as_of_ms)
    return Listing(as_of_ms=as_of_ms, rows=rows, total=len(rows), page_size=max(len(rows), 1))


def rows_of(store: Store, as_of_ms: int, *, uid: str | None = None) -> list[Record]:
    """Those of one workload, or of all GPUs."""
    asked = {"as_of_ms": as_of_ms, "uid": uid, "most": _MOST}
    return [_record(row) for row in store.rows(_FAULTS, asked)]


def _record(row: Mapping[str, Any]) -> Record:
    return {
        **{name: row[name] for name in ("cluster", "node", "device", "gpu_model", "kind", "xid", "words")},
        "at": format_instant(row["at_ms"]),
        # Null: it was so when anybody looked for the first time.
        "at_earliest": format_instant(row["earliest_ms"]) if row["earliest_ms"] else None,
        **{name: row[name] for name in _OF_THE_POD},
    }
