"""Stretches of what stands around workloads: capacity of nodes, and queues."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from analytics.cards import Cards
from analytics.history import History
from analytics.offers import Offer, first_sight, offers
from domain.facts import Moment, ObjectKind

_QUEUES = frozenset({ObjectKind.CLUSTER_QUEUE, ObjectKind.VOLCANO_QUEUE, ObjectKind.KAI_QUEUE})


def node_spans(cluster: str, around: Collection[History]) -> Iterator[dict[str, object]]:
    """
    Stretches of the capacity of all nodes among these objects, in the columns of `node_span`.

    What changes nothing of a node is merged. Nothing is said of the time before nodes were first read.
    """
    for node, offered in offers(around, first_ms=first_sight(around)):
        yield from _spans(cluster, node, offered)


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


def _spans(cluster: str, node: History, offered: Sequence[Offer]) -> Iterator[dict[str, object]]:
    gone = node.first(Moment.GONE)
    row: dict[str, object] | None = None
    for offer in offered:
        cards = Cards.of(
            offer.capacity,
            offer.allocatable,
            product=offer.product,
            replicas=offer.replicas,
            count=offer.count,
        )
        says = {
            "gpu_model": offer.model,
            "capacity_micro_gpus": cards.capacity,
            "allocatable_micro_gpus": cards.allocatable,
            "unpartitioned_micro_gpus": cards.unpartitioned,
            "schedulable": offer.schedulable,
        }
        if row is not None and all(row[name] == value for name, value in says.items()):
            continue
        if row is not None:
            yield row | {"end_ms": offer.at_ms}
        row = {"cluster": cluster, "node": node.name, "start_ms": offer.at_ms, "end_ms": None} | says
    if row is not None:
        yield row | {"end_ms": gone.at_ms if gone else None}
