"""Where a workload stands with its queue and its controller, apart from its pods."""

from collections import Counter
from dataclasses import dataclass, field

from analytics.evictions import SLICE_REPLACED, kueue_mechanism, kueue_preemptor
from analytics.history import History, WorkloadFacts
from analytics.pods import PodCourse
from analytics.stays import Stays
from domain import objects
from domain.facts import Moment, ObjectKind, Transition
from domain.workload import Eviction, Mechanism, Outcome, State

_FINISHED_PHASES = frozenset(
    {"Completed", "Failed", "Aborted", "Terminated", "Finished", "Complete", "Succeeded", "ValidationFailed"}
)
_SUCCESS = frozenset({"Succeeded", "Complete", "Completed", "Finished"})
_ENDS = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
# The phase of a job from a table that is over in a way which its last attempt tells.
_OVER = "Over"
# KAI's and Kubernetes' PodGroups tell no phase: their pods tell when they are over.
_SILENT_GROUPS = frozenset({ObjectKind.KAI_POD_GROUP, ObjectKind.POD_GROUP})


@dataclass(slots=True)
class _Queueing:
    """One Kueue Workload: several are in play only for slices and variants of one intent."""

    quota: bool = False
    quota_reason: str = ""
    admitted: bool = False
    evicted: bool = False
    eviction_reason: str = ""
    requeued: bool | None = None
    active: bool = True
    finished: str = ""
    gone: bool = False
    variant: bool = False
    counted: int = 0
    by_reason: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Job:
    """One job object that no other one owns; without their JobSet, its Jobs are several."""

    finished: str = ""
    gone: bool = False
    suspended: bool | None = None
    suspended_spec: bool | None = None


@dataclass(slots=True)
class _Group:
    """One PodGroup: Volcano makes a new one when it restarts a job."""

    phase: str | None = None
    gone: bool = False
    silent: bool = False


@dataclass(slots=True)
class Standing:
    """
    The part of the fold that queue and controller write.

    Its state, given the pods (`Stays`), follows the table of section 1 of the definitions.
    """

    pods_observed: bool
    root_is_pod: bool
    kueue: dict[str, _Queueing] = field(default_factory=dict)
    preempted_marks: dict[tuple[str, int], Transition] = field(default_factory=dict)
    preemptor_notes: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, _Job] = field(default_factory=dict)
    groups: dict[str, _Group] = field(default_factory=dict)
    queue_label: bool = False
    ended_earliest_ms: int | None = None

    @classmethod
    def of(cls, facts: WorkloadFacts, pods: tuple[PodCourse, ...]) -> "Standing":
        """Nothing has happened yet; what never changes is read here."""
        standing = cls(
            pods_observed=facts.pods_observed,
            jobs={history.uid: _Job() for history in facts.top_jobs},
            groups={
                h.uid: _Group(silent=h.kind in _SILENT_GROUPS)
                for h in facts.queueing
                if h.kind in objects.POD_GROUPS
            },
            root_is_pod=_no_controller(facts, pods),
        )
        for history in facts.queueing:
            if history.kind is ObjectKind.WORKLOAD:
                standing.kueue[history.uid] = _Queueing()
            for fact in history.transitions:
                if fact.moment is Moment.CONDITION and fact.subject == "Preempted" and fact.state == "True":
                    standing.preempted_marks[history.uid, fact.at_ms] = fact
        for event in facts.events:
            if event.reason == "Preempted" and kueue_preemptor(event.note):
                standing.preemptor_notes.setdefault(event.regarding_uid, event.note)
        return standing

    def take(self, history: History, fact: Transition) -> Eviction | None:
        """One transition of the queueing object or the job; an eviction when it tells of one."""
        if history.kind is ObjectKind.WORKLOAD:
            return self._take_kueue(self.kueue[history.uid], history, fact)
        if history.uid in self.groups:
            self._take_group(self.groups[history.uid], fact)
        elif history.uid in self.jobs:
            self._take_job(self.jobs[history.uid], fact)
        return None

    def describe(self, history: History, body: object) -> list[Eviction]:
        """A new description; evictions where a counter grew that no condition explains."""
        if isinstance(body, objects.Workload):
            queueing = self.kueue[history.uid]
            queueing.active = body.active
            queueing.variant = bool(body.variant_of)
            return _uncounted(queueing, body, history)
        job = self.jobs.get(history.uid)
        if job is not None and isinstance(body, objects.Job | objects.JobObject):
            if job.suspended_spec is not body.suspend:
                job.suspended = job.suspended_spec = body.suspend
            self.queue_label = bool(body.queue)
        return []

    def state(self, stays: Stays) -> tuple[State, str]:
        """The state after the steps of an instant, with the reason for waiting where one is known."""
        if self._is_over(stays):
            return (State.DRAINING if stays.holding else State.ENDED), ""
        queueing = self._kueue_in_play()
        said = self._kueue_state(queueing, stays) if queueing else self._other_state(stays)
        return said or stays.state()

    def outcome(self, stays: Stays) -> Outcome:
        """How the workload ended: failed when a part of it did."""
        told = [one.finished for one in self.kueue.values() if one.finished != SLICE_REPLACED]
        told += [job.finished for job in self.jobs.values()]
        if not self.jobs:
            told += [group.phase or "" for group in self.groups.values() if group.phase in _FINISHED_PHASES]
        found = [word for word in told if word]
        if not found:
            return stays.outcome_of_last()
        return Outcome.SUCCEEDED if all(word in _SUCCESS for word in found) else Outcome.FAILED

    def _take_kueue(self, queueing: _Queueing, history: History, fact: Transition) -> Eviction | None:
        if fact.moment is Moment.GONE:
            queueing.gone = True
            self.ended_earliest_ms = fact.earliest_ms
        if fact.moment is not Moment.CONDITION:
            return None
        true = fact.state == "True"
        match fact.subject:
            case "QuotaReserved":
                queueing.quota, queueing.quota_reason = true, fact.reason
                if true:
                    queueing.evicted, queueing.requeued = False, None
            case "Admitted":
                queueing.admitted = true
            case "Requeued":
                queueing.requeued = true
            case "Finished":
                queueing.finished = fact.reason if true else ""
            case "Evicted" if true and fact.reason == SLICE_REPLACED:
                queueing.finished = SLICE_REPLACED
            case "Evicted" if true and queueing.variant and not queueing.quota:
                return None  # another variant of the same intent was taken
            case "Evicted":
                return self._evicted(queueing, history, fact) if true else None
        return None

    def _evicted(self, queueing: _Queueing, history: History, fact: Transition) -> Eviction | None:
        queueing.evicted, queueing.eviction_reason, queueing.requeued = True, fact.reason, None
        total = fact.amount if fact.amount is not None else queueing.counted + 1
        if total <= queueing.counted:  # the status went back for a moment and shows the same one again
            return None
        queueing.counted = total
        queueing.by_reason[_counted_reason(fact.reason)] += 1
        preempted = fact.reason == "Preempted"
        mark = self.preempted_marks.get((history.uid, fact.at_ms))
        text = fact.detail or (mark.detail if mark else "") or self.preemptor_notes.get(history.uid, "")
        return Eviction(
            at_ms=fact.at_ms,
            preempted=preempted,
            reason=fact.reason,
            mechanism=kueue_mechanism(mark.reason if mark else "", text)
            if preempted
            else Mechanism.KUEUE_OTHER,
            preemptor_uid=kueue_preemptor(text) if preempted else "",
            attempt=0,
            detail=text,
        )

    def _take_group(self, group: _Group, fact: Transition) -> None:
        if fact.moment is Moment.PHASE:
            group.phase = fact.state
        elif fact.moment is Moment.GONE:
            group.gone = True
            self.ended_earliest_ms = fact.earliest_ms

    def _take_job(self, job: _Job, fact: Transition) -> None:
        if fact.moment is Moment.GONE:
            job.gone = True
            self.ended_earliest_ms = fact.earliest_ms
        elif fact.moment is Moment.PHASE:
            job.finished = fact.state if fact.state in _FINISHED_PHASES else ""
        elif fact.moment is Moment.CONDITION:
            true = fact.state == "True"
            if fact.subject == "Suspended":
                job.suspended = true
            elif fact.subject in _ENDS and true:
                job.finished = fact.subject

    def _kueue_in_play(self) -> _Queueing | None:
        """
        The Workload that counts: of those that are neither finished nor gone the one that got furthest.

        That is the one that was admitted, or has quota; else the newest. Without any, the newest of all.
        """
        alive = [queueing for queueing in self.kueue.values() if not queueing.finished and not queueing.gone]
        if not alive:
            return next(reversed(self.kueue.values()), None)
        return max(reversed(alive), key=lambda one: (one.admitted, one.quota))

    def _is_over(self, stays: Stays) -> bool:
        # A PodGroup is Completed for a moment whenever its job replaces all pods: ask the job.
        if self.kueue:
            return all(queueing.finished or queueing.gone for queueing in self.kueue.values())
        if self.jobs:
            return all(job.finished or job.gone for job in self.jobs.values())
        if self.groups:
            groups = self.groups.values()
            told = all(group.gone or group.phase in {*_FINISHED_PHASES, _OVER} for group in groups)
            return told or (
                all(group.silent for group in groups) and stays.nothing_left(single=self.root_is_pod)
            )
        return stays.nothing_left(single=self.root_is_pod)

    def _kueue_state(self, queueing: _Queueing, stays: Stays) -> tuple[State, str] | None:
        if queueing.evicted and (stays.holding or queueing.quota):
            return State.DRAINING, queueing.eviction_reason
        if stays.holding:
            return None
        if not queueing.active:
            return State.HELD, "Deactivated"
        if queueing.evicted and queueing.requeued is False:
            return State.BACKOFF, queueing.eviction_reason
        if not queueing.quota:
            return State.QUEUED, queueing.quota_reason
        if not queueing.admitted:
            return State.CHECKING, "QuotaReserved"
        return (State.RUNNING, "") if not self.pods_observed else None

    def _other_state(self, stays: Stays) -> tuple[State, str] | None:
        open_jobs = [job for job in self.jobs.values() if not job.finished and not job.gone]
        if open_jobs and all(job.suspended for job in open_jobs):
            if stays.holding:
                return State.DRAINING, "Suspended"
            return (State.QUEUED, "Suspended") if self.queue_label else (State.HELD, "Suspended")
        if stays.holding:
            return None
        if stays.held_back:
            return State.HELD, "SchedulingGated"
        phases = [group.phase for group in self.groups.values() if not group.gone]
        if phases and all(phase in ("", "Pending") for phase in phases):
            return State.QUEUED, "Pending"
        if not self.pods_observed and (self.jobs or any(phase is not None for phase in phases)):
            return State.RUNNING, ""
        return None


def _no_controller(facts: WorkloadFacts, pods: tuple[PodCourse, ...]) -> bool:
    """Whether nobody makes its pods anew: a pod of its own, or a gang of such pods."""
    if facts.top_jobs or not pods:
        return False
    if facts.queueing:
        return all(pod.body is not None and pod.body.owner is None for pod in pods)
    return len(pods) == 1 and pods[0].uid == facts.uid


def _uncounted(queueing: _Queueing, body: objects.Workload, history: History) -> list[Eviction]:
    """Evictions that Kueue counted by reason and that no condition showed: one row for each reason."""
    at_ms = next(d.from_ms for d in history.descriptions if d.body is body)
    found = []
    for reason, count in body.evictions.items():
        if reason == SLICE_REPLACED:
            continue
        missing = count - queueing.by_reason[_counted_reason(reason)]
        if missing <= 0:
            continue
        queueing.by_reason[_counted_reason(reason)] = count
        preempted = reason == "Preempted"
        found.append(
            Eviction(
                at_ms=at_ms,
                preempted=preempted,
                reason=reason,
                mechanism=Mechanism.KUEUE_OTHER,
                preemptor_uid="",
                attempt=0,
                missed=missing - 1,
                detail="known by Kueue's counter only",
            )
        )
    evicted = sum(count for reason, count in body.evictions.items() if reason != SLICE_REPLACED)
    queueing.counted = max(queueing.counted, evicted)
    return found


def _counted_reason(reason: str) -> str:
    """Kueue counts all deactivations as one reason; its condition says which it was."""
    return "Deactivated" if reason.startswith("Deactivated") else reason
