"""
How much is held on nodes over time: of millions of changes each is one whole number, sorted once.

From the highest bit on it is the node's place, the time since the window began, and which quantity comes or
goes. So sorting numbers sorts changes by node and time, and what a change is need not be carried along.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import polars as pl

from analytics.censored import Longs
from analytics.chargeback.cutter import Cutter

# A whole number has so many bits beside its sign.
_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class Packing:
    """
    How changes are packed: `place * place_step + (at_ms - start_ms) * time_step + code`.

    Codes are by quantity: `2 * (number + 1)` where it comes, one more where it goes; 0 is no change.
    """

    start_ms: int
    place_step: int
    time_step: int
    quantities: Sequence[int]

    @classmethod
    def of(cls, cutter: Cutter, places: int, quantities: Sequence[int]) -> Self | None:
        """The packing of changes on so many nodes; None where they need more bits than a number has."""
        window = cutter.window
        code_bits = (2 * len(quantities) + 1).bit_length()
        time_bits = (window.end_ms - window.start_ms).bit_length()
        if places.bit_length() + time_bits + code_bits > _BITS:
            return None
        return cls(window.start_ms, 1 << time_bits + code_bits, 1 << code_bits, quantities)

    def changes(self) -> Longs:
        """By code: by how much it changes what is held."""
        found = np.zeros(self.time_step, dtype=np.int64)
        found[2 : 2 * len(self.quantities) + 2 : 2] = self.quantities
        found[3 : 2 * len(self.quantities) + 3 : 2] = [-each for each in self.quantities]
        return found


def pieces(came: Longs, went: Longs, nodes: pl.DataFrame, cutter: Cutter, packing: Packing) -> pl.DataFrame:
    """
    The time of nodes in pieces, as `capacity.pieces_of_nodes` gives it, of packed changes.

    Args:
        came: when stays begin, packed; in any order.
        went: when they end.
        nodes: place i64, course i64, in the order of places from 0 on.
        cutter: its window holds all of them.
        packing: of the changes.
    """
    window = cutter.window
    framed = nodes.join(cutter.frames_of, on="course").select(
        "number", key=_packed(pl.col("place"), pl.col("from_ms"), packing)
    )
    # Where a node ends its part of the window is a change too: what follows is another node's.
    ends = nodes.select(
        key=_packed(pl.col("place"), pl.lit(window.end_ms), packing), number=pl.lit(-1, pl.Int64)
    )
    marks = pl.concat([framed.select("key", "number"), ends]).sort("key")
    keys = np.concatenate([came, went, marks["key"].to_numpy()])
    keys.sort()
    code_of = packing.time_step - 1
    held: Any = packing.changes()[keys & code_of]
    np.cumsum(held, out=held)
    number = np.repeat(
        marks["number"].to_numpy(), np.diff(np.flatnonzero((keys & code_of) == 0), append=len(keys))
    )
    keys //= packing.time_step
    ms = np.diff(keys, append=keys[-1:])
    lasting = (ms > 0) & (number >= 0)
    place_bits = packing.place_step // packing.time_step
    keys = keys[lasting]
    return pl.DataFrame(
        {
            "place": keys // place_bits,
            "number": number[lasting],
            "held": held[lasting],
            "ms": ms[lasting],
            "start_ms": keys % place_bits + window.start_ms,
        }
    )


def _packed(place: pl.Expr, at_ms: pl.Expr, packing: Packing) -> pl.Expr:
    return place * packing.place_step + (at_ms - packing.start_ms) * packing.time_step
