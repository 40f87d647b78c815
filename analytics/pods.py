"""The course of one pod: when it was there, bound, running, on its way out, and released."""

from dataclasses import dataclass

from analytics.history import Catalog, History
from domain import objects
from domain.facts import EventSighting, Moment, ObjectKind, Transition
from domain.workload import Run

# Gates that a queueing system sets and lifts itself: a pod behind them is queued, not held back.
QUEUEING_GATES = ("kueue.x-k8s.io/", "scheduling.volcano.sh/", "scheduling.x-k8s.io/", "kai.scheduler/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """When something happened: at `at_ms`, or somewhere in `(earliest_ms, at_ms]`; who told."""

    at_ms: int
    earliest_ms: int | None = None
    source: str = "condition"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCourse:
    """
    One pod's course; None where it has not happened.

    `released` is the earliest of its end, its deletion and its node's end. `held_back` are the
    stretches behind a gate of its owner.
    """

    uid: str
    name: str
    created_ms: int
    body: objects.Pod | None
    node: str
    held_back: tuple[tuple[int, int | None], ...]
    bound: Instant | None
    started_ms: int | None
    runs: tuple[Run, ...]
    restarts: int
    ended_ms: int | None
    phase: str
    phase_reason: str
    delete_requested_ms: int | None
    gone: Instant | None
    released: Instant | None
    node_gone: bool
    disruption: Transition | None
    faults: tuple[Transition, ...] = ()


def is_imported(pod: PodCourse) -> bool:
    """Whether it is a stay of a job from a table of another scheduler."""
    body = pod.body
    return body is not None and body.owner is not None and body.owner.kind == ObjectKind.IMPORTED_JOB


def pod_course(pod: History, *, catalog: Catalog, events: tuple[EventSighting, ...] = ()) -> PodCourse:
    """
    Read a pod's facts.

    A pod holds its GPUs from its binding (`PodScheduled=True`, else the Scheduled event, else
    between the last sight without a node and the first with one) to the earliest of its terminal
    phase, its deletion, and its node's end. A terminating pod still holds.
    """
    bound, node = _binding(pod, events)
    ended = pod.first(Moment.ENDED)
    gone_fact = pod.first(Moment.GONE)
    gone = Instant(at_ms=gone_fact.at_ms, earliest_ms=gone_fact.earliest_ms) if gone_fact else None
    node_gone_ms = catalog.gone_ms(node, bound.at_ms) if bound else None
    delete_requested = pod.first(Moment.DELETE_REQUESTED)
    released = _release(bound, ended_ms=ended.at_ms if ended else None, gone=gone, node_gone_ms=node_gone_ms)
    runs = _runs(pod, not_before_ms=bound.at_ms if bound else None)
    bodies = [d.body for d in pod.descriptions if isinstance(d.body, objects.Pod)]
    return PodCourse(
        uid=pod.uid,
        name=pod.name,
        created_ms=pod.created_ms,
        body=bodies[-1] if bodies else None,
        node=node,
        held_back=_held_back(pod),
        bound=bound,
        started_ms=_started_ms(
            pod,
            containers=bodies[-1].containers if bodies else 1,
            not_before_ms=bound.at_ms if bound else None,
        ),
        runs=runs,
        restarts=_restarts(pod),
        ended_ms=ended.at_ms if ended else None,
        phase=ended.state if ended else "",
        phase_reason=ended.reason if ended else "",
        delete_requested_ms=delete_requested.at_ms if delete_requested else None,
        gone=gone,
        released=released,
        node_gone=released is not None and node_gone_ms == released.at_ms and ended is None,
        disruption=_disruption(pod),
        faults=tuple(fact for fact in pod.transitions if fact.moment is Moment.GPU_FAULT),
    )


def _binding(pod: History, events: tuple[EventSighting, ...]) -> tuple[Instant | None, str]:
    fact = pod.first(Moment.BOUND)
    if fact is None:
        return None, ""
    if fact.earliest_ms is not None:
        scheduled = [e.first_ms for e in events if e.regarding_uid == pod.uid and e.reason == "Scheduled"]
        if scheduled:
            return Instant(at_ms=min(scheduled), source="event"), fact.subject
    source = "condition" if fact.earliest_ms is None else "sight"
    return Instant(at_ms=fact.at_ms, earliest_ms=fact.earliest_ms, source=source), fact.subject


def _release(
    bound: Instant | None, *, ended_ms: int | None, gone: Instant | None, node_gone_ms: int | None
) -> Instant | None:
    if bound is None:
        return None
    ends = [Instant(at_ms=stamp) for stamp in (ended_ms, node_gone_ms) if stamp is not None]
    if gone is not None:
        ends.append(gone)
    if not ends:
        return None
    first = min(ends, key=lambda end: end.at_ms)
    return Instant(at_ms=max(first.at_ms, bound.at_ms), earliest_ms=first.earliest_ms)


def _runs(pod: History, *, not_before_ms: int | None) -> tuple[Run, ...]:
    """
    Stretches in which a main container ran, in order.

    The kubelet's clock may lie behind the API server's: nothing runs before it is bound.
    """
    starts: dict[str, list[int]] = {}
    ends: dict[str, list[Transition]] = {}
    for fact in pod.transitions:
        if fact.state != "main":
            continue
        if fact.moment is Moment.CONTAINER_STARTED:
            starts.setdefault(fact.subject, []).append(fact.at_ms)
        elif fact.moment is Moment.CONTAINER_ENDED:
            ends.setdefault(fact.subject, []).append(fact)
    runs: list[Run] = []
    for container, stamps in starts.items():
        finished = sorted(ends.get(container, []), key=lambda fact: fact.at_ms)
        stamps.sort()
        for start, following in zip(stamps, [*stamps[1:], None], strict=True):
            end = next((fact for fact in finished if fact.at_ms >= start), None)
            if end is not None and following is not None and end.at_ms > following:
                end = None
            end_ms = end.at_ms if end else following
            runs.append(
                Run(
                    start_ms=max(start, not_before_ms or start),
                    end_ms=None if end_ms is None else max(end_ms, not_before_ms or end_ms),
                    exit_code=end.amount if end else None,
                    reason=end.reason if end else "",
                )
            )
    return tuple(sorted(runs, key=lambda run: run.start_ms))


def _started_ms(pod: History, *, containers: int, not_before_ms: int | None) -> int | None:
    """When the last of its main containers first started; None while one has not."""
    first: dict[str, int] = {}
    for fact in pod.transitions:
        if fact.moment is Moment.CONTAINER_STARTED and fact.state == "main":
            first[fact.subject] = min(first.get(fact.subject, fact.at_ms), fact.at_ms)
    return max(*first.values(), not_before_ms or 0) if len(first) >= containers else None


def _restarts(pod: History) -> int:
    """Restarts of its containers, each by the most ever seen: the kubelet may count down again."""
    most: dict[str, int] = {}
    for fact in pod.transitions:
        if fact.moment is Moment.RESTARTS:
            most[fact.subject] = max(most.get(fact.subject, 0), fact.amount or 0)
    return sum(most.values())


def _disruption(pod: History) -> Transition | None:
    marks = [
        fact
        for fact in pod.transitions
        if fact.moment is Moment.CONDITION and fact.subject == "DisruptionTarget" and fact.state == "True"
    ]
    return min(marks, key=lambda fact: fact.at_ms) if marks else None


def _held_back(pod: History) -> tuple[tuple[int, int | None], ...]:
    """Stretches in which a gate that no queueing system owns kept the pod back."""
    stretches: list[tuple[int, int | None]] = []
    since: int | None = None
    for described in pod.descriptions:
        body = described.body
        gates = body.gates if isinstance(body, objects.Pod) else ()
        foreign = any(not gate.startswith(QUEUEING_GATES) for gate in gates)
        if foreign and since is None:
            since = described.from_ms
        elif not foreign and since is not None:
            stretches.append((since, described.from_ms))
            since = None
    if since is not None:
        stretches.append((since, None))
    return tuple(stretches)
