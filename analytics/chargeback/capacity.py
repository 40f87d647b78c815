"""
The capacity that was there, and what became of it.

    capacity x hours = held + idle + unavailable - overlap
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Final

import polars as pl

from analytics.chargeback.cutter import Cutter, Frame
from analytics.chargeback.stays import Stays
from analytics.chargeback.usage import Unknown
from domain.money import Price

_NODE: Final = ("cluster", "node", "course")


class Kind(StrEnum):
    """
    What became of GPU-time; a share is a part of the common cost that a team bears.

    The last three are money without GPU-time: fixed costs, and what preempted work is credited and costs
    others.
    """

    HELD = "held"
    IDLE = "idle"
    IDLE_SHARE = "idle_share"
    UNAVAILABLE = "unavailable"
    UNAVAILABLE_SHARE = "unavailable_share"
    OVERLAP = "overlap"
    SHARED = "shared"
    PREEMPTION_CREDIT = "preemption_credit"
    PREEMPTION_CHARGE = "preemption_charge"


_NOT_HELD: Final = (Kind.IDLE, Kind.UNAVAILABLE, Kind.OVERLAP)


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
    stays: Stays, cutter: Cutter
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
    if not cutter.days:
        return [], {}, []
    nodes, pieces = pieces_of_nodes(stays, cutter)
    return *lines_of(lasted(pieces), cutter), not_known(nodes, pieces, cutter)


def lasted(pieces: pl.DataFrame) -> pl.DataFrame:
    """How long so much was held on a node within a frame: number i64, held i64, ms i64."""
    return pieces.group_by("number", "held").agg(pl.col("ms").sum())


def lines_of(levels: pl.DataFrame, cutter: Cutter) -> tuple[list[CapacityLine], dict[str, Hours]]:
    """
    The lines, and the books' sum by day, of rows as `lasted` gives them.

    Raises:
        PolicyError: the price book has no price for a node.
    """
    found: dict[CapacityLine, int] = defaultdict(int)
    hours: dict[str, Hours] = {day.label: Hours() for day in cutter.days}
    for number, rows in groupby(levels.sort("number", "held").iter_rows(), key=itemgetter(0)):
        frame = cutter.frames[number]
        sums: dict[str, int] = defaultdict(int)
        for _, held, ms in rows:
            for name, micro_gpus in _became(frame, held).items():
                sums[name] += micro_gpus * ms
        hours[frame.day] += Hours(**sums)
        if frame.stretch is not None:
            for kind in _NOT_HELD:
                line = CapacityLine(
                    kind=kind,
                    cluster=frame.stretch.cluster,
                    gpu_model=frame.stretch.sku.gpu_model,
                    day=frame.day,
                    price=cutter.price(frame, frame.stretch.sku),
                    micro_gpu_ms=0,
                )
                found[line] += sums[kind]
    lines = [replace(line, micro_gpu_ms=amount) for line, amount in found.items() if amount]
    return sorted(lines, key=_order), hours


def pieces_of_nodes(stays: Stays, cutter: Cutter) -> tuple[pl.DataFrame, pl.DataFrame]:
    """
    The time of nodes in pieces in which neither they change nor what is held on them.

    Returns:
        One row per node; cluster str, node str, place i64. One row per piece, by node and in the order of
        time; place i64, number i64 (of the frame), start_ms i64, ms i64 above 0, held i64, micro-GPU.
    """
    window = cutter.window
    rows = cutter.coursed(stays.within(window).filter(pl.col("micro_gpus") != 0))
    nodes = pl.concat([cutter.nodes, rows.select(_NODE)]).unique().sort("cluster", "node")
    nodes = nodes.with_row_index("place").cast({"place": pl.Int64})
    held = rows.join(nodes, on=["cluster", "node"]).select("place", "start_ms", "end_ms", "micro_gpus")
    none, nothing = pl.lit(None, pl.Int64), pl.lit(0, pl.Int64)
    changes = pl.concat(
        [
            nodes.join(cutter.frames_of, on="course").select(
                "place", "number", at_ms="from_ms", change=nothing
            ),
            nodes.select("place", number=none, at_ms=pl.lit(window.end_ms), change=nothing),
            held.select("place", number=none, at_ms="start_ms", change="micro_gpus"),
            held.select("place", number=none, at_ms="end_ms", change=-pl.col("micro_gpus")),
        ]
    )
    # All that is held on a node is let go of by the window's end, so that one running sum serves all nodes.
    pieces = changes.sort("place", "at_ms").with_columns(
        number=pl.col("number").forward_fill(),
        held=pl.col("change").cum_sum(),
        ms=pl.col("at_ms").shift(-1) - pl.col("at_ms"),
    )
    lasting = pieces.filter((pl.col("ms") > 0) & (pl.col("at_ms") < window.end_ms))
    return nodes, lasting.select("place", "number", "held", "ms", start_ms="at_ms")


def not_known(nodes: pl.DataFrame, pieces: pl.DataFrame, cutter: Cutter) -> list[Unknown]:
    """The pieces, as `pieces_of_nodes` gives them, of which nobody knows what there was."""
    because = {
        (number, held): _not_known(cutter.frames[number], held)
        for number, held in pieces.select("number", pl.col("held") > 0).unique().iter_rows()
    }
    told = [key for key, reason in because.items() if reason]
    if not told:
        return []
    asked = pl.DataFrame(told, schema={"number": pl.Int64, "some": pl.Boolean}, orient="row")
    pieces = pieces.with_columns(some=pl.col("held") > 0).join(
        asked, on=["number", "some"], how="semi", maintain_order="left"
    )
    pieces = pieces.join(nodes, on="place", maintain_order="left")
    return [
        Unknown(
            cluster=cluster, node=node, start_ms=start_ms, end_ms=start_ms + ms, because=because[number, some]
        )
        for cluster, node, number, some, start_ms, ms in pieces.select(
            "cluster", "node", "number", "some", "start_ms", "ms"
        ).iter_rows()
    ]  # fmt: skip


def _became(frame: Frame, held: int) -> dict[str, int]:
    """Micro-GPU of each of `Hours` on one node, at any instant of a frame at which so much is held."""
    stretch = frame.stretch
    if stretch is None or stretch.capacity_micro_gpus is None:
        return {"capacity": held, "held": held}
    capacity, given = stretch.capacity_micro_gpus, stretch.allocatable_micro_gpus
    allocatable = min(capacity if given is None else given, capacity) if stretch.schedulable else 0
    return {
        "capacity": capacity,
        "held": held,
        Kind.IDLE: max(0, allocatable - held),
        Kind.UNAVAILABLE: max(0, capacity - max(allocatable, held)),
        Kind.OVERLAP: max(0, held - capacity),
    }


def _not_known(frame: Frame, held: int) -> str:
    if frame.stretch is None:
        return "GPUs are held on a node that is not known then" if held else ""
    if frame.stretch.capacity_micro_gpus is None:
        return "the node's GPUs are not known"
    if frame.stretch.allocatable_micro_gpus is None:
        return "how many of the node's GPUs are allocatable is not known"
    return ""


def _order(line: CapacityLine) -> tuple[str, ...]:
    return line.day, line.kind, line.cluster, line.gpu_model, f"{line.price.valid_from_ms:020d}"
