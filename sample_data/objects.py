"""Jobs, Workloads, Pods and Events as the API server shows them, from the simulator's state."""

from dataclasses import dataclass, field
from random import Random

from sample_data.demand import Course
from sample_data.lives import Life, LivePod
from sample_data.parts import Json, container_status, deletion, job_owner, pod_spec
from sample_data.site import PRIORITIES, new_uid
from sample_data.stamps import micro_stamp, stamp
from sample_data.tape import Tape

_IMAGE = "registry.example/work:7"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A Kubernetes Event about an object; `reporter` is `kubelet`, `kueue-admission` or the like."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    reason: str
    note: str
    reporter: str
    warning: bool = False
    host: str = ""
    related: Json | None = None


@dataclass(slots=True)
class Scribe:
    """Writes objects to the tape, in the state in which they are."""

    tape: Tape
    rng: Random
    _seen: set[str] = field(default_factory=set)
    _news: dict[tuple[str, str], Json] = field(default_factory=dict)

    def job(self, life: Life, at_ms: int, *, gone: bool = False) -> None:
        """The Job as it is."""
        self._write(at_ms, "jobs", job(life), gone=gone)

    def workload(self, life: Life, at_ms: int, *, gone: bool = False) -> None:
        """The Kueue Workload as it is."""
        self._write(at_ms, "workloads", workload(life), gone=gone)

    def pod(self, life: Life, pod_: LivePod, at_ms: int, *, gone: bool = False) -> None:
        """A pod as it is."""
        self._write(at_ms, "pods", pod(life, pod_), gone=gone)

    def node(self, node: Json, at_ms: int) -> None:
        """A node as it is."""
        self.tape.write(at_ms, "MODIFIED", {"nodes": node})

    def news(self, at_ms: int, news: News) -> None:
        """An Event; a scheduler that repeats itself makes a series of the one it wrote first."""
        known = self._news.get((news.uid, news.reason)) if news.reason == "FailedScheduling" else None
        if known is not None:
            count = known.get("series", {"count": 1})["count"] + 1
            known["series"] = {"count": count, "lastObservedTime": micro_stamp(at_ms)}
            known["message"] = news.note
            self.tape.write(at_ms, "MODIFIED", {"core-events": known, "events": _new_view(known)})
            return
        core = _event(news, at_ms, new_uid(self.rng))
        self._news[(news.uid, news.reason)] = core
        self.tape.write(at_ms, "ADDED", {"core-events": core, "events": _new_view(core)})

    def _write(self, at_ms: int, stream: str, obj: Json, *, gone: bool) -> None:
        uid = obj["metadata"]["uid"]
        event_type = "DELETED" if gone else "MODIFIED" if uid in self._seen else "ADDED"
        self._seen.add(uid)
        self.tape.write(at_ms, event_type, {stream: obj})


def job(life: Life) -> Json:
    """The batch/v1 Job."""
    request = life.request
    status: Json = {"conditions": life.job_conditions} if life.job_conditions else {}
    active = sum(pod_.phase in ("Pending", "Running") for pod_ in life.current())
    if active and life.complete_ms is None:
        status |= {"active": active, "ready": sum(pod_.ready for pod_ in life.current())}
    if life.job_started_ms is not None:
        status["startTime"] = stamp(life.job_started_ms)
    if life.complete_ms is not None:
        status[life.counted] = request.pods
        if life.counted == "succeeded":
            status["completionTime"] = stamp(life.complete_ms)
    spec = {
        "parallelism": request.pods,
        "completions": request.pods,
        "completionMode": "NonIndexed",
        "backoffLimit": 60 if request.course is Course.CRASH_LOOPS else 0,
        "suspend": life.suspended,
        "template": {"metadata": {"labels": _pod_labels(life)}, "spec": _pod_spec(life)},
    }
    if request.keep_ms is not None:
        spec["ttlSecondsAfterFinished"] = request.keep_ms // 1000
    return {
        "metadata": {
            "name": request.name,
            "namespace": request.team,
            "uid": life.job_uid,
            "creationTimestamp": stamp(life.submitted_ms),
            "labels": {
                "kueue.x-k8s.io/queue-name": request.queue,
                "kueue.x-k8s.io/priority-class": request.priority_class,
                "user": request.user,
            },
        },
        "spec": spec,
        "status": status,
    }


def workload(life: Life) -> Json:
    """The Kueue Workload, v1beta2."""
    request = life.request
    status: Json = {}
    if life.admitted_ms is not None and life.complete_ms is None:
        status["admission"] = {
            "clusterQueue": request.team,
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": request.pods,
                    "flavors": {request.resource: request.flavor},
                    "resourceUsage": {request.resource: str(request.total)},
                }
            ],
        }
    elif life.complete_ms is None:
        resources = {request.resource: str(request.total)}
        status["resourceRequests"] = [{"name": "main", "resources": resources}]
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
            "namespace": request.team,
            "uid": life.uid,
            "creationTimestamp": stamp(life.submitted_ms),
            "labels": {"kueue.x-k8s.io/job-uid": life.job_uid},
            "ownerReferences": [job_owner(life.request.name, life.job_uid)],
        },
        "spec": {
            "active": True,
            "queueName": request.queue,
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


def pod(life: Life, pod_: LivePod) -> Json:
    """A Pod."""
    metadata: Json = {
        "name": pod_.name,
        "namespace": life.request.team,
        "uid": pod_.uid,
        "creationTimestamp": stamp(pod_.created_ms),
        "labels": _pod_labels(life),
    }
    if not life.bare:
        metadata["annotations"] = {"kueue.x-k8s.io/workload": life.workload_name}
        metadata["ownerReferences"] = [job_owner(life.request.name, life.job_uid)]
    if pod_.deletion_ms is not None:
        metadata |= deletion(pod_.deletion_ms)
    spec = _pod_spec(life) | {"priority": PRIORITIES[life.request.priority_class]}
    if pod_.gates:
        spec["schedulingGates"] = [{"name": gate} for gate in pod_.gates]
    if pod_.node:
        spec["nodeName"] = pod_.node
    status: Json = {"phase": pod_.phase, "qosClass": "Burstable", "conditions": pod_.conditions}
    if pod_.pulling_ms is not None:
        status["startTime"] = stamp(pod_.pulling_ms)
        container = container_status(
            _IMAGE, ready=pod_.ready, restarts=pod_.restarts, state=pod_.state, last_state=pod_.last_state
        )
        status["containerStatuses"] = [container]
    return {"metadata": metadata, "spec": spec, "status": status}


def _pod_labels(life: Life) -> dict[str, str]:
    if life.bare:
        return {"user": life.request.user}
    return {
        "batch.kubernetes.io/controller-uid": life.job_uid,
        "batch.kubernetes.io/job-name": life.request.name,
        "kueue.x-k8s.io/podset": "main",
        "user": life.request.user,
    }


def _pod_spec(life: Life) -> Json:
    request = life.request
    return pod_spec(
        _IMAGE,
        {request.resource: str(request.gpus)},
        cpu="4",
        memory="32Gi",
        pool=request.flavor,
        restarts=request.course is Course.CRASH_LOOPS,
        priority_class=request.priority_class,
    )


def _event(news: News, at_ms: int, uid: str) -> Json:
    # Kubelets and the Job controller still write the old fields, schedulers and Kueue the new ones.
    old = news.reporter in ("kubelet", "job-controller")
    core: Json = {
        "metadata": {
            "name": f"{news.name}.{uid[:8]}{uid[9:13]}",
            "namespace": news.namespace,
            "uid": uid,
            "creationTimestamp": stamp(at_ms),
        },
        "involvedObject": {
            "kind": news.kind,
            "apiVersion": news.api_version,
            "namespace": news.namespace,
            "name": news.name,
            "uid": news.uid,
        },
        "reason": news.reason,
        "message": news.note,
        "type": "Warning" if news.warning else "Normal",
        "source": {"component": news.reporter, **({"host": news.host} if news.host else {})} if old else {},
        "firstTimestamp": stamp(at_ms) if old else None,
        "lastTimestamp": stamp(at_ms) if old else None,
        "eventTime": None if old else micro_stamp(at_ms),
        "reportingComponent": news.reporter,
        "reportingInstance": news.host if old else f"{news.reporter}-0",
    }
    if old:
        core["count"] = 1
    else:
        core["action"] = news.reason
    if news.related:
        core["related"] = news.related
    return core


def _new_view(core: Json) -> Json:
    """The same Event as `events.k8s.io/v1` shows it."""
    view = {
        "metadata": core["metadata"],
        "eventTime": core["eventTime"],
        "reportingController": core["reportingComponent"],
        "reportingInstance": core["reportingInstance"],
        "action": core.get("action", ""),
        "reason": core["reason"],
        "regarding": core["involvedObject"],
        "note": core["message"],
        "type": core["type"],
        "deprecatedSource": core["source"],
        "deprecatedFirstTimestamp": core["firstTimestamp"],
        "deprecatedLastTimestamp": core["lastTimestamp"],
    }
    if "count" in core:
        view["deprecatedCount"] = core["count"]
    return view | {key: core[key] for key in ("series", "related") if key in core}
