"""A site of two teams: ads leaves GPUs idle and crashes, nlp is without GPU metrics."""

from typing import Any

Json = Any
METRICS = {
    "held_gpu_hours": ("gpu_hours", "GPU-hours held, by cause"),
    "wasted_gpu_hours": ("gpu_hours", "GPU-hours wasted by their holder"),
    "wastage_ratio": ("ratio", "Wastage ratio"),
    "hell_ratio": ("ratio", "Hell ratio"),
    "activity_known_ratio": ("ratio", "Running time with known activity"),
    "work_lost_gpu_hours": ("gpu_hours", "Work lost, at least"),
    "work_lost_at_most_gpu_hours": ("gpu_hours", "Work lost, at most"),
    "goodput_ratio": ("ratio", "Goodput"),
    "at_risk_gpu_hours": ("gpu_hours", "GPU-hours at risk"),
    "checkpoint_age_over_budget_workloads": ("workloads", "Workloads past their checkpoint budget"),
    "never_active_gpus": ("gpus", "GPUs never active"),
}
_NOW = ("at_risk_gpu_hours", "checkpoint_age_over_budget_workloads", "never_active_gpus")
WINDOWED = frozenset(METRICS) - set(_NOW)
CAUSES = {
    ("ads", "useful"): 60.0,
    ("ads", "idle"): 25.0,
    ("ads", "crash_lost"): 5.0,
    ("ads", "preempted_lost"): 10.0,
    ("nlp", "startup"): 2.0,
    ("nlp", "unknown"): 98.0,
}
OF_A_WORKLOAD: Json = {
    "gpu_seconds": 0.0,
    "wasted_gpu_hours": 1.5,
    "wasted_lower_bound": True,
    "gpu_time_by_cause": [
        {"cause": cause, "gpu_hours": hours, "charged_gpu_hours": charged, "lower_bound": False}
        for cause, hours, charged in (("unknown", 3.0, 0.0), ("idle", 1.5, 1.5), ("useful", 0.5, 0.0))
    ],
}
# By team: value, whether it is a lower bound; None is undefined.
_BY_TEAM: dict[str, dict[str, tuple[float | None, bool]]] = {
    "held_gpu_hours": {"ads": (100.0, False), "nlp": (100.0, False)},
    "wasted_gpu_hours": {"ads": (30.0, False), "nlp": (0.0, True)},
    "wastage_ratio": {"ads": (0.3, False), "nlp": (0.0, True)},
    "hell_ratio": {"ads": (0.0769, False), "nlp": (None, False)},
    "activity_known_ratio": {"ads": (1.0, False), "nlp": (0.0, False)},
    "work_lost_gpu_hours": {"ads": (15.0, False), "nlp": (None, False)},
    "work_lost_at_most_gpu_hours": {"ads": (22.0, False), "nlp": (None, False)},
}
_TOTALS = {
    "goodput_ratio": 0.25,
    "at_risk_gpu_hours": 12.5,
    "checkpoint_age_over_budget_workloads": 3.0,
    "never_active_gpus": 2.0,
}


def rows(name: str, by: list[str]) -> list[Json]:
    """A metric's rows by these labels."""
    if name in _TOTALS:
        return [_sample({}, _TOTALS[name])]
    if "cause" in by:
        return [_sample({"team": team, "cause": cause}, hours) for (team, cause), hours in CAUSES.items()]
    more = {"user_name": "eve", "queue": "main", "cluster": "north", "gpu_model": "H100"}
    return [
        _sample({label: {"team": team, **more}[label] for label in by}, value, lower_bound=bound)
        for team, (value, bound) in _BY_TEAM[name].items()
    ]


def _sample(labels: dict[str, str], value: float | None, *, lower_bound: bool = False) -> Json:
    return {
        "labels": labels,
        "value": value,
        "lower_bound": lower_bound,
        "few": False,
        "undefined_because": "no activity is known in the window" if value is None else None,
    }
