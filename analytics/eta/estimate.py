"""
The rest of a wait: five answers of like waits, put together.

Each answer is the distribution of what was left of waits of the same age, with those that still wait counted
in. Its quantiles are read off, and averaged on the scale of log(1 min + length): docs/adr/0036 and 0053.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import product
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from analytics.censored import Floats, Longs
from analytics.eta.line import WIDTH, Lines
from analytics.eta.waits import Ask, Moments, Waits, mark_of
from domain.window import MS_PER_HOUR

Places: TypeAlias = npt.NDArray[np.intp]
# Of what a rung of the ladder takes together: finest first.
Rung: TypeAlias = tuple[str, ...]
EVERYBODY: Final[Rung] = ()
CLASS: Final[Rung] = ("service_class",)
QUEUE: Final[Rung] = ("queue", "service_class")
LINE: Final[Rung] = ("line",)
# Of those whose queues looked most alike when they were as old.
NEAR: Final[Rung] = ("near",)
# What waits again is a rung of its own, of each of the others.
AGAIN: Final[Rung] = ("again",)

# So many must have started for a rung to count.
ENOUGH: Final = 10
# The share that is to be left out on either side of the interval.
TAIL: Final = 0.1
# What goes on beyond the longest that was seen is taken to end at so many times that.
_BEYOND: Final = 1.5
# The line's own answer goes no further than so many times the longest that was left of any wait.
_AT_MOST: Final = 3.0
_DAY_MS: Final = 24 * MS_PER_HOUR
_MINUTE_MS: Final = 60_000
# Near are so many that have started, and whoever waits as near as they are.
_NEAREST: Final = 100
# How far apart another name is, beside a mean square of one for what was seen of the queues.
_APART: Final = (("service_class", 2.0), ("queue", 1.0), ("line", 1.0), ("size", 1.0))
# What hardly ever differs is no difference.
_SPREAD: Final = 0.15


class Kind(Enum):
    """How a voice learns from the moments of its rung."""

    ALIKE = auto()
    NEAR = auto()
    LINE = auto()


class Voice(NamedTuple):
    """
    One answer: of the finest rung with enough starts, newer ones weighing more, and of so many at most.

    `says`: how much it counts beside the others.
    """

    ladder: tuple[Rung, ...]
    half_life_days: float
    most: int
    kind: Kind = Kind.ALIKE
    says: float = 1.0


# Everybody forgets nothing, and counts as much as the next three: the others follow the last bursts.
VOICES: Final = (
    Voice((EVERYBODY,), 1e4, 4000, says=3.0),
    Voice((CLASS,), 30, 1000),
    Voice((LINE,), 5, 500),
    Voice((CLASS, EVERYBODY), 5, 600, Kind.LINE),
    Voice((EVERYBODY,), 30, 2000, Kind.NEAR),
)


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


class Margins(NamedTuple):
    """
    How far calibration moves either end outwards: to the level at which `exp(-margin)` of the tail is left.

    >>> [round(level, 3) for level in Margins(low=0.0, high=0.6931472).levels()]
    [0.1, 0.5, 0.95]
    """

    low: float = 0.0
    high: float = 0.0

    def levels(self) -> tuple[float, float, float]:
        """Of the low end, the median, and the high end; either end stops at the median."""
        low, high = (min(TAIL * math.exp(-margin), 0.5) for margin in self)
        return low, 0.5, 1 - high


UNCALIBRATED: Final = Margins()


def ended(left_ms: Floats, is_end: npt.NDArray[np.bool_], weight: Floats) -> Masses:
    """
    The distribution of what is left by weighted Kaplan-Meier; what it leaves open lies beyond the longest.

    Source: Kaplan and Meier 1958, with weights as case weights; the open end after Efron 1967, who lets the
    longest end, here at 1.5 times its age.
    """
    # Of those of one length the ends come first: whoever still waits is at risk of them.
    order = np.argsort(np.where(is_end, left_ms, np.nextafter(left_ms, np.inf)))
    left_ms, is_end, weight = left_ms[order], is_end[order], weight[order]
    at_risk = np.cumsum(weight[::-1])[::-1]
    survival = np.cumprod(np.where(is_end, 1 - weight / at_risk, 1.0))
    mass = -np.diff(survival, prepend=1.0)
    return Masses(np.append(left_ms, left_ms[-1] * _BEYOND), np.append(mass, survival[-1]))


def quantiles(
    voices: Sequence[Masses], levels: Sequence[float], says: Sequence[float] | None = None
) -> list[float]:
    """
    The quantiles of distributions, averaged on the scale of log(1 min + length); `says` weighs them.

    Source: Vincent 1912; Lichtendahl, Grushka-Cockayne and Winkler 2013, on averages of quantiles and not of
    probabilities, whose ends go out as far as the widest answer.
    """
    logs = []
    for voice in voices:
        places = np.searchsorted(np.cumsum(voice.mass), np.asarray(levels) - 1e-9)
        logs.append(np.log(voice.left_ms[np.minimum(places, len(voice.mass) - 1)] + _MINUTE_MS))
    return [max(float(one), 0.0) for one in np.exp(np.average(logs, axis=0, weights=says)) - _MINUTE_MS]


@dataclass(slots=True)
class Past:
    """What one can learn from the waits of a cluster; asked as of any instant up to its end."""

    waits: Waits
    moments: Moments
    lines: Lines
    # Of each moment: the time that those before it in its line would take, and what was seen of the queues,
    # worked out as soon as somebody asks for it.
    _line_seconds: Floats
    _state: Floats
    _by_rung: dict[Rung, tuple[Longs, Places]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, waits: Waits, before_ms: int) -> "Past":
        """Of waits, as of an instant: what comes after it is not to be in them."""
        moments, lines = Moments.of_waits(waits, before_ms), Lines(waits)
        of = moments.of
        line_seconds = lines.line.seconds(waits.line[of], waits.submitted_ms[of], moments.at_ms)
        return cls(waits, moments, lines, line_seconds, np.full((len(moments), WIDTH), np.nan))

    def estimate(self, ask: Ask, as_of_ms: int, margins: Margins = UNCALIBRATED) -> Estimate | NoEstimate:
        """What is left of a wait at an instant, from what was known before it."""
        answers = self.voices(ask, as_of_ms)
        if not answers:
            return NoEstimate(because=f"fewer than {ENOUGH} workloads that waited as long have started")
        low_ms, median_ms, high_ms = quantiles(
            [masses for _, masses in answers], margins.levels(), [heard.says for heard, _ in answers]
        )
        like = answers[-1][0]
        return Estimate(
            low_ms=round(low_ms),
            median_ms=round(median_ms),
            high_ms=round(high_ms),
            rung=like.rung,
            like=len(like.places),
            started=like.started,
        )

    def voices(self, ask: Ask, as_of_ms: int) -> "list[tuple[_Heard, Masses]]":
        """The answers of all voices that can be heard, each with whom it speaks of; the nearest last."""
        answers, longest_ms = [], 0.0
        for voice in VOICES:
            heard = self._heard(voice, ask, as_of_ms, self._known(as_of_ms))
            if heard is None or (voice.kind is Kind.LINE and ask.line < 0):
                continue
            longest_ms = max(longest_ms, float(heard.left_ms.max()))
            answers.append((heard, self._masses(voice, heard, ask, as_of_ms, longest_ms)))
        return answers

    def _known(self, as_of_ms: int) -> int:
        """How many moments lie before an instant."""
        return int(np.searchsorted(self.moments.at_ms, as_of_ms))

    def _heard(self, voice: Voice, ask: Ask, as_of_ms: int, known: int) -> "_Heard | None":
        """The moments that a voice speaks of."""
        mark = mark_of(as_of_ms - ask.submitted_ms)
        # Who waits again is like others that do; where too few of them were seen, like who waits at first.
        asks = (ask, replace(ask, again=False)) if ask.again else (ask,)
        for asked, rung in product(asks, voice.ladder):
            places = self._alike(rung, asked, mark, known)[-voice.most :]
            if len(places) < ENOUGH:
                continue
            of = self.moments.of[places]
            is_over = self.waits.until_ms[of] < as_of_ms
            is_end = is_over & self.waits.placed[of]
            left_ms = np.where(is_over, self.waits.until_ms[of], as_of_ms) - self.moments.at_ms[places]
            if voice.kind is not Kind.LINE:
                # Those of them that waited as long as the one that is asked about, from there.
                age_ms = self.moments.at_ms[places] - self.waits.submitted_ms[of]
                more_ms = np.maximum(as_of_ms - ask.submitted_ms - age_ms, 0)
                chosen = left_ms > more_ms
                places, is_end, left_ms = places[chosen], is_end[chosen], (left_ms - more_ms)[chosen]
            started = int(is_end.sum())
            if started >= ENOUGH:
                closeness = np.ones(len(places))
                left = left_ms.astype(np.float64)
                of_whom = (*AGAIN, *rung) if asked.again else rung
                found = _Heard(of_whom, places, is_end, left, started, closeness, voice.says)
                return self._nearest(found, ask, as_of_ms) if voice.kind is Kind.NEAR else found
        return None

    def _nearest(self, heard: "_Heard", ask: Ask, as_of_ms: int) -> "_Heard":
        """Of moments the nearest that have started, and whoever still waits as near; nearer ones closer."""
        asked = (ask.queue, ask.line, ask.size, ask.submitted_ms, as_of_ms)
        own = self.lines.state(*(np.array([value]) for value in asked))
        seen, of = self._seen(heard.places), self.moments.of[heard.places]
        apart = (seen - own) / (seen.std(0) + _SPREAD)
        distance = np.einsum("ij,ij->i", apart, apart) / seen.shape[1]
        for name, penalty in _APART:
            distance += penalty * (getattr(self.waits, name)[of] != getattr(ask, name))
        ends = distance[heard.is_end]
        most = min(_NEAREST, len(ends)) - 1
        near = distance <= np.partition(ends, most)[most]
        distance = distance[near]
        return _Heard(
            (*AGAIN, *NEAR) if AGAIN[0] in heard.rung else NEAR,
            heard.places[near],
            heard.is_end[near],
            heard.left_ms[near],
            int(heard.is_end[near].sum()),
            np.exp(-distance / (np.median(distance) + 1e-9)),
            heard.says,
        )

    def _seen(self, places: Places) -> Floats:
        """What was seen of the queues at each of some moments."""
        new = places[np.isnan(self._state[places, 0])]
        if len(new):
            of, waits = self.moments.of[new], self.waits
            codes = waits.queue[of], waits.line[of], waits.size[of]
            self._state[new] = self.lines.state(*codes, waits.submitted_ms[of], self.moments.at_ms[new])
        return self._state[places]

    def _masses(self, voice: Voice, heard: "_Heard", ask: Ask, as_of_ms: int, longest_ms: float) -> Masses:
        moments = self.moments
        ago_days = (as_of_ms - moments.at_ms[heard.places]) / _DAY_MS
        # Those of one burst have one cause: together they count as the root of their number.
        burst = moments.burst[heard.places]
        together = np.bincount(burst)[burst]
        weight = 0.5 ** (ago_days / voice.half_life_days) / np.sqrt(together) * heard.closeness + 1e-9
        if voice.kind is not Kind.LINE:
            return ended(heard.left_ms, heard.is_end, weight)
        one = (np.array([value]) for value in (ask.line, ask.submitted_ms, as_of_ms))
        ratio = (_MINUTE_MS + heard.left_ms) / (_MINUTE_MS + self._line_seconds[heard.places] * 1000)
        own = ended(ratio, heard.is_end, weight)
        left_ms = own.left_ms * (_MINUTE_MS + self.lines.line.seconds(*one) * 1000) - _MINUTE_MS
        return Masses(np.clip(left_ms, 0, longest_ms * _AT_MOST), own.mass)

    def _alike(self, rung: Rung, ask: Ask, mark: int, known: int) -> Places:
        """Moments of the same mark and cell, of those that wait again or not, in order of time."""
        keys, order = self._index(rung)
        key = _key(2 * mark + ask.again, [np.array(getattr(ask, name)) for name in rung])
        first, last = np.searchsorted(keys, key, "left"), np.searchsorted(keys, key, "right")
        found = order[first:last]
        return found[: np.searchsorted(found, known)]

    def _index(self, rung: Rung) -> tuple[Longs, Places]:
        if rung not in self._by_rung:
            of = self.moments.of
            marks = 2 * self.moments.mark + self.waits.again[of]
            keys = _key(marks, [getattr(self.waits, name)[of] for name in rung])
            order = np.argsort(keys, kind="stable")
            self._by_rung[rung] = keys[order], order
        return self._by_rung[rung]


class _Heard(NamedTuple):
    rung: Rung
    places: Places
    is_end: npt.NDArray[np.bool_]
    left_ms: Floats
    started: int
    closeness: Floats
    says: float


def _key(mark: Longs | int, codes: Iterable[Longs]) -> Longs:
    """One number for a mark and codes; what was never seen has one that nothing has."""
    key = np.asarray(mark, np.int64)
    for code in codes:
        key = key * (1 << 20) + code + 1
    return key


_WORDS: Final[Mapping[Rung, str]] = {
    EVERYBODY: "of the cluster",
    CLASS: "of its class",
    QUEUE: "of its queue and class",
    LINE: "of its user in its queue",
    NEAR: "that met such a queue",
}
RUNG_WORDS: Final[Mapping[Rung, str]] = {
    **_WORDS,
    **{(*AGAIN, *rung): f"{words} after losing their place" for rung, words in _WORDS.items()},
}
