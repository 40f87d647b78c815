"""Stays of a workload whose pods nobody reads: admission stands for placement and for holding."""

from dataclasses import replace

from analytics.history import WorkloadFacts
from domain import objects
from domain.workload import Attempt, Eviction, Holding, Outcome, Span, State

SOURCE = "admission"
_HOLDING_STATES = (State.RUNNING, State.DRAINING)


def admitted_stays(
    facts: WorkloadFacts,
    *,
    spans: tuple[Span, ...],
    evictions: tuple[Eviction, ...],
    micro_gpus: int | None,
    outcome: Outcome,
) -> tuple[tuple[Attempt, ...], tuple[Holding, ...]]:
    """
    One attempt for each stretch of admitted time, and one holding of all its GPUs.

    Args:
        facts: of the workload.
        spans: its life; running and draining ones that follow each other are one stretch.
        evictions: end the stretch in which they lie.
        micro_gpus: what the whole workload asks for.
        outcome: of the workload; that of a last stretch which no eviction ended.
    """
    stretches: list[tuple[int, int | None]] = []
    for span in spans:
        if span.state not in _HOLDING_STATES:
            continue
        if stretches and stretches[-1][1] == span.start_ms:
            stretches[-1] = (stretches[-1][0], span.end_ms)
        else:
            stretches.append((span.start_ms, span.end_ms))
    attempts, holdings = [], []
    for number, (start_ms, end_ms) in enumerate(stretches, start=1):
        cause = next(
            (e for e in evictions if start_ms <= e.at_ms and (end_ms is None or e.at_ms <= end_ms)), None
        )
        ended = Outcome.OPEN if end_ms is None else outcome
        if cause is not None and end_ms is not None:
            ended = Outcome.PREEMPTED if cause.preempted else Outcome.EVICTED
        attempts.append(
            Attempt(
                number=number,
                start_ms=start_ms,
                end_ms=end_ms,
                outcome=ended,
                reason=cause.reason if cause else "",
                preempted_by=cause.preemptor_uid if cause else "",
                source=SOURCE,
            )
        )
        holdings.append(
            Holding(
                pod_uid=f"{facts.uid}/{number}",
                pod_name="",
                attempt=number,
                node="",
                gpu_model="",
                micro_gpus=micro_gpus,
                bound_ms=start_ms,
                bound_earliest_ms=None,
                bound_source=SOURCE,
                started_ms=start_ms,
                released_ms=end_ms,
                released_earliest_ms=None,
                phase="",
                restarts=0,
            )
        )
    return tuple(attempts), tuple(holdings)


def unless_dispatched(facts: WorkloadFacts) -> WorkloadFacts:
    """
    The facts; where MultiKueue gave the workload to another cluster, as one whose pods nobody reads.

    The cluster that manages the others never has pods of it. Where the other one is read, they are known.
    """
    if facts.pods_elsewhere:
        return facts
    bodies = (history.latest for history in facts.queueing)
    dispatched = any(isinstance(body, objects.Workload) and body.dispatched_to for body in bodies)
    return replace(facts, pods_observed=False) if dispatched else facts
