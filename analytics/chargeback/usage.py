"""What was held: pods' stays on nodes, cut where the day, the price, the node or the team changes."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from domain.calendar import Period
from domain.money import Price, PriceBook, Sku
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of one node within one day, at one price; `stretch` is None where it is not known."""

    day: str
    start_ms: int
    end_ms: int
    sku: Sku
    price: Price
    stretch: NodeStretch | None


def clip(start_ms: int, end_ms: int | None, window: Window) -> tuple[int, int]:
    """The part inside a window; empty where the end is not after the start."""
    return max(start_ms, window.start_ms), window.end_ms if end_ms is None else min(end_ms, window.end_ms)


@dataclass(frozen=True, slots=True)
class _Frame:
    day: str
    start_ms: int
    end_ms: int
    stretch: NodeStretch | None


@dataclass(frozen=True, slots=True)
class Cutter:
    """
    Cuts time on nodes into pieces that have one day, one state of the node and one price.

    The node's SKU sets the price of all that happens on it, so that money closes like hours do.
    """

    days: Sequence[Period]
    stretches: Mapping[tuple[str, str], Sequence[NodeStretch]]
    book: PriceBook
    _frames: dict[tuple[str, str], list[_Frame]] = field(default_factory=dict)
    _prices: dict[tuple[Sku, int], Price] = field(default_factory=dict)

    @classmethod
    def over(cls, days: Sequence[Period], stretches: Iterable[NodeStretch], book: PriceBook) -> "Cutter":
        """A cutter over days in order (`domain.calendar.cut`); stretches of a node do not overlap."""
        by_node = defaultdict(list)
        for stretch in sorted(stretches, key=lambda stretch: stretch.start_ms):
            by_node[stretch.cluster, stretch.node].append(stretch)
        return cls(days, dict(by_node), book)

    @property
    def window(self) -> Window:
        """From the first day's start to the last day's end; empty without days."""
        if not self.days:
            return Window(start_ms=0, end_ms=0)
        return Window(start_ms=self.days[0].start_ms, end_ms=self.days[-1].end_ms)

    def pieces(self, node: tuple[str, str], start_ms: int, end_ms: int, sku: Sku) -> Iterator[Piece]:
        """
        The pieces of a stretch of time on a node, in order.

        Args:
            sku: priced while the node is not known.

        Raises:
            PolicyError: the price book has no price for a piece.
        """
        frames = self._frames.setdefault(node, []) or self._framed(node)
        first = bisect_right(frames, start_ms, key=lambda frame: frame.end_ms)
        for frame in frames[first:]:
            if frame.start_ms >= end_ms:
                return
            priced = sku if frame.stretch is None else frame.stretch.sku
            yield Piece(
                day=frame.day,
                start_ms=max(frame.start_ms, start_ms),
                end_ms=min(frame.end_ms, end_ms),
                sku=priced,
                price=self._price(priced, frame.start_ms),
                stretch=frame.stretch,
            )

    def _framed(self, node: tuple[str, str]) -> list[_Frame]:
        """The node's whole window, cut at all that may change; kept for the next question."""
        stretches = self.stretches.get(node, ())
        known = [clip(stretch.start_ms, stretch.end_ms, self.window) for stretch in stretches]
        changes = {*self.book.changes_ms(), *(at for pair in known for at in pair)}
        frames = self._frames[node]
        for day in self.days:
            inside = {at for at in changes if day.start_ms < at < day.end_ms}
            for left, right in pairwise(sorted({day.start_ms, day.end_ms, *inside})):
                found = (s for s, (start, end) in zip(stretches, known, strict=True) if start <= left < end)
                frames.append(_Frame(day.label, left, right, next(found, None)))
        return frames

    def _price(self, sku: Sku, at_ms: int) -> Price:
        price = self._prices.get((sku, at_ms))
        if price is None:
            price = self._prices[sku, at_ms] = self.book.price(sku, at_ms)
        return price


def usage_lines(stays: Iterable[Stay], cutter: Cutter) -> tuple[list[UsageLine], list[Unknown]]:
    """
    One line per owner, model, day and price, in that order; and what cannot be known.

    A stay at the instant of a change counts to what holds from that instant on.

    Raises:
        PolicyError: the price book has no price for a stay.
    """
    window = cutter.window
    held: dict[UsageLine, int] = defaultdict(int)
    unknown = []
    for stay in stays:
        start_ms, end_ms = clip(stay.start_ms, stay.end_ms, window)
        if start_ms >= end_ms:
            continue
        if stay.micro_gpus is None:
            because = "a pod holds GPUs of which the quantity is not known"
            unknown.append(
                Unknown(
                    cluster=stay.cluster, node=stay.node, start_ms=start_ms, end_ms=end_ms, because=because
                )
            )
            continue
        for owner, from_ms, to_ms in _owned(stay.owners, start_ms, end_ms):
            for piece in cutter.pieces((stay.cluster, stay.node), from_ms, to_ms, stay.sku):
                line = UsageLine(
                    cluster=stay.cluster,
                    owner=replace(owner, from_ms=0),
                    gpu_model=piece.sku.gpu_model,
                    day=piece.day,
                    price=piece.price,
                    micro_gpu_ms=0,
                )
                held[line] += stay.micro_gpus * (piece.end_ms - piece.start_ms)
    lines = [replace(line, micro_gpu_ms=amount) for line, amount in held.items() if amount]
    return sorted(lines, key=_order), unknown


def merged(lines: Iterable[UsageLine]) -> list[UsageLine]:
    """Lines of neighbouring windows as those of the whole."""
    held: dict[UsageLine, int] = defaultdict(int)
    for line in lines:
        held[replace(line, micro_gpu_ms=0)] += line.micro_gpu_ms
    return sorted((replace(line, micro_gpu_ms=amount) for line, amount in held.items()), key=_order)


def _owned(owners: tuple[Owner, ...], start_ms: int, end_ms: int) -> Iterator[tuple[Owner, int, int]]:
    following = [owner.from_ms for owner in owners[1:]]
    for place, (owner, next_ms) in enumerate(zip(owners, [*following, end_ms], strict=True)):
        # The first owner is from the start on, whatever its date says.
        begin = start_ms if place == 0 else max(owner.from_ms, start_ms)
        end = min(next_ms, end_ms)
        if begin < end:
            yield owner, begin, end


def _order(line: UsageLine) -> tuple[str, ...]:
    owner = line.owner
    since = f"{line.price.valid_from_ms:020d}"
    return (line.day, line.cluster, owner.team, owner.project, owner.user, owner.queue, line.gpu_model, since,
            repr(line.price.conditions[1:]), repr(sorted(line.price.node_labels)))  # fmt: skip
