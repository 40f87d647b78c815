"""Work lost since the last checkpoint, case by case; minutes."""

from dataclasses import replace

import pytest

from analytics.wastage.causes import account
from analytics.wastage.course import Course, as_known_at, phases
from analytics.wastage.lost import LossKind, losses
from domain.workload import Outcome, State
from tests.analytics.wastage.lives_of_gpus import (
    ALWAYS,
    at,
    attempt,
    billed,
    busy,
    device,
    gpu_hours,
    holding,
    minutes_of,
    run,
    samples,
    span,
)


def cut_short(
    outcome: Outcome, *, length: float = 60, code: int | None = 143, checkpoints: tuple[float, ...] = ()
) -> Course:
    """A pod that runs from 0 and is then told to go; two minutes of draining."""
    return Course(
        spans=(
            span(State.RUNNING, 0, length),
            span(State.DRAINING, length, length + 2),
            span(State.ENDED, length + 2, None),
        ),
        attempts=(attempt(1, 0, length + 2, outcome),),
        holdings=(holding("pod", 0, length + 2, run(0, length + 2, code)),),
        devices=busy("pod", 0, length + 2),
        checkpoints_ms=tuple(at(minute) for minute in checkpoints),
    )


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.PREEMPTED, "preempted_lost"),
        (Outcome.EVICTED, "preempted_lost"),
        (Outcome.INFRA_FAILED, "infra_lost"),
        (Outcome.FAILED, "crash_lost"),
    ],
)
def test_a_run_cut_short_lost_its_last_quarter_of_an_hour_at_least(outcome: Outcome, cause: str) -> None:
    found = billed(cut_short(outcome))
    assert minutes_of(found) == {cause: 15, "draining": 2, "useful": 45}
    assert {kind: gpu_hours(amount) * 60 for kind, amount in found.may_be_lost.items() if amount} == {
        LossKind(cause): 45
    }


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.CANCELLED, Outcome.UNKNOWN])
def test_who_came_to_an_end_or_gave_up_lost_nothing(outcome: Outcome) -> None:
    assert minutes_of(billed(cut_short(outcome))) == {"draining": 2, "useful": 60}


@pytest.mark.parametrize(
    ("checkpoints", "lost"),
    [((10.0, 50.0), 10), ((59.0,), 1), ((61.0,), 0), ((62.0,), 0), ((63.0,), 15), ((50.0, 20.0), 10)],
    ids=["the last counts", "a minute ago", "in grace", "as it let go", "after its end", "in any order"],
)
def test_a_known_checkpoint_bounds_the_loss(checkpoints: tuple[float, ...], lost: float) -> None:
    found = billed(cut_short(Outcome.PREEMPTED, checkpoints=checkpoints))
    assert minutes_of(found).get("preempted_lost", 0) == lost


def test_the_classes_budget_replaces_the_assumed_interval() -> None:
    budgeted = replace(cut_short(Outcome.PREEMPTED), assumed_interval_ms=at(30))
    assert minutes_of(billed(budgeted)) == {"preempted_lost": 30, "draining": 2, "useful": 30}


def two_crashes(first: float, second: float, *, checkpoints: tuple[float, ...] = ()) -> Course:
    """A run of `first` minutes that crashes, a pause of one, a run of `second` minutes that crashes."""
    end = first + 1 + second
    return Course(
        spans=(
            span(State.RUNNING, 0, first),
            span(State.BACKOFF, first, first + 1),
            span(State.RUNNING, first + 1, end),
            span(State.ENDED, end, None),
        ),
        attempts=(attempt(1, 0, end, Outcome.FAILED),),
        holdings=(holding("pod", 0, end, run(0, first, 1), run(first + 1, end, 1), phase="Failed"),),
        devices=busy("pod", 0, end),
        checkpoints_ms=tuple(at(minute) for minute in checkpoints),
    )


@pytest.mark.parametrize(
    ("first", "second", "lost"),
    [(40, 50, 15 + 50), (40, 120, 15 + 120), (40, 121, 15 + 15), (10, 5, 10 + 5)],
)
def test_from_the_second_failure_a_run_of_up_to_two_hours_is_lost_whole(
    first: float, second: float, lost: float
) -> None:
    assert minutes_of(billed(two_crashes(first, second)))["crash_lost"] == lost


def test_a_checkpoint_before_the_second_failure_shows_progress() -> None:
    found = minutes_of(billed(two_crashes(40, 50, checkpoints=(80.0,))))
    # the first run's loss stays an interval; the second lost 80 to 91
    assert found["crash_lost"] == 15 + 11


def test_a_second_preemption_does_not_lose_the_whole_run() -> None:
    course = two_crashes(40, 50)
    preempted = replace(
        course,
        attempts=(attempt(1, 0, 40, Outcome.PREEMPTED), attempt(2, 41, 91, Outcome.PREEMPTED)),
        spans=(span(State.RUNNING, 0, 40), span(State.QUEUED, 40, 41), span(State.RUNNING, 41, 91),
               span(State.QUEUED, 91, None)),
        holdings=(holding("a", 0, 40, run(0, 40, 143)), holding("b", 41, 91, run(41, 91, 143), number=2)),
        devices=(*busy("a", 0, 40), *busy("b", 41, 91)),
    )  # fmt: skip
    assert minutes_of(billed(preempted)) == {"preempted_lost": 30, "useful": 60}


def test_idle_and_unknown_time_cannot_be_lost() -> None:
    course = replace(
        cut_short(Outcome.PREEMPTED),
        # works until 40, idle from 40 to 55, then without a sample for the last 5 minutes
        devices=(device("pod", *samples(0, 40, 0.9), *samples(40, 55, 0.0)),),
    )
    assert minutes_of(billed(course)) == {"draining": 2, "idle": 15, "unknown": 5, "useful": 40}


def test_a_member_that_succeeded_lost_nothing_when_another_failed() -> None:
    course = Course(
        spans=(span(State.RUNNING, 0, 40), span(State.ENDED, 40, None)),
        attempts=(attempt(1, 0, 40, Outcome.FAILED),),
        holdings=(
            holding("good", 0, 30, run(0, 30, 0), phase="Succeeded"),
            holding("bad", 0, 40, run(0, 40, 1), phase="Failed"),
            holding("torn down", 0, 40, run(0, None)),
        ),
        devices=(*busy("good", 0, 30), *busy("bad", 0, 40), *busy("torn down", 0, 40)),
    )
    assert minutes_of(billed(course)) == {"crash_lost": 30, "useful": 80}


def test_a_failure_is_not_known_before_it_happens() -> None:
    course = two_crashes(40, 50)
    assert minutes_of(billed(course, until=40)) == {"useful": 40}
    assert minutes_of(billed(course, until=41)) == {"crash_lost": 15, "backoff": 1, "useful": 25}
    assert minutes_of(billed(course, until=91)) == {"crash_lost": 15, "backoff": 1, "useful": 75}


def test_a_loss_between_low_and_run_says_both_ends() -> None:
    course = as_known_at(two_crashes(40, 50), at(ALWAYS))
    by_holding = [(each, phases(each, course.spans, at(ALWAYS))) for each in course.holdings]
    found = losses(course, by_holding)
    assert [(loss.low_from_ms, loss.high_from_ms, loss.end_ms) for loss in found] == [
        (at(25), at(0), at(40)),
        (at(41), at(41), at(91)),
    ]
    assert not any(piece.restart for piece in account(course, as_of_ms=at(ALWAYS)).pieces)


def clean_exit_then_crash(*, checkpoints: tuple[float, ...] = ()) -> Course:
    """A run of 40 minutes that ends well, a pause of one, a run of 5 minutes that crashes."""
    course = two_crashes(40, 5, checkpoints=checkpoints)
    runs = (run(0, 40, 0), run(41, 46, 1))
    return replace(course, holdings=(holding("pod", 0, 46, *runs, phase="Failed"),))


@pytest.mark.parametrize(
    "checkpoints", [(), (30.0,)], ids=["assumed interval", "checkpoint of the run before"]
)
def test_a_loss_does_not_reach_back_into_an_earlier_run(checkpoints: tuple[float, ...]) -> None:
    course = clean_exit_then_crash(checkpoints=checkpoints)
    assert minutes_of(billed(course)) == {"crash_lost": 5, "backoff": 1, "useful": 40}
    (loss,) = losses(course, [(each, phases(each, course.spans, at(ALWAYS))) for each in course.holdings])
    assert (loss.low_from_ms, loss.high_from_ms) == (at(41), at(41))


def test_a_preemption_after_a_crash_does_not_lose_the_whole_run() -> None:
    course = replace(
        two_crashes(40, 50),
        attempts=(attempt(1, 0, 91, Outcome.PREEMPTED),),
        holdings=(holding("pod", 0, 91, run(0, 40, 1), run(41, 91, 143), phase="Failed"),),
    )
    found = minutes_of(billed(course))
    assert found == {"crash_lost": 15, "preempted_lost": 15, "backoff": 1, "useful": 60}


def test_a_member_that_succeeded_lost_nothing_even_if_nobody_read_its_containers() -> None:
    course = cut_short(Outcome.FAILED)
    read = course.holdings[0]
    unread = replace(read, runs=(), started_ms=read.bound_ms, phase="Succeeded")
    assert minutes_of(billed(replace(course, holdings=(unread,)))) == {"draining": 2, "useful": 60}


def test_a_member_that_left_early_is_judged_when_the_attempt_is_over() -> None:
    course = Course(
        spans=(span(State.RUNNING, 0, 60), span(State.QUEUED, 60, None)),
        attempts=(attempt(1, 0, 60, Outcome.PREEMPTED),),
        holdings=(holding("early", 0, 40, run(0, None)), holding("late", 0, 60, run(0, None))),
        devices=(*busy("early", 0, 40), *busy("late", 0, 60)),
    )
    assert minutes_of(billed(course, until=50)) == {"useful": 90}
    assert minutes_of(billed(course)) == {"preempted_lost": 30, "useful": 70}


def test_a_member_that_was_preempted_alone_loses_its_own_run_and_no_others() -> None:
    cut = holding("cut", 0, 62, run(0, 62, 143))
    kept = holding("kept", 0, 90, run(0, 90, 0))
    course = Course(
        spans=(span(State.RUNNING, 0, 90), span(State.ENDED, 90, None)),
        attempts=(attempt(1, 0, 90, Outcome.SUCCEEDED),),
        holdings=(replace(cut, cut="preempted", cut_known_ms=at(65)), kept),
        devices=(*busy("cut", 0, 62), *busy("kept", 0, 90)),
    )
    assert minutes_of(billed(course)) == {"preempted_lost": 15, "useful": 137}
    found = losses(course, [(each, phases(each, course.spans, ALWAYS)) for each in course.holdings])
    assert [(loss.pod_uid, loss.kind, loss.known_ms) for loss in found] == [
        ("cut", LossKind.PREEMPTED, at(65) + 1)
    ]
    # Before it is clear that the others go on, nobody says whose loss it is.
    assert as_known_at(course, at(64)).holdings[0].cut == ""


def test_a_failure_that_shows_only_later_makes_no_second_failure_of_this_one() -> None:
    course = Course(
        spans=(span(State.RUNNING, 0, 100), span(State.ENDED, 100, None)),
        attempts=(attempt(1, 0, 100, Outcome.FAILED),),
        holdings=(
            # Whether the first member's exit at 40 was a crash is known when the attempt is over.
            holding("first", 0, 40, run(0, 40, 1), phase="Failed"),
            holding("second", 41, 100, run(41, 60, 1), run(61, 100, 1), phase="Failed"),
        ),
        devices=(*busy("first", 0, 40), *busy("second", 41, 100)),
    )
    found = losses(course, [(each, phases(each, course.spans, at(ALWAYS))) for each in course.holdings])
    assert [(loss.end_ms, loss.low_from_ms, loss.known_ms) for loss in found] == [
        (at(40), at(25), at(100) + 1),
        (at(60), at(45), at(60) + 1),
        (at(100), at(61), at(100) + 1),
    ]
