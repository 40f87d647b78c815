"""Figures of a benchmark: the product and a peer in turn, in CPU time, beside the physical limit."""

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Final

import msgspec

_HEAD: Final = ("what", "product /cpu-s", "peer /cpu-s", "ratio", "goal", "limit /s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """
    One comparison. `product`, `peer` and `limit` are things per second, of CPU time but for the limit.

    `goal` is the least ratio of product to peer; None where the figure is only told. `least` is what the
    product must reach by itself.
    """

    name: str
    product: float
    peer: float
    ratio: float
    goal: float | None
    limit: float
    limit_of: str
    least: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the goal is reached."""
        return (self.goal is None or self.ratio >= self.goal) and self.product >= self.least


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of all threads of this process while it does the work."""
    gc.collect()
    began = process_time()
    work()
    return process_time() - began


def compared(
    product: Callable[[], float], peer: Callable[[], float], *, rounds: int
) -> tuple[float, float, float]:
    """
    Medians of the CPU seconds of product and peer, measured in turn, and of their ratio peer to product.

    A shared machine changes its speed by the minute; the two measurements of a pair lie close together.
    """
    pairs = [(peer(), product()) for _ in range(rounds)]
    return (
        median(ours for _, ours in pairs),
        median(theirs for theirs, _ in pairs),
        median(theirs / ours for theirs, ours in pairs),
    )


def tell(figures: Sequence[Figure]) -> bool:
    """Print a table, then a line of JSON for each figure; gives whether all hold."""
    rows = [_HEAD] + [
        (
            one.name,
            f"{one.product:,.0f}",
            f"{one.peer:,.0f}",
            f"{one.ratio:.2f}",
            "-" if one.goal is None else f"{one.goal:g}",
            f"{one.limit:,.0f} {one.limit_of}",
        )
        for one in figures
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in figures:
        print(msgspec.json.encode(one).decode())
        if not one.holds:
            least = f" and at least {one.least:,.0f}/cpu-s" if one.least else ""
            print(
                f"{one.name}: ratio {one.ratio:.2f} at {one.product:,.0f}/cpu-s; expected {one.goal}{least}",
                file=sys.stderr,
            )
    return all(one.holds for one in figures)
