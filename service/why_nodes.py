"""The nodes of a cluster with what is held on them, out of the rows of the store."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from analytics import other_resources
from analytics.why.nodes import Amounts, Hold, Node, NodeStock, amounts
from domain.placement import Placement
from domain.quantity import CPU, MEMORY

Row: TypeAlias = Mapping[str, Any]
_PLACEMENT: Final = msgspec.json.Decoder(Placement)
# Each pod takes one of so many places that a node has for pods, whatever it asks.
_PODS: Final = "pods"


@dataclass(slots=True)
class _Taken:
    """What pods on a node ask beside GPUs; `untold`: there are some of which nobody tells."""

    asked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    untold: bool = False


class _Others(NamedTuple):
    """What a node has beside GPUs, and what of it is asked by pods on it, as `_Taken`."""

    has: Amounts
    asked: Amounts
    untold: bool


def stock_of(offered: Iterable[Row], held: Mapping[str, Sequence[Row]], beside: Iterable[Row]) -> NodeStock:
    """
    The nodes, and what is held on them.

    Args:
        offered: rows of `why_sql.NODES`.
        held: rows of `why_sql.HOLDS` by workload.
        beside: rows of `why_sql.BESIDE`.
    """
    by_node: dict[str, list[Row]] = defaultdict(list)
    for row in offered:
        by_node[row["node"]].append(row)
    taken: dict[tuple[str, str], int] = defaultdict(int)
    holds: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for uid, rows in held.items():
        for row in rows:
            node, resource, devices = row["node"], row["resource"], row["devices"]
            taken[node, resource] += devices
            holds[uid, node][resource] = devices
    on_node: dict[str, _Taken] = defaultdict(_Taken)
    of_holder: dict[tuple[str, str], Mapping[str, int]] = {}
    for row in beside:
        asked = of_holder[row["holder_uid"], row["node"]] = _asked_beside(row)
        of_node = on_node[row["node"]]
        of_node.untold |= row["untold"] > 0
        for resource, count in asked.items():
            of_node.asked[resource] += count
    known = {rows[0]["others"] for rows in by_node.values()}
    names = tuple(sorted({name for text in known for name in other_resources.read(text)}))
    nodes = [
        _node(
            name,
            rows[0]["labels"],
            rows[0]["taints"],
            tuple(
                (row["resource"], row["capacity"], row["allocatable"], taken.get((name, row["resource"]), 0))
                for row in rows
            ),
            schedulable=bool(rows[0]["schedulable"]),
            others=_Others(
                _others(rows[0]["others"], names), amounts(on_node[name].asked), on_node[name].untold
            ),
        )
        for name, rows in by_node.items()
    ]
    return NodeStock(
        nodes,
        [
            Hold(workload_uid=uid, node=node, devices=devices, others=of_holder.get((uid, node), {}))
            for (uid, node), devices in holds.items()
        ],
    )


def _asked_beside(row: Row) -> dict[str, int]:
    asked = {CPU: row["cpu"], MEMORY: row["memory"], _PODS: row["pods"]}
    for text in row["other_asks"] or ():
        for name, count in other_resources.read(text).items():
            asked[name] = asked.get(name, 0) + count
    return asked


@lru_cache(maxsize=1024)
def _others(text: str, names: tuple[str, ...]) -> Amounts:
    """
    What a node has beside GPUs: nothing of what other nodes have and it does not name.

    What no node names may be handed out by somebody else than the kubelet, and keeps nobody away.

    >>> _others('{"cpu":8000}', ("cpu", "rdma/hca")), _others("", ("cpu",))
    ((('cpu', 8000), ('rdma/hca', 0)), ())
    """
    return tuple(sorted({**dict.fromkeys(names, 0), **other_resources.read(text)}.items())) if text else ()


@lru_cache(maxsize=32_768)
def _node(
    name: str,
    labels: str,
    taints: str,
    offered: tuple[tuple[str, int, int, int], ...],
    *,
    schedulable: bool,
    others: _Others,
) -> Node:
    """
    A node that has, offers and has given away so much of each resource.

    Most stay as they are from one question to the next.
    """
    taken = dict(others.asked)
    return Node(
        name=name,
        labels=labels_of(labels),
        taints=taints_of(taints),
        allocatable={resource: allocatable for resource, _, allocatable, _ in offered},
        free={resource: max(allocatable - held, 0) for resource, _, allocatable, held in offered},
        capacity={resource: capacity for resource, capacity, _, _ in offered},
        schedulable=schedulable,
        others=dict(others.has),
        others_free={resource: max(count - taken.get(resource, 0), 0) for resource, count in others.has},
        others_at_most=others.untold,
    )


def others_asked(text: str) -> Mapping[str, int]:
    """
    What a pod asks beside GPUs as rows have it, and its place among pods; nothing where nobody tells.

    >>> others_asked('{"cpu":500}'), others_asked("")
    ({'cpu': 500, 'pods': 1}, {})
    """
    return {**other_resources.read(text), _PODS: 1} if text else {}


@lru_cache(maxsize=16_384)
def labels_of(text: str) -> Mapping[str, str]:
    """A node's labels as rows have them."""
    labels: dict[str, str] = json.loads(text)
    return labels


@lru_cache(maxsize=4096)
def taints_of(text: str) -> tuple[str, ...]:
    """A node's taints as rows have them."""
    return tuple(json.loads(text))


@lru_cache(maxsize=16_384)
def placement_of(text: str) -> Placement:
    """What a pod wants of its node as rows have it; any untainted node where that is empty."""
    return _PLACEMENT.decode(text) if text else Placement()
