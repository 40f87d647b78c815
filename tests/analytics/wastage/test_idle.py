"""When a device counts as idle; minutes, one sample each minute."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.wastage.idle import ActivitySample, Device, device_activity
from tests.analytics.wastage.lives_of_gpus import MINUTE, at, device, samples


def seen(subject: Device, start: float, end: float) -> list[tuple[float, float, str]]:
    """The spans in minutes."""
    spans = device_activity(subject, [(at(start), at(end))])[0]
    return [(span.start_ms / MINUTE, span.end_ms / MINUTE, span.activity.value) for span in spans]


def readings(levels: str) -> Device:
    """One sample a minute: `h` works, `l` does not, `r` neither but fills the memory, `.` is missing."""
    values = {"h": (0.9, 0.9), "l": (0.04, 0.1), "r": (0.0, 0.51), ".": (None, 0.9)}
    return device(
        "pod",
        *(
            ActivitySample(at_ms=at(i), activity=values[c][0], memory=values[c][1])
            for i, c in enumerate(levels)
        ),
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
        # 16 of 20 samples are 80 %: enough to tell, and the missing ones stay unknown.
        ("l" * 8 + "." * 4 + "l" * 8, [(0, 8, "idle"), (8, 12, "unknown"), (12, 20, "idle")]),
        # 14 of 18 are less.
        ("l" * 7 + "." * 4 + "l" * 7, [(0, 18, "unknown")]),
        # Five minutes without a sample are a gap: neither side is long enough, and both may be idle.
        ("l" * 12 + "." * 5 + "l" * 12, [(0, 29, "unknown")]),
        ("l" * 15 + "." * 5 + "l" * 3, [(0, 15, "idle"), (15, 23, "unknown")]),
        # Too short to be idle even if the missing samples were low.
        ("h" + "l" * 5 + "." * 3 + "l" * 5 + "h", [(0, 6, "active"), (6, 9, "unknown"), (9, 15, "active")]),
        ("." * 20, [(0, 20, "unknown")]),
    ],
)
def test_idle_takes_fifteen_minutes_without_a_gap_on_four_fifths_of_the_samples(
    levels: str, expected: list[tuple[float, float, str]]
) -> None:
    assert seen(readings(levels), 0, len(levels)) == expected


@pytest.mark.parametrize("nonsense", [float("nan"), 1.5, -1.0, float("inf"), None])
def test_a_value_that_is_no_share_is_missing(nonsense: float | None) -> None:
    assert seen(device("pod", *samples(0, 20, nonsense)), 0, 20) == [(0, 20, "unknown")]


def test_a_device_used_by_two_pods_is_unknown_while_they_share_it() -> None:
    alone = device("pod", *samples(0, 60, 0.0))
    shared = Device(
        pod_uid="pod", name="0", micro_gpus=250_000, step_ms=MINUTE, samples=alone.samples,
        shared=((at(20), at(40)),),
    )  # fmt: skip
    assert seen(shared, 0, 60) == [(0, 20, "idle"), (20, 40, "unknown"), (40, 60, "idle")]


def test_two_readings_of_one_instant_count_as_the_busier() -> None:
    twice = device("pod", *samples(0, 20, 0.0), *samples(0, 20, 0.5))
    assert seen(twice, 0, 20) == [(0, 20, "active")]


LEVELS = st.text(alphabet="hlr.", max_size=80)


@given(LEVELS, st.integers(0, 40), st.integers(1, 60))
def test_activity_covers_the_stretch_without_hole_or_overlap(levels: str, start: int, length: int) -> None:
    spans = seen(readings(levels), start, start + length)
    assert spans[0][0] == start
    assert spans[-1][1] == start + length
    for span, following in pairwise(spans):
        assert span[1] == following[0]
        assert span[2] != following[2]


@given(LEVELS, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(levels: str, random: Random) -> None:
    given_order = readings(levels)
    turned = random.sample(given_order.samples, len(given_order.samples))
    assert seen(device("pod", *turned), 0, 80) == seen(given_order, 0, 80)


@given(LEVELS)
def test_a_minute_without_a_sample_is_unknown_and_one_above_five_percent_never_idle(levels: str) -> None:
    for since, until, activity in seen(readings(levels), 0, max(len(levels), 1)):
        inside = levels[round(since) : round(until)]
        if "idle" in activity:
            assert set(inside) <= {"l", "r"}
        if activity == "active":
            assert "." not in inside
