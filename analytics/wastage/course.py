"""What is known of one workload's stay on GPUs, and how each pod's holding divides into phases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from analytics.wastage.idle import Device, Slot
from domain.errors import DataError
from domain.workload import Attempt, Holding, Outcome, Run, Span, State

# Later than every fact: as of then, what is open is still going on.
FOREVER_MS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    What one workload did with its GPUs.

    Args:
        spans, attempts, holdings: of its life.
        requested_micro_gpus: of the whole workload; None where it cannot be known.
        checkpoints_ms: instants at which it is known to have written a checkpoint.
        devices: what its pods held, with what was seen; GPUs of a pod beyond them are unknown.
        assumed_interval_ms: its class's checkpoint budget; None leaves it to the rules.
        resident_idle_exempt: the policy names it as a serving workload: not charged.
    """

    spans: tuple[Span, ...]
    attempts: tuple[Attempt, ...]
    holdings: tuple[Holding, ...]
    requested_micro_gpus: int | None = None
    checkpoints_ms: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()
    assumed_interval_ms: int | None = None
    resident_idle_exempt: bool = False

    def __post_init__(self) -> None:
        covered: dict[str, int] = {}
        for device in self.devices:
            covered[device.pod_uid] = covered.get(device.pod_uid, 0) + device.micro_gpus
        for holding in self.holdings:
            known = covered.get(holding.pod_uid, 0)
            if holding.micro_gpus is not None and known > holding.micro_gpus:
                message = (
                    f"pod {holding.pod_uid} has devices of {known} micro-GPU: expected at most the"
                    f" {holding.micro_gpus} that it holds; give a shared card by the pod's share"
                )
                raise DataError(message)


def as_known_at(course: Course, as_of_ms: int) -> Course:
    """The course by facts from before an instant: what ends then or later is still going on."""

    def end(at_ms: int | None) -> int | None:
        return at_ms if at_ms is not None and at_ms < as_of_ms else None

    def attempt(each: Attempt) -> Attempt:
        if end(each.end_ms) is not None:
            return each
        return replace(each, end_ms=None, outcome=Outcome.OPEN, reason="", preempted_by="")

    def run(each: Run) -> Run:
        return each if end(each.end_ms) is not None else Run(start_ms=each.start_ms, end_ms=None)

    def holding(each: Holding) -> Holding:
        released = end(each.released_ms)
        return replace(
            each,
            released_ms=released,
            phase=each.phase if released is not None else "",
            cut=each.cut if released is not None and end(each.cut_known_ms) is not None else "",
            started_ms=end(each.started_ms),
            runs=tuple(run(one) for one in each.runs if one.start_ms < as_of_ms),
        )

    return replace(
        course,
        spans=tuple(replace(s, end_ms=end(s.end_ms)) for s in course.spans if s.start_ms < as_of_ms),
        attempts=tuple(attempt(each) for each in course.attempts if each.start_ms < as_of_ms),
        holdings=tuple(holding(each) for each in course.holdings if each.bound_ms < as_of_ms),
        checkpoints_ms=tuple(sorted(at for at in course.checkpoints_ms if at < as_of_ms)),
        devices=tuple(
            replace(
                each,
                slots=tuple(_seen_before(slot, as_of_ms) for slot in each.slots if slot.start_ms < as_of_ms),
            )
            for each in course.devices
        ),
    )


def _seen_before(slot: Slot, as_of_ms: int) -> Slot:
    return slot if slot.end_ms <= as_of_ms else replace(slot, end_ms=as_of_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRun:
    """
    A stretch without a pause in which at least one main container of a pod ran.

    `end_ms` None while it runs; `exit_code` is the worst of those that ended last.
    """

    start_ms: int
    end_ms: int | None
    exit_code: int | None


def pod_runs(holding: Holding) -> tuple[PodRun, ...]:
    """
    A pod's runs, those of several containers joined where they overlap.

    A pod whose containers nobody reads ran from its start to its release.
    """
    if not holding.runs:
        if holding.started_ms is None:
            return ()
        return (PodRun(start_ms=holding.started_ms, end_ms=None, exit_code=None),)
    joined: list[list[Run]] = []
    reach: int | None = None
    for run in sorted(holding.runs, key=lambda one: (one.start_ms, one.end_ms is None, one.end_ms or 0)):
        if joined and (reach is None or run.start_ms < reach):
            joined[-1].append(run)
            reach = None if reach is None or run.end_ms is None else max(reach, run.end_ms)
        else:
            joined.append([run])
            reach = run.end_ms
    return tuple(_joined(group) for group in joined)


def _joined(group: list[Run]) -> PodRun:
    start_ms = group[0].start_ms
    ends = [run.end_ms for run in group if run.end_ms is not None]
    if len(ends) < len(group):
        return PodRun(start_ms=start_ms, end_ms=None, exit_code=None)
    codes = [run.exit_code for run in group if run.end_ms == max(ends) and run.exit_code is not None]
    return PodRun(start_ms=start_ms, end_ms=max(ends), exit_code=max(codes, key=abs, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """
    A piece of a holding, `[start_ms, end_ms)`.

    `state` is placing (the gang is incomplete), starting, draining, backoff or running. `run` is
    the index of the pod's run in running time, else None.
    """

    start_ms: int
    end_ms: int
    state: State
    run: int | None = None


# A pod that still holds while its workload waits, is held back or has ended is on its way out.
_BY_WORKLOAD = {
    State.PLACING: State.PLACING,
    State.STARTING: State.STARTING,
    State.BACKOFF: State.BACKOFF,
    State.DRAINING: State.DRAINING,
    State.QUEUED: State.DRAINING,
    State.CHECKING: State.DRAINING,
    State.HELD: State.DRAINING,
    State.ENDED: State.DRAINING,
}


def phases(holding: Holding, spans: tuple[Span, ...], as_of_ms: int) -> tuple[Phase, ...]:
    """
    A holding up to `as_of_ms`, cut without hole or overlap; neighbours differ.

    The workload's state decides; while it runs, or where no span tells, the pod's own containers
    do: before its first run it starts, between and after runs it is in back-off.
    """
    end_ms = as_of_ms if holding.released_ms is None else min(holding.released_ms, as_of_ms)
    own = list(_own(holding, end_ms))
    edges = {holding.bound_ms, end_ms}
    edges |= {piece.start_ms for piece in own}
    for span in spans:
        edges |= {at for at in (span.start_ms, span.end_ms) if at is not None}
    ordered = sorted(at for at in edges if holding.bound_ms <= at <= end_ms)
    states = sorted(spans, key=lambda span: span.start_ms)
    found: list[Phase] = []
    i = j = 0
    for start_ms, until_ms in pairwise(ordered):
        while i < len(states) and _over(states[i], start_ms):
            i += 1
        while own[j].end_ms <= start_ms:
            j += 1
        told = states[i].state if i < len(states) and states[i].start_ms <= start_ms else State.RUNNING
        state = _BY_WORKLOAD.get(told, own[j].state)
        run = own[j].run if state is State.RUNNING else None
        if found and (found[-1].state, found[-1].run) == (state, run):
            found[-1] = replace(found[-1], end_ms=until_ms)
        else:
            found.append(Phase(start_ms=start_ms, end_ms=until_ms, state=state, run=run))
    return tuple(found)


def _over(span: Span, at_ms: int) -> bool:
    return span.end_ms is not None and span.end_ms <= at_ms


def _own(holding: Holding, end_ms: int) -> Iterator[Phase]:
    """The holding by the pod's own containers."""
    now_ms, before = holding.bound_ms, State.STARTING
    for index, run in enumerate(pod_runs(holding)):
        start_ms = min(max(run.start_ms, now_ms), end_ms)
        until_ms = end_ms if run.end_ms is None else min(max(run.end_ms, start_ms), end_ms)
        if start_ms > now_ms:
            yield Phase(start_ms=now_ms, end_ms=start_ms, state=before)
        if until_ms > start_ms:
            yield Phase(start_ms=start_ms, end_ms=until_ms, state=State.RUNNING, run=index)
        now_ms, before = until_ms, State.BACKOFF
    if now_ms < end_ms:
        yield Phase(start_ms=now_ms, end_ms=end_ms, state=before)
