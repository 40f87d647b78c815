"""ResourceSlices: the devices that a driver offers on a node."""

import msgspec

from collector.raw import Int, Part, RawObject
from collector.wording import created, description
from domain.claims import Device, ResourceSlice
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.RESOURCE_SLICE
_GPU_DRIVERS = frozenset({"gpu.nvidia.com"})


class Attribute(Part):
    string: str | None = None


class Basic(Part):
    attributes: dict[str, Attribute] | None = None


class RawDevice(Part):
    """v1beta1 writes attributes under `basic`."""

    name: str | None = None
    attributes: dict[str, Attribute] | None = None
    basic: Basic | None = None


class Pool(Part):
    name: str | None = None
    generation: Int | None = None


class Spec(Part):
    driver: str | None = None
    node_name: str | None = None
    pool: Pool = msgspec.field(default_factory=Pool)
    devices: list[RawDevice] | None = None


class RawResourceSlice(RawObject):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawResourceSlice, observed_ms: int) -> list[Fact]:
    """The slice's creation and description; of drivers for other things than GPUs no devices."""
    creation = created(raw, KIND, observed_ms)
    spec = raw.spec
    offered = spec.devices if spec.driver in _GPU_DRIVERS else None
    body = ResourceSlice(
        driver=spec.driver or "",
        node=spec.node_name or "",
        pool=spec.pool.name or "",
        generation=spec.pool.generation or 0,
        devices=tuple(_device(one) for one in offered or ()),
    )
    return [creation, description(raw, creation, body)]


def _device(written: RawDevice) -> Device:
    attributes = written.attributes or (written.basic.attributes if written.basic else None) or {}

    def said(name: str) -> str:
        attribute = attributes.get(name) or attributes.get(f"gpu.nvidia.com/{name}") or Attribute()
        return attribute.string or ""

    return Device(
        name=written.name or "",
        kind=said("type"),
        product=said("productName"),
        profile=said("profile"),
        gpu_uuid=said("parentUUID") or said("uuid"),
    )
