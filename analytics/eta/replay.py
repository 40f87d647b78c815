"""What would have been told of past waits: at each of their marks, from what was known before it."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence

from analytics.eta.calibration import Calibration, Told, outcome
from analytics.eta.estimate import Estimate, Past
from analytics.eta.waits import FOREVER_MS, Ask, Waits, band_of
from domain.window import MS_PER_HOUR


def replay(
    waits: Waits, *, classes: Sequence[str], from_ms: int, as_of_ms: int
) -> Iterator[tuple[int, int, Told, Estimate]]:
    """
    In order of time: which wait, its mark, what is told of it, and the estimate behind.

    Args:
        waits: that are known as of `as_of_ms`; a moment sees of them only what lies before it.
        classes: the names of the codes of `service_class`.
        from_ms: moments before are not told of.
    """
    past = Past.of(waits, as_of_ms)
    moments, calibration = past.moments, Calibration()
    open_: list[tuple[int, int, Told]] = []
    together: Counter[tuple[int, int, str]] = Counter()
    for place in range(len(moments)):
        at_ms = int(moments.at_ms[place])
        if at_ms < from_ms:
            continue
        while open_ and open_[0][0] < at_ms:
            _, of, told = heapq.heappop(open_)
            placed_ms = int(waits.until_ms[of]) if waits.placed[of] else None
            came = outcome(told, placed_ms, int(waits.until_ms[of]), at_ms)
            if came is not None:
                calibration.learn(came._replace(together=together[_event(told)]))
        of = int(moments.of[place])
        ask = ask_of(waits, of)
        band, name = band_of(at_ms - ask.submitted_ms), classes[ask.service_class]
        found = past.estimate(ask, at_ms, calibration.margins(band, name))
        if isinstance(found, Estimate):
            told = Told(at_ms, band, name, found.low_ms, found.median_ms, found.high_ms, ask.again)
            together[_event(told)] += 1
            yield of, int(moments.mark[place]), told, found
            known_ms = min(int(waits.until_ms[of]), at_ms + int(found.high_ms) + 1)
            if known_ms < FOREVER_MS:
                heapq.heappush(open_, (known_ms, of, told))


def _event(told: Told) -> tuple[int, int, str]:
    """What was told in the same hour of the same band and class has one cause."""
    return told.at_ms // MS_PER_HOUR, told.band, told.service_class


def ask_of(waits: Waits, of: int) -> Ask:
    """One of the waits, as one asks of it."""
    return Ask(
        submitted_ms=int(waits.submitted_ms[of]),
        queue=int(waits.queue[of]),
        service_class=int(waits.service_class[of]),
        line=int(waits.line[of]),
        size=int(waits.size[of]),
        again=bool(waits.again[of]),
    )
