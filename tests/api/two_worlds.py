"""
The same cluster twice, as red must see it the same: what is foreign has moved in the second.

Red (`r1`, `r2`) shares the queue `main` with blue (`b2`). Alone in the queue `q-side` stands `b1`, in the
queue `q-far` `g1`. In the second world all three belong to other teams and people, in other queues,
classes and sizes, and work that is not measured by the node has gone to other nodes.
"""

from typing import Any, Final

Given = dict[str, list[dict[str, Any]]]

AS_OF: Final = "2026-01-02T12:00:00Z"
EARLY: Final = "2026-01-02T06:00:00Z"
GPU_HOUR: Final = 3_600_000_000_000
# What may not be told of the foreign, in either world.
NAMES: Final = (
    "blue", "green", "teal", "q-side", "q-far", "q-away", "beatrix", "gustav", "tomoko", "blue-only",
    "teal-only", "GPU-7", "GPU-8",
)  # fmt: skip
_WORK: Final = ("team", "queue", "user_name", "priority_class", "gang_size", "node", "device")
_OWN: Final = ("red", "main", "ada", "batch", 1, "n1", "GPU-0")
_FIRST: Final[dict[str, tuple[Any, ...]]] = {
    "b1": ("blue", "q-side", "beatrix", "blue-only", 8, "n2", "GPU-7"),
    "b2": ("blue", "main", "beatrix", "batch", 1, "n1", "GPU-7"),
    "g1": ("green", "q-far", "gustav", "batch", 4, "n2", "GPU-8"),
}
_SECOND: Final[dict[str, tuple[Any, ...]]] = {
    "b1": ("green", "q-far", "gustav", "batch", 4, "n3", "GPU-8"),
    "b2": ("teal", "main", "tomoko", "teal-only", 2, "n3", "GPU-7"),
    "g1": ("teal", "q-away", "tomoko", "teal-only", 64, "n1", "GPU-7"),
}
_WORKS: Final = ("r1", "r2", *_FIRST)
_CLASSES: Final = {"r2": "interactive", "b1": "interactive"}
# Where each holds its GPUs is not moved: which GPUs are free on a node is no secret.
_NODES: Final = {"r1": "n1", "r2": "n1", "b1": "n2", "b2": "n1", "g1": "n3"}


def world(*, moved: bool) -> Given:
    """Rows of the derived tables; red's are the same in both."""
    foreign = _SECOND if moved else _FIRST
    works = {uid: dict(zip(_WORK, foreign.get(uid, _OWN), strict=True)) for uid in _WORKS}
    tables: Given = {"node_span": [{"node": f"n{n}", "start_at": EARLY} for n in (1, 2, 3)]}
    for uid, work in works.items():
        for table, rows in _life(uid, work).items():
            tables.setdefault(table, []).extend(rows)
    return tables | _fairness(works)


def _life(uid: str, work: dict[str, Any]) -> Given:
    """
    It ran from nine, was preempted at ten, and runs again.

    Of the same shape are something that waits, and something that ended.
    """
    one, waits, done = ({"workload_uid": f"{uid}{what}"} for what in ("", "-waits", "-done"))
    told = {name: work[name] for name in _WORK[:5]} | {"service_class": _CLASSES.get(uid, "batch")}
    told |= {"namespace": work["team"], "name": f"{work['team']}-job"}
    nine, ten, half = "2026-01-02T09:00:00Z", "2026-01-02T10:00:00Z", "2026-01-02T10:30:00Z"
    eleven = "2026-01-02T11:00:00Z"
    ran = {"submitted_at": EARLY, "first_placed_at": nine, "first_running_at": nine, "ended_at": None}
    never = {"submitted_at": half, "first_placed_at": None, "first_running_at": None, "ended_at": None}
    over = {"submitted_at": EARLY, "first_placed_at": EARLY, "first_running_at": EARLY, "ended_at": ten}
    states = (("queued", EARLY, nine), ("running", nine, ten), ("queued", ten, half), ("running", half, None))
    held = {**one, "node": _NODES[uid], "gpus": 1}
    active = GPU_HOUR // (2 + _WORKS.index(uid))
    where = {"node": work["node"], "pod_uid": f"{uid}-2"}
    return {
        "workload": [{**one, **told, **ran}, {**waits, **told, **never}, {**done, **told, **over}],
        "span": [
            *({**one, "state": state, "start_at": start, "end_at": end} for state, start, end in states),
            {**waits, "state": "queued", "start_at": half, "end_at": eleven},
            {**waits, "state": "checking", "start_at": eleven},
            {**done, "state": "running", "start_at": EARLY, "end_at": ten},
            {**done, "state": "ended", "start_at": ten},
        ],
        "attempt": [
            {**one, "number": 1, "start_at": nine, "end_at": ten, "outcome": "preempted"},
            {**one, "number": 2, "start_at": half},
        ],
        "holding": [
            {**held, "attempt": 1, "pod_uid": f"{uid}-1", "bound_at": nine, "started_at": nine,
             "released_at": ten},
            {**held, "attempt": 2, "pod_uid": f"{uid}-2", "pod_name": f"{uid}-2", "bound_at": half,
             "started_at": half},
        ],
        "reservation": [{**one, "gpus": 1, "start_at": half}],
        "denial": [
            {"owner_uid": uid, "team": work["team"], "denied_by": "ResourceQuota", "count": 2, "at_at": nine},
        ],
        "eviction": [{**one, "at_at": ten, "preemptor_uid": "r2"}],
        "member": [{**one, "object_uid": uid, "kind": "Workload"}, {**one, "object_uid": f"{uid}-2"}],
        "transition": [{"uid": f"{uid}-2", "moment": "checkpoint", "at_at": half}],
        "waste_piece": [
            {**one, **where, "cause": "useful", "start_at": nine, "end_at": ten, "known_at": ten},
            {**one, **where, "cause": "idle", "earlier_cause": "idle", "start_at": half, "end_at": None,
             "charged": True},
        ],
        "activity_span": [
            {**one, "pod_uid": f"{uid}-2", "device": work["device"], "level": "low", "start_at": half,
             "end_at": AS_OF},
        ],
        "gpu_sample": [
            {"namespace": work["team"], "pod": f"{uid}-2", "node": _NODES[uid], "device": f"{uid}-GPU",
             "at_at": eleven, "step_ms": 5_400_000, "memory_mib": 8000, "memory_total_mib": 81_920},
        ],
        "gpu_hour": [
            {**one, **where, "device": work["device"], "hour_at": nine, "seen": GPU_HOUR,
             "active": active, "own_seen": GPU_HOUR, "own_active": active},
        ],
    }  # fmt: skip


def _fairness(works: dict[str, dict[str, Any]]) -> Given:
    """Red's queue stands in a cohort with those of b1; g1's queue is a pool of its own."""
    pools = {"r1": "all/a100", "b1": "all/a100", "b2": "all/a100", "g1": f"{works['g1']['queue']}/a100"}
    amounts = {"r1": 1, "b1": 2, "b2": 3, "g1": 4}
    shares: Given = {"share_span": [], "team_share_span": [], "pool_span": []}
    for uid, pool in pools.items():
        micro = amounts[uid] * 1_000_000
        place = {"pool": pool, "entity": works[uid]["queue"], "start_at": EARLY}
        figures = {
            "demand": micro,
            "held": micro // 2,
            "entitled": micro,
            "opening_debt": float(amounts[uid]),
        }
        shares["team_share_span"].append({**place, **figures, "team": works[uid]["team"]})
        if uid != "b2":
            team = "" if uid == "r1" else works[uid]["team"]
            more = {"quota": micro, "lent": micro, "borrowed": micro, "over_quota": micro}
            shares["share_span"].append({**place, **figures, **more, "team": team})
    shares["pool_span"] = [
        {"pool": pool, "start_at": EARLY, "capacity": 24_000_000, "error_ratio": 0.25, "jain": 0.5}
        for pool in sorted({*pools.values()})
    ]
    return shares
