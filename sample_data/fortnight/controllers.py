"""The Job controller and Kueue: from a submitted Job to quota, to pods, to its end."""

from dataclasses import dataclass, field
from functools import partial
from random import Random

from sample_data.agenda import Agenda
from sample_data.fortnight.demand import Course, Request
from sample_data.fortnight.kubelets import Kubelets
from sample_data.fortnight.kueue import Quotas, Verdict
from sample_data.fortnight.lives import Json, Life
from sample_data.fortnight.papers import Scribe
from sample_data.fortnight.site import PRIORITIES, ROOT, Kind, Site
from sample_data.parts import set_condition
from sample_data.site import new_uid
from sample_data.stamps import MS_PER_SECOND

# Finished Jobs are removed after this long (`ttlSecondsAfterFinished`).
_KEPT_MS = 3_600_000
_SETTLED_AFTER_MS = 1_000
_WITHIN = ("InClusterQueue", "prioritization in the ClusterQueue")
_RECLAIMED = ("InCohortReclamation", "reclamation within the cohort")


@dataclass(slots=True)
class JobSide:
    """Plays users, the Job controller and Kueue. `teams` are the namespaces' teams of the moment."""

    agenda: Agenda
    scribe: Scribe
    rng: Random
    kubelets: Kubelets
    site: Site
    quotas: Quotas
    teams: dict[str, str]
    lives: list[Life] = field(default_factory=list)
    pending: list[Life] = field(default_factory=list)

    def submit(self, request: Request, at_ms: int) -> None:
        """A user submits."""
        uid = new_uid(self.rng)
        life = Life(
            request=request,
            uid=uid,
            job_uid=new_uid(self.rng),
            workload_name=f"job-{request.name}-{uid[:5]}",
            submitted_ms=at_ms,
            team=self.teams[request.namespace],
            queue=self.site.spaces[request.namespace][1],
        )
        self.lives.append(life)
        life.waits_from(at_ms)
        if request.cancel_ms is not None:
            self.agenda.at(request.cancel_ms, partial(self.cancel, life))
        if life.bare:
            self.kubelets.create(life, at_ms)
            return
        self.scribe.job(life, at_ms)
        self.scribe.workload(life, at_ms + 30)
        self.agenda.at(at_ms + 50, partial(self._enqueue, life))

    def cycle(self, at_ms: int) -> None:
        """Kueue looks at what is pending: who need not borrow first, then the highest class, the oldest."""
        order = sorted(
            self.pending,
            key=lambda life: (
                self.quotas.would_borrow(life),
                -PRIORITIES[life.request.priority_class],
                life.submitted_ms,
            ),
        )
        # What a preemptor waits for is given to nobody else.
        taken: set[Kind] = {life.request.kind for life in self.pending if life.victims}
        refused: set[tuple[str, Kind, int, str]] = set()
        for life in order:
            shape = (life.queue, life.request.kind, life.request.total, life.request.priority_class)
            if life.request.kind in taken or (shape in refused and len(life.conditions) > 0):
                continue
            verdict = self.quotas.verdict(life)
            if verdict.fits:
                self._admit(life, at_ms)
                continue
            self._refuse(life, at_ms, verdict)
            for victim in verdict.victims:
                life.victims += 1
                self._evict(victim, at_ms + 20, life, reclaims=verdict.reclaims)
            if verdict.victims:
                taken.add(life.request.kind)
            refused.add(shape)

    def running(self, life: Life, at_ms: int) -> None:
        """All pods of the workload run: it ends by itself later."""
        life.first_running_ms = life.first_running_ms or at_ms
        request = life.request
        if not life.bare:
            self.scribe.job(life, at_ms + 30)
        if request.course is Course.CRASH_LOOPS:
            return
        left_ms = max(request.run_ms - life.saved_ms, 60_000)
        crashes = request.course is Course.RETRIES and life.crashed < request.crashes
        if crashes:
            left_ms = request.crash_after_ms
        self.agenda.at(at_ms + left_ms, partial(self._end, life, life.attempt))
        if request.checkpoint_ms:
            step_ms, saved_ms = request.checkpoint_ms, life.saved_ms
            for number in range(1, left_ms // step_ms + 1):
                done_ms = number * step_ms
                self.agenda.at(at_ms + done_ms, partial(self._save, life, life.attempt, saved_ms + done_ms))

    def ended(self, life: Life, at_ms: int, *, failed: bool) -> None:
        """All pods ended: so does the Job, the Workload, then the quota is free; or it is tried again."""
        life.attempts[-1].outcome = "failed" if failed else "succeeded"
        if failed and life.request.course is Course.RETRIES:
            life.crashed += 1
            self.scribe.job(life, at_ms + 80)
            again_ms = 10_000 * 2 ** (life.crashed - 1) * 6
            self.agenda.at(at_ms + again_ms, partial(self._again, life, life.evicted))
            return
        life.outcome = life.attempts[-1].outcome
        life.ended_ms = at_ms
        if life.bare:
            self.agenda.at(at_ms + _KEPT_MS, partial(self._remove, life))
            return
        life.complete_ms = at_ms
        kind, reason, message = (
            ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
            if failed
            else ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        )
        ended = {"type": kind, "status": "True", "reason": reason, "message": message}
        set_condition(life.job_conditions, at_ms + 80, ended)
        self.scribe.job(life, at_ms + 80)
        finished = {"type": "Finished", "status": "True", "reason": "Failed" if failed else "Succeeded"}
        set_condition(life.conditions, at_ms + 120, {**finished, "message": message})
        self.scribe.workload(life, at_ms + 120)
        self.agenda.at(at_ms + 120, partial(self._free, life))
        self.agenda.at(at_ms + 80 + _KEPT_MS, partial(self._remove, life))

    def drained(self, life: Life, at_ms: int) -> None:
        """Evicted or deleted pods are gone: the quota is free, an evicted workload queues again."""
        if life.gone:
            released = [pod.released_ms for pod in life.pods if pod.released_ms is not None]
            life.ended_ms = max([*released, life.ended_ms or at_ms])
            self._free(life, at_ms)
            return
        life.draining = False
        life.suspended = True
        life.job_started_ms = None
        suspended = {"type": "Suspended", "status": "True", "reason": "JobSuspended"}
        set_condition(life.job_conditions, at_ms, {**suspended, "message": "Job suspended"})
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
        life.waits_from(at_ms + 100)
        self.pending.append(life)
        self.agenda.at(at_ms + 100, partial(self._free, life))

    def crashed_enough(self, life: Life, at_ms: int) -> None:
        """Its user deletes the Job."""
        self.cancel(life, at_ms)

    def cancel(self, life: Life, at_ms: int) -> None:
        """Its user deletes the Job, if it has not ended before."""
        if life.ended_ms is not None or life.gone or life.draining or any(pod.lost for pod in life.current()):
            return
        # Not amid the steps of an admission: they are written ahead.
        settled_ms = (life.admitted_ms or life.submitted_ms) + _SETTLED_AFTER_MS
        if at_ms < settled_ms:
            self.agenda.at(settled_ms, partial(self.cancel, life))
            return
        life.gone = True
        life.outcome = "cancelled"
        if any(pod.holds for pod in life.current()):
            life.attempts[-1].outcome = "cancelled"
        life.ended_ms = at_ms
        life.waits_until(at_ms)
        if life in self.pending:
            self.pending.remove(life)
        self.scribe.job(life, at_ms, gone=True)
        self.kubelets.delete(life, at_ms + 40)
        self.scribe.workload(life, at_ms + 60, gone=True)

    def replace(self, life: Life, at_ms: int) -> None:
        """The node of its only pod is gone: the Job makes another one."""
        life.attempts[-1].outcome = "infra_failed"
        life.waits_from(at_ms)
        self.kubelets.create(life, at_ms)

    def _again(self, life: Life, evicted: int, at_ms: int) -> None:
        if life.gone or life.evicted != evicted:
            return
        for pod in life.current():
            self.scribe.pod(life, pod, at_ms, gone=True)
        life.waits_from(at_ms)
        self.kubelets.create(life, at_ms)

    def _save(self, life: Life, attempt: int, done_ms: int, at_ms: int) -> None:
        if self._goes_on(life, attempt):
            life.saved_ms = done_ms
            self.kubelets.checkpoint(life, at_ms)

    def _goes_on(self, life: Life, attempt: int) -> bool:
        """Whether that attempt still runs, undisturbed."""
        runs = all(pod.holds and not pod.lost for pod in life.current())
        return runs and life.attempt == attempt and not (life.gone or life.draining)

    def _enqueue(self, life: Life, at_ms: int) -> None:
        self.pending.append(life)
        self.cycle(at_ms)

    def _admit(self, life: Life, at_ms: int) -> None:
        self.quotas.reserve(life)
        self.pending.remove(life)
        life.admitted_ms = at_ms
        life.creating = True
        reserved = f"Quota reserved in ClusterQueue {life.queue}"
        for kind, message in (("QuotaReserved", reserved), ("Admitted", "The workload is admitted")):
            condition = {"type": kind, "status": "True", "reason": kind, "message": message}
            set_condition(life.conditions, at_ms, condition)
        for past in [entry for entry in life.conditions if entry["type"] in ("Evicted", "Preempted")]:
            again = {"type": past["type"], "status": "False", "reason": "QuotaReserved"}
            set_condition(life.conditions, at_ms, {**again, "message": f"Previously: {past['message']}"})
        self.scribe.workload(life, at_ms)
        life.suspended = False
        life.job_started_ms = at_ms + 90
        resumed = {"type": "Suspended", "status": "False", "reason": "JobResumed", "message": "Job resumed"}
        set_condition(life.job_conditions, at_ms + 90, resumed)
        self.scribe.job(life, at_ms + 90)
        self.agenda.at(at_ms + 110, partial(self._create, life))

    def _create(self, life: Life, at_ms: int) -> None:
        life.creating = False
        self.kubelets.create(life, at_ms)

    def _refuse(self, life: Life, at_ms: int, verdict: Verdict) -> None:
        old = next((entry for entry in life.conditions if entry["type"] == "QuotaReserved"), None)
        # Only the first refusal of a stay in the queue is written down, and a preemption that begins.
        if old is not None and old["message"].startswith("couldn't") and not verdict.victims:
            return
        condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending"}
        set_condition(life.conditions, at_ms, {**condition, "message": verdict.message})
        self.scribe.workload(life, at_ms)
        self.scribe.tell_workload(life, at_ms + 2, reason="Pending", note=verdict.message)

    def _evict(self, victim: Life, at_ms: int, preemptor: Life, *, reclaims: bool) -> None:
        victim.draining = True
        victim.evicted += 1
        reason, rule = _RECLAIMED if reclaims else _WITHIN
        message = (
            f"Preempted to accommodate a workload (UID: {preemptor.uid}, JobUID: {preemptor.job_uid}) due to "
            f"{rule}; preemptor path: {self._path(preemptor)}; preemptee path: {self._path(victim)}"
        )
        for kind, because in (("Evicted", "Preempted"), ("Preempted", reason)):
            condition: Json = {"type": kind, "status": "True", "reason": because, "message": message}
            set_condition(victim.conditions, at_ms, condition)
        self.scribe.workload(victim, at_ms)
        victim.preemptions.append(
            {"at": at_ms / MS_PER_SECOND, "preemptor": preemptor.uid, "mechanism": reason}
        )
        # One that has no pod on a node yet is thrown out of its quota, not off a GPU.
        if any(pod.holds for pod in victim.current()):
            victim.attempts[-1].outcome = "preempted"
        victim.waits_until(at_ms)
        self.scribe.tell_workload(victim, at_ms + 3, reason="Preempted", note=message)
        victim.suspended = True
        self.scribe.job(victim, at_ms + 60)
        self.kubelets.delete(victim, at_ms + 80)
        self.agenda.at(at_ms + 27_000, partial(self._room_made, preemptor))

    def _room_made(self, preemptor: Life, at_ms: int) -> None:
        preemptor.victims -= 1
        if not preemptor.victims:
            self.cycle(at_ms)

    def _path(self, life: Life) -> str:
        queue = next(one for one in self.site.queues if one.name == life.queue)
        return f"/{ROOT}/{queue.cohort}/{queue.name}"

    def _end(self, life: Life, attempt: int, at_ms: int) -> None:
        if self._goes_on(life, attempt):
            course = life.request.course
            again = course is Course.RETRIES and life.crashed < life.request.crashes
            self.kubelets.end(life, at_ms, failed=again or course is Course.FAILS)

    def _free(self, life: Life, at_ms: int) -> None:
        self.quotas.release(life)
        self.agenda.at(at_ms + 10, self.cycle)

    def _remove(self, life: Life, at_ms: int) -> None:
        """Its time to live is over."""
        life.gone = True
        if life.bare:
            for pod in life.current():
                self.scribe.pod(life, pod, at_ms, gone=True)
            return
        self.scribe.job(life, at_ms, gone=True)
        for pod in life.current():
            self.scribe.pod(life, pod, at_ms + 20, gone=True)
        self.scribe.workload(life, at_ms + 40, gone=True)
