"""Answers about fairness: one pool in which nlp is owed 340 GPU-hours, and one that is fair."""

from typing import Any

Json = Any
METRICS = {
    "quota_gpus": ("gpus", "Quota"),
    "demanded_gpus": ("gpus", "Demanded GPUs"),
    "entitled_gpus": ("gpus", "Entitled GPUs"),
    "received_gpus": ("gpus", "Received GPUs"),
    "lent_gpus": ("gpus", "Lent GPUs"),
    "borrowed_gpus": ("gpus", "Borrowed GPUs"),
    "over_quota_gpus": ("gpus", "GPUs over quota"),
    "fairness_debt_gpu_hours": ("gpu_hours", "Fairness debt"),
    "pool_capacity_gpus": ("gpus", "Capacity of the pool"),
    "fairness_error_ratio": ("ratio", "Fairness error"),
    "jains_index_ratio": ("ratio", "Jain's index"),
    "capacity_without_quota_gpus": ("gpus", "Capacity without quota"),
    "from_unassigned_gpus": ("gpus", "Borrowed of nobody's quota"),
    "entitled_gpu_hours": ("gpu_hours", "Entitled GPU-hours"),
    "received_gpu_hours": ("gpu_hours", "Received GPU-hours"),
    "forgiven_gpu_hours": ("gpu_hours", "Forgiven GPU-hours"),
}
WINDOWED = {"entitled_gpu_hours", "received_gpu_hours", "forgiven_gpu_hours"}
# Pool, holder of the quota, and its figures in the order of METRICS without those of pools.
_HOLDERS = (
    ("all/a100", "nlp", (48.0, 85.0, 46.0, 21.0, 11.5, 0.0, 0.0, 340.04), (1104.0, 504.0, 12.0)),
    ("all/a100", "vision", (40.0, 108.0, 38.0, 60.0, 0.0, 20.0, 0.0, -52.3), (912.0, 1440.0, -3.0)),
    ("all/h100", "ads", (8.0, 18.0, 18.0, 18.0, 0.0, 8.0, 2.0, 0.0), (432.0, 432.0, 0.0)),
)
# Pool, holder, and the part of its debt that is a team's: those of a holder sum to its own.
_DEBTS_OF_TEAMS = (
    ("all/a100", "nlp", "nlp", 340.04),
    ("all/a100", "vision", "audio", 107.7),
    ("all/a100", "vision", "video", -160.0),
    ("all/h100", "ads", "ads", 0.0),
)
_POOLS: dict[str, dict[str, float | None]] = {
    "pool_capacity_gpus": {"all/a100": 192.0, "all/h100": 64.0},
    "fairness_error_ratio": {"all/a100": 0.25, "all/h100": 0.0},
    "jains_index_ratio": {"all/a100": 0.815, "all/h100": None},
    "capacity_without_quota_gpus": {"all/a100": 0.0, "all/h100": 3.0},
    "from_unassigned_gpus": {"all/a100": 8.5, "all/h100": 8.0},
}
_OF_HOLDERS = [name for name in METRICS if name not in _POOLS]


def rows(name: str, by: list[str], *, scenario: str, past: bool) -> list[Json]:
    """The samples of a metric; in the past each debt was half of what it is."""
    if scenario == "empty":
        return [_sample(None, {}, "nothing of this kind was observed")]
    if scenario == "fair" and name == "fairness_debt_gpu_hours":
        return [_sample(0.0, _labels(by, pool, queue)) for pool, queue, *_ in _HOLDERS]
    if name in _POOLS:
        why = "nobody with an entitlement holds a GPU"
        return [_sample(value, _labels(by, pool, ""), why) for pool, value in _POOLS[name].items()]
    if name == "fairness_debt_gpu_hours" and "team" in by:
        return [
            _sample(value, _labels(by, pool, queue) | {"team": team})
            for pool, queue, team, value in _DEBTS_OF_TEAMS
        ]
    half = 0.5 if past else 1.0
    return [
        _sample((*state, *ledger)[_OF_HOLDERS.index(name)] * half, _labels(by, pool, queue))
        for pool, queue, state, ledger in _HOLDERS
    ]


def _labels(by: list[str], pool: str, queue: str) -> dict[str, str]:
    every = {"cluster": "north", "pool": pool, "queue": queue, "gpu_model": pool.removeprefix("all/").upper()}
    every["team"] = "shared by audio, video" if queue == "vision" else queue
    return {label: every[label] for label in by}


def _sample(value: float | None, labels: dict[str, str], why: str = "") -> Json:
    return {
        "labels": labels,
        "value": value,
        "lower_bound": False,
        "few": False,
        "undefined_because": why if value is None else None,
    }
