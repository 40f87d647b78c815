"""Why the workload that waits does so: its own quota is full, and one of its own team holds some of it."""

from datetime import datetime
from typing import Any

SOONER = "Ask for 4 GPUs instead of 8: there are room and quota for it now. Assumed: it can work with 4."
STARTS = "It starts in about 1 h 30 min (80 %: 40 min to 3 h), from 100 like workloads that met such a queue."
TEXT = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu, 8 more needed"


def _finding(reason: str, sentence: str, remedy: str, **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"since": None, "source": "placement", "evidence": {}, "text": "", "blockers": []}
    return {"reason": reason, "sentence": sentence, "remedy": remedy, **told, **more}


def answer(as_of: datetime) -> dict[str, Any]:
    """As the API tells a viewer who may not see all of those that hold quota."""
    quota = _finding(
        "QUOTA_EXHAUSTED",
        "The quota of nlp-batch is used up.",
        "Wait until work of the same queue ends.",
        since="2026-11-01T09:00:00.000Z",
        source="quota",
        evidence={"asked": 8, "nominal": 24},
        text=TEXT,
    )
    gpus = _finding("GPU_SHORTAGE", "It needs 8 GPUs, and 6 are free.", "Ask for fewer.")
    holder = {"uid": "uid-7", "namespace": "nlp", "name": "train-llm-7", "team": "nlp", "user": "ann"}
    return {
        "as_of": as_of.isoformat(),
        "waits": True,
        "verdict": quota["sentence"],
        "primary": quota,
        "further": [gpus],
        "holds": "quota",
        "holders": [
            holder
            | {"amount": 16.0, "nodes": [], "since": "2026-11-01T08:00:00.000Z"}
            | {"ends_at": "2026-11-01T13:00:00.000Z", "ends_earliest": "2026-11-01T12:30:00.000Z"}
            | {"ends_latest": "2026-11-01T15:00:00.000Z", "ends_by": "like_runs", "ends_because": "9 runs"}
        ],
        "other_holders": {"workloads": 2, "amount": 8.0, "first_ends_at": "2026-11-01T12:45:00.000Z"},
        "timeline": [
            {"reason": "BEHIND_IN_QUEUE", "blocker": "", "source": "order", "waits": True,
             "start_at": "2026-11-01T09:00:00.000Z", "end_at": "2026-11-01T10:00:00.000Z"},
            {"reason": "QUOTA_EXHAUSTED", "blocker": "queue nlp-batch", "source": "quota", "waits": True,
             "start_at": "2026-11-01T10:00:00.000Z", "end_at": "2026-11-01T12:00:00.000Z"},
        ],
        "hours_by_reason": [
            {"reason": "QUOTA_EXHAUSTED", "hours": 2.0}, {"reason": "BEHIND_IN_QUEUE", "hours": 1.0},
        ],
        "eta": {
            "because": "",
            "sentence": STARTS,
            "starts_earliest": "2026-11-01T12:40:00.000Z",
            "starts_latest": "2026-11-01T15:00:00.000Z",
            "sooner": [{"sentence": SOONER}],
        },
        "priority": {
            "class": "batch-low",
            "class_value": 1000,
            "ageing_bonus": 100.0,
            "value": 1100.0,
            "next_class": "training",
            "next_value": 1150,
            "outranks_at": "2026-11-01T21:00:00.000Z",
            "submitted_at": "2026-11-01T09:00:00.000Z",
            "quota_used_ratio": 1.0,
        },
    }  # fmt: skip
