"""What is unknown without a kind of object, and what to do about a source that gives trouble."""

from collections.abc import Mapping
from typing import Final

from collector.kube.watch_steps import Outcome
from collector.translator import TRANSLATORS
from collector.visibility import Visible
from domain.facts import ObjectKind
from domain.gpu_sample import GPU_METRICS

# The kind of source that Kueue's visibility API is; no kind of object.
QUEUE_POSITIONS: Final = "Queue positions"
_JOBS: Final = "their pods count as workloads of their own, and the time before there were pods is not seen"
_QUEUES: Final = "queues have no quota: entitlement, lending and quota proposals are unknown"
_CLAIMS: Final = "GPUs of resource claims are not counted"

# Kind -> what cannot be told without it.
MISSING: Final[Mapping[ObjectKind, str]] = {
    ObjectKind.POD: "nothing that holds GPUs is seen: no placement, no held GPUs, no wait that ends",
    ObjectKind.NODE: "capacity, free and unhealthy GPUs, fragmentation and the cost of idle GPUs are unknown",
    ObjectKind.NAMESPACE: "teams that rules take from labels of namespaces are unknown",
    ObjectKind.EVENT: "who preempted whom, why pods do not fit, and denials by quota are unknown",
    ObjectKind.PRIORITY_CLASS: "the priority of classes is unknown: preemptible work is told by names only",
    ObjectKind.RESOURCE_QUOTA: "quotas of namespaces are unknown",
    ObjectKind.JOB: f"Jobs are not seen: {_JOBS}",
    ObjectKind.CRON_JOB: "Jobs that a CronJob made are not told as such",
    ObjectKind.WORKLOAD: "time in Kueue's queues, reservations and evictions are not seen",
    ObjectKind.CLUSTER_QUEUE: _QUEUES,
    ObjectKind.LOCAL_QUEUE: "workloads are not told by the cluster queue that a local queue leads to",
    ObjectKind.COHORT: "cohort trees are unknown: only queues of one cohort name lend to each other",
    ObjectKind.RESOURCE_FLAVOR: "which nodes a flavor stands for is unknown: quota is not told by pool",
    ObjectKind.WORKLOAD_PRIORITY_CLASS: "the priority of Kueue's classes is unknown",
    ObjectKind.ADMISSION_CHECK: "which controller an admission waits for is unknown",
    ObjectKind.VOLCANO_QUEUE: "Volcano's queues have no quota",
    ObjectKind.VOLCANO_POD_GROUP: "gangs of Volcano are not seen: their wait begins with their pods",
    ObjectKind.VOLCANO_JOB: f"Volcano's jobs are not seen: {_JOBS}",
    ObjectKind.PLUGIN_POD_GROUP: "gangs of scheduler-plugins are not seen",
    ObjectKind.ELASTIC_QUOTA: "elastic quotas are unknown",
    ObjectKind.KAI_QUEUE: "KAI's queues have no quota",
    ObjectKind.KAI_POD_GROUP: "gangs of KAI are not seen: their wait begins with their pods",
    ObjectKind.POD_GROUP: "gangs of the scheduler's own pod groups are not seen",
    ObjectKind.JOB_SET: f"JobSets are not seen: {_JOBS}",
    ObjectKind.RAY_JOB: f"RayJobs are not seen: {_JOBS}",
    ObjectKind.RAY_CLUSTER: f"RayClusters are not seen: {_JOBS}",
    ObjectKind.TRAIN_JOB: f"TrainJobs are not seen: {_JOBS}",
    ObjectKind.PYTORCH_JOB: f"PyTorchJobs are not seen: {_JOBS}",
    ObjectKind.TF_JOB: f"TFJobs are not seen: {_JOBS}",
    ObjectKind.MPI_JOB: f"MPIJobs are not seen: {_JOBS}",
    ObjectKind.XGBOOST_JOB: f"XGBoostJobs are not seen: {_JOBS}",
    ObjectKind.PADDLE_JOB: f"PaddleJobs are not seen: {_JOBS}",
    ObjectKind.JAX_JOB: f"JAXJobs are not seen: {_JOBS}",
    ObjectKind.APP_WRAPPER: f"AppWrappers are not seen: {_JOBS}",
    ObjectKind.RESOURCE_CLAIM: _CLAIMS,
    ObjectKind.RESOURCE_SLICE: "capacity of nodes that offer GPUs by resource slices is unknown",
    ObjectKind.DEVICE_CLASS: f"which claims are for GPUs is unknown: {_CLAIMS}",
}
_QUOTAS: Final = (
    ObjectKind.CLUSTER_QUEUE,
    ObjectKind.COHORT,
    ObjectKind.VOLCANO_QUEUE,
    ObjectKind.KAI_QUEUE,
    ObjectKind.ELASTIC_QUOTA,
)
_NODES: Final = (ObjectKind.NODE, ObjectKind.RESOURCE_SLICE)
# Table of the store -> the kinds without which it lacks rows.
MADE_OF: Final[Mapping[str, tuple[ObjectKind, ...]]] = {
    "node_span": _NODES,
    "node_device": _NODES,
    "node_price": _NODES,
    "pool_span": (*_NODES, *_QUOTAS, ObjectKind.RESOURCE_FLAVOR),
    "workload": (ObjectKind.POD,),
    "holding": (ObjectKind.POD,),
    "pod_device": (ObjectKind.POD, ObjectKind.RESOURCE_CLAIM),
    "span": (ObjectKind.WORKLOAD,),
    # Macros over both tables, which name them where nobody can follow.
    "spans_of": (ObjectKind.POD, ObjectKind.WORKLOAD),
    "numbered_waits": (ObjectKind.POD, ObjectKind.WORKLOAD),
    "reservation": (ObjectKind.WORKLOAD,),
    "eviction": (ObjectKind.WORKLOAD, ObjectKind.EVENT),
    "denial": (ObjectKind.EVENT,),
    "queue_span": _QUOTAS,
    "queue_flavor": (ObjectKind.CLUSTER_QUEUE, ObjectKind.RESOURCE_FLAVOR),
    "kueue_terms": (ObjectKind.CLUSTER_QUEUE, ObjectKind.COHORT),
    "quota_use": (ObjectKind.WORKLOAD,),
    "eta_outcomes": (ObjectKind.POD, ObjectKind.WORKLOAD),
    "wait_reasons": (ObjectKind.POD, ObjectKind.WORKLOAD, ObjectKind.EVENT),
    "share_span": _QUOTAS,
    "team_share_span": _QUOTAS,
}
_WITHOUT_SAMPLES: Final = "what its GPUs did is unknown: no activity, no idle time by cause, no wastage"
_OF_SOURCES: Final = {
    GPU_METRICS: _WITHOUT_SAMPLES,
    QUEUE_POSITIONS: "Kueue's own order of its queues is unknown: positions are by our order only",
}
_BY_KIND: Final = {str(translator.kind): translator for translator in reversed(TRANSLATORS)}
# What a trouble's words contain -> what to do; the first that fits counts.
_TROUBLES: Final = (
    (("answered 401",), "the credentials are not accepted: renew them, and reading goes on by itself"),
    (
        ("answered 429",),
        "the API server is overloaded: we wait as it asks; if it lasts, look at who asks much",
    ),
    (("answered 5",), "the API server, or what serves the kind behind it, has trouble: look at its log"),
    (
        ("answered 403",),
        "the account may not do this: grant what deploy/rbac.yaml does",
    ),
    (
        ("<html", "<HTML", "<!DOCTYPE", "<!doctype", "answered 301", "answered 302", "answered 307"),
        (
            "a proxy or a login page answers in the API server's place: correct the server in the kubeconfig,"
            " log in there, or put the server into NO_PROXY"
        ),
    ),
    (
        ("HTTP request to an HTTPS server",),
        "the API server speaks TLS: write https:// in the server of the kubeconfig",
    ),
    (
        ("WRONG_VERSION_NUMBER", "record layer failure", "UNKNOWN_PROTOCOL"),
        (
            "what answers there speaks no TLS: is the server in the kubeconfig the API server's address and "
            "port, or a proxy's?"
        ),
    ),
    (
        ("certificate", "CERTIFICATE"),
        "the certificate is not accepted: renew it, or set certificate-authority in the kubeconfig",
    ),
    (
        ("Failed to resolve", "Name or service not known", "getaddrinfo"),
        "nobody here knows that name: check the server in the kubeconfig, and this machine's DNS",
    ),
    (
        ("ProxyError", "Tunnel connection"),
        "the proxy lets nothing through: correct HTTPS_PROXY or proxy-url, or put the server into NO_PROXY",
    ),
    (
        ("ConnectTimeout", "timed out"),
        "nothing answered in time: check the server in the kubeconfig, and firewalls or the VPN on the way",
    ),
    (
        ("no answer (",),
        "nothing answers at that address: check the server in the kubeconfig, and the network on the way",
    ),
    (
        ("was silent",),
        (
            "the connection died without a word and is made anew; if it happens often, "
            "raise the idle time-out of the load balancer on the way"
        ),
    ),
    (
        ("was restored", "began anew", "from before the list"),
        "the cluster went back to an earlier state and is listed again: nothing to do",
    ),
    (
        ("answered 410", "410 ", "Expired", "too old"),
        (
            "the API server forgot what came before and is listed again; if it happens often, "
            "give serve more CPU or a faster disk"
        ),
    ),
    (("cannot be renewed",), "mend the plug-in or the token file of the kubeconfig; it is tried again"),
)
_OTHER: Final = "look at the API server; it is tried again by itself"
_SAMPLES: Final = "is the address in gpu_metrics right, and does it answer from this machine?"
# The same of sources of GPU metrics.
_TROUBLES_OF_SAMPLES: Final = (
    (
        ("answered in part",),
        (
            "bring back what the server says is away: what may be missing is asked for again, for as long as"
            " gpu_metrics.backfill says"
        ),
    ),
    (
        ("of the future",),
        "the exporter writes stamps that lie ahead: set the clock of its node, or let it write none",
    ),
    (
        ("expected lines such as",),
        (
            "the address in gpu_metrics is not that of dcgm-exporter's /metrics, a login page lies before "
            "it, or the exporter sees no GPU: look at its answer with curl"
        ),
    ),
)


def missing(kind: str) -> str:
    """
    What cannot be told while a kind is not read; empty where nothing depends on it.

    >>> missing("ResourceQuota"), missing("Checkpoint")
    ('quotas of namespaces are unknown', '')
    """
    return _OF_SOURCES[kind] if kind in _OF_SOURCES else MISSING.get(ObjectKind(kind), "")


def remedy(kind: str, last_error: str) -> str:
    """
    What to do about the trouble of a source; empty where there is none.

    >>> remedy("Node", "retry: list /api/v1/nodes: the API server answered 401: Unauthorized")
    'the credentials are not accepted: renew them, and reading goes on by itself'
    >>> remedy("Node", "")
    ''
    """
    if not last_error:
        return ""
    if kind == GPU_METRICS:
        told = (do for words, do in _TROUBLES_OF_SAMPLES if any(word in last_error for word in words))
        return next(told, _SAMPLES)
    if last_error.startswith(f"{Outcome.NOT_INSTALLED}:"):
        return "nothing to do: the cluster does not have it; once it does, it is found within ten minutes"
    if last_error.startswith(f"{Outcome.NO_PERMISSION}:"):
        return _grant(kind)
    return next((do for words, do in _TROUBLES if any(word in last_error for word in words)), _OTHER)


def _grant(kind: str) -> str:
    translator = _BY_KIND.get(kind)
    if kind == QUEUE_POSITIONS:
        return (
            f"grant get of {Visible.resource} of API group {Visible.group}, as deploy/rbac.yaml does, "
            f"or of {Visible.namespaced_resource} in the namespaces that count"
        )
    if translator is None:
        return _OTHER
    group = f"API group {translator.group}" if translator.group else "the core API group"
    return (
        f"grant get, list and watch of {translator.resource} of {group}, as deploy/rbac.yaml does; "
        "tried again by itself"
    )
