"""What holds for the causes of every workload."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from analytics.wastage.bill import Bill, bill
from analytics.wastage.causes import Cause, account
from analytics.wastage.course import FOREVER_MS, Course
from analytics.wastage.idle import Slot
from analytics.wastage.ratios import SELF_INFLICTED, hell_ratio, wastage_ratio
from domain.window import Window
from domain.workload import Attempt, Holding, Outcome, Run, Span, State
from tests.analytics.wastage.lives_of_gpus import at, attempt, device, holding, run, samples, span

T = TypeVar("T")
HORIZON = 120  # minutes
MINUTES = st.integers(0, HORIZON)
OVER = (
    Outcome.SUCCEEDED,
    Outcome.FAILED,
    Outcome.PREEMPTED,
    Outcome.EVICTED,
    Outcome.INFRA_FAILED,
    Outcome.CANCELLED,
)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Span, ...]:
    """Spans from 0 on without hole; the last is open."""
    edges = [0, *sorted(draw(st.sets(st.integers(1, HORIZON), max_size=8)))]
    states = [draw(st.sampled_from(list(State))) for _ in edges]
    return tuple(
        span(state, start, end) for state, start, end in zip(states, edges, [*edges[1:], None], strict=True)
    )


@st.composite
def stays(draw: st.DrawFn, pod: str, number: int) -> Holding:
    """A pod's holding with up to three runs."""
    bound, released = sorted((draw(MINUTES), draw(MINUTES)))
    open_ended = draw(st.booleans())
    runs: list[Run] = []
    inside = sorted(draw(st.lists(st.integers(bound, released), max_size=6)))
    for start, end in zip(inside[::2], inside[1::2], strict=False):
        code = draw(st.sampled_from([0, 1, 137, None]))
        runs.append(run(start, end, code) if start < end else run(start, None))
    gpus = draw(st.sampled_from([1, 2, 0.5, None]))
    phase = draw(st.sampled_from(["", "Failed", "Succeeded"]))
    return holding(pod, bound, None if open_ended else released, *runs, gpus=gpus, number=number, phase=phase)


def attempts_of(holdings: list[Holding], outcomes: list[Outcome]) -> tuple[Attempt, ...]:
    found = []
    for number, outcome in enumerate(outcomes, 1):
        mine = [each for each in holdings if each.attempt == number]
        if mine:
            ends = [each.released_ms for each in mine]
            known = [end for end in ends if end is not None]
            over = len(known) == len(ends)
            start = min(each.bound_ms for each in mine)
            found.append(
                replace(
                    attempt(number, 0, None, outcome if over else Outcome.OPEN),
                    start_ms=start,
                    end_ms=max(known) if over else None,
                )
            )
    return tuple(found)


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """A workload of up to three pods in up to two attempts, with some devices seen."""
    holdings = [
        draw(stays(pod, draw(st.integers(1, 2)))) for pod in ("a", "b", "c")[: draw(st.integers(1, 3))]
    ]
    devices = []
    for each in holdings:
        share = 0.5 if each.micro_gpus == 500_000 else 1
        if each.micro_gpus is not None and draw(st.booleans()):
            levels = draw(st.lists(st.sampled_from([0.9, 0.0, 0.0, 0.0, None]), min_size=4, max_size=4))
            stretch = HORIZON // len(levels)
            values: list[Slot] = []
            for i in range(HORIZON):
                values += samples(i, i + 1, levels[i // stretch], 0.8 * (i % 2))
            devices.append(device(each.pod_uid, *values, gpus=share))
    return Course(
        spans=draw(lives()),
        attempts=attempts_of(holdings, [draw(st.sampled_from(OVER)), draw(st.sampled_from(OVER))]),
        holdings=tuple(holdings),
        devices=tuple(devices),
        checkpoints_ms=tuple(at(minute) for minute in draw(st.lists(MINUTES, max_size=2))),
        requested_micro_gpus=draw(st.sampled_from([None, 1_000_000])),
    )


def within(course: Course, until: int, start: int, end: int) -> Bill:
    return bill(account(course, as_of_ms=at(until)), Window(start_ms=at(start), end_ms=at(end)))


def held_gpu_ms(course: Course, until: int, start: int, end: int) -> int:
    """Straight from the definition of holding: quantity times the time from binding to release."""
    lo, hi = at(start), min(at(end), at(until))
    return sum(
        each.micro_gpus
        * max(0, min(hi if each.released_ms is None else each.released_ms, hi) - max(each.bound_ms, lo))
        for each in course.holdings
        if each.micro_gpus is not None
    )


@given(courses(), MINUTES, MINUTES, MINUTES)
def test_causes_sum_to_the_gpu_time_held(course: Course, until: int, one: int, other: int) -> None:
    start, end = sorted((one, other))
    found = within(course, until, start, end)
    assert found.held == held_gpu_ms(course, until, start, end)
    assert all(amount >= 0 for amount in found.by_cause.values())
    assert sum(found.may_be_lost.values()) <= found.by_cause[Cause.USEFUL]


@given(courses(), MINUTES, st.lists(MINUTES, min_size=2, max_size=6))
def test_a_window_is_the_sum_of_its_parts(course: Course, until: int, edges: list[int]) -> None:
    edges.sort()
    parts = Bill.empty()
    for start, end in pairwise(edges):
        parts += within(course, until, start, end)
    assert parts == within(course, until, edges[0], edges[-1])


@given(courses(), MINUTES)
def test_time_of_which_nothing_is_known_is_never_useful(course: Course, until: int) -> None:
    blind = within(replace(course, devices=()), until, 0, HORIZON)
    seen = within(course, until, 0, HORIZON)
    for cause in (
        Cause.USEFUL,
        Cause.IDLE,
        Cause.RESIDENT_IDLE,
        Cause.CRASH_LOST,
        Cause.PREEMPTED_LOST,
        Cause.INFRA_LOST,
    ):
        assert blind.by_cause[cause] == 0
    assert blind.by_cause[Cause.UNKNOWN] == seen.running
    assert blind.held == seen.held


@given(courses(), MINUTES)
def test_ratios_lie_between_0_and_1_and_only_self_inflicted_causes_raise_them(
    course: Course, until: int
) -> None:
    found = within(course, until, 0, HORIZON)
    for ratio in (wastage_ratio(found), hell_ratio(found)):
        assert ratio.value is None or 0 <= ratio.value <= 1
        assert (ratio.value is None) == bool(ratio.undefined_because)
    clean = replace(found, by_cause={c: 0 if c in SELF_INFLICTED else v for c, v in found.by_cause.items()})
    assert wastage_ratio(clean).value in {0, None}


@given(courses(), st.randoms(use_true_random=False))
def test_the_order_in_which_parts_are_given_does_not_matter(course: Course, random: Random) -> None:
    def turned(parts: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(parts, len(parts)))

    mixed = replace(
        course,
        spans=turned(course.spans),
        attempts=turned(course.attempts),
        holdings=turned(course.holdings),
        devices=turned(course.devices),
        checkpoints_ms=turned(course.checkpoints_ms),
    )
    assert within(mixed, HORIZON, 0, HORIZON) == within(course, HORIZON, 0, HORIZON)


@given(courses(), MINUTES)
def test_what_happens_later_does_not_change_what_was_known(course: Course, until: int) -> None:
    later = replace(
        course,
        checkpoints_ms=(*course.checkpoints_ms, at(until), at(HORIZON)),
        devices=tuple(
            replace(each, slots=(*(s for s in each.slots if s.start_ms < at(until)),))
            for each in course.devices
        ),
    )
    assert within(later, until, 0, HORIZON) == within(course, until, 0, HORIZON)


@given(courses(), MINUTES, st.sampled_from([-1, 0, 1]))
def test_an_answer_as_of_then_is_the_whole_account_cut_there(course: Course, until: int, ms: int) -> None:
    as_of_ms = max(at(until) + ms, 0)
    window = Window(start_ms=0, end_ms=as_of_ms)
    whole = account(course, as_of_ms=FOREVER_MS)
    cut = replace(
        whole,
        pieces=tuple(
            piece
            if piece.known_ms is None or piece.known_ms <= as_of_ms
            else replace(piece, cause=Cause.USEFUL, may_be=None)
            for piece in whole.pieces
        ),
    )
    assert bill(cut, window) == bill(account(course, as_of_ms=as_of_ms), window)
