"""Which cause a GPU-second has, case by case; minutes."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest

from analytics.wastage.bill import Bill, bill, loss_adjustment
from analytics.wastage.causes import Cause, account
from analytics.wastage.course import Course
from analytics.wastage.ratios import activity_coverage, goodput, hell_ratio, wastage_ratio
from domain.errors import DataError, PolicyError
from domain.policy import Policy
from domain.window import Window
from domain.workload import Outcome, State
from tests.analytics.wastage.lives_of_gpus import (
    GPU,
    at,
    attempt,
    billed,
    busy,
    device,
    holding,
    minutes_of,
    run,
    samples,
    span,
)


def gang() -> Course:
    """Two pods of one GPU: the second is bound 4 min later, starting takes 8, running 20, draining 3."""
    return Course(
        spans=(
            span(State.QUEUED, -5, 0, first_wait=True),
            span(State.PLACING, 0, 4, first_wait=True),
            span(State.STARTING, 4, 12),
            span(State.RUNNING, 12, 32),
            span(State.DRAINING, 32, 35),
            span(State.QUEUED, 35, None),
        ),
        attempts=(attempt(1, 0, 35, Outcome.PREEMPTED),),
        holdings=(holding("a", 0, 35, run(12, 35, 143)), holding("b", 4, 35, run(12, 35, 143))),
        devices=(*busy("a", 0, 35), *busy("b", 0, 35)),
        requested_micro_gpus=2 * GPU,
    )


def test_each_state_of_a_gang_has_its_cause() -> None:
    assert minutes_of(billed(gang())) == {
        "gang_hold": 4, "startup": 10, "startup_over_limit": 6, "draining": 6, "preempted_lost": 30,
        "useful": 10,
    }  # fmt: skip


def test_losses_by_others_do_not_enter_the_ratio() -> None:
    found = billed(gang())
    assert wastage_ratio(found).value == Fraction(6, 66)
    assert hell_ratio(found).value == 0


def test_a_member_in_a_crash_loop_pauses_while_the_others_run() -> None:
    course = Course(
        spans=(span(State.RUNNING, 0, None),),
        attempts=(attempt(1, 0, None),),
        holdings=(
            holding("steady", 0, None, run(0, None)),
            # bound late, starts for 2, crashes after 10, pauses for 3, runs on
            holding("shaky", 5, None, run(7, 17, 1), run(20, None)),
        ),
        devices=(*busy("steady", 0, 60), *busy("shaky", 0, 60)),
    )
    assert minutes_of(billed(course, until=60)) == {
        "startup": 2, "backoff": 3, "crash_lost": 10, "useful": 60 + 40
    }  # fmt: skip


def test_seven_idle_of_eight_are_seven_idle() -> None:
    course = Course(
        spans=(span(State.RUNNING, 0, None),),
        attempts=(attempt(1, 0, None),),
        holdings=(holding("pod", 0, None, run(0, None), gpus=8),),
        devices=(
            device("pod", *samples(0, 30, 0.9), name="0"),
            *(device("pod", *samples(0, 30, 0.01), name=str(index)) for index in range(1, 8)),
        ),
    )
    found = billed(course, until=30)
    assert minutes_of(found) == {"idle": 7 * 30, "useful": 30}
    assert wastage_ratio(found).value == Fraction(7, 8)


def test_without_gpu_metrics_running_time_is_unknown_and_nobody_is_accused() -> None:
    found = billed(replace(gang(), devices=()))
    assert minutes_of(found)["unknown"] == 40
    assert found.by_cause[Cause.USEFUL] == found.by_cause[Cause.PREEMPTED_LOST] == 0
    assert wastage_ratio(found).lower_bound
    assert hell_ratio(found).undefined_because == "activity is known for less than 80% of the running time"
    assert goodput(found, 1).undefined_because == "no activity is known in the window"
    assert activity_coverage(found).value == 0


def test_gpus_of_a_pod_that_no_device_accounts_for_are_unknown() -> None:
    course = replace(gang(), holdings=(holding("a", 12, 32, run(12, None), gpus=3),))
    assert minutes_of(billed(course, until=32)) == {"unknown": 40, "useful": 20}


def test_a_pod_whose_share_is_unknown_is_counted_beside_the_causes() -> None:
    course = replace(gang(), holdings=(holding("a", 12, 35, run(12, 35, 143), gpus=None),), devices=())
    found = billed(course)
    assert (found.held, found.unmeasured_ms) == (0, at(23))
    assert wastage_ratio(found).undefined_because == "the GPU share of those who held is unknown"


def serving(*, exempt: bool) -> Bill:
    """An hour of a model that fills the memory and answers nobody."""
    return billed(
        Course(
            spans=(span(State.RUNNING, 0, None),),
            attempts=(attempt(1, 0, None),),
            holdings=(holding("pod", 0, None, run(0, None)),),
            devices=(device("pod", *samples(0, 60, 0.0, 0.8)),),
            resident_idle_exempt=exempt,
        ),
        until=60,
    )


def test_resident_idleness_is_charged_unless_the_policy_exempts_the_workload() -> None:
    assert minutes_of(serving(exempt=False)) == minutes_of(serving(exempt=True)) == {"resident_idle": 60}
    assert wastage_ratio(serving(exempt=False)).value == 1
    assert wastage_ratio(serving(exempt=True)).value == 0
    assert wastage_ratio(serving(exempt=False) + serving(exempt=True)).value == Fraction(1, 2)


def restarted(outcome: Outcome, *, requested: int | None = 4 * GPU) -> Course:
    """An attempt of 30 min ends so, 10 min in the queue, 6 min of start-up, 60 min of work."""
    return Course(
        spans=(
            span(State.RUNNING, 0, 30), span(State.QUEUED, 30, 40), span(State.STARTING, 40, 46),
            span(State.RUNNING, 46, 106), span(State.ENDED, 106, None),
        ),
        attempts=(attempt(1, 0, 30, outcome), attempt(2, 40, 106, Outcome.SUCCEEDED)),
        holdings=(
            holding("a", 0, 30, run(0, 30, 1), gpus=4),
            holding("b", 40, 106, run(46, 106, 0), gpus=4, number=2, phase="Succeeded"),
        ),
        devices=(*busy("a", 0, 30, gpus=4), *busy("b", 46, 106, gpus=4)),
        requested_micro_gpus=requested,
    )  # fmt: skip


def test_hell_counts_waiting_and_starting_again_after_an_own_failure() -> None:
    # H = 4 GPUs x (15 lost + 6 start-up + 10 waited) = 124, useful = 4 x (15 + 60) = 300
    assert hell_ratio(billed(restarted(Outcome.FAILED))).value == Fraction(124, 424)
    assert wastage_ratio(billed(restarted(Outcome.FAILED))).value == Fraction(4 * 16, 4 * 96)


def test_waiting_and_starting_again_after_a_preemption_is_not_hell() -> None:
    assert hell_ratio(billed(restarted(Outcome.PREEMPTED))).value == 0


def test_waiting_for_an_unknown_number_of_gpus_makes_the_hell_ratio_undefined() -> None:
    found = billed(restarted(Outcome.FAILED, requested=None))
    assert hell_ratio(found).value is None
    assert hell_ratio(found + Bill.empty()).value is None
    assert wastage_ratio(found).value is not None


def test_waiting_for_the_first_placement_is_no_waiting_after_a_failure() -> None:
    # A member failed while the gang was still being placed: nothing of it has ever run together.
    course = Course(
        spans=(
            span(State.PLACING, 0, 4, first_wait=True),
            span(State.QUEUED, 4, 20, first_wait=True),
            span(State.PLACING, 20, 22, first_wait=True),
            span(State.RUNNING, 22, 30),
            span(State.QUEUED, 30, None),
        ),
        attempts=(attempt(1, 0, 4, Outcome.FAILED), attempt(2, 20, 30, Outcome.FAILED)),
        holdings=(),
        requested_micro_gpus=2 * GPU,
    )
    assert account(course, as_of_ms=at(40)).own_failure_waits == ((at(30), at(40)),)


def test_what_began_before_the_failure_showed_is_no_restart() -> None:
    # The next attempt's pod starts while the last one of the failed attempt goes.
    course = Course(
        spans=(span(State.STARTING, 0, 60), span(State.ENDED, 60, None)),
        attempts=(attempt(1, 0, 40, Outcome.FAILED), attempt(2, 30, 60)),
        holdings=(holding("going", 0, 40), holding("next", 30, 60, number=2)),
    )
    for until in (36, 60):
        pieces = account(course, as_of_ms=at(until)).pieces
        assert {(piece.start_ms, piece.restart) for piece in pieces if piece.pod_uid == "next"} == {
            (at(30), False),
            (at(35), False),
        }
    late = replace(course, holdings=(holding("next", 40, 60, number=2),))
    assert {piece.restart for piece in account(late, as_of_ms=at(60)).pieces} == {True}


def test_goodput_is_a_lower_bound_where_the_gpus_of_somebody_who_held_are_not_known() -> None:
    course = Course(
        spans=(span(State.RUNNING, 0, 30), span(State.ENDED, 30, None)),
        attempts=(attempt(1, 0, 30, Outcome.SUCCEEDED),),
        holdings=(holding("seen", 0, 30, run(0, 30, 0)), holding("share", 0, 30, run(0, 30, 0), gpus=None)),
        devices=busy("seen", 0, 30),
    )
    found = goodput(billed(course), 2 * GPU * at(30))
    assert (found.value, found.lower_bound) == (Fraction(1, 2), True)
    alone = goodput(billed(replace(course, holdings=course.holdings[:1])), 2 * GPU * at(30))
    assert (alone.value, alone.lower_bound) == (Fraction(1, 2), False)


def test_nothing_held_has_no_ratio() -> None:
    nothing = Bill.empty()
    reasons = [wastage_ratio(nothing), hell_ratio(nothing), activity_coverage(nothing), goodput(nothing, 0)]
    assert [reason.undefined_because for reason in reasons] == [
        "no GPU was held in the window", "no GPU was held in the window", "nothing ran in the window",
        "there was no capacity in the window",
    ]  # fmt: skip
    assert goodput(nothing, None).undefined_because == "the capacity is unknown"
    assert goodput(nothing, 5).value == 0


def test_a_loss_that_shows_later_is_booked_as_useful_into_lost() -> None:
    day = Window(start_ms=0, end_ms=at(40))
    closed = bill(account(gang(), as_of_ms=at(32)), day)
    restated = bill(account(gang(), as_of_ms=at(40)), Window(start_ms=0, end_ms=at(32)))
    assert loss_adjustment(closed, restated) == {
        Cause.PREEMPTED_LOST: 30 * GPU * 60_000,
        Cause.USEFUL: -30 * GPU * 60_000,
    }


def test_devices_beyond_what_the_pod_holds_are_refused() -> None:
    with pytest.raises(
        DataError, match="pod a has devices of 2000000 micro-GPU: expected at most the 1000000"
    ):
        replace(gang(), devices=(*busy("a", 0, 1, gpus=2),))


def test_a_threshold_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"policy\.idle_after = 0:00:00"):
        Policy(idle_after=timedelta())
    with pytest.raises(PolicyError, match=r"policy\.idle_below = 5"):
        Policy(idle_below=5)
