"""Waits as columns, and the moments of them from which one can tell what was left."""

from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from analytics.censored import Flags, Longs
from domain.window import MS_PER_HOUR

# The ages at which a wait is looked at, and of each the band that it belongs to: below 10 minutes, below an
# hour, below 6 hours, longer. In the last one it is looked at three times, because waits of days are in it.
MARKS_MS: Final = tuple(hours * MS_PER_HOUR // 6 for hours in (0, 1, 6, 36, 144, 432))
BANDS: Final = ("below 10 min", "10 min to 1 h", "1 h to 6 h", "over 6 h")
# What goes on until nobody knows when; small enough to stand behind a code in one integer.
FOREVER_MS: Final = (1 << 43) - 1
# A tick: who is placed before the first one is asked about by nobody.
_TICK_MS: Final = 60_000


def mark_of(age_ms: int) -> int:
    """
    The number of the last mark that an age has reached.

    >>> [mark_of(minutes * 60_000) for minutes in (0, 9, 10, 400)]
    [0, 0, 1, 3]
    """
    return int(np.searchsorted(MARKS_MS, age_ms, "right")) - 1


def band_of(age_ms: int) -> int:
    """The number of the band of an age."""
    return min(mark_of(age_ms), len(BANDS) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """
    Waits of one cluster, a column for each part of them, in any order.

    Names are codes from 0. `until_ms`: when it was placed, or else when nobody waited any more;
    `FOREVER_MS` while it goes on. `line`: its user within its queue. `size`: its bucket. `again`: it was
    placed before, and waits since `submitted_ms` for its next place.
    """

    submitted_ms: Longs
    until_ms: Longs
    placed: Flags
    queue: Longs
    service_class: Longs
    line: Longs
    size: Longs
    again: Flags

    def __len__(self) -> int:
        return len(self.submitted_ms)

    def at(self, some: npt.NDArray[np.intp] | Flags | slice) -> Self:
        """Some of them."""
        return type(self)(**{one.name: getattr(self, one.name)[some] for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A workload that waits: as a row of `Waits`; -1 is a name that was never seen."""

    submitted_ms: int
    queue: int
    service_class: int
    line: int
    size: int
    again: bool = False


def size_bucket(micro_gpus: Longs) -> Longs:
    """
    Powers of two: 0 up to one GPU, 1 above one up to two, 2 up to four, and so on.

    >>> size_bucket(np.array([500_000, 1_000_000, 2_000_000, 3_000_000, 8_000_000])).tolist()
    [0, 0, 1, 2, 3]
    """
    return np.ceil(np.log2(np.maximum(micro_gpus, 1_000_000) / 1e6)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """
    Each wait at each of its marks, as far as it got there: in order of time.

    `of`: the wait, by its place. `burst`: a code of the line, mark and hour, which have one cause, from 0.
    """

    of: npt.NDArray[np.intp]
    at_ms: Longs
    mark: Longs
    burst: Longs

    @classmethod
    def of_waits(cls, waits: Waits, before_ms: int = FOREVER_MS) -> Self:
        """The moments before an instant: at the first full minute after the wait came to a mark."""
        of, at, marks = [], [], []
        for mark, age_ms in enumerate(MARKS_MS):
            at_ms = (waits.submitted_ms + age_ms) // _TICK_MS * _TICK_MS + _TICK_MS
            there = np.flatnonzero((waits.until_ms > at_ms) & (at_ms < before_ms))
            of.append(there)
            at.append(at_ms[there])
            marks.append(np.full(len(there), mark))
        whom, at_ms, mark_column = np.concatenate(of), np.concatenate(at), np.concatenate(marks)
        order = np.argsort(at_ms, kind="stable")
        whom, at_ms, mark_column = whom[order], at_ms[order], mark_column[order]
        burst = (waits.line[whom] * len(MARKS_MS) + mark_column) * (1 << 25) + at_ms // MS_PER_HOUR
        return cls(
            of=whom,
            at_ms=at_ms,
            mark=mark_column,
            burst=np.unique(burst, return_inverse=True)[1],
        )

    def __len__(self) -> int:
        return len(self.at_ms)
