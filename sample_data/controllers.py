"""The Job controller and Kueue: from a submitted Job to quota, to pods, to its end."""

from dataclasses import dataclass, field
from functools import partial
from random import Random

from sample_data.agenda import Agenda
from sample_data.demand import Course, Request
from sample_data.kubelets import Kubelets
from sample_data.lives import Life
from sample_data.objects import News, Scribe
from sample_data.parts import set_condition
from sample_data.quotas import Quotas, Verdict
from sample_data.site import COHORT, PRIORITIES, new_uid
from sample_data.stamps import MS_PER_SECOND

_KUEUE = "kueue-admission"
_DIGITS = str.maketrans("", "", "0123456789")
_SETTLED_AFTER_MS = 1_000


@dataclass(slots=True)
class JobSide:
    """Plays users, the Job controller and Kueue."""

    agenda: Agenda
    scribe: Scribe
    rng: Random
    kubelets: Kubelets
    quotas: Quotas = field(default_factory=Quotas)
    lives: list[Life] = field(default_factory=list)

    def submit(self, request: Request, at_ms: int) -> None:
        """A user submits."""
        uid = new_uid(self.rng)
        life = Life(
            request=request,
            uid=uid,
            job_uid=new_uid(self.rng),
            workload_name=f"job-{request.name}-{uid[:5]}",
            submitted_ms=at_ms,
        )
        self.lives.append(life)
        if life.bare:
            if not request.gate:
                life.queued_ms.append(at_ms)
            self.kubelets.create(life, at_ms)
            return
        self.scribe.job(life, at_ms)
        set_condition(
            life.job_conditions,
            at_ms,
            {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"},
        )
        self.scribe.job(life, at_ms + 15)
        self.scribe.workload(life, at_ms + 30)
        self._tell_job(
            life, at_ms + 32, "CreatedWorkload", f"Created Workload: {request.team}/{life.workload_name}"
        )
        life.queued_ms.append(at_ms)
        self.agenda.at(at_ms + 50, partial(self._enqueue, life))
        if request.cancel_ms is not None:
            self.agenda.at(at_ms + request.cancel_ms - request.submit_ms, partial(self.cancel, life))

    def cycle(self, at_ms: int) -> None:
        """Kueue looks at everything that is pending, the highest class and the oldest first."""
        pending = [life for life in self.lives if life.pending]
        pending.sort(key=lambda life: (-PRIORITIES[life.request.priority_class], life.submitted_ms))
        for life in pending:
            verdict = self.quotas.verdict(life)
            if verdict.fits:
                self._admit(life, at_ms)
                continue
            self._refuse(life, at_ms, verdict)
            for victim in verdict.victims:
                self._evict(victim, at_ms + 20, life)

    def running(self, life: Life, at_ms: int) -> None:
        """All pods of the workload run: it ends by itself later."""
        life.first_running_ms = life.first_running_ms or at_ms
        request = life.request
        if not life.bare:
            self._ready(life, at_ms + 40)
            self.scribe.job(life, at_ms + 30)
        if request.course in (Course.CRASH_LOOPS, Course.CANCELLED):
            return
        ends_ms = at_ms + request.run_ms
        if request.until_ms is not None:
            ends_ms = life.submitted_ms + request.until_ms - request.submit_ms
        self.agenda.at(ends_ms, partial(self._end, life, life.attempt))

    def ended(self, life: Life, at_ms: int, *, failed: bool) -> None:
        """All pods ended: so does the Job, then the Workload, then the quota is free."""
        life.outcome = "failed" if failed else "succeeded"
        life.ended_ms = at_ms
        if life.bare:
            return
        life.counted = life.outcome
        life.complete_ms = at_ms
        reason, message = (
            ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
            if failed
            else ("CompletionsReached", "Reached expected number of succeeded pods")
        )
        set_condition(
            life.job_conditions,
            at_ms + 80,
            {
                "type": "Failed" if failed else "Complete",
                "status": "True",
                "reason": reason,
                "message": message,
            },
        )
        self.scribe.job(life, at_ms + 80)
        if failed:
            self._tell_job(life, at_ms + 82, reason, message, controller=True)
        else:
            self._tell_job(life, at_ms + 82, "Completed", "Job completed", controller=True)
        finished = {"type": "Finished", "status": "True", "reason": "Failed" if failed else "Succeeded"}
        set_condition(life.conditions, at_ms + 120, {**finished, "message": message})
        self.scribe.workload(life, at_ms + 120)
        self.agenda.at(at_ms + 120, partial(self._free, life))
        if life.request.keep_ms is not None:
            self.agenda.at(at_ms + 80 + life.request.keep_ms, partial(self._remove, life))

    def drained(self, life: Life, at_ms: int) -> None:
        """Evicted or deleted pods are gone: the quota is free, an evicted workload queues again."""
        if life.gone:
            released = [pod.released_ms for pod in life.pods if pod.released_ms is not None]
            life.ended_ms = max(released, default=life.ended_ms)
            self._free(life, at_ms)
            return
        life.draining = False
        life.suspended = True
        suspended = {
            "type": "Suspended",
            "status": "True",
            "reason": "JobSuspended",
            "message": "Job suspended",
        }
        set_condition(life.job_conditions, at_ms, suspended)
        life.job_started_ms = None
        self.scribe.job(life, at_ms)
        life.past_execution_seconds += (at_ms + 100 - (life.admitted_ms or at_ms)) // MS_PER_SECOND
        life.admitted_ms = None
        message = next(entry["message"] for entry in life.conditions if entry["type"] == "Evicted")
        for kind, status, reason, text in (
            ("QuotaReserved", "False", "Pending", message),
            ("Admitted", "False", "NoReservation", "The workload has no reservation"),
            ("Requeued", "True", "Preempted", message),
        ):
            condition = {"type": kind, "status": status, "reason": reason, "message": text}
            set_condition(life.conditions, at_ms + 100, condition)
        self.scribe.workload(life, at_ms + 100)
        life.queued_ms.append(at_ms + 100)
        life.pending = True
        self.agenda.at(at_ms + 100, partial(self._free, life))

    def cancel(self, life: Life, at_ms: int) -> None:
        """Its user deletes the Job, if it has not ended before."""
        if life.ended_ms is not None or life.gone:
            return
        # Not amid the steps of an admission: they are written ahead.
        settled_ms = (life.admitted_ms or life.submitted_ms) + _SETTLED_AFTER_MS
        if at_ms < settled_ms:
            self.agenda.at(settled_ms, partial(self.cancel, life))
            return
        life.gone = True
        life.outcome = "cancelled"
        life.ended_ms = at_ms
        life.pending = False
        self.scribe.job(life, at_ms, gone=True)
        self.kubelets.delete(life, at_ms + 40)
        self.scribe.workload(life, at_ms + 60, gone=True)

    def _enqueue(self, life: Life, at_ms: int) -> None:
        life.pending = True
        self.cycle(at_ms)

    def _admit(self, life: Life, at_ms: int) -> None:
        self.quotas.reserve(life)
        life.pending = False
        life.admitted_ms = at_ms
        queue = life.request.team
        reserved = f"Quota reserved in ClusterQueue {queue}"
        for kind, message in (("QuotaReserved", reserved), ("Admitted", "The workload is admitted")):
            condition = {"type": kind, "status": "True", "reason": kind, "message": message}
            set_condition(life.conditions, at_ms, condition)
        for past in [entry for entry in life.conditions if entry["type"] in ("Evicted", "Preempted")]:
            again = {"type": past["type"], "status": "False", "reason": "QuotaReserved"}
            set_condition(life.conditions, at_ms, {**again, "message": f"Previously: {past['message']}"})
        self.scribe.workload(life, at_ms)
        waited = (at_ms - life.queued_ms[-1]) // MS_PER_SECOND
        self._tell(life, at_ms + 2, "QuotaReserved", f"{reserved}, wait time since queued was {waited}s")
        self._tell(
            life,
            at_ms + 3,
            "Admitted",
            f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s",
        )
        life.suspended = False
        self.scribe.job(life, at_ms + 60)
        life.job_started_ms = at_ms + 90
        resumed = {"type": "Suspended", "status": "False", "reason": "JobResumed", "message": "Job resumed"}
        set_condition(life.job_conditions, at_ms + 90, resumed)
        self.scribe.job(life, at_ms + 90)
        self.agenda.at(at_ms + 110, partial(self._create, life))

    def _create(self, life: Life, at_ms: int) -> None:
        self.kubelets.create(life, at_ms)

    def _refuse(self, life: Life, at_ms: int, verdict: Verdict) -> None:
        old = next((entry for entry in life.conditions if entry["type"] == "QuotaReserved"), None)
        # Only another kind of reason is written down, not each change of a number in it.
        if old is not None and old["message"].translate(_DIGITS) == verdict.message.translate(_DIGITS):
            return
        condition = {
            "type": "QuotaReserved",
            "status": "False",
            "reason": "Pending",
            "message": verdict.message,
        }
        set_condition(life.conditions, at_ms, condition)
        self.scribe.workload(life, at_ms)
        self._tell(life, at_ms + 2, "Pending", verdict.message, warning=True)

    def _evict(self, victim: Life, at_ms: int, preemptor: Life) -> None:
        victim.draining = True
        victim.evicted += 1
        team = preemptor.request.team
        path = f"/{COHORT}/{team}"
        message = (
            f"Preempted to accommodate a workload (UID: {preemptor.uid}, JobUID: {preemptor.job_uid}) due to "
            f"prioritization in the ClusterQueue; preemptor path: {path}; preemptee path: {path}"
        )
        for kind, reason in (("Evicted", "Preempted"), ("Preempted", "InClusterQueue")):
            condition = {"type": kind, "status": "True", "reason": reason, "message": message}
            set_condition(victim.conditions, at_ms, condition)
        self.scribe.workload(victim, at_ms)
        victim.preemptions.append(
            {"at": at_ms / MS_PER_SECOND, "preemptor": preemptor.uid, "mechanism": "InClusterQueue"}
        )
        self._tell(victim, at_ms + 2, "EvictedDueToPreempted", message)
        self._tell(victim, at_ms + 3, "Preempted", message)
        note = f"Preempted workload {team}/{victim.workload_name} (UID: {victim.uid}) in ClusterQueue {team}"
        self._tell(preemptor, at_ms + 3, "PreemptedWorkload", note)
        victim.suspended = True
        self.scribe.job(victim, at_ms + 60)
        self.kubelets.delete(victim, at_ms + 80)

    def _ready(self, life: Life, at_ms: int) -> None:
        ready = {"type": "PodsReady", "status": "True", "reason": "Started"}
        message = "All pods reached readiness and the workload is running"
        set_condition(life.conditions, at_ms, {**ready, "message": message})
        self.scribe.workload(life, at_ms)

    def _end(self, life: Life, attempt: int, at_ms: int) -> None:
        if life.gone or life.draining or life.attempt != attempt:
            return
        self.kubelets.end(life, at_ms, failed=life.request.course is Course.FAILS)

    def _free(self, life: Life, at_ms: int) -> None:
        self.quotas.release(life)
        self.agenda.at(at_ms + 10, self.cycle)

    def _remove(self, life: Life, at_ms: int) -> None:
        """The Job's time to live is over."""
        life.gone = True
        self.scribe.job(life, at_ms, gone=True)
        for pod in life.current():
            self.scribe.pod(life, pod, at_ms + 20, gone=True)
        self.scribe.workload(life, at_ms + 40, gone=True)

    def _tell(self, life: Life, at_ms: int, reason: str, note: str, *, warning: bool = False) -> None:
        news = News(
            kind="Workload",
            api_version="kueue.x-k8s.io/v1beta2",
            namespace=life.request.team,
            name=life.workload_name,
            uid=life.uid,
            reason=reason,
            note=note,
            reporter=_KUEUE,
            warning=warning,
        )
        self.scribe.news(at_ms, news)

    def _tell_job(self, life: Life, at_ms: int, reason: str, note: str, *, controller: bool = False) -> None:
        news = News(
            kind="Job",
            api_version="batch/v1",
            namespace=life.request.team,
            name=life.request.name,
            uid=life.job_uid,
            reason=reason,
            note=note,
            reporter="job-controller" if controller else "batch/job-kueue-controller",
        )
        self.scribe.news(at_ms, news)
