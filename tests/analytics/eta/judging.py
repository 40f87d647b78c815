"""How good what is told is: coverage of the intervals and pinball loss, beside two simpler answers."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from analytics.censored import Flags, Floats, Longs
from analytics.eta.replay import replay
from analytics.eta.waits import BANDS, FOREVER_MS, band_of
from domain.window import MS_PER_HOUR
from tests.analytics.eta.histories import History

_QUANTILES: Final = (0.1, 0.5, 0.9)
# Before so many waits have ended nobody has quantiles of them.
_FEWEST: Final = 20
# What an interval is meant to hold may be off by so much.
_MEANT: Final = (0.7, 0.9)
# Of the standard normal, for 95 %.
_Z: Final = 1.96


class Cell(NamedTuple):
    """Of a band or class: intervals, how many bursts they are worth, which shares started early and late."""

    intervals: int
    bursts: float
    early: float
    late: float

    @property
    def held(self) -> float:
        """The share that started inside."""
        return 1 - self.early - self.late

    @property
    def is_meant(self) -> bool:
        """Whether 70 to 90 % were held."""
        return _MEANT[0] <= round(self.held, 2) <= _MEANT[1]

    @property
    def may_be_meant(self) -> bool:
        """Whether so few bursts could have come of work of which 70 to 90 % are held in the long run."""
        low, high = self.between
        return low <= _MEANT[1] and high >= _MEANT[0]

    @property
    def between(self) -> tuple[float, float]:
        """
        The share that is held in the long run, to 95 %: a burst is held or missed together, and counts once.

        Source: Wilson 1927, with an effective size in the place of the number (Korn and Graubard 1998).

        >>> [round(end, 3) for end in Cell(50, 10.0, 0.1, 0.1).between]
        [0.49, 0.943]
        """
        off = _Z**2 / self.bursts
        half = _Z * (self.held * (1 - self.held) / self.bursts + off / self.bursts / 4) ** 0.5
        return (self.held + off / 2 - half) / (1 + off), (self.held + off / 2 + half) / (1 + off)

    def text(self, name: str) -> str:
        """In a line, with whether it is what it should be."""
        low, high = self.between
        found = "" if self.is_meant else " TOO FEW BURSTS TO TELL" if self.may_be_meant else " MISSED"
        return (
            f"  {name:14} {self.held:.2f} held ({low:.2f} to {high:.2f}), {self.early:.2f} early,"
            f" {self.late:.2f} late, of {self.intervals} in {self.bursts:.1f} bursts{found}"
        )


def worth(bursts: Longs) -> float:
    """
    How many bursts of one size would tell as much: Kish 1965, effective size, of the sizes of the bursts.

    >>> worth(np.array([1, 1, 2, 2])), round(worth(np.array([1] * 98 + [2, 3])), 2)
    (2.0, 1.04)
    """
    sizes = np.unique(bursts, return_counts=True)[1]
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def pinball(left: Floats, told: Floats) -> Floats:
    """The mean loss over the three quantiles, for each row. Koenker and Bassett 1978."""
    levels = np.array(_QUANTILES)
    over = left[:, None] - told
    return np.asarray(np.where(over >= 0, levels * over, (levels - 1) * over).mean(1))


@dataclass(slots=True)
class Judged:
    """What was told in the later half of a trace, and what came; seconds."""

    name: str
    rows: list[tuple[int, int, str, float, float, float, float]] = field(default_factory=list)
    plain: list[tuple[float, float, float]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    bursts: list[tuple[int, int, int]] = field(default_factory=list)

    def columns(self) -> tuple[Longs, list[str], Floats, Floats]:
        """Bands, classes, what was left, and what was told of it."""
        band = np.array([row[1] for row in self.rows])
        told = np.array([row[4:] for row in self.rows])
        return band, [row[2] for row in self.rows], np.array([row[3] for row in self.rows]), told

    def coverage(self) -> dict[str, Cell]:
        """By band and by class."""
        band, classes, left, told = self.columns()
        early, late = left < told[:, 0], left > told[:, 2]
        bursts = np.unique(np.array(self.bursts), axis=0, return_inverse=True)[1].ravel()
        named = np.array(classes)
        cells = {name: band == at for at, name in enumerate(BANDS)}
        cells |= {name: named == name for name in sorted(set(classes))}
        return {
            name: Cell(
                int(cell.sum()), worth(bursts[cell]), float(early[cell].mean()), float(late[cell].mean())
            )
            for name, cell in cells.items()
            if cell.any()
        }

    def losses(self) -> tuple[float, float, float | None]:
        """Ours, that of the unconditional quantiles, and that of the limits ahead where there are any."""
        _, _, left, told = self.columns()
        limits = np.array(self.limits)
        by_limits = float(pinball(left, np.stack([limits] * 3, 1)).mean()) if len(limits) else None
        return float(pinball(left, told).mean()), float(pinball(left, np.array(self.plain)).mean()), by_limits

    def text(self) -> str:
        """As a table."""
        ours, plain, limits = self.losses()
        ahead = "" if limits is None else f", limits ahead {limits:,.0f}"
        return "\n".join(
            (
                f"{self.name}: {len(self.rows)} intervals",
                *(cell.text(name) for name, cell in self.coverage().items()),
                f"  pinball {ours:,.0f} s, unconditional {plain:,.0f} ({ours / plain:.3f}){ahead}",
            )
        )


def judged(history: History, *, first: bool = False, again: bool = False) -> Judged:
    """
    All clusters of a trace, told of online; only the moments after the median one count.

    `first`: those before it instead, which is what the estimator was made on. `again`: of waits after a
    placement, beside the quantiles of such waits, instead of first ones.
    """
    found = Judged(history.name)
    rows: list[tuple[int, tuple[float, float, float], float | None]] = []
    bursts: list[tuple[int, int, int]] = []
    for cluster in np.unique(history.cluster):
        chosen = history.cluster == cluster
        waits = history.waits.at(chosen)
        counted = waits.at(waits.again == again)
        plain = _Unconditional(counted.until_ms - counted.submitted_ms, counted.until_ms, counted.placed)
        ahead = _LimitsAhead.of(history, chosen)
        for of, _, told, _ in replay(waits, classes=history.classes, from_ms=0, as_of_ms=FOREVER_MS):
            quantiles = plain.quantiles(told.at_ms)
            if waits.again[of] != again or not waits.placed[of] or quantiles is None:
                continue
            age = told.at_ms - int(waits.submitted_ms[of])
            left = (int(waits.until_ms[of]) - told.at_ms) / 1000
            said = (told.low_ms / 1000, told.median_ms / 1000, told.high_ms / 1000)
            found.rows.append((told.at_ms, band_of(age), told.service_class, left, *said))
            low, middle, high = (max(one - age, 0) / 1000 for one in quantiles)
            hour = int(waits.submitted_ms[of]) // MS_PER_HOUR
            bursts.append((int(cluster), int(waits.line[of]), hour))
            rows.append((told.at_ms, (low, middle, high), ahead.seconds(of, told.at_ms) if ahead else None))
    half = float(np.median([row[0] for row in rows]))
    counts = [(row[0] <= half) if first else (row[0] > half) for row in rows]
    found.rows = [row for row, is_in in zip(found.rows, counts, strict=True) if is_in]
    found.bursts = [burst for burst, is_in in zip(bursts, counts, strict=True) if is_in]
    found.plain = [row[1] for row, is_in in zip(rows, counts, strict=True) if is_in]
    found.limits = [row[2] for row, is_in in zip(rows, counts, strict=True) if is_in and row[2] is not None]
    return found


class _Unconditional:
    """Quantiles of all waits that ended before an instant, of whatever age and class."""

    def __init__(self, waits_ms: Longs, until_ms: Longs, placed: Flags) -> None:
        order = np.argsort(until_ms, kind="stable")
        order = order[placed[order] & (waits_ms[order] >= 60_000)]
        self._until, self._waits = until_ms[order], waits_ms[order]
        self._kept: dict[int, Floats] = {}

    def quantiles(self, at_ms: int) -> Floats | None:
        known = int(np.searchsorted(self._until, at_ms))
        known -= known % 20 if known > 200 else 0
        if known < _FEWEST:
            return None
        if known not in self._kept:
            self._kept[known] = np.quantile(self._waits[:known], _QUANTILES)
        return self._kept[known]


@dataclass(slots=True)
class _LimitsAhead:
    """
    The limits of all that is ahead, and what is left of those that run, over all CPUs that were ever in use.

    That is what a queue would need if everybody used up their limit: what can be said without any history.
    """

    submitted_ms: Longs
    start_ms: Longs
    end_ms: Floats
    limit_ms: Floats
    amount: Longs
    most: float = 1.0

    @classmethod
    def of(cls, history: History, chosen: np.ndarray) -> "_LimitsAhead | None":
        if history.limit_seconds is None or history.amount is None or history.run_seconds is None:
            return None
        start_ms = history.waits.until_ms[chosen]
        run = np.nan_to_num(history.run_seconds[chosen], nan=0.0)
        limit = history.limit_seconds[chosen]
        return cls(
            history.waits.submitted_ms[chosen],
            start_ms,
            start_ms + run * 1000,
            np.nan_to_num(limit, nan=float(np.nanmedian(limit))) * 1000,
            history.amount[chosen],
        )

    def seconds(self, of: int, at_ms: int) -> float:
        waits = (self.submitted_ms < self.submitted_ms[of]) & (self.start_ms >= at_ms)
        runs = (self.start_ms < at_ms) & (self.end_ms > at_ms)
        left_ms = np.maximum(self.start_ms[runs] + self.limit_ms[runs] - at_ms, 0)
        work = float((self.limit_ms[waits] * self.amount[waits]).sum() + (left_ms * self.amount[runs]).sum())
        self.most = max(self.most, float(self.amount[runs].sum()))
        return work / self.most / 1000
