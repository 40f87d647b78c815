"""
The rest of a wait: five answers of like waits, put together.

Each answer is the distribution of what was left of waits of the same age, with those that still wait counted
in. They are averaged, which is wide where they disagree, and quantiles are read off: docs/adr/0036.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from analytics.censored import Floats, Longs
from analytics.eta.waits import Ask, Line, Moments, Waits, mark_of
from domain.window import MS_PER_HOUR

Places: TypeAlias = npt.NDArray[np.intp]
# Of what a rung of the ladder takes together: finest first.
Rung: TypeAlias = tuple[str, ...]
EVERYBODY: Final[Rung] = ()
CLASS: Final[Rung] = ("service_class",)
QUEUE: Final[Rung] = ("queue", "service_class")
SIZE: Final[Rung] = ("queue", "service_class", "size")
LINE: Final[Rung] = ("line",)

# So many must have started for a rung to count.
ENOUGH: Final = 10
# The share that is left out on either side of the interval.
TAIL: Final = 0.1
# What goes on beyond the longest that was seen is taken to end at so many times that.
_BEYOND: Final = 1.5
# The line's own answer goes no further than so many times the longest that was left of any wait.
_AT_MOST: Final = 3.0
_DAY_MS: Final = 24 * MS_PER_HOUR
_MINUTE_MS: Final = 60_000


class Voice(NamedTuple):
    """One answer: of the finest rung with enough starts, newer ones weighing more, and of so many at most."""

    ladder: tuple[Rung, ...]
    half_life_days: float
    most: int
    by_line: bool = False


VOICES: Final = (
    Voice((EVERYBODY,), 30, 1000),
    Voice((CLASS,), 30, 1000),
    Voice((SIZE, QUEUE, CLASS), 5, 500),
    Voice((LINE, QUEUE, CLASS), 5, 500),
    Voice((CLASS, EVERYBODY), 5, 600, by_line=True),
)
_LIKE: Final = VOICES[2]


class Masses(NamedTuple):
    """A distribution of what is left: milliseconds, and the probability of each."""

    left_ms: Floats
    mass: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """
    What is left of a wait, in milliseconds: the median, and from `low_ms` to `high_ms` the 80 % interval.

    `like` is how many waits of the rung `rung` it rests on first of all, `started` of which have ended.
    """

    low_ms: float
    median_ms: float
    high_ms: float
    rung: Rung
    like: int
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEstimate:
    """That nothing can be told, and why."""

    because: str


class Widths(NamedTuple):
    """How many times as wide as the quantiles say either part of the interval is, as calibration has it."""

    low: float = 1.0
    high: float = 1.0


UNCALIBRATED: Final = Widths()


def ended(left_ms: Floats, is_end: npt.NDArray[np.bool_], weight: Floats) -> Masses:
    """
    The distribution of what is left by weighted Kaplan-Meier; what it leaves open lies beyond the longest.

    Source: Kaplan and Meier 1958, with weights as case weights; the open end after Efron 1967, who lets the
    longest end, here at 1.5 times its age.
    """
    order = np.lexsort((~is_end, left_ms))
    left_ms, is_end, weight = left_ms[order], is_end[order], weight[order]
    at_risk = np.cumsum(weight[::-1])[::-1]
    survival = np.cumprod(np.where(is_end, 1 - weight / at_risk, 1.0))
    mass = -np.diff(survival, prepend=1.0)
    return Masses(np.append(left_ms, left_ms[-1] * _BEYOND), np.append(mass, survival[-1]))


def quantiles(voices: Sequence[Masses], levels: Sequence[float]) -> list[float]:
    """
    The quantiles of the average of distributions.

    Source: the linear opinion pool, Stone 1961.
    """
    left_ms = np.concatenate([voice.left_ms for voice in voices])
    mass = np.concatenate([voice.mass / len(voices) for voice in voices])
    order = np.argsort(left_ms, kind="stable")
    below = np.cumsum(mass[order])
    places = np.minimum(np.searchsorted(below, np.asarray(levels) - 1e-9), len(order) - 1)
    return [float(left_ms[order[place]]) for place in places]


def _stretched(median_ms: float, end_ms: float, width: float) -> float:
    """
    An end of the interval, so many times as far from the median, on the scale of log(1 min + length).

    >>> _stretched(540_000, 1_140_000, 2.0)
    2340000.0
    """
    middle, end = math.log(median_ms + _MINUTE_MS), math.log(end_ms + _MINUTE_MS)
    return float(max(round(math.exp(middle + (end - middle) * width) - _MINUTE_MS), 0))


@dataclass(slots=True)
class Past:
    """What one can learn from the first waits of a cluster; asked as of any instant up to its end."""

    waits: Waits
    moments: Moments
    line: Line
    _by_rung: dict[Rung, tuple[Longs, Places]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, waits: Waits, before_ms: int) -> "Past":
        """Of waits, as of an instant: what comes after it is not to be in them."""
        return cls(waits, Moments.of_waits(waits, before_ms), Line(waits))

    def estimate(self, ask: Ask, as_of_ms: int, widths: Widths = UNCALIBRATED) -> Estimate | NoEstimate:
        """What is left of a wait at an instant, from what was known before it."""
        answers = self.voices(ask, as_of_ms)
        if not answers:
            return NoEstimate(because=f"fewer than {ENOUGH} workloads that waited as long have started")
        low_ms, median_ms, high_ms = quantiles(answers, (TAIL, 0.5, 1 - TAIL))
        like = self._heard(_LIKE, ask, as_of_ms, self._known(as_of_ms))
        return Estimate(
            low_ms=_stretched(median_ms, low_ms, widths.low),
            median_ms=median_ms,
            # However wide it is made, it goes no further than what was seen.
            high_ms=min(_stretched(median_ms, high_ms, widths.high), max(high_ms, answers[0].left_ms[-1])),
            rung=like.rung if like else EVERYBODY,
            like=len(like.places) if like else 0,
            started=like.started if like else 0,
        )

    def voices(self, ask: Ask, as_of_ms: int) -> list[Masses]:
        """The answers of all voices that can be heard."""
        answers, longest_ms = [], 0.0
        for voice in VOICES:
            heard = self._heard(voice, ask, as_of_ms, self._known(as_of_ms))
            masses = self._masses(voice, heard, ask, as_of_ms, longest_ms) if heard else None
            if masses is None:
                continue
            if voice.ladder == (EVERYBODY,):
                longest_ms = float(masses.left_ms.max()) / _BEYOND
            answers.append(masses)
        return answers

    def _known(self, as_of_ms: int) -> int:
        """How many moments lie before an instant."""
        return int(np.searchsorted(self.moments.at_ms, as_of_ms))

    def _heard(self, voice: Voice, ask: Ask, as_of_ms: int, known: int) -> "_Heard | None":
        """The moments that a voice speaks of."""
        mark = mark_of(as_of_ms - ask.submitted_ms)
        for rung in voice.ladder:
            places = self._alike(rung, ask, mark, known)[-voice.most :]
            if len(places) < ENOUGH:
                continue
            of = self.moments.of[places]
            is_over = self.waits.until_ms[of] < as_of_ms
            is_end = is_over & self.waits.placed[of]
            left_ms = np.where(is_over, self.waits.until_ms[of], as_of_ms) - self.moments.at_ms[places]
            if not voice.by_line:
                # Those of them that waited as long as the one that is asked about, from there.
                age_ms = self.moments.at_ms[places] - self.waits.submitted_ms[of]
                more_ms = np.maximum(as_of_ms - ask.submitted_ms - age_ms, 0)
                chosen = left_ms > more_ms
                places, is_end, left_ms = places[chosen], is_end[chosen], (left_ms - more_ms)[chosen]
            started = int(is_end.sum())
            if started >= ENOUGH:
                return _Heard(rung, places, is_end, left_ms.astype(np.float64), started)
        return None

    def _masses(
        self, voice: Voice, heard: "_Heard", ask: Ask, as_of_ms: int, longest_ms: float
    ) -> Masses | None:
        moments = self.moments
        ago_days = (as_of_ms - moments.at_ms[heard.places]) / _DAY_MS
        # Those of one burst have one cause: together they count as the root of their number.
        _, which, burst = np.unique(moments.burst[heard.places], return_inverse=True, return_counts=True)
        weight = 0.5 ** (ago_days / voice.half_life_days) / np.sqrt(burst[which]) + 1e-12
        if not voice.by_line:
            return ended(heard.left_ms, heard.is_end, weight)
        if ask.line < 0:
            return None
        one = (np.array([value]) for value in (ask.line, ask.submitted_ms, as_of_ms))
        ratio = (1 + heard.left_ms / 1000) / (1 + moments.line_seconds[heard.places])
        own = ended(ratio, heard.is_end, weight)
        left_ms = np.maximum(own.left_ms * (1 + self.line.seconds(*one)) - 1, 0) * 1000
        return Masses(np.minimum(left_ms, longest_ms * _AT_MOST) if longest_ms else left_ms, own.mass)

    def _alike(self, rung: Rung, ask: Ask, mark: int, known: int) -> Places:
        """Moments of the same mark and cell among the first so many, in order of time."""
        keys, order = self._index(rung)
        key = _key(mark, [np.array(getattr(ask, name)) for name in rung])
        first, last = np.searchsorted(keys, key, "left"), np.searchsorted(keys, key, "right")
        found = order[first:last]
        return found[: np.searchsorted(found, known)]

    def _index(self, rung: Rung) -> tuple[Longs, Places]:
        if rung not in self._by_rung:
            of = self.moments.of
            keys = _key(self.moments.mark, [getattr(self.waits, name)[of] for name in rung])
            order = np.argsort(keys, kind="stable")
            self._by_rung[rung] = keys[order], order
        return self._by_rung[rung]


class _Heard(NamedTuple):
    rung: Rung
    places: Places
    is_end: npt.NDArray[np.bool_]
    left_ms: Floats
    started: int


def _key(mark: Longs | int, codes: Iterable[Longs]) -> Longs:
    """One number for a mark and codes; what was never seen has one that nothing has."""
    key = np.asarray(mark, np.int64)
    for code in codes:
        key = key * (1 << 20) + code + 1
    return key


RUNG_WORDS: Final[Mapping[Rung, str]] = {
    EVERYBODY: "of the cluster",
    CLASS: "of its class",
    QUEUE: "of its queue and class",
    SIZE: "of its queue, class and size",
    LINE: "of its user in its queue",
}
