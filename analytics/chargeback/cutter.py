"""Where time on nodes is cut: at days, at prices, and where a node changes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Self, TypeAlias

import polars as pl

from analytics.chargeback.stays import NodeStretch, clip
from domain.calendar import Period
from domain.money import Price, PriceBook, Sku
from domain.window import Window

# The course of nodes that are never known.
_NOT_KNOWN: Final = 0
_NODES: Final = {"cluster": pl.String, "node": pl.String, "course": pl.Int64}
_FRAMES: Final = dict.fromkeys(("course", "number", "from_ms", "to_ms"), pl.Int64)
_Course: TypeAlias = tuple[NodeStretch, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """
    Time within one day and one price in which nodes of a course do not change.

    `stretch` is what they are, of none of them by name; None while they are not known.
    """

    day: str
    start_ms: int
    end_ms: int
    stretch: NodeStretch | None


@dataclass(frozen=True, slots=True)
class Cutter:
    """
    Cuts time on nodes into frames, which have numbers.

    Nodes that are alike all the time have one course, and its frames in common: numbered in the order of
    time, without a hole over the window.

    Args:
        nodes: one row per known node; cluster str, node str, course i64.
        frames: in the order of their numbers.
        frames_of: one row per frame; course i64, number i64, from_ms i64, to_ms i64.
    """

    days: Sequence[Period]
    book: PriceBook
    nodes: pl.DataFrame
    frames: Sequence[Frame]
    frames_of: pl.DataFrame
    _prices: dict[tuple[Sku, int], Price] = field(default_factory=dict)

    @classmethod
    def over(cls, days: Sequence[Period], stretches: Iterable[NodeStretch], book: PriceBook) -> Self:
        """A cutter over days in order (`domain.calendar.cut`); stretches of a node do not overlap."""
        window = _window(days)
        by_node: dict[tuple[str, str], list[NodeStretch]] = defaultdict(list)
        for each in sorted(stretches, key=lambda stretch: stretch.start_ms):
            start_ms, end_ms = clip(each.start_ms, each.end_ms, window)
            if start_ms < end_ms:
                alike = replace(each, node="", start_ms=start_ms, end_ms=end_ms)
                by_node[each.cluster, each.node].append(alike)
        courses: dict[_Course, int] = {(): _NOT_KNOWN}
        nodes = [(*node, courses.setdefault(tuple(course), len(courses))) for node, course in by_node.items()]
        framed = [
            (number, frame) for course, number in courses.items() for frame in _framed(course, days, book)
        ]
        return cls(
            days=days,
            book=book,
            nodes=pl.DataFrame(nodes, schema=_NODES, orient="row"),
            frames=[frame for _, frame in framed],
            frames_of=pl.DataFrame(
                [
                    (course, number, frame.start_ms, frame.end_ms)
                    for number, (course, frame) in enumerate(framed)
                ],
                schema=_FRAMES, orient="row",
            ),
        )  # fmt: skip

    def at(self, book: PriceBook) -> Self:
        """The same cuts at other prices, where none of them changes between two cuts."""
        return replace(self, book=book, _prices={})

    @property
    def window(self) -> Window:
        """From the first day's start to the last day's end; empty without days."""
        return _window(self.days)

    def coursed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the columns cluster and node, and the course of that node added."""
        return rows.join(self.nodes, on=["cluster", "node"], how="left").with_columns(
            pl.col("course").fill_null(_NOT_KNOWN)
        )

    def numbers(self, course: pl.Series, at_ms: pl.Series) -> pl.Series:
        """The number of the frame of that course at each of these instants of the window."""
        begin, length = self.window.start_ms, self.window.end_ms - self.window.start_ms
        # The time lines of courses lie one after another.
        starts = self.frames_of["course"] * length + self.frames_of["from_ms"] - begin
        return starts.search_sorted(course * length + at_ms - begin, side="right").cast(pl.Int64) - 1

    def price(self, frame: Frame, sku: Sku) -> Price:
        """
        What a GPU-hour costs: the node's SKU sets the price of all that happens on it.

        So money closes like hours do.

        Args:
            sku: priced while the node is not known.

        Raises:
            PolicyError: the price book has no price.
        """
        priced = (sku if frame.stretch is None else frame.stretch.sku, frame.start_ms)
        if priced not in self._prices:
            self._prices[priced] = self.book.price(*priced)
        return self._prices[priced]


def _window(days: Sequence[Period]) -> Window:
    if not days:
        return Window(start_ms=0, end_ms=0)
    return Window(start_ms=days[0].start_ms, end_ms=days[-1].end_ms)


def _framed(course: _Course, days: Sequence[Period], book: PriceBook) -> Iterator[Frame]:
    """The whole window of a course, cut at all that may change."""
    known = [(each.start_ms, each.start_ms if each.end_ms is None else each.end_ms, each) for each in course]
    changes = {*book.changes_ms(), *(at_ms for start_ms, end_ms, _ in known for at_ms in (start_ms, end_ms))}
    for day in days:
        inside = {at_ms for at_ms in changes if day.start_ms < at_ms < day.end_ms}
        for left, right in pairwise(sorted({day.start_ms, day.end_ms, *inside})):
            found = (stretch for start_ms, end_ms, stretch in known if start_ms <= left < end_ms)
            yield Frame(day.label, left, right, next(found, None))
