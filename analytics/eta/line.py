"""Who waits in each group at an instant, how fast it moves, and how long the last ones waited."""

from typing import Final

import numpy as np
import numpy.typing as npt

from analytics.censored import Floats, Longs
from analytics.eta.waits import FOREVER_MS, Waits
from domain.window import MS_PER_HOUR

_CODE: Final = FOREVER_MS + 1
_MINUTE_S: Final = 60
# The waits of so many that were placed last are averaged.
_LAST: Final = 8
# Where nobody was placed yet: so long ago, and after so long a wait.
_NEVER_S: Final = 3 * 86_400
_UNKNOWN_S: Final = 1800


class Line:
    """
    The first waits of each group, by a code for each: of a queue, of a user in a queue, or of all.

    A code that nobody has, such as -1, is a group in which nothing ever happened.
    """

    def __init__(self, waits: Waits, codes: Longs) -> None:
        def keys(codes: Longs, instants: Longs) -> Longs:
            return np.asarray(codes * _CODE + np.minimum(instants, FOREVER_MS))

        submitted = keys(codes, waits.submitted_ms)
        gone = keys(codes, waits.until_ms)
        order = np.argsort(gone, kind="stable")
        self._submitted, self._gone = np.sort(submitted), gone[order]
        # Who was submitted first of all that are gone at one's place or later: of one's group, if any is.
        first_left = np.minimum.accumulate(submitted[order][::-1])[::-1]
        self._first_left = np.append(first_left, np.iinfo(np.int64).max)
        placed = order[waits.placed[order]]
        self._placed = gone[placed]
        waited = np.log(_MINUTE_S + (waits.until_ms - waits.submitted_ms)[placed] / 1000)
        self._waited = np.append(0.0, np.cumsum(waited))

    def seconds(self, codes: Longs, submitted_ms: Longs, at_ms: Longs) -> Floats:
        """
        How long those submitted before each would take at the pace of the last hour and of the last six.

        Where nothing was placed for six hours the pace is unknown, and taken to be one in twenty hours.
        Source: Little 1961 (L = lambda W), with the pace of the last hours for lambda.
        """
        ahead = self._ahead(codes, submitted_ms, at_ms)
        per_hour = np.maximum((self._moved(codes, at_ms, 1) + self._moved(codes, at_ms, 6)) / 7, 0.05)
        return np.asarray((ahead + 0.5) / per_hour * 3600)

    def state(self, codes: Longs, submitted_ms: Longs, at_ms: Longs) -> Floats:
        """
        What one sees of each group at an instant: a row for each of seven logarithms.

        How many wait before one, and in all; how many were placed in an hour, and in six; since when none
        was; how long the last ones waited (mean of the logarithms); how long the first in line waits.
        """
        start = np.searchsorted(self._placed, codes * _CODE)
        now = np.searchsorted(self._placed, codes * _CODE + at_ms)
        some, last = now > start, np.maximum(now - _LAST, start)
        waited = (self._waited[now] - self._waited[last]) / np.maximum(now - last, 1)
        since_s = np.full(len(codes), float(_NEVER_S))
        since_s[some] = (at_ms[some] - self._placed[now[some] - 1] % _CODE) / 1000
        first = self._first_left[np.searchsorted(self._gone, codes * _CODE + at_ms)]
        first_s = np.where(first // _CODE == codes, np.maximum(at_ms - first % _CODE, 0), 0) / 1000
        return np.stack([
            np.log1p(self._ahead(codes, submitted_ms, at_ms)),
            np.log1p(self._ahead(codes, at_ms, at_ms)),
            np.log1p(self._moved(codes, at_ms, 1)),
            np.log1p(self._moved(codes, at_ms, 6)),
            np.log(_MINUTE_S + since_s),
            np.where(some, waited, np.log(_MINUTE_S + _UNKNOWN_S)),
            np.log(_MINUTE_S + first_s),
        ])  # fmt: skip

    def _ahead(self, codes: Longs, submitted_ms: Longs, at_ms: Longs) -> Longs:
        submitted = _before(self._submitted, codes, submitted_ms)
        return np.asarray(np.maximum(submitted - _before(self._gone, codes, at_ms), 0))

    def _moved(self, codes: Longs, at_ms: Longs, hours: int) -> Longs:
        earlier = _before(self._placed, codes, at_ms - hours * MS_PER_HOUR)
        return _before(self._placed, codes, at_ms) - earlier


def _before(keys: Longs, codes: Longs, instants: Longs) -> npt.NDArray[np.int64]:
    """How many of each group lie before an instant."""
    first = np.searchsorted(keys, codes * _CODE)
    return np.asarray(np.maximum(np.searchsorted(keys, codes * _CODE + np.maximum(instants, 0)) - first, 0))


# How many numbers `Lines.state` gives of each.
WIDTH: Final = 3 * 7 + 1


class Lines:
    """The three groups that a workload waits in: all of the cluster, its queue, and its user in its queue."""

    def __init__(self, waits: Waits) -> None:
        self.line = Line(waits, waits.line)
        self._all = Line(waits, np.zeros(len(waits), np.int64))
        self._queue = Line(waits, waits.queue)

    def state(self, queue: Longs, line: Longs, size: Longs, submitted_ms: Longs, at_ms: Longs) -> Floats:
        """What was to be seen of them, and the size: a row of 22 for each."""
        seen = (
            self._all.state(np.zeros(len(queue), np.int64), submitted_ms, at_ms),
            self._queue.state(queue, submitted_ms, at_ms),
            self.line.state(line, submitted_ms, at_ms),
            size[None].astype(np.float64),
        )
        return np.concatenate(seen).T.copy()
