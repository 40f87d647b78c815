"""What the texts of schedulers say of a preemption: who did it and by which rule."""

import re

from domain.facts import EventSighting, Transition
from domain.workload import Mechanism

# Kueue writes "Preempted to accommodate a workload (UID: x, JobUID: y) due to" and its rule.
_KUEUE_PREEMPTOR = re.compile(r"accommodate a workload \(UID: ([^,)]+)")
# kube-scheduler's event on the victim: "Preempted by pod <uid> on node <name>".
_SCHEDULER_PREEMPTOR = re.compile(r"Preempted by (?:pod |podgroup )?([0-9a-f-]{36})")

# Longest text first: the third contains the second.
_KUEUE_RULES = (
    ("prioritization in the ClusterQueue", Mechanism.KUEUE_IN_CLUSTER_QUEUE),
    ("reclamation within the cohort while borrowing", Mechanism.KUEUE_RECLAIM_WHILE_BORROWING),
    ("reclamation within the cohort", Mechanism.KUEUE_RECLAIM),
    ("Fair Sharing within the cohort", Mechanism.KUEUE_FAIR_SHARING),
)
_KUEUE_REASONS = {
    "InClusterQueue": Mechanism.KUEUE_IN_CLUSTER_QUEUE,
    "InCohortReclamation": Mechanism.KUEUE_RECLAIM,
    "InCohortFairSharing": Mechanism.KUEUE_FAIR_SHARING,
    "InCohortReclaimWhileBorrowing": Mechanism.KUEUE_RECLAIM_WHILE_BORROWING,
}
_DISRUPTIONS = {
    "PreemptionByScheduler": Mechanism.KUBE_SCHEDULER,
    "DeletionByTaintManager": Mechanism.TAINT,
    "EvictionByEvictionAPI": Mechanism.EVICTION_API,
    "DeletionByPodGC": Mechanism.POD_GC,
    "TerminationByKubelet": Mechanism.KUBELET,
    # Of jobs from tables of other schedulers; their own word is the detail.
    "PreemptedByBatchScheduler": Mechanism.BATCH_SCHEDULER,
    "Requeued": Mechanism.REQUEUED,
    "NodeFailure": Mechanism.NODE_FAILURE,
}
INFRASTRUCTURE = frozenset({Mechanism.TAINT, Mechanism.POD_GC, Mechanism.NODE_FAILURE})
# Kueue puts a Workload in the place of another one when an elastic job grows or shrinks: nobody goes.
SLICE_REPLACED = "WorkloadSliceReplaced"


def kueue_mechanism(reason: str, message: str) -> Mechanism:
    """Kueue's rule: the Preempted condition's reason, else what the message says."""
    by_text = (mechanism for text, mechanism in _KUEUE_RULES if text in message)
    return _KUEUE_REASONS.get(reason) or next(by_text, Mechanism.KUEUE_OTHER)


def kueue_preemptor(message: str) -> str:
    """Uid of the preempting Workload; empty where the message names none."""
    match = _KUEUE_PREEMPTOR.search(message)
    return match.group(1) if match else ""


def disruption_mechanism(condition: Transition) -> Mechanism | None:
    """
    Who disrupts a pod, by its DisruptionTarget condition.

    Volcano writes the same reason as kube-scheduler; only its message tells them apart.
    """
    mechanism = _DISRUPTIONS.get(condition.reason)
    if mechanism is Mechanism.KUBE_SCHEDULER and condition.detail.startswith("volcano:"):
        return Mechanism.VOLCANO
    return mechanism


def scheduler_preemptor(events: tuple[EventSighting, ...], pod_uid: str) -> str:
    """Uid of the pod for which kube-scheduler preempted this one; empty where no event says."""
    for event in events:
        if event.regarding_uid == pod_uid and event.reason == "Preempted":
            match = _SCHEDULER_PREEMPTOR.search(event.note)
            if event.related_uid or match:
                return event.related_uid or (match.group(1) if match else "")
    return ""
