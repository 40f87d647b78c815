"""
How one alert stands: inactive, pending, firing, and resolved after it has stayed silent for long enough.

The states are those of Prometheus (rules/alerting.go of 2.42): a breach must last `hold`, and an alert that
fires resolves when nothing breached for `keep`, counted from the first evaluation without a breach. A
missing value is the last one for as long as `window`, as `last_over_time` makes it. Past the window
Prometheus takes a missing series for the end of a breach. Here that holds of what is gone from a sound
measurement, such as a deleted queue; what fires and is unknown is kept, without a limit.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Heard(StrEnum):
    """What an evaluation found: a value on either side, none though there should be one, or no such thing."""

    BREACH = "breach"
    FINE = "fine"
    UNKNOWN = "unknown"
    GONE = "gone"


class State(StrEnum):
    """How an alert stands; one that is inactive has no standing at all, unless it fired a while ago."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Lengths in milliseconds: a breach lasts, an alert stays, a value stands for missing ones."""

    hold_ms: int = 0
    keep_ms: int = 0
    window_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    An alert between two evaluations.

    Args:
        active_ms: since when it breaches.
        heard_ms: when its last value was heard; `breaches` is what that one said.
        fired_ms: since when it fires, or fired last.
        fine_ms: since when no value breached, of one that fires.
        resolved_ms: when it resolved; still known while it is pending anew.
    """

    state: State
    active_ms: int
    heard_ms: int
    breaches: bool = True
    fired_ms: int | None = None
    fine_ms: int | None = None
    resolved_ms: int | None = None


def step(before: Standing | None, heard: Heard, at_ms: int, timing: Timing) -> Standing | None:
    """
    The standing after an evaluation; None is inactive.

    >>> timing = Timing(hold_ms=60_000)
    >>> once = step(None, Heard.BREACH, 0, timing)
    >>> once.state, step(once, Heard.BREACH, 60_000, timing).state, step(once, Heard.FINE, 60_000, timing)
    (<State.PENDING: 'pending'>, <State.FIRING: 'firing'>, None)
    """
    if heard in {Heard.BREACH, Heard.FINE}:
        breaches, heard_ms = heard is Heard.BREACH, at_ms
    elif before is None or _only_news_ends(before, heard):
        return before
    elif at_ms - before.heard_ms <= timing.window_ms:
        breaches, heard_ms = before.breaches, before.heard_ms
    elif heard is Heard.UNKNOWN:
        # Nobody can say that a breach lasts which has not been told yet.
        return _inactive(before)
    else:
        breaches, heard_ms = False, before.heard_ms
    if breaches:
        return _breaching(before, at_ms, timing, heard_ms=heard_ms)
    return _without_breach(before, at_ms, timing, heard_ms=heard_ms)


def resumed(before: Standing, at_ms: int, timing: Timing) -> Standing | None:
    """The standing before the first evaluation after a time in which there was none."""
    late = at_ms - before.heard_ms > timing.window_ms
    return _inactive(before) if late and before.state is State.PENDING else before


def _breaching(before: Standing | None, at_ms: int, timing: Timing, *, heard_ms: int) -> Standing:
    if before is None:
        before = Standing(state=State.PENDING, active_ms=at_ms, heard_ms=at_ms)
    elif before.state is State.RESOLVED:
        before = replace(before, state=State.PENDING, active_ms=at_ms)
    now = replace(before, heard_ms=heard_ms, breaches=True, fine_ms=None)
    if now.state is State.PENDING and at_ms - now.active_ms >= timing.hold_ms:
        return replace(now, state=State.FIRING, fired_ms=at_ms, resolved_ms=None)
    return now


def _without_breach(before: Standing | None, at_ms: int, timing: Timing, *, heard_ms: int) -> Standing | None:
    if before is None or before.state is State.RESOLVED:
        return before
    if before.state is State.PENDING:
        return _inactive(before)
    fine_ms = at_ms if before.fine_ms is None else before.fine_ms
    now = replace(before, heard_ms=heard_ms, breaches=False, fine_ms=fine_ms)
    if at_ms - fine_ms >= timing.keep_ms:
        return replace(now, state=State.RESOLVED, resolved_ms=at_ms)
    return now


def _only_news_ends(before: Standing, heard: Heard) -> bool:
    """Whether it stays as it is until a value comes: what is over, and what fires and is unknown."""
    unknown = before.state is State.FIRING and heard is Heard.UNKNOWN
    return unknown or before.state is State.RESOLVED


def _inactive(pending: Standing) -> Standing | None:
    """What is left of a breach that did not last: nothing, or that the alert resolved a while ago."""
    return None if pending.resolved_ms is None else replace(pending, state=State.RESOLVED)
