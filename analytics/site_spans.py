"""Stretches of what stands around workloads: capacity of nodes, and queues."""

from collections.abc import Collection, Iterable, Iterator

from analytics.claims import offered_resources
from analytics.history import Catalog, History
from domain import objects
from domain.claims import ResourceSlice
from domain.facts import Moment, ObjectKind
from domain.quantity import is_gpu_resource, micro_gpus

_QUEUES = frozenset({ObjectKind.CLUSTER_QUEUE, ObjectKind.VOLCANO_QUEUE, ObjectKind.KAI_QUEUE})


def node_spans(cluster: str, around: Collection[History]) -> Iterator[dict[str, object]]:
    """
    Stretches of the capacity of all nodes among these objects, in the columns of `node_span`.

    A node without GPUs of a device plugin has those that ResourceSlices offer on it. What changes
    nothing of a node is merged. Nothing is said of the time before nodes were first read: what a
    node that is older held or left idle then, nobody saw.
    """
    first_ms = min(
        (d.observed_ms for h in around if h.kind is ObjectKind.NODE for d in h.descriptions), default=0
    )
    slices: dict[str, list[History]] = {}
    for history in around:
        for node in {d.body.node for d in history.descriptions if isinstance(d.body, ResourceSlice)}:
            slices.setdefault(node, []).append(history)
    for history in around:
        if history.kind is ObjectKind.NODE:
            yield from _spans(cluster, history, slices.get(history.name, ()), first_ms)


def queue_spans(cluster: str, around: Iterable[History]) -> Iterator[dict[str, object]]:
    """The stretch in which each queue among these objects exists, in the columns of `queue_span`."""
    for history in around:
        if history.kind in _QUEUES:
            gone = history.first(Moment.GONE)
            yield {
                "cluster": cluster,
                "queue": history.name,
                "kind": history.kind,
                "start_ms": history.created_ms,
                "end_ms": gone.at_ms if gone else None,
            }


def _spans(
    cluster: str, node: History, slices: Collection[History], first_ms: int
) -> Iterator[dict[str, object]]:
    gone = node.first(Moment.GONE)
    row: dict[str, object] | None = None
    catalog = Catalog.of([node])
    for at_ms, body in _turns(node, slices, first_ms):
        stretch = catalog.at(node.name, at_ms)
        model, replicas = (stretch.model, stretch.replicas) if stretch else ("", 1)
        capacity, allocatable = body.gpu_capacity, body.gpu_allocatable
        if not any(is_gpu_resource(name) and count for name, count in capacity.items()):
            # Devices are never shared as those of a device plugin are.
            capacity, replicas = _offered(slices, node.name, at_ms) or capacity, 1
            allocatable = capacity
        says = {
            "gpu_model": model,
            "capacity_micro_gpus": micro_gpus(capacity, product=model, replicas=replicas),
            "allocatable_micro_gpus": micro_gpus(allocatable, product=model, replicas=replicas),
            "schedulable": body.ready == "True" and not body.unschedulable,
        }
        if row is not None and all(row[name] == value for name, value in says.items()):
            continue
        if row is not None:
            yield row | {"end_ms": at_ms}
        row = {"cluster": cluster, "node": node.name, "start_ms": at_ms, "end_ms": None} | says
    if row is not None:
        yield row | {"end_ms": gone.at_ms if gone else None}


def _turns(node: History, slices: Iterable[History], first_ms: int) -> Iterator[tuple[int, objects.Node]]:
    """When the node or what is offered on it may have changed, with what the node said of itself then."""
    said = {max(d.from_ms, first_ms): d.body for d in node.descriptions if isinstance(d.body, objects.Node)}
    gone = node.first(Moment.GONE)
    offers: set[int] = set()
    for history in slices:
        removed = history.first(Moment.GONE)
        offers |= {max(described.from_ms, first_ms) for described in history.descriptions}
        offers |= {removed.at_ms} if removed else set()
    body: objects.Node | None = None
    for at_ms in sorted(said.keys() | {at_ms for at_ms in offers if gone is None or at_ms < gone.at_ms}):
        body = said.get(at_ms, body)
        if body is not None:
            yield at_ms, body


def _offered(slices: Iterable[History], node: str, at_ms: int) -> objects.Resources:
    """What is offered on a node at an instant: of each pool, the slices of its newest generation."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for history in slices:
        gone = history.first(Moment.GONE)
        said = [d.body for d in history.descriptions if d.from_ms <= at_ms]
        body = said[-1] if said else None
        if isinstance(body, ResourceSlice) and body.node == node and (gone is None or at_ms < gone.at_ms):
            pools.setdefault((body.driver, body.pool), []).append(body)
    newest = [
        body for found in pools.values() for body in found
        if body.generation == max(other.generation for other in found)
    ]  # fmt: skip
    return offered_resources(device for body in newest for device in body.devices)
