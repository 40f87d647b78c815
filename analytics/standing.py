"""Where a workload stands with its queue and its controller, apart from its pods."""

from dataclasses import dataclass, field

from analytics.evictions import kueue_mechanism, kueue_preemptor
from analytics.history import History, WorkloadFacts
from analytics.pods import PodCourse
from analytics.stays import Stays
from domain import objects
from domain.facts import Moment, ObjectKind, Transition
from domain.workload import Eviction, Mechanism, Outcome, State

_FINISHED_PHASES = frozenset({"Completed", "Failed", "Aborted", "Terminated", "Finished"})
_GROUP_KINDS = (ObjectKind.VOLCANO_POD_GROUP, ObjectKind.PLUGIN_POD_GROUP)


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
    counted: int = 0


@dataclass(slots=True)
class Standing:
    """
    The part of the fold that queue and controller write.

    Its state, given the pods (`Stays`), follows the table of section 1 of the definitions.
    """

    pods_observed: bool
    has_job: bool
    root_is_pod: bool
    kueue: dict[str, _Queueing] = field(default_factory=dict)
    preempted_marks: dict[tuple[str, int], Transition] = field(default_factory=dict)
    preemptor_notes: dict[str, str] = field(default_factory=dict)
    phase: str | None = None
    group_gone: bool = False
    suspended: bool | None = None
    suspended_spec: bool | None = None
    queue_label: bool = False
    finished: str = ""
    job_gone: bool = False
    ended_earliest_ms: int | None = None

    @classmethod
    def of(cls, facts: WorkloadFacts, pods: tuple[PodCourse, ...]) -> "Standing":
        """Nothing has happened yet; what never changes is read here."""
        standing = cls(
            pods_observed=facts.pods_observed,
            has_job=bool(facts.jobs),
            root_is_pod=not facts.queueing and not facts.jobs and len(pods) == 1 and pods[0].uid == facts.uid,
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
        if history.kind in _GROUP_KINDS:
            self._take_group(fact)
        else:
            self._take_job(fact)
        return None

    def describe(self, history: History, body: object) -> Eviction | None:
        """A new description; an eviction when a counter grew that no condition explains."""
        if isinstance(body, objects.Workload):
            queueing = self.kueue[history.uid]
            queueing.active = body.active
            return _uncounted(queueing, body, history)
        if isinstance(body, objects.Job):
            if self.suspended_spec is not body.suspend:
                self.suspended = self.suspended_spec = body.suspend
            self.queue_label = bool(body.queue)
        return None

    def state(self, stays: Stays) -> tuple[State, str]:
        """The state after the steps of an instant, with the reason for waiting where one is known."""
        if self._is_over(stays):
            return (State.DRAINING if stays.holding else State.ENDED), ""
        queueing = self._kueue_in_play()
        said = self._kueue_state(queueing, stays) if queueing else self._other_state(stays)
        return said or stays.state()

    def outcome(self, stays: Stays) -> Outcome:
        """How the workload ended."""
        finished = self.finished or next((q.finished for q in self.kueue.values() if q.finished), "")
        if not self.has_job and self.phase in _FINISHED_PHASES:
            finished = self.phase
        if finished in ("Succeeded", "Complete", "Completed", "Finished"):
            return Outcome.SUCCEEDED
        if finished:
            return Outcome.FAILED
        return stays.outcome_of_last()

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
            case "Evicted":
                return self._evicted(queueing, history, fact) if true else None
        return None

    def _evicted(self, queueing: _Queueing, history: History, fact: Transition) -> Eviction | None:
        queueing.evicted, queueing.eviction_reason, queueing.requeued = True, fact.reason, None
        total = fact.amount if fact.amount is not None else queueing.counted + 1
        if total <= queueing.counted:  # the status went back for a moment and shows the same one again
            return None
        missed = max(total - queueing.counted - 1, 0)
        queueing.counted = max(total, queueing.counted)
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
            missed=missed,
            detail=text,
        )

    def _take_group(self, fact: Transition) -> None:
        if fact.moment is Moment.PHASE:
            self.phase = fact.state
        elif fact.moment is Moment.GONE:
            self.group_gone = True
            self.ended_earliest_ms = fact.earliest_ms

    def _take_job(self, fact: Transition) -> None:
        if fact.moment is Moment.GONE:
            self.job_gone = True
            self.ended_earliest_ms = fact.earliest_ms
        elif fact.moment is Moment.PHASE:
            self.finished = fact.state if fact.state in _FINISHED_PHASES else ""
        elif fact.moment is Moment.CONDITION:
            true = fact.state == "True"
            if fact.subject == "Suspended":
                self.suspended = true
            elif fact.subject in ("Complete", "Failed") and true:
                self.finished = fact.subject

    def _kueue_in_play(self) -> _Queueing | None:
        """The Workload that counts: the newest that is neither finished nor gone, else the newest."""
        alive = [queueing for queueing in self.kueue.values() if not queueing.finished and not queueing.gone]
        newest = alive or list(self.kueue.values())
        return newest[-1] if newest else None

    def _is_over(self, stays: Stays) -> bool:
        # A PodGroup is Completed for a moment whenever its job replaces all pods: ask the job.
        if self.kueue:
            return all(queueing.finished or queueing.gone for queueing in self.kueue.values())
        if self.has_job:
            return bool(self.finished) or self.job_gone
        if self.phase is not None or self.group_gone:
            return self.phase in _FINISHED_PHASES or self.group_gone
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
        if self.suspended:
            if stays.holding:
                return State.DRAINING, "Suspended"
            return (State.QUEUED, "Suspended") if self.queue_label else (State.HELD, "Suspended")
        if stays.holding:
            return None
        if self.phase in ("", "Pending"):
            return State.QUEUED, "Pending"
        if stays.held_back:
            return State.HELD, "SchedulingGated"
        if not self.pods_observed and (self.has_job or self.phase is not None):
            return State.RUNNING, ""
        return None


def _uncounted(queueing: _Queueing, body: objects.Workload, history: History) -> Eviction | None:
    total = sum(body.evictions.values())
    missed = total - queueing.counted - 1
    if missed < 0:
        return None
    queueing.counted = total
    at_ms = next(d.from_ms for d in history.descriptions if d.body is body)
    preempted = body.evictions.get("Preempted", 0) > 0
    return Eviction(
        at_ms=at_ms,
        preempted=preempted,
        reason="Preempted" if preempted else max(body.evictions, key=lambda reason: body.evictions[reason]),
        mechanism=Mechanism.KUEUE_OTHER,
        preemptor_uid="",
        attempt=0,
        missed=missed,
        detail="known by Kueue's counter only",
    )
