"""When a device counts as idle; minutes, one sample each minute."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.wastage.idle import Activity, Device, Level, Slot, device_activity
from tests.analytics.wastage.lives_of_gpus import MINUTE, at, device


def seen(subject: Device, start: float, end: float) -> list[tuple[float, float, str]]:
    """The spans in minutes, neighbours of one activity joined."""
    found: list[tuple[float, float, str]] = []
    for span in device_activity(subject, [(at(start), at(end))])[0]:
        since, until, activity = span.start_ms / MINUTE, span.end_ms / MINUTE, span.activity.value
        if found and found[-1][2] == activity:
            since = found.pop()[0]
        found.append((since, until, activity))
    return found


def known(subject: Device, end: float) -> list[tuple[float, float, str, float | None]]:
    """The spans in minutes, with the minute from which they are known."""
    return [
        (
            span.start_ms / MINUTE,
            span.end_ms / MINUTE,
            span.activity.value,
            None if span.known_ms is None else span.known_ms / MINUTE,
        )
        for span in device_activity(subject, [(0, at(end))])[0]
    ]


def readings(levels: str) -> Device:
    """One slot a minute: `h` works, `l` does not, `r` neither but fills the memory, `.` is missing."""
    meant = {"h": Level.HIGH, "l": Level.LOW, "r": Level.RESIDENT, "s": Level.SHARED}
    return device(
        "pod",
        *(Slot(start_ms=at(i), end_ms=at(i + 1), level=meant[c]) for i, c in enumerate(levels) if c in meant),
    )


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ("l" * 14, [(0, 14, "active")]),
        ("l" * 15, [(0, 15, "idle")]),
        ("l" * 14 + "h" + "l" * 14, [(0, 29, "active")]),
        ("h" * 3 + "l" * 15 + "h", [(0, 3, "active"), (3, 18, "idle"), (18, 19, "active")]),
        ("r" * 15, [(0, 15, "resident_idle")]),
        ("l" * 10 + "r" * 10, [(0, 10, "idle"), (10, 20, "resident_idle")]),
        # 12 of any 15 samples are 80 %: enough to tell, and the missing ones stay unknown.
        ("l" * 8 + "." * 3 + "l" * 8, [(0, 8, "idle"), (8, 11, "unknown"), (11, 19, "idle")]),
        # 11 of 15 are less: what was seen was quiet for less than a quarter of an hour, so nobody is accused.
        ("l" * 8 + "." * 4 + "l" * 8, [(0, 8, "active"), (8, 12, "unknown"), (12, 20, "active")]),
        # Neither side of a gap is long enough, and what is missing at its edge helps neither.
        ("l" * 12 + "." * 5 + "l" * 12, [(0, 12, "active"), (12, 17, "unknown"), (17, 29, "active")]),
        # A quiet tail after a gap, and one before samples that never came.
        (
            "l" * 15 + "." * 5 + "l" * 3,
            [(0, 15, "idle"), (15, 20, "unknown"), (20, 23, "active")],
        ),
        ("h" * 9 + "l" * 14 + "." * 2, [(0, 23, "active"), (23, 25, "unknown")]),
        # Too short to be idle even if the missing samples were low.
        ("h" + "l" * 5 + "." * 3 + "l" * 5 + "h", [(0, 6, "active"), (6, 9, "unknown"), (9, 15, "active")]),
        ("." * 20, [(0, 20, "unknown")]),
    ],
)
def test_idle_takes_fifteen_minutes_without_a_gap_on_four_fifths_of_the_samples(
    levels: str, expected: list[tuple[float, float, str]]
) -> None:
    assert seen(readings(levels), 0, len(levels)) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        # The first quarter of an hour is proven when it is full, what follows at once.
        ("l" * 20, [(0, 15, "idle", 15), (15, 20, "idle", None)]),
        # Nothing is proven before work begins again.
        ("l" * 14 + "h", [(0, 15, "active", None)]),
        # Too little was seen to prove it, and no later sample can change that.
        ("l" * 5 + "." * 25, [(0, 5, "active", None), (5, 30, "unknown", None)]),
        (
            "l" * 5 + "." * 12 + "h",
            [(0, 5, "active", None), (5, 17, "unknown", None), (17, 18, "active", None)],
        ),
    ],
)
def test_idleness_is_known_from_an_instant_on(
    levels: str, expected: list[tuple[float, float, str, float | None]]
) -> None:
    assert known(readings(levels), len(levels)) == expected


def test_a_device_used_by_two_pods_is_unknown_while_they_share_it() -> None:
    shared = readings("l" * 20 + "s" * 20 + "l" * 20)
    assert seen(shared, 0, 60) == [(0, 20, "idle"), (20, 40, "unknown"), (40, 60, "idle")]


LEVELS = st.text(alphabet="hlllr.s", max_size=80)


@given(LEVELS, st.integers(0, 40), st.integers(1, 60))
def test_activity_covers_the_stretch_without_hole_or_overlap(levels: str, start: int, length: int) -> None:
    spans = device_activity(readings(levels), [(at(start), at(start + length))])[0]
    assert spans[0].start_ms == at(start)
    assert spans[-1].end_ms == at(start + length)
    for span, following in pairwise(spans):
        assert span.end_ms == following.start_ms
        assert (span.activity, span.known_ms) != (following.activity, following.known_ms)


@given(LEVELS, st.randoms(use_true_random=False))
def test_the_order_of_slots_does_not_matter(levels: str, random: Random) -> None:
    given_order = readings(levels)
    turned = random.sample(given_order.slots, len(given_order.slots))
    assert seen(device("pod", *turned), 0, 80) == seen(given_order, 0, 80)


@given(LEVELS)
def test_neighbours_of_one_level_tell_the_same_as_one_slot(levels: str) -> None:
    pieces = readings(levels)
    joined: list[Slot] = []
    for slot in pieces.slots:
        if joined and (joined[-1].end_ms, joined[-1].level) == (slot.start_ms, slot.level):
            joined[-1] = replace(joined[-1], end_ms=slot.end_ms)
        else:
            joined.append(slot)
    assert known(device("pod", *joined), 80) == known(pieces, 80)


@given(LEVELS, st.integers(1, 80))
def test_what_is_known_at_an_instant_is_the_whole_story_cut_there(levels: str, until: int) -> None:
    whole = readings(levels)
    before = device("pod", *(slot for slot in whole.slots if slot.start_ms < at(until)))
    end = max(len(levels), until)
    for instant in range(at(until) - 1, at(until) + 2):
        assert _as_of(before, until, instant) == list(_as_of(whole, end, instant)[:until])


def _as_of(subject: Device, end: float, instant: int) -> list[str]:
    """What each minute counts as at an instant."""
    found: list[str] = []
    for span in device_activity(subject, [(0, at(end))])[0]:
        is_known = span.known_ms is None or span.known_ms <= instant
        minutes = round((span.end_ms - span.start_ms) / MINUTE)
        found += [span.activity.value if is_known else Activity.ACTIVE.value] * minutes
    return found


@given(LEVELS)
def test_idle_is_what_a_full_window_proves(levels: str) -> None:
    """By brute force over all windows of fifteen minutes."""
    proven = set()
    for start in range(len(levels) - 14):
        window = levels[start : start + 15]
        low = [minute in "lr" for minute in window]
        if "h" not in window and low[0] and low[-1] and sum(low) >= 12:
            proven |= {start + index for index, is_low in enumerate(low) if is_low}
    found = {index for index, activity in enumerate(_minutes(levels)) if "idle" in activity}
    assert proven == found


def _minutes(levels: str) -> list[str]:
    """What each minute is; a minute is cut nowhere but at whole ones."""
    return _as_of(readings(levels), max(len(levels), 1), 1 << 60)


@given(LEVELS)
def test_a_minute_without_a_sample_is_unknown_and_one_above_five_percent_never_idle(levels: str) -> None:
    for since, until, activity in seen(readings(levels), 0, max(len(levels), 1)):
        inside = levels[round(since) : round(until)]
        if "idle" in activity:
            assert set(inside) <= {"l", "r"}
        if activity == "active":
            assert set(inside) <= {"h", "l", "r"}
