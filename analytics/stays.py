"""A workload's pods through its life: attempts, holdings, and the evictions that pods show."""

from collections import Counter
from dataclasses import dataclass, field, replace

from msgspec import UnsetType

from analytics.evictions import INFRASTRUCTURE, disruption_mechanism, scheduler_preemptor
from analytics.gpu_faults import broken_gpu
from analytics.history import WorkloadFacts
from analytics.members_lost import ONE_ACT_MS, Act, nodes_lost
from analytics.other_resources import asked_by
from analytics.placeholders import is_placeholder
from analytics.pods import PodCourse
from domain.workload import Attempt, Eviction, Holding, Mechanism, Outcome, State

# Marks on the pods of one victim that lie as close together as Kubernetes' default grace are one act.
_ONE_ACT_MS = 30_000
_PREEMPTING = frozenset({Mechanism.KUBE_SCHEDULER, Mechanism.VOLCANO, Mechanism.BATCH_SCHEDULER})


@dataclass(slots=True)
class _Stay:
    """One attempt while the fold goes on."""

    number: int
    start_ms: int
    pods: list[PodCourse] = field(default_factory=list)
    holding: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    placed: bool = False
    has_run: bool = False
    evictions: list[Eviction] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)

    def partial(self) -> list[Act]:
        """What befell some of its pods while the others went on."""
        known = {uid for act in self.acts for uid in act.victims}
        acts = [*self.acts, *(act for act in nodes_lost(self.pods) if not act.victims <= known)]
        return [act for act in acts if act.spared_others(self.pods)]


@dataclass(slots=True)
class Stays:
    """The part of the fold that pods write."""

    facts: WorkloadFacts
    min_members: int
    stays: list[_Stay] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    waiting: dict[str, PodCourse] = field(default_factory=dict)
    back: set[str] = field(default_factory=set)
    running: Counter[str] = field(default_factory=Counter)
    started: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    over: dict[str, str] = field(default_factory=dict)
    of_pod: dict[str, _Stay] = field(default_factory=dict)
    placed_before: dict[str, int] = field(default_factory=dict)
    placeholders: set[str] = field(default_factory=set)
    placed_ms: int | None = None

    @property
    def has_run(self) -> bool:
        """Whether its minimum members have all run, in any attempt."""
        return any(stay.has_run for stay in self.stays)

    @property
    def holding(self) -> bool:
        """Whether any of its pods holds GPUs."""
        return any(stay.holding for stay in self.stays[-2:])

    @property
    def placed(self) -> bool:
        """Whether the present attempt has had its minimum members bound."""
        return bool(self.stays) and self.stays[-1].placed and self.holding

    @property
    def held_back(self) -> bool:
        """Whether all pods that are there wait behind a gate of their owner."""
        return bool(self.waiting) and set(self.waiting) <= self.back

    def nothing_left(self, *, single: bool) -> bool:
        """
        Whether a workload without a controller that tells has come to its end.

        A pod of its own ends with its phase or its deletion. Pods of a controller that nobody
        reads: when the last one succeeded, or all are gone, with nothing left to wait for.
        """
        if self.holding or self.waiting or not self.over:
            return False
        last = next(reversed(self.over.values()))
        return single or last == "Succeeded" or not self.present

    def take(self, what: str, pod: PodCourse, now_ms: int) -> None:
        """One step of one pod. A placeholder holds what it is bound to, and does nothing else."""
        if is_placeholder(pod):
            self.placeholders.add(pod.uid)
            if what not in ("pod bound", "pod released"):
                return
        match what:
            case "pod created":
                self._appear(pod, now_ms)
            case "pod held back":
                self.back.add(pod.uid)
            case "pod let go":
                self.back.discard(pod.uid)
            case "pod bound":
                self._bind(pod, now_ms)
            case "pod started":
                self._start(pod)
            case "run started":
                self.running[pod.uid] += 1
            case "run ended":
                self.running[pod.uid] -= 1
            case "pod disrupted":
                self._disrupt(pod)
            case _:
                self._go(what, pod)

    def evict(self, eviction: Eviction) -> None:
        """An eviction that the queue tells of: it belongs to the attempt that holds now."""
        current = self.stays[-1] if self.stays and self.holding else None
        known = replace(eviction, attempt=current.number if current else 0)
        if current is not None:
            current.evictions.append(known)
            current.leaving.update(current.holding)
        self.evictions.append(known)

    def begin_anew(self) -> None:
        """The queue lets the workload go again: what its earlier pods came to no longer counts."""
        self.over.clear()

    def state(self) -> tuple[State, str]:
        """The state by the pods alone, once queue and controller let the workload go."""
        if not self.placed:
            if not self.waiting and not self.holding and self.over:
                return State.BACKOFF, "waits for its controller to make pods anew"
            if self.held_back and not self.holding:
                return State.HELD, "SchedulingGated"
            return State.PLACING, "Unschedulable" if self.waiting else "no pods yet"
        current = self.stays[-1]
        if current.holding <= current.leaving:
            return State.DRAINING, "deleted"
        if any(self.running[uid] > 0 for uid in current.holding):
            return (State.RUNNING if current.has_run else State.STARTING), ""
        if current.holding & self.started:
            return State.BACKOFF, "no container runs"
        return State.STARTING, ""

    def member_wait_from(self, pod: PodCourse) -> int | None:
        """Since when a pod waits as a further member; None for those the placement waited for."""
        return self.placed_before.get(pod.uid)

    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts so far, in order."""
        return tuple(self._attempt(stay) for stay in self.stays)

    def holdings(self) -> tuple[Holding, ...]:
        """Each pod's stay on its node, in order of binding."""
        found = []
        for stay in self.stays:
            partial = stay.partial()
            found += [self._holding(stay, pod, partial) for pod in stay.pods]
        return tuple(sorted(found, key=lambda holding: (holding.bound_ms, holding.pod_uid)))

    def outcome_of_last(self) -> Outcome:
        """How the workload ended, by its last attempt; cancelled when it never held anything."""
        if not self.stays:
            failed = "Failed" in self.over.values()
            return Outcome.FAILED if failed else Outcome.CANCELLED
        return self._attempt(self.stays[-1]).outcome

    def _appear(self, pod: PodCourse, now_ms: int) -> None:
        self.present.add(pod.uid)
        self.waiting[pod.uid] = pod
        if self.placed:
            self.placed_before[pod.uid] = now_ms

    def _go(self, what: str, pod: PodCourse) -> None:
        """The steps on a pod's way out."""
        stay = self.of_pod.get(pod.uid)
        if what == "pod leaving" and stay is not None:
            stay.leaving.add(pod.uid)
        elif what == "pod released" and stay is not None:
            stay.holding.discard(pod.uid)
        elif what == "pod over":
            self.waiting.pop(pod.uid, None)
            self.over[pod.uid] = pod.phase
        elif what == "pod gone":
            self.present.discard(pod.uid)

    def _bind(self, pod: PodCourse, now_ms: int) -> None:
        self.waiting.pop(pod.uid, None)
        self.back.discard(pod.uid)
        current = self.stays[-1] if self.stays else None
        kept_for = current is not None and {one.uid for one in current.pods} <= self.placeholders
        if current is None or (current.holding <= current.leaving and not kept_for):
            current = _Stay(number=len(self.stays) + 1, start_ms=now_ms)
            self.stays.append(current)
        current.pods.append(pod)
        current.holding.add(pod.uid)
        self.of_pod[pod.uid] = current
        done = sum(phase == "Succeeded" for phase in self.over.values())
        members = len(current.holding - self.placeholders) + done
        current.placed = current.placed or members >= self.min_members
        if current.placed and self.placed_ms is None:
            self.placed_ms = now_ms
        if current.placed:
            for uid in self.waiting:
                self.placed_before.setdefault(uid, now_ms)

    def _start(self, pod: PodCourse) -> None:
        self.started.add(pod.uid)
        current = self.stays[-1] if self.stays else None
        if current is not None and not current.has_run:
            ran = len(self.started & {pod.uid for pod in current.pods})
            current.has_run = ran >= self.min_members

    def _disrupt(self, pod: PodCourse) -> None:
        mark = pod.disruption
        stay = self.of_pod.get(pod.uid)
        if mark is None or stay is None or pod.uid not in stay.holding:
            return
        stay.leaving.add(pod.uid)
        mechanism = disruption_mechanism(mark)
        same = next((act for act in stay.acts if abs(act.at_ms - mark.at_ms) <= ONE_ACT_MS), None)
        if same is not None:
            same.victims.add(pod.uid)
        if mechanism is None or self._same_act(stay, mark.at_ms):
            return
        eviction = Eviction(
            at_ms=mark.at_ms,
            preempted=mechanism in _PREEMPTING,
            reason=mark.reason,
            mechanism=mechanism,
            preemptor_uid=scheduler_preemptor(self.facts.events, pod.uid) if mechanism in _PREEMPTING else "",
            attempt=stay.number,
            detail=mark.detail,
        )
        stay.evictions.append(eviction)
        stay.acts.append(
            Act(at_ms=mark.at_ms, outcome=_outcome_of(eviction), victims={pod.uid}, eviction=eviction)
        )
        self.evictions.append(eviction)

    @staticmethod
    def _same_act(stay: _Stay, at_ms: int) -> bool:
        return any(abs(eviction.at_ms - at_ms) <= ONE_ACT_MS for eviction in stay.evictions)

    def _attempt(self, stay: _Stay) -> Attempt:
        ends = [pod.released.at_ms if pod.released else None for pod in stay.pods]
        known = [end for end in ends if end is not None]
        end_ms = max(known) if len(known) == len(ends) else None
        outcome, reason, preemptor = self._how(stay, end_ms)
        return Attempt(
            number=stay.number,
            start_ms=stay.start_ms,
            end_ms=end_ms,
            outcome=outcome,
            reason=reason,
            preempted_by=preemptor,
        )

    def _how(self, stay: _Stay, end_ms: int | None) -> tuple[Outcome, str, str]:
        if end_ms is None:
            return Outcome.OPEN, "", ""
        # A member that was lost while the others went on ended its own stay, not the attempt.
        partial = stay.partial()
        survived = [act.eviction for act in partial]
        cause = next((eviction for eviction in stay.evictions if eviction not in survived), None)
        if cause is not None:
            return _outcome_of(cause), cause.reason, cause.preemptor_uid if cause.preempted else ""
        gone = self.placeholders.union(*(act.victims for act in partial))
        pods = [pod for pod in stay.pods if pod.uid not in gone]
        lost = next((pod for pod in pods if pod.node_gone), None)
        if lost is not None:
            return Outcome.INFRA_FAILED, f"node {lost.node} went away", ""
        failed = next((pod for pod in pods if _failed_by_itself(pod)), None)
        if failed is not None:
            fault = broken_gpu(pods)
            infra = bool(fault) or failed.phase_reason.startswith(("OutOf", "UnexpectedAdmissionError"))
            return (Outcome.INFRA_FAILED if infra else Outcome.FAILED), fault or failed.phase_reason, ""
        if pods and all(pod.phase == "Succeeded" for pod in pods):
            return Outcome.SUCCEEDED, "", ""
        if any(pod.delete_requested_ms is not None or pod.gone is not None for pod in stay.pods):
            return Outcome.CANCELLED, "deleted", ""
        return Outcome.UNKNOWN, "", ""

    def _holding(self, stay: _Stay, pod: PodCourse, partial: list[Act]) -> Holding:
        assert pod.bound is not None
        cut = next((act for act in partial if pod.uid in act.victims), None)
        stretch = self.facts.catalog.at(pod.node, pod.bound.at_ms)
        requests = pod.body.gpu_requests if pod.body else {}
        return Holding(
            pod_uid=pod.uid,
            pod_name=pod.name,
            attempt=stay.number,
            node=pod.node,
            gpu_model=stretch.model if stretch else (pod.body.gpu_model if pod.body else ""),
            micro_gpus=self.facts.catalog.micro_gpus(requests, stretch),
            bound_ms=pod.bound.at_ms,
            bound_earliest_ms=pod.bound.earliest_ms,
            bound_source=pod.bound.source,
            started_ms=pod.started_ms,
            released_ms=pod.released.at_ms if pod.released else None,
            released_earliest_ms=pod.released.earliest_ms if pod.released else None,
            phase=pod.phase,
            restarts=pod.restarts,
            runs=pod.runs,
            cut=cut.outcome if cut else "",
            cut_known_ms=cut.known_ms if cut else None,
            nodes=_told(pod.body.nodes) if pod.body else None,
            **asked_by(pod.body)._asdict(),
        )


def _told(count: int | UnsetType) -> int | None:
    return None if isinstance(count, UnsetType) else count


def _outcome_of(eviction: Eviction) -> Outcome:
    if eviction.preempted:
        return Outcome.PREEMPTED
    return Outcome.INFRA_FAILED if eviction.mechanism in INFRASTRUCTURE else Outcome.EVICTED


def _failed_by_itself(pod: PodCourse) -> bool:
    """
    Whether a pod failed before anybody asked for its deletion.

    A deletion that comes later, by a TTL for example, does not change how it ended.
    """
    asked_ms, ended_ms = pod.delete_requested_ms, pod.ended_ms
    return pod.phase == "Failed" and (asked_ms is None or (ended_ms is not None and ended_ms < asked_ms))
