"""Faults of GPUs, and other lists, for the pages."""

from typing import Any

from tests.dashboard import fake_alerts


def faults(at: str) -> list[dict[str, Any]]:
    """A GPU that fell off the bus under a workload, and a node with another driver."""
    place = {"cluster": "north", "node": "gpu-node-03", "gpu_model": "H100", "at": at}
    hit = {"pod_uid": "pod-2-0", "workload_uid": "uid-7", "workload": "train-llm-7", "namespace": "nlp"}
    nobody = dict.fromkeys((*hit, "team"), "")
    off = {"device": "GPU-3", "kind": "xid", "xid": 79, "words": "GPU has fallen off the bus"}
    driver = {"device": "", "kind": "driver", "xid": 0, "words": "590.11"}
    return [
        {**place, **off, "at_earliest": at, **hit, "team": "nlp"},
        {**place, **driver, "at_earliest": None, **nobody},
    ]


def denial(at: str) -> dict[str, Any]:
    """A quota that refused pods."""
    told = {"denied_by": "ResourceQuota", "rule": "gpus", "text": "exceeded quota: gpus", "count": 14}
    return {**told, **dict.fromkeys(("requested", "used", "limited"), ""), "first_at": at, "last_at": at}


def kueue_checks(at: str) -> list[dict[str, Any]]:
    """A figure on which Kueue and we agree, and one on which we do not."""
    place = {"cluster": "north", "source": "http://kueue:8080", "seen_at": at, "error": "", "queue": "prod"}
    return [
        {**place, "figure": "pending workloads", "flavor": "", "theirs": 12, "ours": 12, "differs": False},
        {**place, "figure": "GPUs reserved", "flavor": "h100", "theirs": 64, "ours": 48, "differs": True},
    ]


def of_a_workload(at: str) -> dict[str, Any]:
    """What the document of a workload holds of all this, and of its checkpoints."""
    saved = {"at": at, "step": 1200, "detail": "3.2 GB", "told_by": "push"}
    told = {"gpu_faults": faults(at)[:1], "denials": [denial(at)], "queue_position": None}
    return {"checkpoints": [saved], **told}


LISTS = {"gpu-faults": faults, "kueue-checks": kueue_checks, "alerts": fake_alerts.alerts}
# What the head of a list says beside, by its path and the scenario.
HEADS = {("alerts", "never evaluated"): {"hints": [fake_alerts.NEVER]}}
