"""What was held and what was there, as money looks at it: stays with their owner, nodes with their price."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec
import polars as pl

from analytics.chargeback.stays import NodeStretch, Stays
from analytics.chargeback.usage import Unknown
from domain.facts import ObjectKind
from domain.money import CapacityType, Sku
from domain.objects import Node, ResourceFlavor
from domain.window import Window
from store.embedded import Store

# GPU-time of workloads whose stamps contradict each other: on the node it is held, and nobody pays for it.
SET_ASIDE: Final = "__set_aside__"

# One row per pod that held GPUs in the window, with whom its workload belonged to when submitted.
_STAYS: Final = """
select
    holding.cluster,
    holding.node,
    holding.gpu_model,
    holding.micro_gpus,
    holding.bound_ms as start_ms,
    holding.released_ms as end_ms,
    case when workload.skewed = '' then workload.team else $set_aside end as team,
    case when workload.skewed = '' then workload.project else '' end as project,
    case when workload.skewed = '' then workload.user_name else '' end as user,
    case when workload.skewed = '' then workload.queue else '' end as queue
from holding
inner join workload
    on holding.cluster = workload.cluster
    and holding.workload_uid = workload.workload_uid
    and holding.open_until_ms = workload.open_until_ms
where
    (holding.micro_gpus is null or holding.micro_gpus > 0)
    and holding.bound_ms < $end_ms
    and holding.open_until_ms >= $start_ms
    and (holding.released_ms is null or holding.released_ms > $start_ms)
"""

# One row per cluster: when its nodes were read for the first time. What stood idle before, nobody saw.
_FIRST_READ: Final = """
select cluster, min(observed_ms) as first_ms
from description
where kind = 'Node'
group by cluster
"""

# One row per node and stretch of unchanged capacity that touches the window.
_NODES: Final = """
select cluster, node, gpu_model, start_ms, end_ms, capacity_micro_gpus, allocatable_micro_gpus, schedulable
from node_capacity
where
    start_ms < $end_ms
    and (end_ms is null or end_ms > $start_ms)
    and (capacity_micro_gpus is null or capacity_micro_gpus > 0)
order by cluster, node, start_ms
"""
UNREAD: Final = "the nodes of the cluster had not been read yet"

# How clouds and Karpenter say on a node that it was bought as spot or reserved.
_BOUGHT: Final = {
    ("karpenter.sh/capacity-type", "spot"): CapacityType.SPOT,
    ("karpenter.sh/capacity-type", "reserved"): CapacityType.RESERVED,
    ("eks.amazonaws.com/capacityType", "SPOT"): CapacityType.SPOT,
    ("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"): CapacityType.RESERVED,
    ("cloud.google.com/gke-spot", "true"): CapacityType.SPOT,
    ("cloud.google.com/gke-provisioning", "spot"): CapacityType.SPOT,
    ("kubernetes.azure.com/scalesetpriority", "spot"): CapacityType.SPOT,
}
# How clouds and Karpenter call the pool of a node.
_POOLS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
_MIG: Final = "nvidia.com/mig-"
_NODE = msgspec.json.Decoder(Node)
_FLAVOR = msgspec.json.Decoder(ResourceFlavor)
Labels = Mapping[str, str]


def stays(store: Store, window: Window) -> Stays:
    """Every stay on GPUs that touches the window."""
    rows = store.frame(_STAYS, _bounds(window) | {"set_aside": SET_ASIDE})
    models = rows["gpu_model"].unique().sort()
    numbered = pl.DataFrame({"gpu_model": models}).with_row_index("sku").cast({"sku": pl.Int64})
    return Stays(rows.join(numbered, on="gpu_model"), [Sku(gpu_model=model) for model in models])


def unread(store: Store, window: Window) -> list[Unknown]:
    """The part of the window before the first reading of each cluster's nodes."""
    return [
        Unknown(
            cluster=str(row["cluster"]),
            node="",
            start_ms=window.start_ms,
            end_ms=min(int(str(row["first_ms"])), window.end_ms),
            because=UNREAD,
        )
        for row in store.rows(_FIRST_READ, {})
        if int(str(row["first_ms"])) > window.start_ms
    ]


def first_reading_ms(store: Store, clusters: Collection[str] = ()) -> int | None:
    """
    When the nodes of a cluster were first read, of these or of all the earliest; None before any reading.

    Where no node was ever read, when anything was.
    """
    nodes = {str(row["cluster"]): int(str(row["first_ms"])) for row in store.rows(_FIRST_READ, {})}
    read = store.first_observed_ms() | nodes
    return min((at_ms for name, at_ms in read.items() if not clusters or name in clusters), default=None)


def node_stretches(store: Store, window: Window, priced_labels: Collection[str]) -> list[NodeStretch]:
    """
    Nodes with GPUs over the window, cut where their capacity, or what they are priced by, changes.

    Args:
        priced_labels: keys of node labels that the price book looks at.
    """
    described: dict[str, _Cluster] = {}
    found: list[NodeStretch] = []
    for told in store.frame(_NODES, _bounds(window)).iter_rows(named=True):
        cluster = told["cluster"]
        if cluster not in described:
            described[cluster] = _Cluster(store, cluster)
        for start_ms, end_ms, labels, profile in described[cluster].labelled(told):
            found.append(
                NodeStretch(
                    cluster=cluster,
                    node=told["node"],
                    sku=Sku(
                        gpu_model=told["gpu_model"],
                        flavor=described[cluster].flavor(labels, start_ms),
                        pool=next((labels[key] for key in _POOLS if key in labels), ""),
                        mig_profile=profile,
                        capacity_type=capacity_type(labels),
                        node_labels=frozenset((key, labels[key]) for key in priced_labels if key in labels),
                    ),
                    start_ms=start_ms,
                    end_ms=end_ms,
                    capacity_micro_gpus=told["capacity_micro_gpus"],
                    allocatable_micro_gpus=told["allocatable_micro_gpus"],
                    schedulable=told["schedulable"],
                )
            )
    return found


def capacity_type(labels: Labels) -> CapacityType:
    """
    How a node was bought, by the labels of Karpenter and the clouds; on demand where none says so.

    >>> capacity_type({"karpenter.sh/capacity-type": "spot"})
    <CapacityType.SPOT: 'spot'>
    """
    return next((_BOUGHT[label] for label in labels.items() if label in _BOUGHT), CapacityType.ON_DEMAND)


def mig_profile(gpu_capacity: Mapping[str, object]) -> str:
    """
    The profile into which all GPUs of a node are cut; empty where they are whole, or cut in several ways.

    >>> mig_profile({"nvidia.com/mig-1g.5gb": 56}), mig_profile({"nvidia.com/gpu": 8})
    ('1g.5gb', '')
    """
    cut = {name.removeprefix(_MIG) for name, count in gpu_capacity.items() if count}
    return next(iter(cut)) if len(cut) == 1 and all(f"{_MIG}{name}" in gpu_capacity for name in cut) else ""


class _Cluster:
    """What the nodes and flavors of a cluster say of themselves."""

    def __init__(self, store: Store, cluster: str) -> None:
        self._nodes: dict[str, list[tuple[int, Labels, str]]] = defaultdict(list)
        self._flavors: dict[str, list[tuple[int, Labels]]] = defaultdict(list)
        for description in store.descriptions(cluster, (ObjectKind.NODE, ObjectKind.RESOURCE_FLAVOR)):
            if description.kind is ObjectKind.NODE:
                node = _NODE.decode(description.body)
                said = (description.from_ms, node.labels, mig_profile(node.gpu_capacity))
                self._nodes[description.name].append(said)
            else:
                wanted = _FLAVOR.decode(description.body).node_labels
                self._flavors[description.name].append((description.from_ms, wanted))
        for nodes in self._nodes.values():
            nodes.sort(key=lambda each: each[0])
        for told in self._flavors.values():
            told.sort(key=lambda each: each[0])
        # A flavor is taken for what it was first seen as before; only a later change cuts time.
        self._flavors_change = sorted({at for told in self._flavors.values() for at, _ in told[1:]})

    def labelled(self, row: Mapping[str, Any]) -> Iterator[tuple[int, int | None, Labels, str]]:
        """The stretch with labels and MIG profile, cut where the node's, or labels of flavors, change."""
        start_ms, end_ms = row["start_ms"], row["end_ms"]
        told = self._nodes.get(row["node"], [])
        edges = {start_ms, *(at for at, _, _ in told), *self._flavors_change}
        inside = sorted(at for at in edges if start_ms <= at and (end_ms is None or at < end_ms))
        for left, right in pairwise([*inside, end_ms]):
            nothing: tuple[Labels, str] = ({}, "")
            then = next(((labels, profile) for at, labels, profile in reversed(told) if at <= left), nothing)
            yield left, right, *then

    def flavor(self, labels: Labels, at_ms: int) -> str:
        """The ResourceFlavor whose node labels fit most closely then; empty where none names these nodes."""
        if not self._flavors:
            return ""
        then = {
            name: next((wanted for at, wanted in reversed(told) if at <= at_ms), told[0][1])
            for name, told in self._flavors.items()
        }
        fitting = [
            (-len(wanted), name)
            for name, wanted in then.items()
            if wanted and wanted.items() <= labels.items()
        ]
        return min(fitting)[1] if fitting else ""


def _bounds(window: Window) -> dict[str, int]:
    return {"start_ms": window.start_ms, "end_ms": window.end_ms}
