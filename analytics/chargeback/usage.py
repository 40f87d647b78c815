"""What was held: pods' stays on nodes, cut where the day, the price, the node or the team changes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from analytics.chargeback.cutter import Cutter
from analytics.chargeback.stays import OWNER, Owner, Stays
from domain.money import Price, Sku

QUANTITY_UNKNOWN: Final = "a pod holds GPUs of which the quantity is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLine:
    """GPU-time that one owner held on one day, at one price, in micro-GPU-milliseconds."""

    cluster: str
    owner: Owner
    gpu_model: str
    day: str
    price: Price
    micro_gpu_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A stretch of which a quantity cannot be known: figures over it are lower bounds."""

    cluster: str
    node: str
    start_ms: int
    end_ms: int
    because: str


def usage_lines(stays: Stays, cutter: Cutter) -> tuple[list[UsageLine], list[Unknown]]:
    """
    One line per owner, model, day and price, in that order; and what cannot be known.

    A stay at the instant of a change counts to what holds from that instant on.

    Raises:
        PolicyError: the price book has no price for a stay.
    """
    lines = lines_of(by_frame(stays, cutter), stays.skus, cutter)
    return sorted(lines, key=_order), not_known(stays, cutter)


def by_frame(stays: Stays, cutter: Cutter) -> pl.DataFrame:
    """
    What was held, summed as far as nothing tells it apart.

    Returns:
        One row per cluster, owner, SKU (a place among those of the stays) and frame: cluster str, team str,
        project str, user str, queue str, sku i64, number i64, micro_gpu_ms i128.
    """
    rows = stays.within(cutter.window)
    known = cutter.coursed(rows.filter(pl.col("micro_gpus").is_not_null()))
    cut = known.with_columns(
        first=cutter.numbers(known["course"], known["start_ms"]),
        last=cutter.numbers(known["course"], known["end_ms"] - 1),
    )
    return (
        cut.with_columns(number=pl.int_ranges("first", pl.col("last") + 1))
        .explode("number")
        .join(cutter.frames_of, on="number")
        .group_by("cluster", *OWNER, "sku", "number")
        .agg(
            micro_gpu_ms=(
                pl.col("micro_gpus").cast(pl.Int128)
                * (pl.min_horizontal("end_ms", "to_ms") - pl.max_horizontal("start_ms", "from_ms"))
            ).sum()
        )
    )


def not_known(stays: Stays, cutter: Cutter) -> list[Unknown]:
    """The stays of which nobody knows how many GPUs they hold."""
    rows = stays.within(cutter.window).filter(pl.col("micro_gpus").is_null())
    return [
        Unknown(**row, because=QUANTITY_UNKNOWN)
        for row in rows.select("cluster", "node", "start_ms", "end_ms").iter_rows(named=True)
    ]


def neighbours_joined(found: Iterable[Unknown]) -> list[Unknown]:
    """The same stretches by node and reason, in order; those that touch or overlap are one."""
    joined: list[Unknown] = []
    for each in sorted(found, key=lambda each: (each.cluster, each.node, each.because, each.start_ms)):
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.cluster, last.node, last.because) == (each.cluster, each.node, each.because)
            and each.start_ms <= last.end_ms
        ):
            joined[-1] = replace(last, end_ms=max(last.end_ms, each.end_ms))
        else:
            joined.append(each)
    return joined


def lines_of(summed: pl.DataFrame, skus: Sequence[Sku], cutter: Cutter) -> Iterator[UsageLine]:
    """
    The lines of rows as `by_frame` gives them, in any order.

    Raises:
        PolicyError: the price book has no price for one of them.
    """
    prices: dict[Price, int] = {}
    told: dict[tuple[int, int], tuple[str, str, int]] = {}
    held: dict[tuple[str, tuple[str, ...], tuple[str, str, int]], int] = defaultdict(int)
    for cluster, *owner, sku_no, number, amount in summed.iter_rows():
        of_frame = told.get((sku_no, number))
        if of_frame is None:
            frame, sku = cutter.frames[number], skus[sku_no]
            model = sku.gpu_model if frame.stretch is None else frame.stretch.sku.gpu_model
            price_no = prices.setdefault(cutter.price(frame, sku), len(prices))
            of_frame = told[sku_no, number] = (model, frame.day, price_no)
        held[cluster, tuple(owner), of_frame] += amount
    numbered, owners = list(prices), {of: _owner(*of) for of in {of for _, of, _ in held}}
    for (cluster, of, (model, day, price_no)), amount in held.items():
        if amount:
            yield UsageLine(
                cluster=cluster, owner=owners[of], gpu_model=model, day=day, price=numbered[price_no],
                micro_gpu_ms=amount,
            )  # fmt: skip


def _owner(team: str, project: str, user: str, queue: str) -> Owner:
    return Owner(team=team, project=project, user=user, queue=queue)


def merged(lines: Iterable[UsageLine]) -> list[UsageLine]:
    """Lines of neighbouring windows as those of the whole."""
    held: dict[UsageLine, int] = defaultdict(int)
    for line in lines:
        held[replace(line, micro_gpu_ms=0)] += line.micro_gpu_ms
    return sorted((replace(line, micro_gpu_ms=amount) for line, amount in held.items()), key=_order)


def _order(line: UsageLine) -> tuple[str, ...]:
    owner = line.owner
    since = f"{line.price.valid_from_ms:020d}"
    return (line.day, line.cluster, owner.team, owner.project, owner.user, owner.queue, line.gpu_model, since,
            repr(line.price.conditions[1:]), repr(sorted(line.price.node_labels)))  # fmt: skip
