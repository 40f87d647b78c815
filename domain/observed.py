"""
When a source was observed: stretches of sights, and the share of a window that they cover.

A *sight* is an instant at which a source told how things are: a list, a line of a watch, a sample.
A source counts as observed from a sight on for as long as its *patience*, the silence after which
it is stale. A longer silence is a gap, unless a watch went on after it: the server would have told
what happened meanwhile. All that is known by an instant is a function of the sights up to it, one
at that very instant included.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from domain.window import Window

# [start_ms, end_ms)
Interval: TypeAlias = tuple[int, int]


class Observed(NamedTuple):
    """Whom a stretch is about; source and node are empty for a kind of objects."""

    kind: str
    source: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """
    Sights without a longer silence between them, the first and the last.

    `resumed`: a watch went on here, so that nothing of the silence before was missed.
    """

    start_ms: int
    end_ms: int
    resumed: bool = False


def merged(stretches: Iterable[Stretch], patience_ms: int) -> list[Stretch]:
    """
    The same sights as few stretches, by time; the order in which they came in does not matter.

    >>> merged([Stretch(start_ms=7, end_ms=9), Stretch(start_ms=0, end_ms=5)], 2)
    [Stretch(start_ms=0, end_ms=9, resumed=False)]
    """
    found: list[Stretch] = []
    for each in sorted(stretches, key=lambda one: (one.start_ms, one.resumed)):
        last = found[-1] if found else None
        if last is not None and each.start_ms - last.end_ms <= patience_ms:
            found[-1] = replace(last, end_ms=max(last.end_ms, each.end_ms))
        else:
            found.append(each)
    return found


def joined(intervals: Iterable[Interval]) -> list[Interval]:
    """
    The same instants in as few intervals.

    >>> joined([(4, 6), (0, 2), (2, 3)])
    [(0, 3), (4, 6)]
    """
    found: list[Interval] = []
    for start_ms, end_ms in sorted(intervals):
        if found and start_ms <= found[-1][1]:
            found[-1] = (found[-1][0], max(end_ms, found[-1][1]))
        else:
            found.append((start_ms, end_ms))
    return found


def before(intervals: Iterable[Interval], as_of_ms: int, patience_ms: int) -> list[Interval]:
    """
    When a source was observed before an instant, from its first and last sights.

    >>> before([(0, 5), (20, 31)], 30, 3)
    [(0, 8), (20, 30)]
    """
    return joined((start, min(end + patience_ms, as_of_ms)) for start, end in intervals if start < as_of_ms)


def in_all(sets: Sequence[Sequence[Interval]]) -> list[Interval]:
    """
    Where all of these sets of intervals have something; of no set nothing.

    >>> in_all([[(0, 5), (7, 9)], [(3, 8)]])
    [(3, 5), (7, 8)]
    """
    found = list(sets[0]) if sets else []
    for other in sets[1:]:
        found = [
            (max(a, c), min(b, d)) for a, b in found for c, d in other if max(a, c) < min(b, d)
        ]  # fmt: skip
    return found


def covered_ms(
    window: Window,
    observed: Iterable[Interval],
    devices: Iterable[tuple[list[Interval], list[Interval]]] = (),
) -> Fraction:
    """
    Milliseconds of a window that were observed.

    Args:
        window: of the question.
        observed: when the objects were.
        devices: for each node with GPUs when it was there, and when it was sampled. An instant counts
            by the share of the nodes there that were sampled; without any node it counts in full.
    """
    turns: list[tuple[int, int, int]] = []
    nodes = list(devices)
    for place, intervals in (
        (0, observed),
        (1, (one for there, _ in nodes for one in there)),
        (2, (one for there, sampled in nodes for one in in_all([there, sampled]))),
    ):
        for start_ms, end_ms in intervals:
            a, b = max(start_ms, window.start_ms), min(end_ms, window.end_ms)
            if a < b:
                turns += [(a, place, 1), (b, place, -1)]
    # How long so many of so many nodes were sampled while the objects were observed.
    lengths: Counter[tuple[int, int]] = Counter()
    state = [0, 0, 0]
    before_ms = window.start_ms
    for at_ms, place, step in sorted(turns):
        if state[0]:
            lengths[state[2], state[1]] += at_ms - before_ms
        before_ms = at_ms
        state[place] += step
    return sum(
        (Fraction(length * sampled, there) if there else Fraction(length))
        for (sampled, there), length in lengths.items()
    ) or Fraction(0)


def coverage_words(coverage: float | None, *, windowed: bool) -> str:
    """
    How much a figure rests on, in words; empty where nothing is missing or nobody knows.

    >>> coverage_words(0.5, windowed=True), coverage_words(0.9999, windowed=True)
    ('50 % of the window was observed', '99.9 % of the window was observed')
    >>> coverage_words(0.75, windowed=False), coverage_words(1.0, windowed=False)
    ('rests on 75 % of the sources', '')
    """
    if coverage is None or coverage >= 1:
        return ""
    # Rounded down, so that 100 % stands for all of it only.
    tenths = int(coverage * 1000 + 1e-9)
    share = f"{tenths // 10} %" if tenths < 990 else f"{tenths / 10:g} %"
    return f"{share} of the window was observed" if windowed else f"rests on {share} of the sources"
