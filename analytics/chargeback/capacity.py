"""
The capacity that was there, and what became of it.

    capacity x hours = held + idle + unavailable - overlap
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from analytics.chargeback.usage import Cutter, Piece, Stay, Unknown, clip
from domain.money import Price


class Kind(StrEnum):
    """What became of GPU-time; a share is a part of the common cost that a team bears."""

    HELD = "held"
    IDLE = "idle"
    IDLE_SHARE = "idle_share"
    UNAVAILABLE = "unavailable"
    UNAVAILABLE_SHARE = "unavailable_share"
    OVERLAP = "overlap"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLine:
    """GPU-time of one kind in one cluster and model, on one day, at one price; never negative."""

    kind: Kind
    cluster: str
    gpu_model: str
    day: str
    price: Price
    micro_gpu_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """
    The books' sum, in micro-GPU-milliseconds; each part is measured on its own.

    Where a node's capacity is not known, it counts as what was held, and the stretch is told as
    unknown.
    """

    capacity: int = 0
    held: int = 0
    idle: int = 0
    unavailable: int = 0
    overlap: int = 0

    @property
    def difference(self) -> int:
        """0 when the books close."""
        return self.capacity - (self.held + self.idle + self.unavailable - self.overlap)

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(
            capacity=self.capacity + other.capacity,
            held=self.held + other.held,
            idle=self.idle + other.idle,
            unavailable=self.unavailable + other.unavailable,
            overlap=self.overlap + other.overlap,
        )


def capacity_lines(
    stays: Iterable[Stay], cutter: Cutter
) -> tuple[list[CapacityLine], dict[str, Hours], list[Unknown]]:
    """
    Lines of idle, unavailable and overlapping GPU-time; the books' sum by day; what is not known.

    At each instant a schedulable node is idle by what is allocatable and not held; what it has
    beyond that and beyond what is held is unavailable. A node that takes no pods is unavailable
    where it is not held. What is held beyond the whole node is overlap, for example a pod that is
    not gone yet when its successor is bound.

    Raises:
        PolicyError: the price book has no price for a node.
    """
    by_node: dict[tuple[str, str], list[Stay]] = defaultdict(list)
    for stay in stays:
        by_node[stay.cluster, stay.node].append(stay)
    found: dict[CapacityLine, int] = defaultdict(int)
    hours: dict[str, Hours] = {day.label: Hours() for day in cutter.days}
    unknown = []
    for node in sorted({*by_node, *cutter.stretches}):
        for piece, held in _levels(node, by_node[node], cutter):
            lasted = piece.end_ms - piece.start_ms
            because = _not_known(piece, held)
            if because:
                unknown.append(
                    Unknown(
                        cluster=node[0],
                        node=node[1],
                        start_ms=piece.start_ms,
                        end_ms=piece.end_ms,
                        because=because,
                    )
                )
            for kind, micro_gpus in _became(piece, held).items():
                line = CapacityLine(
                    kind=kind,
                    cluster=node[0],
                    gpu_model=piece.sku.gpu_model,
                    day=piece.day,
                    price=piece.price,
                    micro_gpu_ms=0,
                )
                found[line] += micro_gpus * lasted
            hours[piece.day] += _hours(piece, held, lasted)
    lines = [replace(line, micro_gpu_ms=amount) for line, amount in found.items() if amount]
    return sorted(lines, key=_order), hours, unknown


def _levels(node: tuple[str, str], stays: list[Stay], cutter: Cutter) -> Iterator[tuple[Piece, int]]:
    """The node's time in pieces in which what is held on it does not change."""
    window, changes = cutter.window, dict[int, int]()
    for stay in stays:
        start_ms, end_ms = clip(stay.start_ms, stay.end_ms, window)
        if stay.micro_gpus and start_ms < end_ms:
            changes[start_ms] = changes.get(start_ms, 0) + stay.micro_gpus
            changes[end_ms] = changes.get(end_ms, 0) - stay.micro_gpus
    ends = [clip(stretch.start_ms, stretch.end_ms, window) for stretch in cutter.stretches.get(node, ())]
    edges = sorted({*changes, *(at for pair in ends if pair[0] < pair[1] for at in pair)})
    # Only a node that is not known needs the SKU of what stays on it.
    sku = stays[0].sku if stays else cutter.stretches[node][0].sku
    held = 0
    for left, right in pairwise(edges):
        held += changes.get(left, 0)
        known = any(start < right and left < end for start, end in ends)
        if held or known:
            for piece in cutter.pieces(node, left, right, sku):
                yield piece, held


def _became(piece: Piece, held: int) -> dict[Kind, int]:
    """Micro-GPU of each kind at any instant of a piece."""
    stretch = piece.stretch
    if stretch is None or stretch.capacity_micro_gpus is None:
        return {}
    capacity = stretch.capacity_micro_gpus
    overlap = max(0, held - capacity)
    if not stretch.schedulable:
        return {Kind.UNAVAILABLE: max(0, capacity - held), Kind.OVERLAP: overlap}
    given = stretch.allocatable_micro_gpus
    allocatable = min(capacity if given is None else given, capacity)
    return {
        Kind.IDLE: max(0, allocatable - held),
        Kind.UNAVAILABLE: max(0, capacity - max(allocatable, held)),
        Kind.OVERLAP: overlap,
    }


def _not_known(piece: Piece, held: int) -> str:
    if piece.stretch is None:
        return "GPUs are held on a node that is not known then" if held else ""
    if piece.stretch.capacity_micro_gpus is None:
        return "the node's GPUs are not known"
    if piece.stretch.allocatable_micro_gpus is None:
        return "how many of the node's GPUs are allocatable is not known"
    return ""


def _hours(piece: Piece, held: int, lasted: int) -> Hours:
    became = _became(piece, held)
    capacity = held if piece.stretch is None else piece.stretch.capacity_micro_gpus
    return Hours(
        capacity=(held if capacity is None else capacity) * lasted,
        held=held * lasted,
        idle=became.get(Kind.IDLE, 0) * lasted,
        unavailable=became.get(Kind.UNAVAILABLE, 0) * lasted,
        overlap=became.get(Kind.OVERLAP, 0) * lasted,
    )


def _order(line: CapacityLine) -> tuple[str, ...]:
    return line.day, line.kind, line.cluster, line.gpu_model, f"{line.price.valid_from_ms:020d}"
