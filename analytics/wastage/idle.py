"""Whether a device worked while its pod ran: active, idle, resident idle, or unknown."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from analytics.wastage.rules import DEFAULT_RULES, WastageRules


class Activity(StrEnum):
    """What a device did; unknown is neither work nor idleness."""

    ACTIVE = "active"
    IDLE = "idle"
    RESIDENT_IDLE = "resident_idle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySample:
    """
    One reading of a device: shares between 0 and 1, None where it is missing.

    A value outside of 0 to 1, NaN included, counts as missing.
    """

    at_ms: int
    activity: float | None
    memory: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """
    A physical GPU, MIG instance or share of a card that a pod holds.

    Args:
        pod_uid: who holds it.
        name: of the device, unique within the pod.
        micro_gpus: how much of a GPU it is.
        step_ms: how far apart its samples are meant to be.
        samples: in any order.
        shared: half-open intervals in which more than one pod used it and the exporter gave no
            values per process: its activity is unknown there. An end of None is still going on.
    """

    pod_uid: str
    name: str
    micro_gpus: int
    step_ms: int
    samples: tuple[ActivitySample, ...]
    shared: tuple[tuple[int, int | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySpan:
    """What a device did in `[start_ms, end_ms)`."""

    start_ms: int
    end_ms: int
    activity: Activity


class _Level(StrEnum):
    LOW = "low"
    RESIDENT = "low, memory in use"
    HIGH = "high"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class _Slot:
    start_ms: int
    end_ms: int
    level: _Level

    @property
    def is_low(self) -> bool:
        return self.level in {_Level.LOW, _Level.RESIDENT}


def device_activity(
    device: Device, stretches: Sequence[tuple[int, int]], *, rules: WastageRules = DEFAULT_RULES
) -> tuple[tuple[ActivitySpan, ...], ...]:
    """
    What a device did in each stretch in which its pod ran; the spans cover the stretch exactly.

    A sample stands from its instant to the next one, or for one step where the next is more than
    one and a half steps away; what no sample stands for is missing. Between two active samples:

    - less than `idle_after_ms` in all: low activity is work with pauses, so active;
    - a part without a gap, at least that long, of which at least `least_samples` was seen: idle;
      its missing samples stay unknown;
    - anything else cannot be told, and is unknown.

    Args:
        device: with all samples that are known.
        stretches: half-open intervals, milliseconds.
        rules: thresholds.

    Source: definitions, section 7.
    """
    seen = [part for slot in _seen(device, rules) for part in _unshared(slot, device.shared)]
    starts = [slot.start_ms for slot in seen]
    found = []
    for start_ms, end_ms in stretches:
        first = max(bisect_right(starts, start_ms) - 1, 0)
        near = seen[first : bisect_left(starts, end_ms)]
        found.append(tuple(_activity(list(_slots(near, start_ms, end_ms)), rules)))
    return tuple(found)


def _activity(slots: list[_Slot], rules: WastageRules) -> Iterator[ActivitySpan]:
    found: list[ActivitySpan] = []
    for is_high, group in groupby(slots, key=lambda slot: slot.level is _Level.HIGH):
        stretch = list(group)
        if is_high:
            found += [_span(slot, Activity.ACTIVE) for slot in stretch]
        elif _length(stretch) < rules.idle_after_ms:
            found += [_span(slot, Activity.ACTIVE if slot.is_low else Activity.UNKNOWN) for slot in stretch]
        else:
            found += _judged(stretch, rules)
    return _merged(found)


def _slots(seen: list[_Slot], start_ms: int, end_ms: int) -> Iterator[_Slot]:
    """The stretch cut by samples; neighbours of one level are one slot."""
    pieces: list[_Slot] = []
    now_ms = start_ms
    for slot in seen:
        since, until = max(slot.start_ms, now_ms), min(slot.end_ms, end_ms)
        if since >= until:
            continue
        if since > now_ms:
            pieces.append(_Slot(now_ms, since, _Level.MISSING))
        pieces.append(_Slot(since, until, slot.level))
        now_ms = until
    if now_ms < end_ms:
        pieces.append(_Slot(now_ms, end_ms, _Level.MISSING))
    for level, same in groupby(pieces, key=lambda piece: piece.level):
        run = list(same)
        yield _Slot(run[0].start_ms, run[-1].end_ms, level)


def _seen(device: Device, rules: WastageRules) -> Iterator[_Slot]:
    """What samples stand for; of two at one instant the busier counts."""
    at: dict[int, ActivitySample] = {}
    for sample in device.samples:
        known = at.get(sample.at_ms)
        if _is_share(sample.activity) and (known is None or _busier(sample, known)):
            at[sample.at_ms] = sample
    ordered = [at[instant] for instant in sorted(at)]
    for sample, following in zip(ordered, [*ordered[1:], None], strict=False):
        until = sample.at_ms + device.step_ms
        if following is not None and 2 * (following.at_ms - sample.at_ms) <= 3 * device.step_ms:
            until = following.at_ms
        yield _Slot(sample.at_ms, until, _level(sample, rules))


def _is_share(value: float | None) -> bool:
    return value is not None and 0 <= value <= 1


def _busier(one: ActivitySample, other: ActivitySample) -> bool:
    return (one.activity or 0, one.memory or 0) > (other.activity or 0, other.memory or 0)


def _level(sample: ActivitySample, rules: WastageRules) -> _Level:
    assert sample.activity is not None
    if sample.activity >= rules.idle_below:
        return _Level.HIGH
    resident = sample.memory is not None and rules.resident_above < sample.memory <= 1
    return _Level.RESIDENT if resident else _Level.LOW


def _unshared(slot: _Slot, shared: tuple[tuple[int, int | None], ...]) -> list[_Slot]:
    """The parts of a slot in which one pod alone used the device."""
    parts = [slot]
    for since, until in shared:
        rest: list[_Slot] = []
        for part in parts:
            before = _Slot(part.start_ms, min(part.end_ms, since), part.level)
            after = _Slot(
                max(part.start_ms, part.end_ms if until is None else until), part.end_ms, part.level
            )
            rest += [piece for piece in (before, after) if piece.start_ms < piece.end_ms]
        parts = rest
    return sorted(parts, key=lambda part: part.start_ms)


def _judged(stretch: list[_Slot], rules: WastageRules) -> Iterator[ActivitySpan]:
    """A long stretch without activity: idle where enough of it was seen."""
    for is_gap, group in groupby(stretch, key=lambda slot: _is_gap(slot, rules)):
        part = list(group)
        lows = [index for index, slot in enumerate(part) if slot.is_low]
        if is_gap or not lows:
            yield from (_span(slot, Activity.UNKNOWN) for slot in part)
            continue
        core = part[lows[0] : lows[-1] + 1]
        seen_ms = sum(slot.end_ms - slot.start_ms for slot in core if slot.is_low)
        long = _length(core) >= rules.idle_after_ms
        enough = long and seen_ms >= rules.least_samples * _length(core)
        for is_low, same in groupby(part, key=lambda slot: slot.is_low):
            run = list(same)
            proven = is_low and (enough or _length(run) >= rules.idle_after_ms)
            yield from (_span(slot, _idle(slot) if proven else Activity.UNKNOWN) for slot in run)


def _is_gap(slot: _Slot, rules: WastageRules) -> bool:
    return slot.level is _Level.MISSING and slot.end_ms - slot.start_ms >= rules.gap_after_ms


def _idle(slot: _Slot) -> Activity:
    return Activity.RESIDENT_IDLE if slot.level is _Level.RESIDENT else Activity.IDLE


def _length(slots: list[_Slot]) -> int:
    return slots[-1].end_ms - slots[0].start_ms


def _span(slot: _Slot, activity: Activity) -> ActivitySpan:
    return ActivitySpan(start_ms=slot.start_ms, end_ms=slot.end_ms, activity=activity)


def _merged(spans: list[ActivitySpan]) -> Iterator[ActivitySpan]:
    for activity, same in groupby(spans, key=lambda span: span.activity):
        run = list(same)
        yield ActivitySpan(start_ms=run[0].start_ms, end_ms=run[-1].end_ms, activity=activity)
