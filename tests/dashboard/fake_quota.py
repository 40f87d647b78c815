"""Quota proposals, in the shape of `api/openapi.py`."""

from typing import Any

Json = Any
EXPOSED = {
    "uid": "uid-7", "namespace": "nlp", "name": "train-llm-7", "team": "nlp", "gpus": 8, "priority": 100,
}  # fmt: skip
COMMAND = "kubectl patch clusterqueues.kueue.x-k8s.io nlp --type json --patch-file FILE"
PATCH = [
    {"op": "test", "path": "/metadata/resourceVersion", "value": "100"},
    {"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "36"},
]


def proposal(at: str, **changes: Json) -> Json:
    return {
        "id": "q-1", "cluster": "north", "pool": "main/h100", "holder": "nlp", "teams": ["nlp"],
        "week": "2026-W48", "kind": "cut", "state": "proposed", "before_gpus": 40, "after_gpus": 36,
        "live_gpus": 40, "made_at": at, "expires_at": at,
        "week_start_at": "2026-11-23T00:00:00.000Z", "week_end_at": "2026-11-30T00:00:00.000Z",
        "because": "nlp goes from 40 to 36 GPUs: its hell ratio was 30.0% in week 2026-W48, over the 15% that"
        " are tolerated.",
        "evidence": {"agreed_gpus": 40, "hell_ratio": 0.3, "penalty_gpus": 6.0, "debt_gpu_hours": -4.0,
                     "gpu_hours": 1000.0, "coverage": 1.0},
        "funding": [], "from_free_gpus": 0,
        "object": {"kind": "ClusterQueue", "namespace": "", "name": "nlp"},
        "used_gpus": 40.0, "waits_until_free": True, "exposed": [EXPOSED],
    } | changes  # fmt: skip


def proposals(at: str) -> list[Json]:
    gift: Json = {
        "id": "q-2", "holder": "vision", "kind": "gift", "after_gpus": 44, "exposed": [], "used_gpus": 12.0,
        "waits_until_free": False, "funding": [{"proposal": "q-1", "gpus": 4}],
    }  # fmt: skip
    own: Json = {
        "id": "q-3",
        "holder": "",
        "kind": "spare_up",
        "evidence": {},
        "used_gpus": None,
        "exposed": [],
    }
    return [
        proposal(at),
        proposal(at, **gift),
        proposal(at, **own, before_gpus=16, after_gpus=16, waits_until_free=None, teams=[]),
        proposal(at, id="q-0", state="rejected", week="2026-W47", exposed=[]),
    ]


def detail(found: Json, at: str) -> Json:
    drifted = found["id"] == "q-2"
    made = {"at": at, "from_state": "", "to_state": "proposed", "who": "gpuledger", "note": "week 2026-W48"}
    return found | {
        "as_of": at,
        "patch": None if drifted else PATCH,
        "inverse": None if drifted else PATCH[1:],
        "command": "" if drifted else COMMAND,
        "no_patch_because": "drifted: the object says 32 GPU, and this was made for 40" if drifted else "",
        "audit": [made],
    }


def answer(path: str, at: str, *, scenario: str) -> tuple[int, Json]:
    """Status and document of a request under `quota/proposals`."""
    rows = [] if scenario == "empty" else proposals(at)
    name = path.removeprefix("quota/proposals").strip("/")
    if not name:
        return 200, {"as_of": at, "total": len(rows), "page": 1, "page_size": max(len(rows), 1), "rows": rows}
    found = next((row for row in rows if row["id"] == name), None)
    if found is None:
        return 404, {"title": "Not Found", "status": 404, "detail": f"proposal {name!r}: there is none"}
    return 200, detail(found, at)
