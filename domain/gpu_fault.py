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

# What XIDs mean, in NVIDIA's words (XID catalog), and whether hardware or driver failed rather than the
# program. A number that is not here is told as it is, and nobody is blamed for it.
_XIDS: Final = {
    13: ("Graphics engine exception", False),
    31: ("GPU memory page fault", False),
    43: ("GPU stopped processing", False),
    45: ("Preemptive cleanup, due to previous errors", False),
    48: ("Double bit ECC error", True),
    61: ("Internal micro-controller breakpoint", True),
    62: ("Internal micro-controller halt", True),
    63: ("ECC page retirement or row remapping", False),
    64: ("ECC page retirement or row remapping failure", True),
    74: ("NVLink error", True),
    79: ("GPU has fallen off the bus", True),
    92: ("High single-bit ECC error rate", False),
    94: ("Contained ECC error", True),
    95: ("Uncontained ECC error", True),
    109: ("Context switch timeout error", False),
    119: ("GSP RPC timeout", True),
    120: ("GSP error", True),
    140: ("Unrecovered ECC error", True),
    154: ("GPU recovery action changed", False),
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
