"""The golden cases of the definition of wastage, checked by hand there."""

import pytest

from analytics.wastage.causes import Cause
from analytics.wastage.course import Course
from analytics.wastage.idle import Device
from analytics.wastage.ratios import goodput, hell_ratio, wastage_ratio
from domain.workload import Outcome, State
from tests.analytics.wastage.lives_of_gpus import attempt, billed, busy, gpu_hours, holding, run, span

RUN, PAUSE, GPUS = 30, 2.5, 7
STARTS = [index * (RUN + PAUSE) for index in range(13)]
END = STARTS[-1] + RUN


def crash_loop() -> Course:
    """7 GPUs: 13 runs of 30 min that crash, 12 held pauses of 2 min 30 s, no checkpoint."""
    spans = []
    for start in STARTS:
        spans.append(span(State.RUNNING, start, start + RUN))
        if start + RUN < END:
            spans.append(span(State.BACKOFF, start + RUN, start + RUN + PAUSE))
    spans.append(span(State.ENDED, END, None))
    runs = [run(start, start + RUN, 1) for start in STARTS]
    return Course(
        spans=tuple(spans),
        attempts=(attempt(1, 0, END, Outcome.FAILED),),
        holdings=(holding("pod", 0, END, *runs, gpus=GPUS, phase="Failed"),),
        devices=busy("pod", 0, END, gpus=GPUS),
    )


def crashing_attempts() -> Course:
    """The same as 13 attempts of one pod each, whose pod is kept through the pause."""
    spans, attempts, holdings = [], [], []
    devices: list[Device] = []
    for number, start in enumerate(STARTS, 1):
        pause = PAUSE if number < 13 else 0
        end = start + RUN + pause
        spans.append(span(State.RUNNING, start, start + RUN))
        if pause:
            spans.append(span(State.BACKOFF, start + RUN, end))
        attempts.append(attempt(number, start, end, Outcome.FAILED))
        holdings.append(
            holding(
                f"pod-{number}",
                start,
                end,
                run(start, start + RUN, 1),
                gpus=GPUS,
                number=number,
                phase="Failed",
            )
        )
        devices += busy(f"pod-{number}", int(start), end, gpus=GPUS)
    spans.append(span(State.ENDED, END, None))
    return Course(
        spans=tuple(spans), attempts=tuple(attempts), holdings=tuple(holdings), devices=tuple(devices)
    )


@pytest.mark.parametrize("course", [crash_loop(), crashing_attempts()], ids=["one pod", "thirteen pods"])
def test_thirteen_crashes_burn_47_of_49_gpu_hours(course: Course) -> None:
    found = billed(course)
    hours = {cause: gpu_hours(found.by_cause[cause]) for cause in Cause if found.by_cause[cause]}
    assert hours == {Cause.BACKOFF: 3.5, Cause.CRASH_LOST: 43.75, Cause.USEFUL: 1.75}
    assert gpu_hours(found.held) == 49
    wastage, hell = wastage_ratio(found), hell_ratio(found)
    assert wastage.value is not None
    assert hell.value is not None
    assert (round(float(wastage.value), 4), round(float(hell.value), 4)) == (0.9643, 0.9643)


def test_38_clean_gpu_hours_have_no_waste() -> None:
    end = 38 * 60
    clean = Course(
        spans=(span(State.RUNNING, 0, end), span(State.ENDED, end, None)),
        attempts=(attempt(1, 0, end, Outcome.SUCCEEDED),),
        holdings=(holding("pod", 0, end, run(0, end, 0), phase="Succeeded"),),
        devices=busy("pod", 0, end),
    )
    found = billed(clean)
    assert gpu_hours(found.held) == gpu_hours(found.by_cause[Cause.USEFUL]) == 38
    assert wastage_ratio(found).value == hell_ratio(found).value == 0
    # On 76 GPU-hours of capacity half of it was useful.
    assert goodput(found, 2 * found.held).value == 0.5
