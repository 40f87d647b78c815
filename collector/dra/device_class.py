"""DeviceClasses: kinds of devices that claims ask for."""

import msgspec

from collector.raw import Part, RawObject
from collector.wording import created, description
from domain.claims import DeviceClass
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.DEVICE_CLASS


class Cel(Part):
    expression: str | None = None


class Selector(Part):
    cel: Cel | None = None


class Spec(Part):
    selectors: list[Selector] | None = None
    extended_resource_name: str | None = None


class RawDeviceClass(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawDeviceClass, observed_ms: int) -> list[Fact]:
    """The class's creation and description."""
    creation = created(raw, KIND, observed_ms)
    selectors = (selector.cel.expression for selector in raw.spec.selectors or () if selector.cel)
    body = DeviceClass(
        selectors=tuple(filter(None, selectors)), extended_resource=raw.spec.extended_resource_name or ""
    )
    return [creation, description(raw, creation, body)]
