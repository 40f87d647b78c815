"""
What objects of dynamic resource allocation say of themselves: claims, slices, classes of devices.

How many GPUs that is, `analytics.claims` says.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaim:
    """
    A claim that a pod uses. Its `own` one was made for it from a template, and no other pod has it.

    `name` is that of the ResourceClaim, empty while it has not been made.
    """

    name: str
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """
    A request of a claim; of alternatives, `name` is that of the request and of the alternative.

    `count` is None where all devices are meant that match.
    """

    name: str
    device_class: str
    count: int | None
    admin: bool
    selectors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDevice:
    """A device that a claim was given. Of a `shared` one other claims have a part."""

    request: str
    driver: str
    pool: str
    device: str
    admin: bool
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaim:
    """
    Devices, asked for and given.

    `pod_uid` is the pod that it was made for, empty where pods share it. The scheduler makes one
    of `extended_resource` for a pod that asks for a resource; the pod's request tells the same.
    """

    pod_uid: str
    extended_resource: bool
    requests: tuple[DeviceRequest, ...]
    devices: tuple[AllocatedDevice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU or a part of one; `kind` is `gpu`, `mig` or `vfio`."""

    name: str
    kind: str
    product: str
    profile: str
    gpu_uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSlice:
    """The devices of a driver on a node; those of drivers for other things than GPUs are left out."""

    driver: str
    node: str
    pool: str
    generation: int
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A kind of device; pods may ask for it as `extended_resource` too."""

    selectors: tuple[str, ...]
    extended_resource: str
