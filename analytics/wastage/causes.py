"""Every GPU-second held belongs to exactly one cause."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from analytics.wastage.course import Course, Phase, as_known_at, phases
from analytics.wastage.idle import Activity, ActivitySpan, device_activity
from analytics.wastage.lost import Loss, LossKind, losses
from analytics.wastage.rules import DEFAULT_RULES, WastageRules
from domain.workload import Holding, Outcome, State


class Cause(StrEnum):
    """
    Why GPU-time was held, in the order in which it is tested.

    Start-up is the first two together: within its limit, and beyond. Running time is the last seven.
    """

    GANG_HOLD = "gang_hold"
    STARTUP = "startup"
    STARTUP_OVER_LIMIT = "startup_over_limit"
    DRAINING = "draining"
    BACKOFF = "backoff"
    INFRA_LOST = "infra_lost"
    PREEMPTED_LOST = "preempted_lost"
    CRASH_LOST = "crash_lost"
    IDLE = "idle"
    RESIDENT_IDLE = "resident_idle"
    UNKNOWN = "unknown"
    USEFUL = "useful"


RUNNING_CAUSES = tuple(Cause)[5:]
LOST_CAUSES = (Cause.INFRA_LOST, Cause.PREEMPTED_LOST, Cause.CRASH_LOST)
_BY_ACTIVITY = {
    Activity.ACTIVE: Cause.USEFUL,
    Activity.IDLE: Cause.IDLE,
    Activity.RESIDENT_IDLE: Cause.RESIDENT_IDLE,
    Activity.UNKNOWN: Cause.UNKNOWN,
}
_BY_STATE = {
    State.PLACING: Cause.GANG_HOLD,
    State.DRAINING: Cause.DRAINING,
    State.BACKOFF: Cause.BACKOFF,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """
    Part of what a pod held in `[start_ms, end_ms)`, and why.

    `micro_gpus` is None where the pod's share cannot be known. `device` is empty for all of its
    GPUs together, or those that no samples tell of. `may_be` is the kind of loss that useful time
    would turn into if it was not saved: it lies in a cut run before the part surely lost.
    `known_ms` is the first instant from whose past the cause follows; None where it follows as soon
    as the time has passed. At an earlier instant the piece counts as useful. `restart`: the attempt
    follows one that failed by itself.
    """

    pod_uid: str
    attempt: int
    device: str
    micro_gpus: int | None
    start_ms: int
    end_ms: int
    cause: Cause
    may_be: LossKind | None = None
    known_ms: int | None = None
    restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """
    A workload's GPU-time by cause, as known at an instant.

    Args:
        pieces: cover each pod's holding exactly, device by device.
        own_failure_waits: stretches in which it waited again after it had failed by itself.
        requested_micro_gpus: what it waits for; None where unknown.
        resident_idle_exempt: the policy does not charge its resident idleness.
    """

    pieces: tuple[Piece, ...]
    own_failure_waits: tuple[tuple[int, int], ...]
    requested_micro_gpus: int | None
    resident_idle_exempt: bool


def account(course: Course, *, as_of_ms: int, rules: WastageRules = DEFAULT_RULES) -> Account:
    """
    The causes of all GPU-time that a workload held before `as_of_ms`.

    The cause of an instant is at first known at once, or useful, and changes at most once: as of an
    earlier T it is what pieces say whose `known_ms` is None or at most T, and useful elsewhere. As
    of `FOREVER_MS` pieces that are open end then.

    Only useful time can become lost: what was idle or unknown stays so.

    Source: definitions, section 7.
    """
    known = as_known_at(course, as_of_ms)
    by_holding = [(holding, phases(holding, known.spans, as_of_ms)) for holding in known.holdings]
    lost: dict[str, list[Loss]] = {}
    for loss in losses(known, by_holding, rules=rules):
        lost.setdefault(loss.pod_uid, []).append(loss)
    pieces: list[Piece] = []
    for holding, parts in by_holding:
        for part in parts:
            if part.state is not State.RUNNING:
                pieces += _not_running(holding, part, rules)
        running = [part for part in parts if part.state is State.RUNNING]
        pieces += _running(holding, running, known, lost.get(holding.pod_uid, []), rules)
    failed = {
        attempt.number + 1: attempt.end_ms
        for attempt in known.attempts
        if attempt.outcome is Outcome.FAILED and attempt.end_ms is not None
    }
    return Account(
        pieces=tuple(_as_known(piece, as_of_ms, failed.get(piece.attempt)) for piece in pieces),
        own_failure_waits=tuple(_own_failure_waits(known, as_of_ms)),
        requested_micro_gpus=known.requested_micro_gpus,
        resident_idle_exempt=known.resident_idle_exempt,
    )


def _as_known(piece: Piece, as_of_ms: int, failed_ms: int | None) -> Piece:
    """The piece as of then; `failed_ms` is the end of the attempt before, where that failed."""
    restart = failed_ms is not None and failed_ms <= piece.start_ms
    if piece.known_ms is not None and piece.known_ms > as_of_ms:
        return replace(piece, cause=Cause.USEFUL, may_be=None, known_ms=None, restart=restart)
    return replace(piece, restart=True) if restart else piece


def _not_running(holding: Holding, part: Phase, rules: WastageRules) -> Iterator[Piece]:
    limit_ms = min(part.start_ms + rules.startup_limit_ms, part.end_ms)
    if part.state is State.STARTING:
        yield _piece(holding, part.start_ms, limit_ms, Cause.STARTUP)
        if limit_ms < part.end_ms:
            yield _piece(holding, limit_ms, part.end_ms, Cause.STARTUP_OVER_LIMIT)
    else:
        yield _piece(holding, part.start_ms, part.end_ms, _BY_STATE[part.state])


def _piece(holding: Holding, start_ms: int, end_ms: int, cause: Cause) -> Piece:
    return Piece(
        pod_uid=holding.pod_uid,
        attempt=holding.attempt,
        device="",
        micro_gpus=holding.micro_gpus,
        start_ms=start_ms,
        end_ms=end_ms,
        cause=cause,
    )


def _running(
    holding: Holding, parts: Sequence[Phase], course: Course, lost: list[Loss], rules: WastageRules
) -> Iterator[Piece]:
    stretches = [(part.start_ms, part.end_ms) for part in parts]
    devices = [each for each in course.devices if each.pod_uid == holding.pod_uid]
    if holding.micro_gpus is None:
        yield from (_piece(holding, start, end, Cause.UNKNOWN) for start, end in stretches)
        return
    unseen = holding.micro_gpus - sum(device.micro_gpus for device in devices)
    for start, end in stretches if unseen else ():
        yield replace(_piece(holding, start, end, Cause.UNKNOWN), micro_gpus=unseen)
    for device in devices:
        whole = replace(_piece(holding, 0, 0, Cause.USEFUL), device=device.name, micro_gpus=device.micro_gpus)
        for spans in device_activity(device, stretches, rules=rules):
            for span in spans:
                yield from _with_losses(span, lost, whole)


def _with_losses(span: ActivitySpan, lost: list[Loss], whole: Piece) -> Iterator[Piece]:
    """One span by activity as pieces of a device; useful time is cut where a loss begins."""
    if span.activity is not Activity.ACTIVE:
        cause = _BY_ACTIVITY[span.activity]
        yield replace(whole, start_ms=span.start_ms, end_ms=span.end_ms, cause=cause, known_ms=span.known_ms)
        return
    near = [loss for loss in lost if loss.high_from_ms < span.end_ms and span.start_ms < loss.end_ms]
    edges = {span.start_ms, span.end_ms}
    for loss in near:
        edges |= {loss.low_from_ms, loss.high_from_ms, loss.end_ms}
    for start, end in pairwise(sorted(at for at in edges if span.start_ms <= at <= span.end_ms)):
        # Runs of a pod do not overlap, and neither do losses.
        of = next((one for one in near if one.high_from_ms <= start < one.end_ms), None)
        if of is None:
            yield replace(whole, start_ms=start, end_ms=end)
        elif of.low_from_ms <= start:
            cause = Cause(of.kind)
            yield replace(whole, start_ms=start, end_ms=end, cause=cause, known_ms=of.known_ms)
        else:
            yield replace(whole, start_ms=start, end_ms=end, may_be=of.kind, known_ms=of.known_ms)


def _own_failure_waits(course: Course, as_of_ms: int) -> Iterator[tuple[int, int]]:
    """Waiting after the first placement, while the attempt that ended last had failed by itself."""
    ended = [attempt for attempt in course.attempts if attempt.end_ms is not None]
    ended.sort(key=lambda attempt: (attempt.end_ms or 0, attempt.number))
    until = [attempt.end_ms or 0 for attempt in ended[1:]] + [as_of_ms]
    for attempt, until_ms in zip(ended, until, strict=False):
        if attempt.outcome is not Outcome.FAILED:
            continue
        for span in course.spans:
            start = max(span.start_ms, attempt.end_ms or 0)
            end = min(as_of_ms if span.end_ms is None else span.end_ms, until_ms)
            if span.state.waits and not span.first_wait and start < end:
                yield start, end
