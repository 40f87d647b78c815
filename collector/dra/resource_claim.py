"""ResourceClaims: devices that pods ask for, and those that they were given."""

from collections.abc import Iterator

import msgspec

from collector.raw import Int, Part, RawObject
from collector.wording import created, description, owner
from domain.claims import AllocatedDevice, DeviceRequest, ResourceClaim
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.RESOURCE_CLAIM
# On claims that the scheduler makes for a pod which asks for an extended resource.
_EXTENDED = "resource.kubernetes.io/extended-resource-claim"


class Cel(Part):
    expression: str | None = None


class Selector(Part):
    cel: Cel | None = None


class Ask(Part):
    """Devices of one class; also an alternative of a request."""

    name: str | None = None
    device_class_name: str | None = None
    allocation_mode: str | None = None
    count: Int | None = None
    admin_access: bool | None = None
    selectors: list[Selector] | None = None


class Request(Ask):
    """v1beta1 writes what is asked for on the request itself, later versions under `exactly`."""

    exactly: Ask | None = None
    first_available: list[Ask] | None = None


class Devices(Part):
    requests: list[Request] | None = None


class Spec(Part):
    devices: Devices | None = None


class Result(Part):
    request: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")


class Results(Part):
    results: list[Result] | None = None


class Allocation(Part):
    devices: Results | None = None


class Status(Part):
    allocation: Allocation | None = None


class RawResourceClaim(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


def facts(raw: RawResourceClaim, observed_ms: int) -> list[Fact]:
    """The claim's creation and description; an allocation changes the description."""
    creation = created(raw, KIND, observed_ms)
    made_for = owner(raw.metadata)
    asked = raw.spec.devices.requests if raw.spec.devices else None
    given = raw.status.allocation.devices if raw.status.allocation else None
    body = ResourceClaim(
        pod_uid=made_for.uid if made_for and made_for.kind == "Pod" else "",
        extended_resource=(raw.metadata.annotations or {}).get(_EXTENDED) == "true",
        requests=tuple(one for request in asked or () for one in _requests(request)),
        devices=tuple(
            AllocatedDevice(
                request=one.request or "",
                driver=one.driver or "",
                pool=one.pool or "",
                device=one.device or "",
                admin=bool(one.admin_access),
                shared=bool(one.share_id),
            )
            for one in (given.results if given else None) or ()
        ),
    )
    return [creation, description(raw, creation, body)]


def _requests(request: Request) -> Iterator[DeviceRequest]:
    if request.first_available:
        for ask in request.first_available:
            yield _request(f"{request.name or ''}/{ask.name or ''}", ask)
    else:
        yield _request(request.name or "", request.exactly or request)


def _request(name: str, ask: Ask) -> DeviceRequest:
    count = 1 if ask.count is None else ask.count
    selectors = (selector.cel.expression for selector in ask.selectors or () if selector.cel)
    return DeviceRequest(
        name=name,
        device_class=ask.device_class_name or "",
        count=None if ask.allocation_mode == "All" else count,
        admin=bool(ask.admin_access),
        selectors=tuple(filter(None, selectors)),
    )
