"""
A watch stream of Pods as an API server sends it: of the size, the fields and the life of real ones.

A training pod of Kueue passes through eight events: added, bound, its sandbox made, running, ended, let go
by its job, and after a while marked and deleted. An event has 6.7 KB on average; the greater part is what
nobody needs who keeps the books of GPUs: managed fields, volumes, tolerations, environment.

As in recordings of real API servers, binding writes the topology of the node among the labels (Kubernetes
1.35 and later), and one event in eight changes nothing that is kept: the job takes its finalizer away. In
the recordings it is 11 % to 14 % of 26,000 and of 800 events under Kueue, 2 % without a queue.
"""

import json
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from domain.window import MS_PER_SECOND, format_instant

START_MS: Final = 1_796_000_000_000
_POD_EVERY_MS: Final = 250
_STEPS: Final = {
    "created": 0,
    "bound": 1,
    "sandbox": 3,
    "running": 9,
    "ended": 300,
    "released": 301,
    "marked": 330,
}
# What each event shows, and how many seconds after the creation.
_LIFE: Final = (
    ("ADDED", "created", 0),
    ("MODIFIED", "bound", 1),
    ("MODIFIED", "sandbox", 3),
    ("MODIFIED", "running", 9),
    ("MODIFIED", "ended", 300),
    ("MODIFIED", "released", 301),
    ("MODIFIED", "marked", 330),
    ("DELETED", "marked", 331),
)
_ENVIRONMENT: Final = {
    "NCCL_DEBUG": "WARN", "NCCL_IB_HCA": "mlx5_0,mlx5_1,mlx5_2,mlx5_3", "OMP_NUM_THREADS": "12",
    "HF_HOME": "/data/cache/huggingface", "WANDB_MODE": "offline", "TORCH_DISTRIBUTED_DEBUG": "OFF",
    "MASTER_PORT": "29500", "WORLD_SIZE": "64", "DATA_DIR": "/data/sets/crawl-2026-09",
}  # fmt: skip
_MANAGED: Final = {
    "kube-controller-manager": {
        "f:metadata": {
            "f:annotations": {".": {}, "f:kueue.x-k8s.io/workload": {}},
            "f:finalizers": {".": {}, 'v:"batch.kubernetes.io/job-tracking"': {}},
            "f:generateName": {},
            "f:labels": {
                ".": {}, "f:app": {}, "f:batch.kubernetes.io/controller-uid": {},
                "f:batch.kubernetes.io/job-name": {}, "f:controller-uid": {}, "f:job-name": {},
                "f:kueue.x-k8s.io/podset": {}, "f:kueue.x-k8s.io/queue-name": {}, "f:team": {}, "f:user": {},
            },
            "f:ownerReferences": {".": {}, 'k:{"uid":"@job_uid"}': {}},
        },
        "f:spec": {
            "f:containers": {
                'k:{"name":"trainer"}': {
                    ".": {}, "f:command": {}, "f:env": {".": {}, **{
                        f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}}
                        for name in _ENVIRONMENT
                    }},
                    "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
                    "f:resources": {".": {}, "f:limits": {".": {}, "f:nvidia.com/gpu": {}}, "f:requests": {
                        ".": {}, "f:cpu": {}, "f:memory": {}, "f:nvidia.com/gpu": {},
                    }},
                    "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {},
                    "f:volumeMounts": {".": {}, 'k:{"mountPath":"/data"}': {".": {}, "f:mountPath": {}}},
                },
            },
            "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:nodeSelector": {}, "f:priorityClassName": {},
            "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {},
            "f:terminationGracePeriodSeconds": {}, "f:tolerations": {}, "f:volumes": {".": {}},
        },
    },
    "kubelet": {
        "f:status": {
            "f:conditions": {
                f'k:{{"type":"{name}"}}': {
                    ".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {},
                }
                for name in ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
            },
            "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:startTime": {},
        }
    },
}  # fmt: skip


class Event(NamedTuple):
    """One event of a watch, and when it was received."""

    observed_ms: int
    type: str
    object: bytes

    @property
    def line(self) -> bytes:
        """As the API server sends it."""
        return b'{"type":"%s","object":%s}' % (self.type.encode(), self.object)


def pod_events(pods: int) -> Iterator[Event]:
    """Every event of so many pods in the order of time; some 1,300 of them live at once."""
    waiting: list[Event] = []
    version = 1_000_000
    for number in range(pods + 1):
        for event in pod_life(number, START_MS + number * _POD_EVERY_MS) if number < pods else ():
            heappush(waiting, event)
        until_ms = START_MS + number * _POD_EVERY_MS if number < pods else 1 << 62
        while waiting and waiting[0].observed_ms <= until_ms:
            event = heappop(waiting)
            version += 1
            yield event._replace(object=event.object.replace(b"@version", b"%d" % version))


def pod_life(number: int, at_ms: int, length_ms: int = 300 * MS_PER_SECOND) -> Iterator[Event]:
    """The events of a pod that is made at an instant and ends so much later; each needs its version."""
    longer = length_ms // MS_PER_SECOND - _STEPS["ended"]
    steps = {
        step: seconds + (longer if seconds >= _STEPS["ended"] else 0) for step, seconds in _STEPS.items()
    }
    for event_type, step, seconds in _LIFE:
        later = seconds + (longer if seconds >= _STEPS["ended"] else 0)
        body = json.dumps(_pod(number, step, at_ms, steps), separators=(",", ":"))
        body = body.replace("@job_uid", _job_uid(number))
        yield Event(at_ms + later * MS_PER_SECOND + 40, event_type, body.encode())


def _job_uid(number: int) -> str:
    return f"7a1e0000-0000-4000-8000-{number // 8:012x}"


def _pod(number: int, step: str, at_ms: int, steps: dict[str, int]) -> dict[str, Any]:
    def stamp(of: str) -> str:
        return format_instant(at_ms // 1000 * 1000 + steps[of] * MS_PER_SECOND)[:19] + "Z"

    reached = {name for name, seconds in steps.items() if seconds <= steps[step]}
    team, job = f"team-{number // 8 % 12}", f"pretrain-{number // 8:06d}"
    metadata: dict[str, Any] = {
        "name": f"{job}-{number % 8}-x{number % 97:02d}k{number % 89:02d}",
        "generateName": f"{job}-{number % 8}-",
        "namespace": team,
        "uid": f"5f1e0000-0000-4000-8000-{number:012x}",
        "resourceVersion": "@version",
        "generation": 1,
        "creationTimestamp": stamp("created"),
        "labels": {
            "app": "pretrain", "team": team, "user": f"user-{number // 8 % 60}",
            "batch.kubernetes.io/controller-uid": "@job_uid", "batch.kubernetes.io/job-name": job,
            "controller-uid": "@job_uid", "job-name": job,
            "kueue.x-k8s.io/queue-name": f"{team}-queue", "kueue.x-k8s.io/podset": "main",
        },
        "annotations": {"kueue.x-k8s.io/workload": f"job-{job}-3f2c1"},
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "@job_uid",
            "controller": True, "blockOwnerDeletion": True,
        }],
        "finalizers": ["batch.kubernetes.io/job-tracking"],
        "managedFields": [
            {
                "manager": manager, "operation": "Update", "apiVersion": "v1", "time": stamp("created"),
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            }
            for manager, fields in _MANAGED.items()
        ],
    }  # fmt: skip
    if "bound" in reached:
        zone = f"zone-{number % 1000 // 250}"
        metadata["labels"] |= {"topology.kubernetes.io/region": "north", "topology.kubernetes.io/zone": zone}
    if "released" in reached:
        del metadata["finalizers"]
    if "marked" in reached:
        metadata |= {"deletionTimestamp": stamp("marked"), "deletionGracePeriodSeconds": 0}
    return {
        "kind": "Pod", "apiVersion": "v1", "metadata": metadata,
        "spec": _spec(number, bound="bound" in reached), "status": _status(number, reached, stamp),
    }  # fmt: skip


def _spec(number: int, *, bound: bool) -> dict[str, Any]:
    token = f"kube-api-access-{number % 9973:05d}"
    spec: dict[str, Any] = {
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": f"sets-{number % 12}"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
            {"name": token, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
                    "apiVersion": "v1", "fieldPath": "metadata.namespace",
                }}]}},
            ]}},
        ],
        "containers": [{
            "name": "trainer", "image": "registry.example/train/pretrain:2026.11.3",
            "command": ["torchrun", "--nproc-per-node=8", "train.py", "--config", f"runs/{number // 8}.yaml"],
            "env": [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()],
            "resources": {
                "limits": {"cpu": "96", "memory": "900Gi", "nvidia.com/gpu": "8"},
                "requests": {"cpu": "96", "memory": "900Gi", "nvidia.com/gpu": "8"},
            },
            "volumeMounts": [
                {"name": "data", "mountPath": "/data"}, {"name": "shm", "mountPath": "/cache"},
                {"name": token, "readOnly": True,
                 "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
            ],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }],
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "nodeSelector": {"pool": "h100"}, "serviceAccountName": "train", "serviceAccount": "train",
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000}, "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 300},
        ],
        "priorityClassName": "training", "priority": 600000, "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }  # fmt: skip
    return spec | ({"nodeName": f"gpu-node-{number % 1000:04d}"} if bound else {})


def _status(number: int, reached: set[str], stamp: Callable[[str], str]) -> dict[str, Any]:
    if "bound" not in reached:
        return {"phase": "Pending", "qosClass": "Guaranteed"}
    ended, running = "ended" in reached, "running" in reached
    shown = {"PodScheduled": ("True", "bound")}
    if "sandbox" in reached:
        ready = "True" if running and not ended else "False"
        since = "ended" if ended else "running" if running else "sandbox"
        shown |= {
            "PodReadyToStartContainers": ("True", "sandbox"), "Initialized": ("True", "bound"),
            "ContainersReady": (ready, since), "Ready": (ready, since),
        }  # fmt: skip
    status: dict[str, Any] = {
        "phase": "Succeeded" if ended else "Running" if running else "Pending",
        "conditions": [
            {"type": name, "status": told, "lastProbeTime": None, "lastTransitionTime": stamp(since)}
            for name, (told, since) in shown.items()
        ],
        "qosClass": "Guaranteed",
    }
    if "sandbox" not in reached:
        return status
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    if ended:
        state = {"terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": stamp("running"), "finishedAt": stamp("ended"),
            "containerID": f"containerd://{number:064x}",
        }}  # fmt: skip
    elif running:
        state = {"running": {"startedAt": stamp("running")}}
    address = f"10.{number % 200}.{number % 250}.7"
    return status | {
        "hostIP": "10.0.0.11", "podIP": address, "podIPs": [{"ip": address}], "startTime": stamp("bound"),
        "containerStatuses": [{
            "name": "trainer", "state": state, "lastState": {}, "ready": running and not ended,
            "restartCount": 0, "image": "registry.example/train/pretrain:2026.11.3",
            "imageID": "registry.example/train/pretrain@sha256:" + "ab" * 32 if running else "",
            "containerID": f"containerd://{number:064x}" if running else "", "started": running and not ended,
        }],
    }  # fmt: skip
