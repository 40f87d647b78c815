"""A cluster just before an instant, as far as it decides who may start: nodes, holders, queues, quota."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from analytics.fairness.kueue_shares import TERMS_AND_USES, KueueSite, kueue_sites
from analytics.why.nodes import NodeStock
from analytics.why.quota import KueueQuota, takes
from domain.facts import ObjectKind
from domain.objects import (
    ClusterQueue,
    KaiQueue,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    ResourceQuota,
    VolcanoQueue,
)
from domain.placement import Placement
from service import why_sql
from service.why_nodes import placement_of, stock_of
from store.embedded import Store

Row: TypeAlias = Mapping[str, Any]
_Body = TypeVar("_Body")
_LOCAL_QUEUE: Final = msgspec.json.Decoder(LocalQueue)
_RESOURCE_QUOTA: Final = msgspec.json.Decoder(ResourceQuota)
_RUNS: Final = "None"


class Site:
    """
    What is there in a cluster just before an instant; each part is read when it is first asked for.

    Args:
        store: has it.
        cluster: which.
        as_of_ms: the instant.
    """

    def __init__(self, store: Store, cluster: str, as_of_ms: int) -> None:
        self._store = store
        self._cluster = cluster
        self._as_of_ms = as_of_ms
        self._asked: dict[str, object] = {"cluster": cluster, "as_of_ms": as_of_ms}
        self._open_to: dict[str, frozenset[str]] = {}

    @cached_property
    def held(self) -> Mapping[str, Sequence[Row]]:
        """Who holds what on which node since when, by workload."""
        held: dict[str, list[Row]] = defaultdict(list)
        rows: Sequence[Row] = self._store.rows(why_sql.HOLDS, self._asked)
        for row in rows:
            held[row["workload_uid"]].append(row)
        return held

    @cached_property
    def held_by_queue(self) -> Mapping[str, Mapping[str, int]]:
        """What the workloads of each queue hold, in thousandths, by resource and queue."""
        held: dict[str, dict[str, int]] = defaultdict(dict)
        for row in self._store.rows(why_sql.HELD_BY_QUEUE, self._asked):
            held[str(row["resource"])][str(row["queue"])] = int(str(row["devices"])) * 1000
        return held

    @cached_property
    def stock(self) -> NodeStock:
        """The nodes, and what is held on them."""
        offered = self._store.rows(why_sql.NODES, self._asked)
        return stock_of(offered, self.held, self._store.rows(why_sql.BESIDE, self._asked))

    @cached_property
    def flavors(self) -> Mapping[tuple[str, str], tuple[Placement, ...]]:
        """What each flavor of a queue wants of a node, by queue and resource."""
        return _flavors(self.flavor_rows)

    @cached_property
    def flavor_rows(self) -> Sequence[Row]:
        """What each flavor in the quota of a queue wants of a node, by resource."""
        return self._store.rows(why_sql.FLAVORS, self._asked)

    @cached_property
    def quota(self) -> KueueQuota:
        """Kueue's quota, and what of it is reserved."""
        rows = [
            row for row in self._store.rows(TERMS_AND_USES, self._asked) if row["cluster"] == self._cluster
        ]
        return KueueQuota(kueue_sites(rows).get(self._cluster, KueueSite()))

    @cached_property
    def cluster_queues(self) -> Mapping[str, ClusterQueue]:
        """By name."""
        return _bodies(self._queues, ObjectKind.CLUSTER_QUEUE, ClusterQueue)

    @cached_property
    def local_queues(self) -> Mapping[tuple[str, str], LocalQueue]:
        """By namespace and name."""
        return {
            (str(row["namespace"]), str(row["name"])): _LOCAL_QUEUE.decode(str(row["body"]))
            for row in self._queues
            if row["kind"] == ObjectKind.LOCAL_QUEUE
        }

    @cached_property
    def resource_flavors(self) -> Mapping[str, ResourceFlavor]:
        """By name."""
        return _bodies(self._queues, ObjectKind.RESOURCE_FLAVOR, ResourceFlavor)

    @cached_property
    def volcano_queues(self) -> Mapping[str, VolcanoQueue]:
        """By name."""
        return _bodies(self._queues, ObjectKind.VOLCANO_QUEUE, VolcanoQueue)

    @cached_property
    def kai_queues(self) -> Mapping[str, KaiQueue]:
        """By name."""
        return _bodies(self._queues, ObjectKind.KAI_QUEUE, KaiQueue)

    @cached_property
    def resource_quotas(self) -> Mapping[str, Mapping[str, ResourceQuota]]:
        """Those that limit GPUs for all pods of a namespace, by namespace and name."""
        found: dict[str, dict[str, ResourceQuota]] = defaultdict(dict)
        for row in self._queues:
            if row["kind"] == ObjectKind.RESOURCE_QUOTA:
                body = _RESOURCE_QUOTA.decode(str(row["body"]))
                if body.hard and body.scoped is not True:
                    found[str(row["namespace"])][str(row["name"])] = body
        return found

    def priority_classes(self, kind: ObjectKind) -> Mapping[str, int]:
        """The values of Kubernetes' or Kueue's priority classes, by name."""
        return {name: body.value for name, body in _bodies(self._queues, kind, PriorityClass).items()}

    @cached_property
    def _queues(self) -> Sequence[Row]:
        """The newest version of each that is there."""
        as_of_ms = self._as_of_ms
        newest: dict[str, Row] = {}
        for row in self._store.kept_rows(why_sql.QUEUES, {"cluster": self._cluster}):
            from_ms, gone_ms = int(str(row["from_ms"])), row["gone_ms"]
            if from_ms < as_of_ms and (gone_ms is None or int(str(gone_ms)) >= as_of_ms):
                newest[str(row["uid"])] = row
        return list(newest.values())

    def open_flavors(self, wants: str) -> frozenset[str]:
        """The flavors into which Kueue lets pods that want this of their node."""
        if wants not in self._open_to:
            placement = placement_of(wants)
            self._open_to[wants] = frozenset(
                name for name, flavor in self.resource_flavors.items() if takes(placement, flavor)
            )
        return self._open_to[wants]

    def stopped(self, namespace: str, local_queue: str, queue: str) -> str:
        """The queue of a workload that somebody stopped, the local one or the other; empty without one."""
        local = self.local_queues.get((namespace, local_queue))
        if local is not None and local.stop_policy not in ("", _RUNS):
            return local_queue
        leads_to = local.cluster_queue if local else queue
        body = self.cluster_queues.get(leads_to)
        return leads_to if body is not None and body.stop_policy not in ("", _RUNS) else ""


def _bodies(rows: Sequence[Row], kind: ObjectKind, of: type[_Body]) -> dict[str, _Body]:
    """What objects of one kind say of themselves, by name."""
    read = msgspec.json.Decoder(of).decode
    return {str(row["name"]): read(str(row["body"])) for row in rows if row["kind"] == kind}


def _flavors(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[Placement, ...]]:
    found: dict[tuple[str, str], tuple[Placement, ...]] = {}
    for row in rows:
        key = (str(row["queue"]), str(row["resource"]))
        found[key] = (*found.get(key, ()), placement_of(str(row["wants"])))
    return found
