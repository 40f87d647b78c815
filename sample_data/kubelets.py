"""The scheduler and the kubelets: from a pod to a node, to a run, to its end."""

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Protocol

from sample_data.agenda import Agenda
from sample_data.demand import Course
from sample_data.lives import Life, LivePod
from sample_data.machines import Machines
from sample_data.objects import News, Scribe
from sample_data.parts import set_condition, terminated
from sample_data.site import PRIORITIES, new_uid
from sample_data.stamps import MS_PER_SECOND, stamp

_SCHEDULER = "default-scheduler"
_BACKOFF_MOST_MS = 300_000
_CRASH_AFTER_MS = 40_000
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


class Controllers(Protocol):
    """Who is told of pods."""

    def running(self, life: Life, at_ms: int) -> None:
        """All pods of the workload run."""

    def ended(self, life: Life, at_ms: int, *, failed: bool) -> None:
        """All pods of the workload ended by themselves."""

    def drained(self, life: Life, at_ms: int) -> None:
        """All pods of the workload that were deleted are gone."""


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
        life.attempt += 1
        for _ in range(life.request.pods):
            gates = [life.request.gate] if life.request.gate else []
            name = life.request.name
            if not life.bare:
                name += "-" + "".join(self.rng.choices(_SUFFIX, k=5))
            pod = LivePod(
                uid=new_uid(self.rng), name=name, attempt=life.attempt, created_ms=at_ms, gates=gates
            )
            if life.bare:
                pod.uid = life.uid
            life.pods.append(pod)
            if gates:
                message = "Scheduling is blocked due to non-empty scheduling gates"
                _scheduled(pod, at_ms, status="False", reason="SchedulingGated", message=message)
            else:
                self.pending.append((life, pod))
            self.scribe.pod(life, pod, at_ms)
        self.agenda.at(at_ms + 15, self.schedule)

    def schedule(self, at_ms: int) -> None:
        """Try every pending pod, the highest class and the oldest first."""
        order = sorted(
            self.pending,
            key=lambda entry: (-PRIORITIES[entry[0].request.priority_class], entry[1].created_ms),
        )
        for life, pod in order:
            node = self.machines.place(life.request.hardware, life.request.gpus)
            if node is None:
                self._refuse(life, pod, at_ms)
            else:
                self.pending.remove((life, pod))
                self._bind(life, pod, at_ms, node)

    def end(self, life: Life, at_ms: int, *, failed: bool) -> None:
        """All pods of the workload end by themselves."""
        for pod in life.current():
            code = 1 if failed else 0
            self._stop(life, pod, at_ms, exit_code=code, reason="Error" if failed else "Completed")
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
            grace_ms = grace_ms or self.rng.randint(3_000, 24_000)
            self.scribe.pod(life, pod, at_ms)
            self._tell(
                life, pod, at_ms + 30, reason="Killing", note="Stopping container main", reporter="kubelet"
            )
            self.agenda.at(at_ms + grace_ms, partial(self._gone, life, pod))
        self.agenda.at(at_ms + grace_ms + 200, partial(self._drained, life))

    def _refuse(self, life: Life, pod: LivePod, at_ms: int) -> None:
        pod.refusals += 1
        note = self.machines.refusal(life.request.hardware)
        if pod.refusals == 1:
            _scheduled(pod, at_ms, status="False", reason="Unschedulable", message=note)
            self.scribe.pod(life, pod, at_ms)
        self._tell(
            life, pod, at_ms + 2, reason="FailedScheduling", note=note, reporter=_SCHEDULER, warning=True
        )

    def _bind(self, life: Life, pod: LivePod, at_ms: int, node: str) -> None:
        pod.node = node
        pod.bound_ms = at_ms
        _scheduled(pod, at_ms, status="True")
        self.scribe.pod(life, pod, at_ms)
        note = f"Successfully assigned {life.request.team}/{pod.name} to {node}"
        self._tell(life, pod, at_ms + 2, reason="Scheduled", note=note, reporter=_SCHEDULER)
        if all(other.bound_ms is not None for other in life.current()):
            life.placed_ms.append(at_ms)
        self.agenda.at(at_ms + 300, partial(self._pull, life, pod))

    def _pull(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.deletion_ms is not None:
            return
        pod.pulling_ms = at_ms
        pod.state = {"waiting": {"reason": "ContainerCreating"}}
        for kind in ("PodReadyToStartContainers", "Initialized"):
            set_condition(pod.conditions, at_ms, {"type": kind, "status": "True"})
        self._unready(pod, at_ms, "ContainersNotReady")
        self.scribe.pod(life, pod, at_ms)
        self.agenda.at(at_ms + self.rng.randint(2_000, 20_000), partial(self._start, life, pod))

    def _start(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.deletion_ms is not None or pod.released_ms is not None:
            return
        first = pod.first_started_ms is None
        pod.first_started_ms = pod.first_started_ms or at_ms
        pod.started_ms = at_ms
        pod.phase = "Running"
        pod.ready = True
        pod.state = {"running": {"startedAt": stamp(at_ms)}}
        pod.runs.append((at_ms, None))
        for kind in ("Ready", "ContainersReady"):
            set_condition(pod.conditions, at_ms, {"type": kind, "status": "True"})
        self.scribe.pod(life, pod, at_ms)
        self._tell(life, pod, at_ms + 5, reason="Started", note="Started container main", reporter="kubelet")
        if life.request.course is Course.CRASH_LOOPS:
            self.agenda.at(at_ms + _CRASH_AFTER_MS, partial(self._crash, life, pod))
        if first and all(other.started_ms is not None for other in life.current()):
            self.controllers.running(life, at_ms)

    def _crash(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.deletion_ms is not None:
            return
        backoff_ms = min(10_000 * 2**pod.restarts, _BACKOFF_MOST_MS)
        pod.last_state = terminated(pod.started_ms, at_ms, exit_code=1, reason="Error")
        pod.runs[-1] = (pod.runs[-1][0], at_ms)
        pod.restarts += 1
        pod.ready = False
        note = f"back-off {backoff_ms // MS_PER_SECOND}s restarting failed container=main pod={pod.name}"
        pod.state = {"waiting": {"reason": "CrashLoopBackOff", "message": note}}
        self._unready(pod, at_ms, "ContainersNotReady")
        self.scribe.pod(life, pod, at_ms)
        self._tell(life, pod, at_ms + 5, reason="BackOff", note=note, reporter="kubelet", warning=True)
        self.agenda.at(at_ms + backoff_ms, partial(self._start, life, pod))

    def _gone(self, life: Life, pod: LivePod, at_ms: int) -> None:
        if pod.pulling_ms is not None:
            self._stop(life, pod, at_ms, exit_code=143, reason="Error")
            self.scribe.pod(life, pod, at_ms)
        else:
            pod.released_ms = at_ms + 50
            self.machines.release(pod.node, life.request.gpus)
        self.scribe.pod(life, pod, at_ms + 50, gone=True)
        self.agenda.at(at_ms + 60, self.schedule)

    def _drained(self, life: Life, at_ms: int) -> None:
        self.controllers.drained(life, at_ms)

    def _stop(self, life: Life, pod: LivePod, at_ms: int, *, exit_code: int, reason: str) -> None:
        """The container ends for good and the devices are free."""
        pod.phase = "Succeeded" if exit_code == 0 else "Failed"
        pod.ready = False
        if "running" in pod.state:
            pod.state = terminated(pod.started_ms, at_ms, exit_code=exit_code, reason=reason)
            pod.runs[-1] = (pod.runs[-1][0], at_ms)
        else:
            # It never ran, or rested in its back-off: the runtime only has the end.
            pod.state = {
                "terminated": {
                    "exitCode": exit_code,
                    "reason": reason,
                    "startedAt": None,
                    "finishedAt": stamp(at_ms),
                }
            }
        pod.released_ms = at_ms
        self.machines.release(pod.node, life.request.gpus)
        self._unready(pod, at_ms, "PodCompleted" if exit_code == 0 else "PodFailed")

    def _unready(self, pod: LivePod, at_ms: int, reason: str) -> None:
        for kind in ("Ready", "ContainersReady"):
            set_condition(pod.conditions, at_ms, {"type": kind, "status": "False", "reason": reason})

    def _tell(  # noqa: PLR0913 - an Event has that many parts
        self,
        life: Life,
        pod: LivePod,
        at_ms: int,
        *,
        reason: str,
        note: str,
        reporter: str,
        warning: bool = False,
    ) -> None:
        host = pod.node if reporter == "kubelet" else ""
        news = News(
            kind="Pod",
            api_version="v1",
            namespace=life.request.team,
            name=pod.name,
            uid=pod.uid,
            reason=reason,
            note=note,
            reporter=reporter,
            warning=warning,
            host=host,
        )
        self.scribe.news(at_ms, news)


def _scheduled(pod: LivePod, at_ms: int, *, status: str, reason: str = "", message: str = "") -> None:
    condition = {"type": "PodScheduled", "status": status}
    if reason:
        condition |= {"reason": reason, "message": message}
    set_condition(pod.conditions, at_ms, condition)
