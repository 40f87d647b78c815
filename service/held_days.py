"""
Days that are over, added up once: who held what, and how nodes were held.

A day is kept with a digest of the nodes and the price changes that it was cut by, and is left out where they
are others now. What is learnt about its pods drops it (`store.held_days`); so what is kept is what would be
added up again.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import Final, TypeAlias

import msgspec
import polars as pl

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.cutter import Cutter, Frame
from analytics.chargeback.held import Held
from analytics.chargeback.stays import OWNER, NodeStretch
from analytics.chargeback.usage import Unknown
from domain.calendar import Period, Unit, cut, running
from domain.money import Sku
from domain.window import Window
from service.held_sums import held
from service.held_time import node_stretches
from store.embedded import Store
from store.held_days import HeldDay

# When from until, and what nodes were of which no name is told; None while they are not known.
_Cut: TypeAlias = tuple[int, int, NodeStretch | None]
_NODE_BITS: Final = 64
_NO_NODES: Final = pl.DataFrame(schema={"cluster": pl.String, "node": pl.String, "course": pl.Int64})
_NO_FRAMES: Final = pl.DataFrame(schema=dict.fromkeys(("course", "number", "from_ms", "to_ms"), pl.Int64))
_LEVELS: Final = dict.fromkeys(("number", "held", "ms"), pl.Int64)


class _Body(msgspec.Struct, frozen=True):
    """
    `usage` is a frame of `Held.usage` as Arrow's file format; numbers are places among the frames.

    `of_teams` is the same summed over all but teams: cluster, team, SKU, number, and the amount in two parts.
    """

    frames: Sequence[_Cut]
    models: Sequence[str]
    usage: bytes
    of_teams: Sequence[tuple[str, str, int, int, int, int]]
    levels: Sequence[tuple[int, int, int]]
    unknown: Sequence[Unknown]


_READ: Final = msgspec.msgpack.Decoder(_Body)
# What is written otherwise than this is added up anew.
_FORMAT: Final = 2
# A whole number of 128 bits in two of 64.
_IN_TWO: Final = {
    "high": (pl.col("micro_gpu_ms") // 2**32).cast(pl.Int64),
    "low": (pl.col("micro_gpu_ms") % 2**32).cast(pl.Int64),
}
_IN_ONE: Final = pl.col("high").cast(pl.Int128) * 2**32 + pl.col("low")
_OF_TEAMS: Final = {
    "cluster": pl.String, "team": pl.String, **dict.fromkeys(("sku", "number", "high", "low"), pl.Int64),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Site:
    """The nodes of a window and the prices that they have."""

    store: Store
    agreement: Agreement
    stretches: Sequence[NodeStretch]

    @classmethod
    def of(cls, store: Store, agreement: Agreement, window: Window) -> "_Site":
        labels = {key for price in agreement.book.prices for key, _ in price.node_labels}
        return cls(store, agreement, node_stretches(store, window, labels))

    def cutter(self, days: Sequence[Period]) -> Cutter:
        return Cutter.over(days, self.stretches, self.agreement.book)


def held_in(
    store: Store, agreement: Agreement, days: Sequence[Period], *, fine: bool = True
) -> list[tuple[Held, Cutter]]:
    """
    Who held what over these days, in their order: what is kept of them, and the others added up now.

    Args:
        fine: whether users, projects and queues are told apart.
    """
    if not days:
        return []
    window = Window(start_ms=days[0].start_ms, end_ms=days[-1].end_ms)
    site = _Site.of(store, agreement, window)
    kept = {(day.start_ms, day.end_ms): day for day in store.held_days(**_bounds(window))}
    whole = site.cutter(days)
    digest = _digests(whole) if kept else str

    def body(day: Period) -> bytes | None:
        found = kept.get((day.start_ms, day.end_ms))
        return found.body if found is not None and found.digest == digest(day.label) else None

    if not kept:
        return [(held(store, whole, fine=fine), whole)]
    parts = []
    for known, group in groupby(((day, body(day)) for day in days), key=lambda each: each[1] is not None):
        if known:
            parts.append(_read([(day, found) for day, found in group if found is not None], whole, fine=fine))
        else:
            cutter = site.cutter([day for day, _ in group])
            parts.append((held(store, cutter, fine=fine), cutter))
    return parts


def keep_days(store: Store, agreement: Agreement, *, as_of_ms: int) -> int:
    """Add up the days of this month and the one before that are over and not kept; gives how many."""
    this = running(as_of_ms, agreement.zone, Unit.MONTH)
    before = running(this.start_ms, agreement.zone, Unit.MONTH)
    days = cut(Window(start_ms=before.start_ms, end_ms=as_of_ms), agreement.zone, Unit.DAY)
    over = [day for day in days if running(day.end_ms, agreement.zone, Unit.DAY).end_ms == day.end_ms]
    return keep(store, agreement, over)


def keep(store: Store, agreement: Agreement, days: Sequence[Period]) -> int:
    """Add up those of these days, which follow one another, that are not kept; gives how many."""
    if not days:
        return 0
    window = Window(start_ms=days[0].start_ms, end_ms=days[-1].end_ms)

    def missing() -> list[tuple[Period, str]]:
        digest = _digests(_Site.of(store, agreement, window).cutter(days))
        kept = {(day.start_ms, day.end_ms, day.digest) for day in store.held_days(**_bounds(window))}
        named = [(day, digest(day.label)) for day in days]
        return [(day, name) for day, name in named if (day.start_ms, day.end_ms, name) not in kept]

    def added_up() -> Iterator[HeldDay]:
        # One at a time, for nobody writes meanwhile; what is missing may be another by now.
        for day, name in missing()[:1]:
            cutter = _Site.of(store, agreement, day.window).cutter([day])
            yield HeldDay(day.start_ms, day.end_ms, name, _written(held(store, cutter), cutter))

    return sum(store.keep_held_days(added_up) for _ in missing())


def _digests(cutter: Cutter) -> Callable[[str], str]:
    """
    What a day was cut by, as a text, by its label.

    Nodes that are alike on a day count together, whatever they are on other days: of their names a sum is
    told, in which the order does not matter.
    """
    names: dict[int, int] = {}
    for cluster, node, course in cutter.nodes.iter_rows():
        name = blake2b(f"{cluster}\0{node}".encode(), digest_size=_NODE_BITS // 8).digest()
        names[course] = names.get(course, 0) + int.from_bytes(name)
    courses: dict[str, dict[int, list[object]]] = {day.label: {} for day in cutter.days}
    for course, number in cutter.frames_of.select("course", "number").iter_rows():
        frame = cutter.frames[number]
        courses[frame.day].setdefault(course, []).append((frame.start_ms, frame.end_ms, _told(frame.stretch)))

    def digest(label: str) -> str:
        alike: dict[str, int] = {}
        for course, frames in courses[label].items():
            told = repr(frames)
            alike[told] = (alike.get(told, 0) + names.get(course, 0)) % 2**_NODE_BITS
        nobody = {told for told in alike if told == repr(courses[label].get(0))}
        return blake2b(
            repr(
                (_FORMAT, sorted((told, 0 if told in nobody else name) for told, name in alike.items()))
            ).encode(),
            digest_size=16,
        ).hexdigest()

    return digest


def _told(stretch: NodeStretch | None) -> object:
    if stretch is None:
        return None
    sku = stretch.sku
    return (
        stretch.cluster, sku.gpu_model, sku.flavor, sku.pool, sku.mig_profile, str(sku.capacity_type),
        sorted(sku.node_labels),
        stretch.capacity_micro_gpus, stretch.allocatable_micro_gpus, stretch.schedulable,
    )  # fmt: skip


def _written(found: Held, cutter: Cutter) -> bytes:
    """The sums of one day; nodes that are alike in a frame have it in common."""
    places: dict[_Cut, int] = {}
    place_of = [
        places.setdefault((frame.start_ms, frame.end_ms, _unnamed(frame.stretch)), len(places))
        for frame in cutter.frames
    ]
    numbered = pl.DataFrame(
        {"number": range(len(place_of)), "place": place_of}, schema={"number": pl.Int64, "place": pl.Int64}
    )

    def placed(rows: pl.DataFrame, amount: str) -> pl.DataFrame:
        others = [name for name in rows.columns if name not in {"number", amount}]
        joined = rows.join(numbered, on="number")
        return joined.group_by(*others, number="place").agg(pl.col(amount).sum())

    usage, written = placed(found.usage, "micro_gpu_ms").select(found.usage.columns), io.BytesIO()
    usage.with_columns(**_IN_TWO).drop("micro_gpu_ms").write_ipc(written, compression="zstd")
    of_teams = usage.group_by("cluster", "team", "sku", "number").agg(pl.col("micro_gpu_ms").sum())
    return msgspec.msgpack.encode(
        _Body(
            frames=list(places),
            models=[sku.gpu_model for sku in found.skus],
            usage=written.getvalue(),
            of_teams=of_teams.with_columns(**_IN_TWO).select(list(_OF_TEAMS)).rows(),
            levels=placed(found.levels, "ms").select(list(_LEVELS)).rows(),
            unknown=found.unknown,
        )
    )


def _unnamed(stretch: NodeStretch | None) -> NodeStretch | None:
    return None if stretch is None else replace(stretch, node="", start_ms=0, end_ms=0)


def _read(days: Sequence[tuple[Period, bytes]], cutter: Cutter, *, fine: bool) -> tuple[Held, Cutter]:
    """What `_written` wrote of some days, at the prices of a cutter."""
    frames: list[Frame] = []
    skus: dict[Sku, int] = {}
    parts: list[pl.DataFrame] = []
    of_teams: list[tuple[str, str, int, int, int, int]] = []
    levels: list[tuple[int, int, int]] = []
    unknown: list[Unknown] = []
    for day, body in days:
        told, first = _READ.decode(body), len(frames)
        frames += [Frame(day.label, start_ms, end_ms, stretch) for start_ms, end_ms, stretch in told.frames]
        levels += [(first + number, held_then, ms) for number, held_then, ms in told.levels]
        unknown += told.unknown
        numbers = [skus.setdefault(Sku(gpu_model=model), len(skus)) for model in told.models]
        if fine:
            usage, known = pl.read_ipc(told.usage), pl.Series(numbers, dtype=pl.Int64)
            parts.append(usage.with_columns(number=usage["number"] + first, sku=known.gather(usage["sku"])))
        else:
            of_teams += [
                (cluster, team, numbers[sku], first + number, high, low)
                for cluster, team, sku, number, high, low in told.of_teams
            ]
    nobody = [] if fine else [pl.lit("").alias(name) for name in OWNER if name != "team"]
    usage = pl.concat(parts) if fine else pl.DataFrame(of_teams, schema=_OF_TEAMS, orient="row")
    summed = usage.with_columns(*nobody).select("cluster", *OWNER, "sku", "number", micro_gpu_ms=_IN_ONE)
    found = Held(summed, list(skus), pl.DataFrame(levels, schema=_LEVELS, orient="row"), unknown)
    of_days = [day for day, _ in days]
    return found, replace(cutter, days=of_days, nodes=_NO_NODES, frames=frames, frames_of=_NO_FRAMES)


def _bounds(window: Window) -> Mapping[str, int]:
    return {"start_ms": window.start_ms, "end_ms": window.end_ms}
