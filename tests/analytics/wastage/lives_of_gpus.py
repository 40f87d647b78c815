"""Builders of small courses: minutes in, milliseconds out; GPUs in, micro-GPU out."""

from fractions import Fraction

from analytics.wastage.bill import Bill, bill
from analytics.wastage.causes import Cause, account
from analytics.wastage.course import Course
from analytics.wastage.idle import Device, Level, Slot
from domain.policy import Policy
from domain.window import Window
from domain.workload import Attempt, Holding, Outcome, Run, Span, State

MINUTE = 60_000
IDLE_BELOW = Policy().idle_below
GPU = 1_000_000
ALWAYS = 10_000  # minutes: later than anything that happens in these tests


def at(minutes: float) -> int:
    """Milliseconds of so many minutes."""
    return round(minutes * MINUTE)


def span(state: State, start: float, end: float | None, *, first_wait: bool = False) -> Span:
    return Span(
        state=state, start_ms=at(start), end_ms=None if end is None else at(end), first_wait=first_wait
    )


def run(start: float, end: float | None, code: int | None = None) -> Run:
    return Run(start_ms=at(start), end_ms=None if end is None else at(end), exit_code=code)


def attempt(number: int, start: float, end: float | None, outcome: Outcome = Outcome.OPEN) -> Attempt:
    return Attempt(
        number=number, start_ms=at(start), end_ms=None if end is None else at(end), outcome=outcome
    )


def holding(
    pod: str,
    bound: float,
    released: float | None,
    *runs: Run,
    gpus: float | None = 1,
    number: int = 1,
    phase: str = "",
) -> Holding:
    return Holding(
        pod_uid=pod, pod_name=pod, attempt=number, node="n1", gpu_model="A100",
        micro_gpus=None if gpus is None else round(gpus * GPU), bound_ms=at(bound), bound_earliest_ms=None,
        bound_source="condition", started_ms=min((each.start_ms for each in runs), default=None),
        released_ms=None if released is None else at(released), released_earliest_ms=None, phase=phase,
        restarts=max(len(runs) - 1, 0), runs=runs,
    )  # fmt: skip


def samples(
    start: float, end: float, activity: float | None, memory: float = 0.0, *, shared: bool = False
) -> list[Slot]:
    """What readings each minute of `[start, end)` stand for, one slot each; None is missing."""
    if activity is None:
        return []
    level = Level.HIGH if activity >= IDLE_BELOW else Level.RESIDENT if memory > 0.5 else Level.LOW
    return [
        Slot(start_ms=at(minute), end_ms=at(minute + 1), level=Level.SHARED if shared else level)
        for minute in range(round(start), round(end))
    ]


def device(pod: str, *slots: Slot, name: str = "0", gpus: float = 1) -> Device:
    return Device(pod_uid=pod, name=name, micro_gpus=round(gpus * GPU), slots=slots)


def busy(pod: str, start: float, end: float, *, gpus: int = 1) -> tuple[Device, ...]:
    """Devices that work all the time."""
    return tuple(device(pod, *samples(start, end, 0.9), name=str(index)) for index in range(gpus))


def billed(course: Course, *, until: float = ALWAYS, start: float = 0, end: float = ALWAYS) -> Bill:
    window = Window(start_ms=at(start), end_ms=at(min(end, until)))
    return bill(account(course, as_of_ms=at(until)), window)


def gpu_hours(amount: int) -> Fraction:
    return Fraction(amount, GPU * 60 * MINUTE)


def minutes_of(found: Bill) -> dict[str, float]:
    """GPU-minutes by cause, those of zero left out."""
    return {
        cause.value: float(gpu_hours(found.by_cause[cause]) * 60) for cause in Cause if found.by_cause[cause]
    }
