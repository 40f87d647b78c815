"""Where Kueue lets the workloads of a queue go: the nodes of the flavors in its quota."""

from collections.abc import Collection, Iterator

from analytics.fairness.books.site import Site
from analytics.fragmentation.places import written
from analytics.history import History
from domain.facts import ObjectKind
from domain.objects import ResourceFlavor
from domain.placement import Placement
from domain.quantity import is_gpu_resource

_KINDS = frozenset({ObjectKind.CLUSTER_QUEUE, ObjectKind.RESOURCE_FLAVOR})


def flavor_rows(cluster: str, around: Collection[History]) -> Iterator[dict[str, object]]:
    """
    Stretches of the flavors of each ClusterQueue, in the columns of `queue_flavor`.

    A flavor that does not exist lets nobody go anywhere and has no row.
    """
    site = Site.of(cluster, [history for history in around if history.kind in _KINDS])
    open_rows: dict[tuple[str, str, str, str], int] = {}
    for version in site.versions:
        now = {
            (queue, row.resource, row.flavor, _wants(version.flavors[row.flavor]))
            for queue, body in version.cluster_queues.items()
            for row in body.quotas
            if is_gpu_resource(row.resource) and row.flavor in version.flavors
        }
        for key in open_rows.keys() - now:
            yield _row(cluster, key, open_rows.pop(key), version.from_ms)
        for key in now - open_rows.keys():
            open_rows[key] = version.from_ms
    for key, start_ms in open_rows.items():
        yield _row(cluster, key, start_ms, None)


def _wants(flavor: ResourceFlavor) -> str:
    return written(Placement(labels=flavor.node_labels, tolerations=flavor.tolerations))


def _row(
    cluster: str, key: tuple[str, str, str, str], start_ms: int, end_ms: int | None
) -> dict[str, object]:
    names = ("queue", "resource", "flavor", "wants")
    return {"cluster": cluster, **dict(zip(names, key, strict=True)), "start_ms": start_ms, "end_ms": end_ms}
