"""
What went wrong with a GPU: XIDs, rows that could not be remapped, another driver.

An exporter shows the number of the last XID, for ever: only a change tells that something happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from domain.gpu_sample import BLANKS, Owner


class FaultKind(StrEnum):
    """What is told of a GPU, or of a node's GPUs."""

    XID = "xid"
    ROW_REMAP_FAILURE = "row_remap_failure"
    DRIVER = "driver"


NOBODY: Final = Owner()
HEALTH_FIELDS: Final = {
    "DCGM_FI_DEV_XID_ERRORS": FaultKind.XID,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": FaultKind.ROW_REMAP_FAILURE,
}

# What XIDs mean, in NVIDIA's words, and whether the machine failed rather than the program. A number that is
# not here is told as it is, and nobody is blamed for it.
#
# Source: the Xid catalog of NVIDIA (release 610, for GPUs from Ampere on),
# https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html. Of the machine is a number whose
# immediate action there is for the GPU, its link or its node (RESET_GPU, RESTART_BM, CHECK_MECHANICALS, the
# workflows of 48 and of NVLink), and not for the application (RESTART_APP, CHECK_APP) or for nobody (IGNORE).
# It is otherwise for these:
# - 94: the program is to be started again, for it alone was hit; what hit it is a memory that failed.
# - 109: the GPU is to be reset. NVIDIA's own device plugin counts it as an error of the application, with
#   13, 31, 43, 45 and 68 (NVIDIA/k8s-device-plugin, internal/rm/health.go): nobody is blamed.
# - 155: the GPU is to be reset, and what the user's software did is to be looked at: nobody is blamed.
# - 61: unused from Ampere on; of older GPUs the GPU debug guidelines say to reset it.
# - 167, 171, 172: too new to have an action; what they name cannot come from a program.
_XIDS: Final = {
    8: ("GPU stopped processing", False),
    13: ("Graphics engine exception", False),
    31: ("GPU memory page fault", False),
    32: ("Invalid or corrupted push buffer stream", False),
    43: ("GPU stopped processing", False),
    45: ("Preemptive cleanup, due to previous errors", False),
    46: ("GPU stopped processing, timeout", True),
    48: ("Double bit ECC error", True),
    54: ("Auxiliary power is not connected", True),
    61: ("Internal micro-controller breakpoint", True),
    62: ("Internal micro-controller halt", True),
    63: ("ECC page retirement or row remapping", False),
    64: ("ECC page retirement or row remapping failure", True),
    68: ("Video decoder exception", False),
    69: ("Graphics engine class error", False),
    74: ("NVLink error", True),
    79: ("GPU has fallen off the bus", True),
    92: ("High single-bit ECC error rate", False),
    94: ("Contained ECC error", True),
    95: ("Uncontained ECC error", True),
    109: ("Context switch timeout error", False),
    110: ("Security fault error", True),
    119: ("GSP RPC timeout", True),
    120: ("GSP error", True),
    136: ("NVLink training failed", True),
    140: ("Unrecovered ECC error", True),
    143: ("GPU initialization error", True),
    144: ("NVLink SAW error", True),
    145: ("NVLink RLW error", True),
    146: ("NVLink TLW error", True),
    149: ("NVLink NETIR error", True),
    150: ("NVLink MSE error", True),
    154: ("GPU recovery action changed", False),
    155: ("NVLink error defined by software", False),
    156: ("Resource retirement", True),
    158: ("GPU fatal timeout", True),
    167: ("PCIe fatal timeout", True),
    171: ("Uncorrectable DRAM error", True),
    172: ("Uncorrectable SRAM error", True),
}


def xid_words(code: int) -> str:
    """
    What an XID means.

    >>> xid_words(79), xid_words(999)
    ('GPU has fallen off the bus', '')
    """
    return _XIDS.get(code, ("", False))[0]


def is_of_the_machine(kind: str, code: int) -> bool:
    """
    Whether the hardware or its driver failed, so that nobody's program is to blame.

    >>> is_of_the_machine("xid", 79), is_of_the_machine("xid", 31), is_of_the_machine("row_remap_failure", 1)
    (True, False, True)
    """
    if kind == FaultKind.XID:
        return _XIDS.get(code, ("", False))[1]
    return kind == FaultKind.ROW_REMAP_FAILURE


class HealthReading(NamedTuple):
    """
    What was read of a GPU's health at an instant, and the pod that was named beside it.

    `uuid` is empty for what is said of the node: its driver, in `words`. `code` is 0 when all is well.
    """

    node: str
    uuid: str
    kind: FaultKind
    at_ms: int
    code: int
    words: str = ""
    owner: Owner = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFault:
    """
    Something happened to a GPU in `(earliest_ms, at_ms]`; `earliest_ms` 0: before anybody looked.

    `pods` were named on the device when it was seen. Of a driver `words` is the new version.
    """

    kind: FaultKind
    node: str
    uuid: str
    at_ms: int
    earliest_ms: int
    code: int
    words: str
    pods: tuple[Owner, ...] = ()


@dataclass(slots=True, kw_only=True)
class GpuHealth:
    """
    What one GPU, or a node's driver, showed last.

    `shown` are the numbers or the version that were shown at `at_ms`; more than one where an old series
    lingers beside a new one, as Prometheus lets it for five minutes.
    """

    shown: frozenset[str] = frozenset()
    at_ms: int = 0

    def take(self, readings: Iterable[HealthReading]) -> list[GpuFault]:
        """
        What happened, by readings of one instant; an instant that is not newer tells nothing.

        A number that was shown before is no news, whoever holds the GPU now.
        """
        told = list(readings)
        if not told or told[0].at_ms <= self.at_ms:
            return []
        by_shown: dict[str, list[HealthReading]] = {}
        for reading in told:
            by_shown.setdefault(_shown(reading), []).append(reading)
        faults = [self._fault(same) for shown, same in by_shown.items() if self._is_news(same[0], shown)]
        self.shown, self.at_ms = frozenset(by_shown), told[0].at_ms
        return faults

    def _is_news(self, reading: HealthReading, shown: str) -> bool:
        if reading.kind is FaultKind.DRIVER:
            return bool(self.shown) and shown not in self.shown
        return reading.code != 0 and shown not in self.shown

    def _fault(self, same: list[HealthReading]) -> GpuFault:
        first = same[0]
        pods = {reading.owner: None for reading in same if reading.owner.pod}
        return GpuFault(
            kind=first.kind,
            node=first.node,
            uuid=first.uuid,
            at_ms=first.at_ms,
            earliest_ms=self.at_ms,
            code=first.code,
            words=first.words,
            pods=tuple(pods),
        )


def _shown(reading: HealthReading) -> str:
    return reading.words if reading.kind is FaultKind.DRIVER else str(reading.code)


def code_of(value: float) -> int | None:
    """
    The number that a reading of a fault field is; None for one that is none.

    >>> code_of(79.0), code_of(2147483632.0), code_of(float("nan")), code_of(3.5)
    (79, None, None, None)
    """
    if not 0 <= value < 1 << 31 or value != int(value) or any(low <= value <= high for low, high in BLANKS):
        return None
    return int(value)
