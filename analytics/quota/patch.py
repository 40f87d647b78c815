"""
A quota change as JSON Patch (RFC 6902) for the object that says it.

A patch tests the object's version and what was read, names on the way included, and replaces the one
value: applied to an object that has changed since, it does nothing. `resourceGroups` is an atomic
list, so that any other way of writing would own all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from domain.errors import UsageError
from domain.facts import ObjectKind
from domain.objects import ClusterQueue, Cohort, FlavorQuota, ResourceQuota, VolcanoQueue
from domain.quantity import Quota, QuotaKind

Patch: TypeAlias = tuple[dict[str, Any], ...]
Value: TypeAlias = str | int | float | None

REQUESTS = "requests."


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of the same object that may not exceed the value: where it stands, thousandths, as written."""

    path: str
    milli: int
    written: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """
    The one value of an object that says a quota, as it was last read.

    Args:
        resource_version: of that reading.
        path: JSON Pointer of the value.
        written: the value, text or number, as the object has it.
        names: what stands on the way, pointer and value, so that a list that has moved is noticed.
        limit: what goes down with it where it would be more; None where there is none.
    """

    kind: ObjectKind
    namespace: str
    name: str
    resource_version: str
    path: str
    written: Value
    names: tuple[tuple[str, str], ...] = ()
    limit: Limit | None = None


def flavor_target(
    body: ClusterQueue | Cohort,
    *,
    kind: ObjectKind,
    name: str,
    resource_version: str,
    flavor: str,
    resource: str,
) -> Target | None:
    """
    Where a ClusterQueue or Cohort says its nominal quota; None where it says none.

    Kueue refuses a lending limit above the quota, so that a cut takes it along.

    Source: Kueue `pkg/webhooks/clusterqueue_webhook.go`.
    """
    for path, names, row in _places(body.quotas):
        if (row.flavor, row.resource) == (flavor, resource):
            return Target(
                kind=kind,
                namespace="",
                name=name,
                resource_version=resource_version,
                path=f"{path}/nominalQuota",
                written=_written(row.nominal),
                names=names,
                limit=_lending(path, row.lending_limit),
            )
    return None


def volcano_target(body: VolcanoQueue, *, name: str, resource_version: str, resource: str) -> Target | None:
    """Where a Volcano queue says what it deserves, else what it may have at most; None where nowhere."""
    for key, quotas in (("deserved", body.deserved), ("capability", body.capability)):
        if resource in quotas:
            return Target(
                kind=ObjectKind.VOLCANO_QUEUE,
                namespace="",
                name=name,
                resource_version=resource_version,
                path=f"/spec/{key}/{escaped(resource)}",
                written=_written(quotas[resource]),
            )
    return None


def namespace_target(
    body: ResourceQuota, *, namespace: str, name: str, resource_version: str, resource: str
) -> Target | None:
    """Where a ResourceQuota limits the requests of a GPU resource; None where it does not."""
    if resource not in body.hard:
        return None
    return Target(
        kind=ObjectKind.RESOURCE_QUOTA,
        namespace=namespace,
        name=name,
        resource_version=resource_version,
        path=f"/spec/hard/{escaped(REQUESTS + resource)}",
        written=_written(body.hard[resource]),
    )


def weight_target(body: VolcanoQueue, *, name: str, resource_version: str) -> Target:
    """Where a Volcano queue says its weight."""
    return Target(
        kind=ObjectKind.VOLCANO_QUEUE,
        namespace="",
        name=name,
        resource_version=resource_version,
        path="/spec/weight",
        written=body.weight,
    )


def patch(target: Target, after: Value) -> Patch:
    """The patch that brings the value from what was read to `after`, in the form in which it is written."""
    return (
        {"op": "test", "path": "/metadata/resourceVersion", "value": target.resource_version},
        *_tested(target, target.written),
        *_limited(target.limit, after),
        {"op": "replace", "path": target.path, "value": _like(target.written, after)},
    )


def inverse(target: Target, after: Value) -> Patch:
    """
    The patch that brings it back, exactly as it was written.

    It cannot test the version: nobody knows it before the change is made.
    """
    return (
        *_tested(target, _like(target.written, after)),
        {"op": "replace", "path": target.path, "value": target.written},
        *_limited(target.limit, after, back=True),
    )


def refused_by_volcano(body: VolcanoQueue, *, resource: str, after: int) -> str:
    """
    Why Volcano would refuse so many GPUs as what a queue deserves, or may have; empty where it takes them.

    Source: Volcano `pkg/webhooks/admission/queues/validate/validate_queue.go`.
    """
    guaranteed, most = (
        quota.milli if quota is not None and quota.kind is QuotaKind.NUMBER else None
        for quota in (body.guarantee.get(resource), body.capability.get(resource))
    )
    if guaranteed is not None and after * 1000 < guaranteed:
        return (
            f"Volcano grants it no fewer GPUs than its guarantee of {guaranteed / 1000:g}: lower that first"
        )
    if resource in body.deserved and most is not None and after * 1000 > most:
        return f"Volcano grants it no more GPUs than its capability of {most / 1000:g}: raise that first"
    return ""


def escaped(key: str) -> str:
    """
    A key as a part of a JSON Pointer (RFC 6901).

    >>> escaped("requests.nvidia.com/gpu")
    'requests.nvidia.com~1gpu'
    """
    return key.replace("~", "~0").replace("/", "~1")


def _tested(target: Target, value: Value) -> Iterator[dict[str, Any]]:
    for path, name in target.names:
        yield {"op": "test", "path": path, "value": name}
    yield {"op": "test", "path": target.path, "value": value}


def _limited(limit: Limit | None, after: Value, *, back: bool = False) -> Iterator[dict[str, Any]]:
    """What takes a limit down to the new value where it is above it, or `back` again."""
    if limit is None or not isinstance(after, int) or limit.milli <= after * 1000:
        return
    lowered = _like(limit.written, after)
    was, now = (lowered, limit.written) if back else (limit.written, lowered)
    yield {"op": "test", "path": limit.path, "value": was}
    yield {"op": "replace", "path": limit.path, "value": now}


def _lending(path: str, quota: Quota) -> Limit | None:
    if quota.kind is not QuotaKind.NUMBER:
        return None
    return Limit(path=f"{path}/lendingLimit", milli=quota.milli, written=_written(quota))


def _like(written: Value, after: Value) -> Value:
    """A new value in the JSON type of the old one: a text stays a text."""
    return str(after) if isinstance(written, str) else after


def _written(quota: Quota) -> Value:
    """
    The field as it was read.

    Raises:
        UsageError: it was read by an older version that did not keep it.
    """
    if quota.written is None:
        message = (
            "how a quota is written is not known: the object was read before this version; it is read anew"
            " when serve watches the cluster, or by an import into a new store"
        )
        raise UsageError(message)
    return quota.written


def _places(
    quotas: Sequence[FlavorQuota],
) -> Iterator[tuple[str, tuple[tuple[str, str], ...], FlavorQuota]]:
    """
    Each quota with its pointer.

    Rows stand in the order of the object. In Kueue all flavors of a resource group cover the same
    resources, and no two groups share one: a group ends where the resources change.
    """
    flavors = [(name, list(rows)) for name, rows in groupby(quotas, key=lambda row: row.flavor)]
    groups = groupby(flavors, key=lambda flavor: [row.resource for row in flavor[1]])
    for group_index, (_, group) in enumerate(groups):
        for flavor_index, (name, rows) in enumerate(group):
            flavor = f"/spec/resourceGroups/{group_index}/flavors/{flavor_index}"
            for index, row in enumerate(rows):
                path = f"{flavor}/resources/{index}"
                yield path, ((f"{flavor}/name", name), (f"{path}/name", row.resource)), row
