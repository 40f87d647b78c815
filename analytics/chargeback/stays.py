"""Stays of pods on GPUs, and the nodes that they are on; stays in columns, for a month may have millions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import polars as pl

from domain.money import Sku
from domain.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who a stay belongs to from `from_ms` on, until the next owner."""

    team: str
    project: str = ""
    user: str = ""
    queue: str = ""
    from_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """
    A pod holds GPUs of a node in `[start_ms, end_ms)`; the end is None while it does.

    `owners` are in time order and the first is from the start on. `sku` is used where the node is
    not known. `micro_gpus` is None where the quantity cannot be known.
    """

    cluster: str
    node: str
    sku: Sku
    micro_gpus: int | None
    start_ms: int
    end_ms: int | None
    owners: tuple[Owner, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStretch:
    """
    A node in `[start_ms, end_ms)`: GPUs that it has, and of those allocatable.

    `schedulable` is False while it is cordoned or not ready. The end is None while it is so; a
    number is None where it cannot be known.
    """

    cluster: str
    node: str
    sku: Sku
    start_ms: int
    end_ms: int | None
    capacity_micro_gpus: int | None
    allocatable_micro_gpus: int | None
    schedulable: bool = True


OWNER: Final = ("team", "project", "user", "queue")
_SCHEMA: Final = {
    "cluster": pl.String,
    "node": pl.String,
    "sku": pl.Int64,
    "micro_gpus": pl.Int64,
    "start_ms": pl.Int64,
    "end_ms": pl.Int64,
    **dict.fromkeys(OWNER, pl.String),
}


@dataclass(frozen=True, slots=True)
class Stays:
    """
    One row per stay and owner of it: cluster, node, sku, micro_gpus, start_ms, end_ms, and the owner.

    `sku` is a place in `skus`. The end is null while the stay goes on, `micro_gpus` where it is not known.
    """

    rows: pl.DataFrame
    skus: Sequence[Sku]

    @classmethod
    def of(cls, stays: Iterable[Stay]) -> Self:
        """The same stays in columns."""
        skus: dict[Sku, int] = {}
        rows = [
            (stay.cluster, stay.node, skus.setdefault(stay.sku, len(skus)), stay.micro_gpus, start_ms, end_ms,
             owner.team, owner.project, owner.user, owner.queue)
            for stay in stays
            for owner, start_ms, end_ms in _owned(stay)
        ]  # fmt: skip
        return cls(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), tuple(skus))

    def of_teams(self) -> Self:
        """The same stays of teams alone, nobody's in particular."""
        nobody = [pl.lit("").alias(name) for name in OWNER if name != "team"]
        return replace(self, rows=self.rows.with_columns(nobody))

    def within(self, window: Window) -> pl.DataFrame:
        """What of the stays lies in the window, with its end."""
        clipped = self.rows.with_columns(
            start_ms=pl.col("start_ms").clip(lower_bound=window.start_ms),
            end_ms=pl.col("end_ms").fill_null(window.end_ms).clip(upper_bound=window.end_ms),
        )
        return clipped.filter(pl.col("start_ms") < pl.col("end_ms"))


def clip(start_ms: int, end_ms: int | None, window: Window) -> tuple[int, int]:
    """The part inside a window; empty where the end is not after the start."""
    return max(start_ms, window.start_ms), window.end_ms if end_ms is None else min(end_ms, window.end_ms)


def _owned(stay: Stay) -> Iterable[tuple[Owner, int, int | None]]:
    following = [*(owner.from_ms for owner in stay.owners[1:]), None]
    for place, (owner, next_ms) in enumerate(zip(stay.owners, following, strict=True)):
        # The first owner is from the start on, whatever its date says.
        start_ms = stay.start_ms if place == 0 else max(owner.from_ms, stay.start_ms)
        end_ms = min((at_ms for at_ms in (next_ms, stay.end_ms) if at_ms is not None), default=None)
        if end_ms is None or start_ms < end_ms:
            yield owner, start_ms, end_ms
