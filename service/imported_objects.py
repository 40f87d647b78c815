"""
Objects of jobs from tables: millions may come at once, so they are known only while they are cut.

When something is learnt of one, or of what it depends on, its job and all its stays are read again.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from analytics.identity import Identity
from store.embedded import Store
from store.facts import IMPORTED

# So many workloads are in memory at once; one takes some 12 KB.
_AT_ONCE: Final = 5_000

# One row per workload of these that was ever cut.
_CUT_BEFORE: Final = """
select workload_uid from workload_cut
where cluster = $cluster and workload_uid = any($uids::varchar[])
"""
# One row per imported workload, after one of that name, in these namespaces or in any.
_IMPORTED: Final = """
select workload_uid from workload
where
    cluster = $cluster
    and starts_with(workload_uid, $imported)
    and workload_uid > $after
    and ($namespaces::varchar[] is null or namespace = any($namespaces::varchar[]))
order by workload_uid
limit $most
"""


def imported(uids: Iterable[str]) -> set[str]:
    """Those of these objects that a table told."""
    return {uid for uid in uids if uid.startswith(IMPORTED)}


def cut_before(store: Store, cluster: str, identity: Identity, uids: Collection[str]) -> set[str]:
    """Those of these objects whose workloads were cut before."""
    workloads = {uid: workload for uid in uids if (workload := identity.workload_of(uid)) is not None}
    if not workloads:
        return set()
    asked = {"cluster": cluster, "uids": sorted(set(workloads.values()))}
    before = {str(row["workload_uid"]) for row in store.rows(_CUT_BEFORE, asked)}
    return {uid for uid, workload in workloads.items() if workload in before}


def imported_workloads(store: Store, cluster: str, namespaces: Collection[str] | None) -> Iterator[set[str]]:
    """Imported workloads of a cluster, of these namespaces or of all; some at a time."""
    asked: dict[str, object] = {
        "cluster": cluster,
        "imported": IMPORTED,
        "namespaces": None if namespaces is None else sorted(namespaces),
        "most": _AT_ONCE,
    }
    after = ""
    while rows := store.rows(_IMPORTED, asked | {"after": after}):
        yield {str(row["workload_uid"]) for row in rows}
        after = str(rows[-1]["workload_uid"])
