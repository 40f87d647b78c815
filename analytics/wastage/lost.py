"""Work lost: the running time since the last known checkpoint of a run that was cut short."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from analytics.wastage.course import Course, Phase, PodRun, pod_runs
from analytics.wastage.rules import DEFAULT_RULES, WastageRules
from domain.workload import Attempt, Holding, Outcome, State


class LossKind(StrEnum):
    """Who cut a run short. Only a crash is the workload's own doing."""

    INFRA = "infra_lost"
    PREEMPTED = "preempted_lost"
    CRASH = "crash_lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """
    What a pod's run lost when it was cut short at `end_ms`.

    Surely lost is `[low_from_ms, end_ms)`, at most `[high_from_ms, end_ms)`. The two are the same
    where the last checkpoint is known, or where the workload has shown no progress. `known_ms` is
    the first instant from whose past the loss follows, and stays as it is.
    """

    pod_uid: str
    kind: LossKind
    low_from_ms: int
    high_from_ms: int
    end_ms: int
    known_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _CutRun:
    """A stretch of running time and who ended it; a checkpoint until `saved_until_ms` counts."""

    pod_uid: str
    kind: LossKind
    start_ms: int
    end_ms: int
    saved_until_ms: int
    known_ms: int


# An eviction without a preemptor (checks, a stopped queue) is nobody's crash and no fault either.
_BY_OUTCOME = {
    Outcome.PREEMPTED: LossKind.PREEMPTED,
    Outcome.EVICTED: LossKind.PREEMPTED,
    Outcome.INFRA_FAILED: LossKind.INFRA,
    Outcome.FAILED: LossKind.CRASH,
}


def losses(
    course: Course,
    by_holding: Sequence[tuple[Holding, tuple[Phase, ...]]],
    *,
    rules: WastageRules = DEFAULT_RULES,
) -> tuple[Loss, ...]:
    """
    What each run that was cut short lost, by pod; in order of pod and time.

    The last checkpoint known before the pod let go, a grace period included, bounds the loss. Where
    the workload had published none, it is between min(assumed interval, run) and the whole run;
    from the workload's second failure on it is the whole run, if that is at most `short_run_ms` and
    the first failure was known when this one was.

    Args:
        course: as known at the instant that the question is about.
        by_holding: each holding with its phases.
        rules: thresholds.

    Source: definitions, section 5.
    """
    attempts = {attempt.number: attempt for attempt in course.attempts}
    cuts = [
        cut
        for holding, pieces in by_holding
        for cut in _cut_runs(holding, pieces, attempts.get(holding.attempt))
    ]
    failures = [(cut.end_ms, cut.known_ms) for cut in cuts if cut.kind is LossKind.CRASH]
    interval_ms = course.assumed_interval_ms or rules.assumed_interval_ms
    found = []
    for cut in cuts:
        run_ms = cut.end_ms - cut.start_ms
        saved = max((at for at in course.checkpoints_ms if at <= cut.saved_until_ms), default=None)
        failed_before = any(end <= cut.start_ms and known <= cut.known_ms for end, known in failures)
        if saved is not None:
            low = high = min(max(saved, cut.start_ms), cut.end_ms)
        elif cut.kind is LossKind.CRASH and failed_before and run_ms <= rules.short_run_ms:
            low = high = cut.start_ms
        else:
            low, high = cut.end_ms - min(interval_ms, run_ms), cut.start_ms
        found.append(
            Loss(
                pod_uid=cut.pod_uid,
                kind=cut.kind,
                low_from_ms=low,
                high_from_ms=high,
                end_ms=cut.end_ms,
                known_ms=cut.known_ms,
            )
        )
    return tuple(sorted(found, key=lambda loss: (loss.pod_uid, loss.end_ms)))


def _cut_runs(holding: Holding, pieces: tuple[Phase, ...], attempt: Attempt | None) -> list[_CutRun]:
    """The runs of one pod that were cut short, by whom."""
    runs = pod_runs(holding)
    running = [piece for piece in pieces if piece.state is State.RUNNING and piece.run is not None]
    found = []
    for piece in running:
        assert piece.run is not None
        run = runs[piece.run]
        cut = _cut_by(piece, run, holding=holding, attempt=attempt, is_last=piece is running[-1])
        if cut is None:
            continue
        kind, known_by_ms = cut
        known = [at for at in (run.end_ms, holding.released_ms) if at is not None]
        found.append(
            _CutRun(
                pod_uid=holding.pod_uid,
                kind=kind,
                start_ms=piece.start_ms,
                end_ms=piece.end_ms,
                saved_until_ms=max(min(known, default=piece.end_ms), piece.end_ms),
                known_ms=known_by_ms + 1,
            )
        )
    return found


def _cut_by(
    piece: Phase, run: PodRun, *, holding: Holding, attempt: Attempt | None, is_last: bool
) -> tuple[LossKind, int] | None:
    """
    Who cut a run short, and the instant of the fact that told; None for one that nobody cut.

    That is one that goes on, came to its end, or was given up by its owner. An exit other than 0
    while the pod goes on holding is a crash loop's. A last run takes the attempt's outcome, once
    there is one: members of a gang crash when another one's node dies. But a member that was lost while
    the others went on has its own outcome, and a pod that succeeded lost nothing, whatever became of the
    others.
    """
    over_by_itself = run.end_ms is not None and run.end_ms == piece.end_ms
    crashed = over_by_itself and run.exit_code not in {0, None}
    if crashed and (holding.released_ms is None or holding.released_ms > piece.end_ms):
        return LossKind.CRASH, piece.end_ms
    if not is_last or (over_by_itself and run.exit_code == 0) or holding.released_ms is None:
        return None
    if holding.cut:
        kind = _BY_OUTCOME.get(Outcome(holding.cut))
        return None if kind is None else (kind, max(holding.released_ms, holding.cut_known_ms or 0))
    if attempt is None:
        failed = crashed and holding.phase == "Failed"
        return (LossKind.CRASH, holding.released_ms) if failed else None
    kind = _BY_OUTCOME.get(attempt.outcome)
    if kind is None or holding.phase == "Succeeded":
        return None
    return kind, max(holding.released_ms, attempt.end_ms or 0)
