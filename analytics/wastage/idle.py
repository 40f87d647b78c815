"""Whether a device worked while its pod ran: active, idle, resident idle, or unknown."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import groupby, pairwise

from analytics.wastage.rules import DEFAULT_RULES, WastageRules


class Level(StrEnum):
    """What samples showed of a device: `shared` is activity that nobody can assign to one pod."""

    HIGH = "high"
    LOW = "low"
    RESIDENT = "resident"
    SHARED = "shared"


class Activity(StrEnum):
    """What a device did; unknown is neither work nor idleness."""

    ACTIVE = "active"
    IDLE = "idle"
    RESIDENT_IDLE = "resident_idle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A stretch `[start_ms, end_ms)` for which samples of one level stand."""

    start_ms: int
    end_ms: int
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """
    A physical GPU, MIG instance or share of a card that a pod holds.

    Args:
        pod_uid: who holds it.
        name: of the device, unique within the pod.
        micro_gpus: how much of a GPU it is.
        slots: what was seen, in any order, without overlap; what no slot covers is missing.
    """

    pod_uid: str
    name: str
    micro_gpus: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySpan:
    """
    What a device did in `[start_ms, end_ms)`.

    `known_ms` is the first instant from whose past this follows; at an earlier one the device
    counts as active there. None where it follows as soon as the time has passed.
    """

    start_ms: int
    end_ms: int
    activity: Activity
    known_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Slot:
    """A stretch of one level; None is missing."""

    start_ms: int
    end_ms: int
    level: Level | None

    @property
    def is_low(self) -> bool:
        return self.level in {Level.LOW, Level.RESIDENT}


def device_activity(
    device: Device, stretches: Sequence[tuple[int, int]], *, rules: WastageRules = DEFAULT_RULES
) -> tuple[tuple[ActivitySpan, ...], ...]:
    """
    What a device did in each stretch in which its pod ran; the spans cover the stretch exactly.

    Between two active slots, or an active slot and an end of the stretch:

    - what is missing or shared is unknown;
    - low activity is idle where it lies in a window of `idle_after_ms` that begins and ends low, and
      of which at least `least_samples` was seen;
    - other low activity was seen for less than `idle_after_ms` without a gap: work with pauses, so active.

    Idleness is known from a certain instant on and never changes again: a window proves itself when it
    is full. Until then it counts as work with pauses. So an answer as of T is the whole story cut at T.

    Args:
        device: with all slots that are known.
        stretches: half-open intervals, milliseconds.
        rules: thresholds.

    Source: definitions, section 7.
    """
    seen = sorted(device.slots, key=lambda slot: slot.start_ms)
    starts = [slot.start_ms for slot in seen]
    found = []
    for start_ms, end_ms in stretches:
        first = max(bisect_right(starts, start_ms) - 1, 0)
        near = seen[first : bisect_left(starts, end_ms)]
        found.append(tuple(_activity(_slots(near, start_ms, end_ms), rules)))
    return tuple(found)


def _slots(seen: list[Slot], start_ms: int, end_ms: int) -> Iterator[_Slot]:
    """The stretch cut by what was seen; neighbours of one level are one slot."""
    pieces: list[_Slot] = []
    now_ms = start_ms
    for slot in seen:
        since, until = max(slot.start_ms, now_ms), min(slot.end_ms, end_ms)
        if since >= until:
            continue
        if since > now_ms:
            pieces.append(_Slot(now_ms, since, None))
        pieces.append(_Slot(since, until, None if slot.level is Level.SHARED else slot.level))
        now_ms = until
    if now_ms < end_ms:
        pieces.append(_Slot(now_ms, end_ms, None))
    for level, same in groupby(pieces, key=lambda piece: piece.level):
        run = list(same)
        yield _Slot(run[0].start_ms, run[-1].end_ms, level)


def _activity(slots: Iterator[_Slot], rules: WastageRules) -> Iterator[ActivitySpan]:
    found: list[ActivitySpan] = []
    for is_high, group in groupby(slots, key=lambda slot: slot.level is Level.HIGH):
        if is_high:
            found += [_span(slot.start_ms, slot.end_ms, Activity.ACTIVE) for slot in group]
        else:
            found += _quiet(list(group), rules)
    return _merged(found)


def _quiet(slots: list[_Slot], rules: WastageRules) -> Iterator[ActivitySpan]:
    """A stretch without an active slot."""
    proven = list(_proven(slots, rules))
    for slot in slots:
        if slot.is_low:
            yield from _low(slot, proven)
        else:
            yield _span(slot.start_ms, slot.end_ms, Activity.UNKNOWN)


def _low(slot: _Slot, proven: list[tuple[int, int, int | None]]) -> Iterator[ActivitySpan]:
    """A low slot: idle where proven, else work with pauses."""
    idle = Activity.RESIDENT_IDLE if slot.level is Level.RESIDENT else Activity.IDLE
    now_ms = slot.start_ms
    for since, until, known_ms in proven:
        start_ms, end_ms = max(since, slot.start_ms), min(until, slot.end_ms)
        if start_ms >= end_ms:
            continue
        if start_ms > now_ms:
            yield _span(now_ms, start_ms, Activity.ACTIVE)
        yield _span(start_ms, end_ms, idle, known_ms)
        now_ms = end_ms
    if now_ms < slot.end_ms:
        yield _span(now_ms, slot.end_ms, Activity.ACTIVE)


class _Seen:
    """Where a quiet stretch was seen, and how much of it until an instant."""

    def __init__(self, slots: list[_Slot]) -> None:
        self.edges = [slots[0].start_ms]
        self._low: list[bool] = []
        self._until = [0]
        for is_low, group in groupby(slots, key=lambda slot: slot.is_low):
            end_ms = list(group)[-1].end_ms
            self._low.append(is_low)
            self._until.append(self._until[-1] + is_low * (end_ms - self.edges[-1]))
            self.edges.append(end_ms)

    def is_low(self, at_ms: int) -> bool:
        return self._low[bisect_right(self.edges, at_ms) - 1]

    def until(self, at_ms: int) -> int:
        """Milliseconds seen before an instant."""
        index = min(bisect_right(self.edges, at_ms) - 1, len(self._low) - 1)
        return self._until[index] + self._low[index] * (at_ms - self.edges[index])


def _proven(slots: list[_Slot], rules: WastageRules) -> Iterator[tuple[int, int, int | None]]:
    """
    Stretches that windows prove, `(start, end, known)`, in order and without overlap.

    Between two instants at which either end of the window meets an edge, both ends stay where they
    are, low or not, and so does what was seen in between: one window tells of all.
    """
    length = rules.idle_after_ms
    need = -(-rules.least_samples * Fraction(length) // 1)
    seen = _Seen(slots)
    first_ms, last_ms = seen.edges[0] + length, seen.edges[-1]

    def proves(until_ms: int) -> bool:
        since_ms = until_ms - length
        ends_low = seen.is_low(until_ms - 1) and seen.is_low(since_ms)
        return ends_low and seen.until(until_ms) - seen.until(since_ms) >= need

    meeting = {at for edge in seen.edges for at in (edge, edge + length) if first_ms <= at <= last_ms}
    full: list[tuple[int, int]] = []
    for at, following in pairwise([*sorted(meeting), last_ms + 1]):
        for since, until in ((at, at), (at + 1, following - 1)):
            if since > until or not proves(since):
                continue
            if full and full[-1][1] + 1 == since:
                full[-1] = (full[-1][0], until)
            else:
                full.append((since, until))
    told_ms = seen.edges[0]
    for since, until in full:
        if max(told_ms, since - length) < since:
            yield max(told_ms, since - length), since, since
        if since < until:
            yield since, until, None
        told_ms = until


def _span(start_ms: int, end_ms: int, activity: Activity, known_ms: int | None = None) -> ActivitySpan:
    return ActivitySpan(start_ms=start_ms, end_ms=end_ms, activity=activity, known_ms=known_ms)


def _merged(spans: list[ActivitySpan]) -> Iterator[ActivitySpan]:
    for (activity, known_ms), same in groupby(spans, key=lambda span: (span.activity, span.known_ms)):
        run = list(same)
        yield _span(run[0].start_ms, run[-1].end_ms, activity, known_ms)
