"""When it starts, in a sentence; and why nothing is told of it, where that is so."""

from collections.abc import Mapping
from typing import Final

from analytics.eta.calibration import Held
from analytics.eta.estimate import RUNG_WORDS, Estimate
from analytics.eta.sooner import Option
from analytics.why.reason import Reason
from domain.window import MS_PER_SECOND

# Of what waits for these nothing can be told from the waits of others.
UNTOLD: Final[Mapping[str, str]] = {
    Reason.HELD_BY_OWNER: "it is held back",
    Reason.GATED: "somebody has to lift its gates first",
    Reason.MISCONFIGURED: "it has to be corrected first",
    Reason.NEVER_FITS: "as it is it never starts",
}
_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60))


def about(left_ms: float) -> str:
    """
    A length of time as one says it: two units at most, and no false precision.

    >>> [about(seconds * 1000) for seconds in (8, 40, 2400, 7_800, 100_000, 900_000)]
    ['less than a minute', 'less than a minute', '40 min', '2 h 10 min', '1 d 4 h', '10 d']
    """
    seconds = left_ms / MS_PER_SECOND
    minutes = round(seconds / 60)
    if seconds < 60:
        return "less than a minute"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        hours, rest = divmod(round(minutes / 5) * 5, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(round(minutes / 60), 24)
    return f"{days} d {hours} h" if hours and days < 7 else f"{days + (hours >= 12)} d"


def _roughly(left_ms: float) -> str:
    """
    A length of which one says that it is no exact one.

    >>> _roughly(8_000), _roughly(2_400_000)
    ('less than a minute', 'about 40 min')
    """
    words = about(left_ms)
    return words if words.startswith("less") else f"about {words}"


def way(option: Option) -> str:
    """What to do otherwise, what comes of it, and what that takes for granted."""
    comes = []
    if option.fits_now:
        comes.append("there are room and quota for it now")
    if option.estimate is not None:
        found = option.estimate
        comes.append(f"such work waits {_roughly(found.median_ms)} ({_interval(found)})")
    return f"{option.what}: {'; '.join(comes)}. Assumed: {option.assumes}."


def _interval(found: Estimate) -> str:
    low, high = about(found.low_ms), about(found.high_ms)
    return f"80 %: {low}" if low == high else f"80 %: {low} to {high}"


def told(found: Estimate, *, queue: str, held: Held, days: int, few_below: int) -> str:
    """
    The estimate with what it rests on, and how often such intervals held.

    Of fewer than `few_below` intervals that were put to the test nothing is said: one that held, or did not,
    tells nothing of the next.
    """
    words = RUNG_WORDS[found.rung]
    if queue and "queue" in found.rung:
        words = words.replace("its queue", f"queue {queue}")
    rests = f"from {found.like:,} like workloads {words}"
    kept = (
        ""
        if held.ratio is None or held.intervals < few_below
        else f"; {held.ratio * 100:.0f} % of {held.intervals:,} such intervals held in the last {days} days"
    )
    return f"It starts in {_roughly(found.median_ms)} ({_interval(found)}), {rests}{kept}."
