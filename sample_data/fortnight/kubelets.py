"""The scheduler and the kubelets: from a pod to a node, to a run, to its end."""

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol

from sample_data.agenda import Agenda
from sample_data.fortnight.demand import Course, Request
from sample_data.fortnight.lives import Attempt, Life, LivePod, Run
from sample_data.fortnight.machines import Device, Machines
from sample_data.fortnight.papers import Scribe
from sample_data.fortnight.site import PRIORITIES
from sample_data.parts import Json, set_condition, terminated
from sample_data.site import new_uid
from sample_data.stamps import MS_PER_SECOND, stamp

_BACKOFF_MOST_MS = 300_000
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


class Controllers(Protocol):
    """Who is told of pods."""

    def running(self, life: Life, at_ms: int) -> None:
        """All pods of the workload run."""

    def ended(self, life: Life, at_ms: int, *, failed: bool) -> None:
        """All pods of the workload ended by themselves."""

    def drained(self, life: Life, at_ms: int) -> None:
        """All pods of the workload that were deleted are gone."""

    def crashed_enough(self, life: Life, at_ms: int) -> None:
        """The user has seen its pod crash often enough."""


@dataclass(slots=True)
class Kubelets:
    """Places pods and plays their containers."""

    agenda: Agenda
    scribe: Scribe
    rng: Random
    machines: Machines
    pending: list[tuple[Life, LivePod]] = field(default_factory=list)
    controllers: Controllers = field(init=False)

    def create(self, life: Life, at_ms: int) -> None:
        """Make the pods of the workload's next attempt and try to place them."""
        life.attempts.append(Attempt(number=life.attempt + 1))
        for _ in range(life.request.pods):
            name = life.request.name
            if not life.bare:
                name += "-" + "".join(self.rng.choices(_SUFFIX, k=5))
            uid = life.uid if life.bare else new_uid(self.rng)
            pod = LivePod(uid=uid, name=name, attempt=life.attempt, created_ms=at_ms)
            life.pods.append(pod)
            self.pending.append((life, pod))
            self.scribe.pod(life, pod, at_ms)
        self.agenda.at(at_ms + 15, self.schedule)

    def schedule(self, at_ms: int) -> None:
        """Try every pending pod, the highest class and the oldest first; gangs as a whole."""
        order = sorted(
            self.pending,
            key=lambda entry: (-PRIORITIES[entry[0].request.priority_class], entry[1].created_ms),
        )
        tried: set[tuple[str, str, int]] = set()
        seen: set[str] = set()
        for life, pod in order:
            request = life.request
            together = not request.binds_one_by_one
            if together and life.uid in seen:
                continue
            seen.add(life.uid)
            members = [one for owner, one in order if owner is life] if together else [pod]
            places = self._places(request, len(members), tried)
            for place, member in zip(places, members, strict=False):
                self.pending.remove((life, member))
                self._bind(life, member, at_ms, place)
            for member in members[len(places) :]:
                self._refuse(life, member, at_ms)

    def end(self, life: Life, at_ms: int, *, failed: bool) -> None:
        """All pods of the workload end by themselves."""
        for pod in life.current():
            self._stop(pod, at_ms, exit_code=int(failed))
            self.scribe.pod(life, pod, at_ms + 10)
        self.agenda.at(at_ms + 20, self.schedule)
        self.controllers.ended(life, at_ms, failed=failed)

    def delete(self, life: Life, at_ms: int) -> None:
        """Delete the workload's pods: those with a node stop within their grace."""
        grace_ms = 0
        for pod in list(life.current()):
            if pod.released_ms is not None:
                self.scribe.pod(life, pod, at_ms, gone=True)
                continue
            pod.deletion_ms = at_ms
            if not pod.holds:
                self.pending = [entry for entry in self.pending if entry[1] is not pod]
                self.scribe.pod(life, pod, at_ms, gone=True)
                continue
            pod.drained_from_ms = at_ms
            grace_ms = grace_ms or self.rng.randint(4_000, 26_000)
            self.scribe.pod(life, pod, at_ms)
            self.agenda.at(at_ms + grace_ms, partial(self._gone, life, pod))
        self.agenda.at(at_ms + grace_ms + 200, partial(self._drained, life))

    def checkpoint(self, life: Life, at_ms: int) -> None:
        """The first pod says that it has saved its work."""
        life.checkpoints_ms.append(at_ms)
        pod = next(life.current())
        pod.checkpoint_ms = at_ms
        self.scribe.pod(life, pod, at_ms + 30)

    def lose(self, life: Life, pod: LivePod, at_ms: int) -> None:
        """The pod's node is gone, and the pod with it."""
        pod.released_ms = at_ms
        if pod.runs and pod.runs[-1].end_ms is None:
            pod.runs[-1].end_ms = at_ms
        pod.phase = "Failed"
        self.scribe.pod(life, pod, at_ms + 400, gone=True)

    def _places(self, request: Request, members: int, tried: set[tuple[str, str, int]]) -> list[list[Device]]:
        """Devices for each member, or for none; what did not fit is not tried again in a round."""
        shape = (*request.kind, request.gpus)
        if shape in tried:
            return []
        flavor = self.machines.site.flavors[request.flavor]
        places: list[list[Device]] = []
        for _ in range(members):
            place = self.machines.place(flavor, request.resource, request.gpus)
            if place is None:
                tried.add(shape)
                for taken in places:
                    self.machines.release(taken)
                return []
            places.append(place)
        return places

    def _refuse(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.refused:
            return
        pod.refused = True
        flavor = self.machines.site.flavors[life.request.flavor]
        note = self.machines.refusal(flavor, life.request.resource)
        unschedulable = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": note,
        }
        set_condition(pod.conditions, at_ms, unschedulable)
        self.scribe.pod(life, pod, at_ms)
        self.scribe.tell_pod(life, pod, at_ms + 2, reason="FailedScheduling", note=note)

    def _bind(self, life: Life, pod: LivePod, at_ms: int, devices: list[Device]) -> None:
        pod.devices = devices
        pod.node = devices[0].node
        pod.bound_ms = at_ms
        pod.conditions = [one for one in pod.conditions if one["type"] != "PodScheduled"]
        set_condition(pod.conditions, at_ms, {"type": "PodScheduled", "status": "True"})
        self.scribe.pod(life, pod, at_ms)
        note = f"Successfully assigned {life.request.namespace}/{pod.name} to {pod.node}"
        self.scribe.tell_pod(life, pod, at_ms + 2, reason="Scheduled", note=note)
        if all(other.bound_ms is not None for other in life.current()):
            life.attempts[-1].complete_ms = at_ms
            life.waits_until(at_ms)
        slow = life.request.slow_start
        pull_ms = self.rng.randint(330_000, 720_000) if slow else self.rng.randint(3_000, 90_000)
        self.agenda.at(at_ms + pull_ms, partial(self._start, life, pod))

    def _start(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.deletion_ms is not None or not pod.holds or pod.lost:
            return
        first = not pod.runs
        pod.runs.append(Run(start_ms=at_ms))
        pod.phase = "Running"
        pod.ready = True
        pod.state = {"running": {"startedAt": stamp(at_ms)}}
        self._ready(pod, at_ms, status="True")
        self.scribe.pod(life, pod, at_ms)
        if life.request.course is Course.CRASH_LOOPS:
            self.agenda.at(at_ms + life.request.crash_after_ms, partial(self._crash, life, pod))
        if first and all(other.runs for other in life.current()):
            self.controllers.running(life, at_ms)

    def _crash(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.deletion_ms is not None or not pod.holds or pod.lost:
            return
        backoff_ms = min(10_000 * 2**pod.restarts, _BACKOFF_MOST_MS)
        pod.runs[-1].end_ms, pod.runs[-1].exit_code = at_ms, 1
        pod.last_state = _over(pod, at_ms, exit_code=1)
        pod.restarts += 1
        pod.ready = False
        note = f"back-off {backoff_ms // MS_PER_SECOND}s restarting failed container=main pod={pod.name}"
        pod.state = {"waiting": {"reason": "CrashLoopBackOff", "message": note}}
        self._ready(pod, at_ms, status="False")
        self.scribe.pod(life, pod, at_ms)
        self.scribe.tell_pod(life, pod, at_ms + 5, reason="BackOff", note=note)
        if pod.restarts >= life.request.crashes:
            self.agenda.at(at_ms + backoff_ms // 2, partial(self._give_up, life))
        else:
            self.agenda.at(at_ms + backoff_ms, partial(self._start, life, pod))

    def _give_up(self, life: Life, at_ms: int) -> None:
        self.controllers.crashed_enough(life, at_ms)

    def _gone(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.released_ms is not None:
            return
        self._stop(pod, at_ms, exit_code=143)
        self.scribe.pod(life, pod, at_ms)
        self.scribe.pod(life, pod, at_ms + 50, gone=True)
        self.agenda.at(at_ms + 60, self.schedule)

    def _drained(self, life: Life, at_ms: int) -> None:
        self.controllers.drained(life, at_ms)

    def _stop(self, pod: LivePod, at_ms: int, *, exit_code: int) -> None:
        """The container ends for good and the devices are free."""
        pod.phase = "Failed" if exit_code else "Succeeded"
        pod.ready = False
        if pod.runs and pod.runs[-1].end_ms is None:
            pod.state = _over(pod, at_ms, exit_code=exit_code)
            pod.runs[-1].end_ms, pod.runs[-1].exit_code = at_ms, exit_code
        else:
            # It never ran, or rested in its back-off: the runtime only has the end.
            pod.state = _over(pod, at_ms, exit_code=exit_code, ran=False)
        pod.released_ms = at_ms
        self.machines.release(pod.devices)
        self._ready(pod, at_ms, status="False")

    def _ready(self, pod: LivePod, at_ms: int, *, status: str) -> None:
        set_condition(pod.conditions, at_ms, {"type": "Ready", "status": status})


def _over(pod: LivePod, at_ms: int, *, exit_code: int, ran: bool = True) -> Json:
    reason = "Error" if exit_code else "Completed"
    started_ms = pod.runs[-1].start_ms if ran else None
    return terminated(started_ms, at_ms, exit_code=exit_code, reason=reason)
