"""Jobs, Workloads, Pods, Nodes and Events as the API server shows them, from the simulator's state."""

from dataclasses import dataclass, field
from random import Random

from sample_data.fortnight.demand import Course
from sample_data.fortnight.lives import Life, LivePod
from sample_data.fortnight.site import PRIORITIES
from sample_data.parts import Json, container_status, deletion, job_owner, pod_spec
from sample_data.site import new_uid
from sample_data.stamps import micro_stamp, stamp
from sample_data.tape import Tape

_IMAGE = "registry.example/work:12"
CHECKPOINT = "gpuledger.io/last-checkpoint-time"


@dataclass(slots=True)
class Scribe:
    """Writes objects to the tape, in the state in which they are."""

    tape: Tape
    rng: Random
    _seen: set[str] = field(default_factory=set)

    def job(self, life: Life, at_ms: int, *, gone: bool = False) -> None:
        """The Job as it is."""
        self.write(at_ms, "jobs", _job(life), gone=gone)

    def workload(self, life: Life, at_ms: int, *, gone: bool = False) -> None:
        """The Kueue Workload as it is."""
        self.write(at_ms, "workloads", _workload(life), gone=gone)

    def pod(self, life: Life, pod: LivePod, at_ms: int, *, gone: bool = False) -> None:
        """A pod as it is."""
        self.write(at_ms, "pods", _pod(life, pod), gone=gone)

    def write(self, at_ms: int, stream: str, obj: Json, *, gone: bool = False) -> None:
        """Any object; the first time that it is seen it is added."""
        uid = obj["metadata"]["uid"]
        event_type = "DELETED" if gone else "MODIFIED" if uid in self._seen else "ADDED"
        self._seen.add(uid)
        self.tape.write(at_ms, event_type, {stream: obj})

    def stand(self, stream: str, obj: Json) -> None:
        """An object that was there before the recording."""
        self._seen.add(obj["metadata"]["uid"])
        self.tape.stand(stream, obj)

    def tell_pod(self, life: Life, pod: LivePod, at_ms: int, *, reason: str, note: str) -> None:
        """An Event of the scheduler or, for a crash, of the kubelet."""
        about = {"kind": "Pod", "apiVersion": "v1", "name": pod.name, "uid": pod.uid}
        reporter = "kubelet" if reason == "BackOff" else "default-scheduler"
        self._event(life, about, at_ms, reason=reason, note=note, reporter=reporter)

    def tell_workload(self, life: Life, at_ms: int, *, reason: str, note: str) -> None:
        """An Event of Kueue."""
        about = {
            "kind": "Workload",
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "name": life.workload_name,
            "uid": life.uid,
        }
        self._event(life, about, at_ms, reason=reason, note=note, reporter="kueue-admission")

    def _event(self, life: Life, about: Json, at_ms: int, *, reason: str, note: str, reporter: str) -> None:
        uid, namespace = new_uid(self.rng), life.request.namespace
        warning = reason in ("BackOff", "FailedScheduling", "Pending")
        self.write(
            at_ms,
            "core-events",
            {
                "metadata": {
                    "name": f"{about['name']}.{uid[:8]}",
                    "namespace": namespace,
                    "uid": uid,
                    "creationTimestamp": stamp(at_ms),
                },
                "involvedObject": {**about, "namespace": namespace},
                "reason": reason,
                "message": note,
                "type": "Warning" if warning else "Normal",
                "eventTime": micro_stamp(at_ms),
                "reportingComponent": reporter,
                "reportingInstance": f"{reporter}-0",
                "action": reason,
            },
        )


def _job(life: Life) -> Json:
    request = life.request
    status: Json = {"conditions": life.job_conditions} if life.job_conditions else {}
    active = sum(pod.phase in ("Pending", "Running") for pod in life.current())
    if active and life.complete_ms is None:
        status["active"] = active
    if life.crashed:
        status["failed"] = life.crashed
    if life.job_started_ms is not None:
        status["startTime"] = stamp(life.job_started_ms)
    if life.complete_ms is not None:
        status[life.outcome] = request.pods
        if life.outcome == "succeeded":
            status["completionTime"] = stamp(life.complete_ms)
    return {
        "metadata": {
            "name": request.name,
            "namespace": request.namespace,
            "uid": life.job_uid,
            "creationTimestamp": stamp(life.submitted_ms),
            "labels": {
                "kueue.x-k8s.io/queue-name": "main",
                "kueue.x-k8s.io/priority-class": request.priority_class,
                "user": request.user,
            },
        },
        "spec": {
            "parallelism": request.pods,
            "completions": request.pods,
            "completionMode": "NonIndexed",
            "backoffLimit": {Course.CRASH_LOOPS: 60, Course.RETRIES: 6}.get(request.course, 0),
            "suspend": life.suspended,
            "template": {"metadata": {"labels": {"user": request.user}}, "spec": _pod_spec(life)},
        },
        "status": status,
    }


def _workload(life: Life) -> Json:
    request = life.request
    status: Json = {}
    if life.admitted_ms is not None and life.complete_ms is None:
        status["admission"] = {
            "clusterQueue": life.queue,
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": request.pods,
                    "flavors": {request.resource: request.flavor},
                    "resourceUsage": {request.resource: str(request.total)},
                }
            ],
        }
    if life.conditions:
        status["conditions"] = life.conditions
    if life.evicted:
        evictions = [{"reason": "Preempted", "underlyingCause": "", "count": life.evicted}]
        status["schedulingStats"] = {"evictions": evictions}
    if life.past_execution_seconds:
        status["accumulatedPastExecutionTimeSeconds"] = life.past_execution_seconds
    template = {"metadata": {"labels": {"user": request.user}}, "spec": _pod_spec(life)}
    return {
        "metadata": {
            "name": life.workload_name,
            "namespace": request.namespace,
            "uid": life.uid,
            "creationTimestamp": stamp(life.submitted_ms),
            "labels": {"kueue.x-k8s.io/job-uid": life.job_uid},
            "ownerReferences": [job_owner(life.request.name, life.job_uid)],
        },
        "spec": {
            "active": True,
            "queueName": "main",
            "priority": PRIORITIES[request.priority_class],
            "priorityClassRef": {
                "group": "kueue.x-k8s.io",
                "kind": "WorkloadPriorityClass",
                "name": request.priority_class,
            },
            "podSets": [{"name": "main", "count": request.pods, "template": template}],
        },
        "status": status,
    }


def _pod(life: Life, pod: LivePod) -> Json:
    labels = {"user": life.request.user}
    metadata: Json = {
        "name": pod.name,
        "namespace": life.request.namespace,
        "uid": pod.uid,
        "creationTimestamp": stamp(pod.created_ms),
        "labels": labels,
    }
    annotations = {}
    if not life.bare:
        labels |= {
            "batch.kubernetes.io/controller-uid": life.job_uid,
            "batch.kubernetes.io/job-name": life.request.name,
            "kueue.x-k8s.io/podset": "main",
        }
        annotations["kueue.x-k8s.io/workload"] = life.workload_name
        metadata["ownerReferences"] = [job_owner(life.request.name, life.job_uid)]
    if pod.checkpoint_ms is not None:
        annotations[CHECKPOINT] = stamp(pod.checkpoint_ms)
    if annotations:
        metadata["annotations"] = annotations
    if pod.deletion_ms is not None:
        metadata |= deletion(pod.deletion_ms)
    spec = _pod_spec(life) | {"priority": PRIORITIES[life.request.priority_class]}
    if pod.node:
        spec["nodeName"] = pod.node
    status: Json = {"phase": pod.phase, "qosClass": "Burstable", "conditions": pod.conditions}
    if pod.state:
        status["startTime"] = stamp(pod.bound_ms or pod.created_ms)
        container = container_status(
            _IMAGE, ready=pod.ready, restarts=pod.restarts, state=pod.state, last_state=pod.last_state
        )
        status["containerStatuses"] = [container]
    return {"metadata": metadata, "spec": spec, "status": status}


def _pod_spec(life: Life) -> Json:
    request = life.request
    return pod_spec(
        _IMAGE,
        {request.resource: str(request.gpus)},
        cpu="8",
        memory="64Gi",
        pool=request.flavor,
        restarts=request.course is Course.CRASH_LOOPS,
        priority_class=request.priority_class,
    )
