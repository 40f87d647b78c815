"""
What is read of a GPU at an instant: which fields count, which values are none, whose it is.

Names are those of dcgm-exporter. A value that is not one is set aside with its cause, never replaced.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from domain.quantity import MICRO_PER_GPU, mig_slices

# How pages call what tells of GPUs, beside kinds of objects.
GPU_METRICS: Final = "GPU metrics"


class Field(StrEnum):
    """The fields that the product keeps, by what they tell."""

    ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    SM = "DCGM_FI_PROF_SM_ACTIVE"
    UTIL = "DCGM_FI_DEV_GPU_UTIL"
    USED = "DCGM_FI_DEV_FB_USED"
    FREE = "DCGM_FI_DEV_FB_FREE"
    RESERVED = "DCGM_FI_DEV_FB_RESERVED"
    TOTAL = "DCGM_FI_DEV_FB_TOTAL"


class NoValue(StrEnum):
    """Why a reading has no value."""

    NAN = "not a number"
    INFINITE = "infinite"
    BLANK = "blank: DCGM has no value"
    OUT_OF_RANGE = "out of range"


# The highest value that a field can have: a ratio, percent, and MiB (a TiB of memory).
HIGHEST: Final = {
    Field.ENGINE: 1.0,
    Field.SM: 1.0,
    Field.UTIL: 100.0,
    Field.USED: 1048576.0,
    Field.FREE: 1048576.0,
    Field.RESERVED: 1048576.0,
    Field.TOTAL: 1048576.0,
}
# First and last of DCGM's marks for blank, not found, not supported, not permitted (dcgm_structs.h):
# of 32 bits, of floats, of 64 bits (which a float holds as 2^63).
BLANKS: Final = (
    (2147483632.0, 2147483635.0),
    (140737488355328.0, 140737488355331.0),
    (9223372036854775792.0, 9223372036854775795.0),
)
LONGEST_STEP_MS: Final = 1_800_000

_NAMED_MEMORY = re.compile(r"(\d+)\s?GB", re.IGNORECASE)
_PROFILE_MEMORY = re.compile(r"\d+g\.(\d+)gb")
# Cards whose name does not say their memory, GiB (NVIDIA data sheets).
_MEMORY_BY_PRODUCT = {"L40S": 48, "L40": 48, "L4": 24, "T4": 16, "A10": 24, "A40": 48, "A30": 24, "H200": 141}


def value_of(field: Field, value: float) -> float | NoValue:
    """
    The value, or why it is none.

    >>> value_of(Field.UTIL, 97.0), value_of(Field.UTIL, 2619.0).value
    (97.0, 'out of range')
    >>> value_of(Field.USED, 2147483632.0).name, value_of(Field.ENGINE, float("nan")).name
    ('BLANK', 'NAN')
    """
    if value != value:  # noqa: PLR0124 (NaN is the one value that differs from itself)
        return NoValue.NAN
    if value in (float("inf"), float("-inf")):
        return NoValue.INFINITE
    if any(first <= value <= last for first, last in BLANKS):
        return NoValue.BLANK
    return value if 0 <= value <= HIGHEST[field] else NoValue.OUT_OF_RANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, or a MIG instance of one, on a node; `profile` and `instance` are empty for a whole GPU."""

    node: str
    uuid: str
    model: str = ""
    instance: str = ""
    profile: str = ""

    @property
    def name(self) -> str:
        """The device's key on its node: all instances of a GPU share its UUID."""
        return f"{self.uuid}/{self.instance}" if self.instance else self.uuid

    @property
    def micro_gpus(self) -> int | None:
        """Its part of a card; None where the card's slices are unknown."""
        if not self.instance:
            return MICRO_PER_GPU
        slices = mig_slices(self.profile, self.model)
        return None if slices is None else slices[0] * MICRO_PER_GPU // slices[1]

    @property
    def memory_mib(self) -> float | None:
        """
        Its memory as its name states it, for a source that reads only what is used.

        >>> Device(node="n", uuid="u", model="NVIDIA A100-SXM4-80GB").memory_mib
        81920.0
        """
        named = _PROFILE_MEMORY.match(self.profile) if self.instance else _NAMED_MEMORY.search(self.model)
        if named is not None:
            return float(named.group(1)) * 1024
        words = re.split(r"[\s-]", self.model)
        found = next((gib for name, gib in _MEMORY_BY_PRODUCT.items() if name in words), None)
        return None if found is None or self.instance else float(found) * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The pod that a series names; all empty where it names none. `copy` tells copies apart."""

    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    copy: str | None = None


def owner_of(labels: dict[str, str]) -> Owner:
    """
    Whose a series is, whichever way the scrape was set up.

    Where target labels win (`honor_labels: false`), the pod that holds the GPU is `exported_pod`, and
    `pod` is the exporter's own: a GPU without the former is free, not the exporter's.

    >>> owner_of({"pod": "dcgm-exporter-x", "namespace": "mon", "container": "dcgm-exporter"}).pod
    ''
    """
    copy = labels.get("vgpu")
    if labels.get("exported_pod"):
        return Owner(
            namespace=labels.get("exported_namespace", ""),
            pod=labels["exported_pod"],
            pod_uid=labels.get("exported_pod_uid", labels.get("pod_uid", "")),
            copy=copy,
        )
    pod, container = labels.get("pod", ""), labels.get("container", "")
    # The chart calls its container `exporter`, and so may any work: then the pod's name decides.
    known_by = pod if container in ("", "exporter") else container
    if pod and "dcgm-exporter" not in known_by:
        return Owner(
            namespace=labels.get("namespace", ""), pod=pod, pod_uid=labels.get("pod_uid", ""), copy=copy
        )
    # An exporter with the old names: the target's labels stand beside, and none is renamed.
    if labels.get("pod_name"):
        return Owner(
            namespace=labels.get("pod_namespace") or labels.get("namespace", ""),
            pod=labels["pod_name"],
            pod_uid=labels.get("pod_uid", ""),
            copy=copy,
        )
    return Owner(copy=copy)


def device_of(labels: dict[str, str], *, node: str = "") -> Device | None:
    """
    Which device a series is about; None where it names no UUID.

    Args:
        labels: of the series.
        node: where the labels name none.
    """
    uuid = labels.get("UUID") or labels.get("uuid")
    if not uuid:
        return None
    return Device(
        node=labels.get("node") or labels.get("Hostname") or labels.get("hostname") or node,
        uuid=uuid,
        model=labels.get("modelName", ""),
        instance=labels.get("GPU_I_ID", ""),
        profile=labels.get("GPU_I_PROFILE", ""),
    )
