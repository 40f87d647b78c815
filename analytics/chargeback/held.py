"""What the books rest on, summed: who held what, and how long nodes were held to which level."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from analytics.chargeback import capacity, usage
from analytics.chargeback.cutter import Cutter
from analytics.chargeback.stays import Stays
from analytics.chargeback.usage import Unknown
from domain.money import Sku


@dataclass(frozen=True, slots=True)
class Held:
    """
    The stays of a window, as far as a statement tells them apart.

    So few rows that it does not matter who added them up: `of` does, stay by stay, and so may a store.

    Args:
        usage: as `usage.by_frame` gives it.
        skus: of its rows.
        levels: as `capacity.lasted` gives it; nobody need ask of it where there is no day.
        unknown: what of it nobody knows.
    """

    usage: pl.DataFrame
    skus: Sequence[Sku]
    levels: pl.DataFrame
    unknown: Sequence[Unknown]

    @classmethod
    def of(cls, stays: Stays, cutter: Cutter) -> Self:
        """The sums of some stays."""
        nodes, pieces = capacity.pieces_of_nodes(stays, cutter)
        return cls(
            usage.by_frame(stays, cutter),
            stays.skus,
            capacity.lasted(pieces),
            (*usage.not_known(stays, cutter), *capacity.not_known(nodes, pieces, cutter)),
        )
