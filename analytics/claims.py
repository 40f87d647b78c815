"""
GPUs that pods hold through claims of dynamic resource allocation.

A claim counts once, however many pods use it: the one that was bound first holds it, and when that
one is released, the next. Access for administrators counts nothing, and neither does a claim that
stands for an extended resource: that is what the pod asks for.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from analytics.history import Catalog, History, NodeStretch, WorkloadFacts
from domain import objects
from domain.claims import Device, DeviceRequest, PodClaim, ResourceClaim
from domain.objects import Resources
from domain.workload import Holding

_DRIVER = "gpu.nvidia.com"
_WHOLE_GPUS = frozenset({"gpu.nvidia.com", "vfio.gpu.nvidia.com"})
_PARTS_OF_GPUS = "mig.nvidia.com"
# No card has it, so that its quantity is undefined.
_UNKNOWN_PART = "nvidia.com/mig-unknown"
_PROFILE = re.compile(r"""profile\s*==\s*['"](\d+g\.\d+gb[^'"]*)['"]""")


def gpu_resources(claim: ResourceClaim) -> Resources:
    """
    The GPUs of a claim, in the words of the device plugin: those given, else those asked for.

    Of alternatives the first is meant until one is given. A part of a GPU whose profile no selector
    names is unknown.
    """
    if claim.extended_resource:
        return {}
    asked = {request.name: request for request in claim.requests}
    found: Resources = {}
    if claim.devices:
        for device in claim.devices:
            if device.driver == _DRIVER and not device.admin:
                name = _UNKNOWN_PART if device.shared else _given(asked.get(device.request), device.device)
                found[name] = found.get(name, 0) + 1
        return found
    for request in _first_alternatives(claim.requests):
        name = _resource(request)
        if name and not request.admin:
            name, count = (_UNKNOWN_PART, 1) if request.count is None else (name, request.count)
            found[name] = found.get(name, 0) + count
    return found


def offered_resources(devices: Iterable[Device]) -> Resources:
    """
    The GPUs that a node offers as devices, in the words of the device plugin.

    A card that may be cut is there as a whole and in all its parts: it counts as a whole.
    """
    found: Resources = {}
    for parts in by_card(devices).values():
        whole = any(part.kind in {"gpu", "vfio"} for part in parts)
        for name in ["nvidia.com/gpu"] if whole else [f"nvidia.com/mig-{part.profile}" for part in parts]:
            found[name] = found.get(name, 0) + 1
    return found


def by_card(devices: Iterable[Device]) -> dict[str, list[Device]]:
    """Devices by the physical card that they are, or are a part of."""
    found: dict[str, list[Device]] = {}
    for device in devices:
        found.setdefault(device.gpu_uuid or device.name, []).append(device)
    return found


def with_claims(holdings: tuple[Holding, ...], facts: WorkloadFacts) -> tuple[Holding, ...]:
    """
    The holdings, with what their pods hold through claims.

    The claim of a pod's own that nobody read makes its quantity undefined. A shared one that is not
    among the facts counts in another workload. Where a claim passes on to a pod that was there
    before, its holding is cut in two.
    """
    used = {pod.uid: _claims_of(pod) for pod in facts.pods}
    if not any(used.values()):
        return holdings
    claims = _Claims.of(facts)
    passed: list[tuple[Holding, int, int | None]] = []
    for name in sorted({claim.name for uses in used.values() for claim in uses if not claim.own}):
        users = [
            holding
            for holding in holdings
            if any(one.name == name and not one.own for one in used.get(holding.pod_uid, ()))
        ]
        passed += [
            (holding, from_ms, claims.micro_gpus(name, holding)) for holding, from_ms in _turns(users)
            if claims.knows(name)
        ]  # fmt: skip
    found: list[Holding] = []
    for holding in holdings:
        quantity = holding.micro_gpus
        for claim in used.get(holding.pod_uid, ()):
            if claim.own:
                quantity = _sum(quantity, claims.micro_gpus(claim.name, holding))
        turns = sorted(
            ((from_ms, more) for of, from_ms, more in passed if of is holding), key=lambda turn: turn[0]
        )
        found += _pieces(replace(holding, micro_gpus=quantity), turns)
    return tuple(found)


def claimed_resources(facts: WorkloadFacts) -> dict[str, Resources]:
    """
    By pod, the devices that it claims; what pods share is counted at the one that was made first.

    Claims that nobody read, and those of another workload, count nothing.
    """
    claims = _Claims.of(facts)
    found: dict[str, Resources] = {}
    taken: set[str] = set()
    for pod in sorted(facts.pods, key=lambda one: (one.created_ms, one.uid)) if claims.resources else ():
        of_pod = found.setdefault(pod.uid, {})
        for claim in _claims_of(pod):
            if not claim.own and claim.name in taken:
                continue
            taken.add(claim.name)
            for name, count in claims.resources.get(claim.name, {}).items():
                of_pod[name] = of_pod.get(name, 0) + count
    return found


def asked_micro_gpus(facts: WorkloadFacts, pod: objects.Pod, stretch: NodeStretch | None) -> int | None:
    """What a pod asks for, with the claims that no other pod has; on a node where there is one."""
    total = facts.catalog.micro_gpus(pod.gpu_requests, stretch)
    own = [claim.name for claim in pod.claims if claim.own]
    claims = _Claims.of(facts) if own else None
    for name in own:
        total = _sum(total, claims.micro_gpus(name) if claims else None)
    return total


def claimed_micro_gpus(facts: WorkloadFacts, *, members: int) -> int | None:
    """What a workload asks for through claims: shared ones once, own ones for so many pods at most."""
    used = [_claims_of(pod) for pod in facts.pods]
    if not any(used):
        return 0
    claims = _Claims.of(facts)
    shared = {claim.name for uses in used for claim in uses if not claim.own and claims.knows(claim.name)}
    total: int | None = 0
    for name in shared:
        total = _sum(total, claims.micro_gpus(name))
    own: list[int] = []
    for uses in used:
        quantity: int | None = 0
        for claim in uses:
            if claim.own:
                quantity = _sum(quantity, claims.micro_gpus(claim.name))
        if quantity is None:
            return None
        own.append(quantity)
    return _sum(total, sum(sorted(own, reverse=True)[:members]))


@dataclass(frozen=True, slots=True)
class _Claims:
    """The claims of a workload by name."""

    catalog: Catalog
    resources: dict[str, Resources] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: WorkloadFacts) -> "_Claims":
        found: dict[str, Resources] = {}
        for history in facts.claims:
            said = [d.body for d in history.descriptions if isinstance(d.body, ResourceClaim)]
            # When the last pod is over the devices are taken back, and the claim says no longer which.
            given = [body for body in said if body.devices]
            if said:
                found[history.name] = gpu_resources((given or said)[-1])
        return cls(facts.catalog, found)

    def knows(self, name: str) -> bool:
        return name in self.resources

    def micro_gpus(self, name: str, holding: Holding | None = None) -> int | None:
        """Of a claim, on the node of a holding where there is one; None where it was not read."""
        resources = self.resources.get(name)
        if resources is None:
            return None
        stretch = self.catalog.at(holding.node, holding.bound_ms) if holding else None
        # A claim names devices, not shares of them, whatever the device plugin of the node does.
        whole = replace(stretch, replicas=1, product=stretch.model) if stretch else None
        return self.catalog.micro_gpus(resources, whole)


def _claims_of(pod: History) -> tuple[PodClaim, ...]:
    body = pod.latest
    return body.claims if isinstance(body, objects.Pod) else ()


def _turns(users: Iterable[Holding]) -> Iterator[tuple[Holding, int]]:
    """Who holds a shared claim and since when, one after the other without a hole."""
    free_ms: int | None = None
    for user in sorted(users, key=lambda one: (one.bound_ms, one.pod_uid)):
        from_ms = user.bound_ms if free_ms is None else max(user.bound_ms, free_ms)
        if user.released_ms is not None and user.released_ms <= from_ms:
            continue
        yield user, from_ms
        if user.released_ms is None:
            return
        free_ms = user.released_ms


def _pieces(holding: Holding, turns: list[tuple[int, int | None]]) -> list[Holding]:
    """A holding, cut where a claim is passed on to it."""
    pieces = [holding]
    for from_ms, more in turns:
        last = pieces.pop()
        after = replace(last, micro_gpus=_sum(last.micro_gpus, more))
        if from_ms > last.bound_ms:
            pieces.append(replace(last, released_ms=from_ms, released_earliest_ms=None))
            started_ms = None if last.started_ms is None else max(last.started_ms, from_ms)
            after = replace(
                after, bound_ms=from_ms, bound_earliest_ms=None, started_ms=started_ms, runs=(), restarts=0
            )
        pieces.append(after)
    return pieces


def _given(request: DeviceRequest | None, device: str) -> str:
    """The resource of a device; of a class that a site made, the driver's name of it tells the part."""
    known = _resource(request) if request else ""
    if known:
        return known
    return _part(request) if "-mig-" in device else "nvidia.com/gpu"


def _resource(request: DeviceRequest) -> str:
    if request.device_class in _WHOLE_GPUS:
        return "nvidia.com/gpu"
    return _part(request) if request.device_class == _PARTS_OF_GPUS else ""


def _part(request: DeviceRequest | None) -> str:
    found = (_PROFILE.search(selector) for selector in (request.selectors if request else ()))
    profile = next((match.group(1) for match in found if match), None)
    return f"nvidia.com/mig-{profile}" if profile else _UNKNOWN_PART


def _first_alternatives(requests: Iterable[DeviceRequest]) -> Iterator[DeviceRequest]:
    seen: set[str] = set()
    for request in requests:
        name, _, alternative = request.name.partition("/")
        if not alternative or name not in seen:
            yield request
        seen.add(name)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
