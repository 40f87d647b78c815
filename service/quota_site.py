"""Who has which quota now, and which object says so: the pools in which proposals are made."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from analytics.fairness.books.layout import kueue_pool, plain_pool
from analytics.fairness.books.site import Quotas
from analytics.quota.patch import Target, flavor_target, namespace_target, volcano_target, weight_target
from analytics.quota.rules import Leftover
from domain.facts import ObjectKind
from domain.objects import BODY_TYPES, Body, ClusterQueue, Cohort, FlavorQuota, ResourceQuota, VolcanoQueue
from domain.quantity import Quota, QuotaKind
from store.embedded import Store

# Whole GPUs are proposed, so only the resource that counts whole GPUs is.
RESOURCE: Final = "nvidia.com/gpu"
ALL_MODELS: Final = "all models"
_KINDS = (ObjectKind.CLUSTER_QUEUE, ObjectKind.COHORT, ObjectKind.VOLCANO_QUEUE, ObjectKind.RESOURCE_QUOTA)
_DECODERS = {kind: msgspec.json.Decoder(BODY_TYPES[kind]) for kind in _KINDS}
_MILLI = 1000

# One row per object that is there at $as_of_ms, with the version of its newest reading.
_STATES: Final = """
select uid, resource_version
from object_state
where cluster = $cluster and (gone_ms is null or gone_ms >= $as_of_ms)
"""
# One row per GPU model of the nodes that were there at $as_of_ms.
_MODELS: Final = """
select distinct gpu_model
from node_capacity
where
    cluster = $cluster
    and start_ms < $as_of_ms
    and coalesce(end_ms >= $as_of_ms, true)
    and (capacity_micro_gpus is null or capacity_micro_gpus > 0)
order by gpu_model
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaObject:
    """An object that says a quota, as it was last read."""

    kind: ObjectKind
    namespace: str
    name: str
    uid: str
    resource_version: str
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A holder's quota in a pool, whole GPUs, and the object that says it."""

    gpus: int
    says: QuotaObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSite:
    """
    A pool as its objects say it now.

    `flavor` is empty outside Kueue. `cohort` is the cohort's own quota, where an object says one.
    """

    cluster: str
    pool: str
    flavor: str
    holders: Mapping[str, Holding]
    cohort: Holding | None
    leftover: Leftover


def quota_objects(store: Store, cluster: str, as_of_ms: int) -> dict[str, QuotaObject]:
    """Every object that says quotas and is there at that instant, by uid."""
    asked = {"cluster": cluster, "as_of_ms": as_of_ms}
    versions = {str(row["uid"]): str(row["resource_version"]) for row in store.rows(_STATES, asked)}
    found: dict[str, QuotaObject] = {}
    for told in sorted(store.descriptions(cluster, _KINDS), key=lambda each: each.from_ms):
        if told.uid in versions and told.from_ms < as_of_ms:
            found[told.uid] = QuotaObject(
                kind=told.kind,
                namespace=told.namespace,
                name=told.name,
                uid=told.uid,
                resource_version=versions[told.uid],
                body=_DECODERS[told.kind].decode(told.body),
            )
    return found


def pools(store: Store, cluster: str, as_of_ms: int) -> list[PoolSite]:
    """The pools in which quotas of whole GPUs are held."""
    objects = list(quota_objects(store, cluster, as_of_ms).values())
    models = [
        str(row["gpu_model"]) for row in store.rows(_MODELS, {"cluster": cluster, "as_of_ms": as_of_ms})
    ]
    # Outside Kueue a quota is one for all models of the cluster.
    plain = plain_pool(cluster, models[0]) if len(models) == 1 else f"{cluster}/{ALL_MODELS}"
    outside = dict(_outside(objects))
    found = list(_kueue_pools(cluster, objects))
    if outside:
        found.append(
            PoolSite(
                cluster=cluster, pool=plain, flavor="", holders=outside, cohort=None, leftover=Leftover.UNUSED
            )
        )
    return found


def _kueue_pools(cluster: str, objects: Sequence[QuotaObject]) -> Iterator[PoolSite]:
    queues = {each.name: each for each in objects if isinstance(each.body, ClusterQueue)}
    cohorts = {each.name: each for each in objects if isinstance(each.body, Cohort)}
    quotas = Quotas(
        cluster_queues={name: each.body for name, each in queues.items()},  # type: ignore[misc]
        cohorts={name: each.body for name, each in cohorts.items()},  # type: ignore[misc]
    )
    holders: dict[tuple[str, str], dict[str, Holding]] = defaultdict(dict)
    for name, says in queues.items():
        for row in _rows(says.body):
            gpus = _whole(row.nominal)
            if gpus is not None:
                pool = kueue_pool(quotas, name, row.flavor)
                holders[pool, row.flavor][name] = Holding(gpus=gpus, says=says)
    for (pool, flavor), members in sorted(holders.items()):
        own = cohorts.get(pool.removesuffix(f"/{flavor}"))
        said = [_whole(row.nominal) for row in _rows(own.body) if row.flavor == flavor] if own else []
        cohort = Holding(gpus=said[0], says=own) if own and said and said[0] is not None else None
        yield PoolSite(
            cluster=cluster,
            pool=pool,
            flavor=flavor,
            holders=members,
            cohort=cohort,
            # Kueue borrows from nominal quotas only: without a cohort's own, what is cut is lost to all.
            leftover=Leftover.COHORT if cohort else Leftover.NOT_CUT,
        )


def _rows(body: Body) -> list[FlavorQuota]:
    rows = body.quotas if isinstance(body, ClusterQueue | Cohort) else ()
    return [row for row in rows if row.resource == RESOURCE]


def _outside(objects: Sequence[QuotaObject]) -> Iterator[tuple[str, Holding]]:
    """Volcano queues, and namespaces by the tightest of their ResourceQuotas."""
    tightest: dict[str, Holding] = {}
    for says in sorted(objects, key=lambda each: (each.namespace, each.name)):
        if isinstance(says.body, VolcanoQueue):
            quota = says.body.deserved.get(RESOURCE) or says.body.capability.get(RESOURCE)
            gpus = None if quota is None else _whole(quota)
            if gpus is not None:
                yield says.name, Holding(gpus=gpus, says=says)
        elif isinstance(says.body, ResourceQuota) and RESOURCE in says.body.hard:
            if says.body.scoped is True:
                # It is about some of the pods, and use is told of all of them.
                continue
            gpus = _whole(says.body.hard[RESOURCE])
            holder = f"namespace/{says.namespace}"
            if gpus is not None and (holder not in tightest or gpus < tightest[holder].gpus):
                tightest[holder] = Holding(gpus=gpus, says=says)
    yield from tightest.items()


def _whole(quota: Quota) -> int | None:
    """Whole GPUs; None where it is no number, not whole, or stands for no limit."""
    most = 10**6 * _MILLI
    if quota.kind is not QuotaKind.NUMBER or quota.milli % _MILLI or quota.milli > most:
        return None
    return quota.milli // _MILLI


def target(says: QuotaObject, *, flavor: str, weight: bool) -> Target | None:
    """
    The value of the object that is to be changed; None where it has none any more.

    Args:
        weight: of a Volcano queue its weight, instead of its quota.
    """
    match says.body:
        case ClusterQueue() | Cohort() as body:
            return flavor_target(
                body,
                kind=says.kind,
                name=says.name,
                resource_version=says.resource_version,
                flavor=flavor,
                resource=RESOURCE,
            )
        case VolcanoQueue() as body if weight:
            return weight_target(body, name=says.name, resource_version=says.resource_version)
        case VolcanoQueue() as body:
            return volcano_target(
                body, name=says.name, resource_version=says.resource_version, resource=RESOURCE
            )
        case ResourceQuota() as body:
            return namespace_target(
                body,
                namespace=says.namespace,
                name=says.name,
                resource_version=says.resource_version,
                resource=RESOURCE,
            )
    return None


def reclaim_policies(site: PoolSite, holder: str) -> list[str]:
    """Kueue's `reclaimWithinCohort` of the other queues of the pool."""
    return [
        other.says.body.reclaim_within_cohort
        for name, other in site.holders.items()
        if name != holder and isinstance(other.says.body, ClusterQueue)
    ]


def record(says: QuotaObject) -> dict[str, Any]:
    """Which object it is, for people."""
    return {"kind": str(says.kind), "namespace": says.namespace, "name": says.name}
