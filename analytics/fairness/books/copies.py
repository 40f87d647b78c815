"""
Where a workload's demand counts that MultiKueue copied into several clusters: once, in one of them.

What is held counts where it is. What is asked counts with the copy that has quota or holds GPUs; while
none has, with the oldest copy that some flavor of its cluster could hold, as a queue's flavors are gone
through in their order; and with the original while no copy asks, as before it is dispatched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analytics.fairness.books.course import Course, Piece, joined

_TAKEN, _WAITS, _ASIDE = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """A copy, or the original, with the pieces it would have were it the only one."""

    course: Course
    pieces: Sequence[Piece]
    original: bool = False

    def rank_at(self, at_ms: int) -> int | None:
        """How near it is to its place at that instant; None where it asks and holds nothing."""
        stays = any(stay.start_ms <= at_ms < stay.end_ms for stay in self.course.stays)
        reserved = any(one.start_ms <= at_ms < one.end_ms for one in self.course.reservations)
        if stays or (reserved and not self.original):
            return _TAKEN
        if any(piece.at_ms <= at_ms < piece.until_ms for piece in self.pieces):
            return _ASIDE if self.original else _WAITS
        return None

    def edges(self) -> Iterator[int]:
        """Instants at which its rank may change."""
        for stay in self.course.stays:
            yield from (stay.start_ms, stay.end_ms)
        for reserved in self.course.reservations:
            yield from (reserved.start_ms, reserved.end_ms)
        for piece in self.pieces:
            yield from (piece.at_ms, piece.until_ms)


def counted_once(siblings: Sequence[Sibling]) -> list[list[Piece]]:
    """
    The pieces of each that count.

    Args:
        siblings: all that are known of one workload, copies in the order in which they were made.
    """
    edges = sorted({edge for sibling in siblings for edge in sibling.edges()})
    return [
        sorted(
            joined(
                part
                for piece in sibling.pieces
                for part in ((piece,) if piece.held else _asking(piece, number, siblings, edges))
            )
        )
        for number, sibling in enumerate(siblings)
    ]


def _asking(piece: Piece, number: int, siblings: Sequence[Sibling], edges: Sequence[int]) -> Iterator[Piece]:
    """The parts of what is asked during which nobody comes before the sibling of that number."""
    inside = [edge for edge in edges if piece.at_ms < edge < piece.until_ms]
    for at_ms, until_ms in zip([piece.at_ms, *inside], [*inside, piece.until_ms], strict=True):
        ranks = [
            (rank, each) for each, one in enumerate(siblings) if (rank := one.rank_at(at_ms)) is not None
        ]
        if min(ranks)[1] == number:
            yield piece._replace(at_ms=at_ms, until_ms=until_ms)
