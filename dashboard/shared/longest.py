"""Which lines a chart shows where there are more than one can read: the longest, and it says so."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from dashboard.shared import format as text

LINES_SHOWN: Final = 30
Bar = TypeVar("Bar")


def longest(
    bars: Mapping[tuple[str, str], Bar], length: Callable[[Bar], float]
) -> dict[tuple[str, str], Bar]:
    """
    The bars of the lines that are longest in all.

    Args:
        bars: by line and part of it.
        length: of a bar.
    """
    whole: dict[str, float] = {}
    for (line, _), bar in bars.items():
        whole[line] = whole.get(line, 0.0) + length(bar)
    kept = sorted(whole, key=lambda line: (-whole[line], text.natural(line)))[:LINES_SHOWN]
    return {key: bar for key, bar in bars.items() if key[0] in kept}


def note(bars: Mapping[tuple[str, str], object], what: str) -> str:
    """
    That only the longest lines are shown; empty where all are.

    >>> note({(f"team-{n}", "idle"): 1.0 for n in range(50)}, "team")
    'The longest 30 of 50 teams.'
    """
    lines = len({line for line, _ in bars})
    return f"The longest {LINES_SHOWN} of {text.count(lines, what)}." if lines > LINES_SHOWN else ""
