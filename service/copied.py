"""Which workloads of which clusters are one, because MultiKueue copied it: an original and its copies."""

from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

from analytics.copies import Place
from domain.objects import Workload
from service.histories import histories_of
from store.embedded import Store

# The copies in the order in which they were made, then their original.
Family: TypeAlias = tuple[Place, ...]
# Uids of copies by cluster, each with its original's uid.
CopiesByCluster: TypeAlias = dict[str, dict[str, str]]

# One row per copy of an original of which one of these workloads is a copy, or which it is.
_COPIES: Final = """
with mine as (
    select of_cluster, of_workload_uid from workload_copy
    where
        (cluster = $cluster and workload_uid = any($uids::varchar[]))
        or (of_cluster = $cluster and of_workload_uid = any($uids::varchar[]))
)

select
    workload_copy.of_cluster,
    workload_copy.of_workload_uid,
    workload_copy.cluster,
    workload_copy.workload_uid
from workload_copy
semi join mine using (of_cluster, of_workload_uid)
left join workload
    on workload_copy.cluster = workload.cluster and workload_copy.workload_uid = workload.workload_uid
order by workload.submitted_ms, workload_copy.cluster, workload_copy.workload_uid
"""


def families_of(store: Store, cluster: str, uids: Collection[str]) -> list[Family]:
    """The families of these workloads of a cluster; what has no copy and is none has no family."""
    copies: dict[Place, list[Place]] = {}
    rows: list[Any] = store.rows(_COPIES, {"cluster": cluster, "uids": sorted(uids)})
    for row in rows:
        original = Place(row["of_cluster"], row["of_workload_uid"])
        copies.setdefault(original, []).append(Place(row["cluster"], row["workload_uid"]))
    return [(*found, original) for original, found in copies.items()]


def elsewhere(families: Iterable[Family], cluster: str) -> dict[str, set[str]]:
    """Members of these families in other clusters, their uids by cluster."""
    found: dict[str, set[str]] = {}
    for place in (place for family in families for place in family):
        if place.cluster != cluster:
            found.setdefault(place.cluster, set()).add(place.uid)
    return found


def admitted(store: Store, copies: CopiesByCluster) -> set[str]:
    """The originals of copies that ever reserved quota: what is held for them is told where the copy is."""
    return {
        of_copy[uid]
        for cluster, of_copy in copies.items()
        for uid, history in histories_of(*store.facts_of(cluster, set(of_copy))).items()
        if any(isinstance(said.body, Workload) and said.body.reserved for said in history.descriptions)
    }
