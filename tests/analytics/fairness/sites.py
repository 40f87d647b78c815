"""Small sites: nodes, flavors, queues and cohorts that say little, at instants in seconds."""

from collections.abc import Mapping

from analytics.fairness.books.course import FOREVER, Course, Stay, Stretch
from analytics.fairness.books.site import Site
from analytics.history import Described, History
from domain import objects
from domain.facts import Moment, ObjectKind, Transition
from domain.quantity import Quota

GPU = 1_000_000
RESOURCE = "nvidia.com/gpu"
END = FOREVER


def quota(
    flavor: str, nominal: object, *, borrow: object = None, lend: object = None, resource: str = RESOURCE
) -> objects.FlavorQuota:
    def of(written: object) -> Quota:
        return Quota.of(None if written is None else str(written))

    return objects.FlavorQuota(
        flavor=flavor,
        resource=resource,
        nominal=of(nominal),
        borrowing_limit=of(borrow),
        lending_limit=of(lend),
    )


def queue_body(cohort: str, *quotas: objects.FlavorQuota, weight: int = 1000) -> objects.ClusterQueue:
    return objects.ClusterQueue(
        cohort=cohort, quotas=quotas, strategy="BestEffortFIFO", stop_policy="None", weight_milli=weight,
        reclaim_within_cohort="Any", within_cluster_queue="Never",
    )  # fmt: skip


def cohort_body(parent: str = "", *quotas: objects.FlavorQuota, weight: int = 1000) -> objects.Cohort:
    return objects.Cohort(parent=parent, quotas=quotas, weight_milli=weight)


def flavor_body(**labels: str) -> objects.ResourceFlavor:
    return objects.ResourceFlavor(node_labels=labels, taints=(), topology="")


def node_body(
    pool: str = "a100", *, gpus: int = 8, cordoned: bool = False, more: Mapping[str, int] | None = None
) -> objects.Node:
    offered = {RESOURCE: gpus, **(more or {})}
    return objects.Node(
        labels={"pool": pool, "nvidia.com/gpu.product": pool.upper()},
        gpu_capacity=offered,
        gpu_allocatable=offered,
        unschedulable=cordoned,
        ready="True",
        taints=(),
    )


def volcano_body(
    weight: int = 1, *, capability: object = None, deserved: object = None, parent: str = ""
) -> objects.VolcanoQueue:
    def of(written: object) -> dict[str, Quota]:
        return {} if written is None else {RESOURCE: Quota.of(str(written))}

    return objects.VolcanoQueue(
        weight=weight, parent=parent, reclaimable=True, capability=of(capability), deserved=of(deserved),
        guarantee={},
    )  # fmt: skip


def history(
    kind: ObjectKind,
    name: str,
    *said: tuple[float, objects.Body],
    namespace: str = "",
    gone: float | None = None,
    uid: str = "",
) -> History:
    """An object by what it said of itself from when on."""
    descriptions = tuple(
        Described(from_ms=round(at * 1000), observed_ms=round(at * 1000), body=body) for at, body in said
    )
    gone_ms = None if gone is None else round(gone * 1000)
    ends = (
        ()
        if gone_ms is None
        else (Transition(uid=uid or name, kind=kind, moment=Moment.GONE, at_ms=gone_ms, observed_ms=gone_ms),)
    )
    return History(
        uid=uid or f"{kind}-{namespace}-{name}",
        kind=kind,
        namespace=namespace,
        name=name,
        descriptions=descriptions,
        transitions=ends,
    )


def site(*histories: History) -> Site:
    """A cluster `north` of these objects."""
    return Site.of("north", histories)


def nodes(*names: str, pool: str = "a100", gpus: int = 8) -> tuple[History, ...]:
    return tuple(history(ObjectKind.NODE, name, (0, node_body(pool, gpus=gpus))) for name in names)


def queue(name: str, cohort: str, *quotas: objects.FlavorQuota, weight: int = 1000) -> History:
    return history(ObjectKind.CLUSTER_QUEUE, name, (0, queue_body(cohort, *quotas, weight=weight)))


def flavor(name: str) -> History:
    """A flavor for the nodes with the label `pool` of its name."""
    return history(ObjectKind.RESOURCE_FLAVOR, name, (0, flavor_body(pool=name)))


def course(
    uid: str = "w",
    *,
    gpus: int = 1,
    pods: int = 1,
    queue: str = "nlp",
    team: str = "nlp",
    namespace: str = "nlp",
    manager: str = "kueue",
    waits: tuple[tuple[float, float | None], ...] = (),
    stays: tuple[tuple[str, float, float | None], ...] = (),
    flavors: tuple[tuple[str, float, float | None], ...] = (),
    each: Mapping[str, int] | None = None,
    model: str = "A100",
    **rest: object,
) -> Course:
    """A workload of pods with `gpus` each; times are seconds, None while it lasts."""

    def ms(at: float | None) -> int:
        return END if at is None else round(at * 1000)

    one = each or {RESOURCE: gpus}
    return Course(
        uid=uid,
        namespace=namespace,
        team=team,
        queue=queue,
        manager=manager,
        each=one,
        total={name: count * pods for name, count in one.items()},
        requested=gpus * pods * GPU,
        spans=[Stretch("queued", ms(start), ms(end)) for start, end in waits],
        stays=[Stay(node, model, gpus * GPU, ms(start), ms(end)) for node, start, end in stays],
        reservations=[Stretch(name, ms(start), ms(end)) for name, start, end in flavors],
        **rest,  # type: ignore[arg-type]
    )
