"""A month's statement, in the shape of `api/openapi.py`."""

from typing import Any

from tests.dashboard import fake_quota

Json = Any
_CAUSES = (
    "gang_hold", "startup", "startup_over_limit", "draining", "backoff", "infra_lost", "preempted_lost",
    "crash_lost", "idle", "resident_idle", "unknown", "useful", "unattributed", "not_useful",
)  # fmt: skip
_COSTS = ("list_cost", "contracted_cost", "effective_cost", "billed_cost")
# Team, kind, GPU-hours, of them useful.
_LINES = (
    ("nlp", "held", 1200.5, 900.25),
    ("vision", "held", 400.0, 380.0),
    ("__idle__", "idle", 300.0, None),
)


def figures(gpu_hours: float, useful: float | None, *, held: bool, priced: bool) -> Json:
    causes: dict[str, float | None] = dict.fromkeys((f"{cause}_gpu_hours" for cause in _CAUSES), 0.0)
    causes |= {"useful_gpu_hours": useful}
    causes |= {"not_useful_gpu_hours": None if useful is None else gpu_hours - useful}
    return {
        "gpu_hours": gpu_hours,
        "held_gpu_hours": gpu_hours if held else 0.0,
        **causes,
        "causes_lower_bound": False,
        **dict.fromkeys(_COSTS, f"{2 * gpu_hours:.2f}" if priced else None),
    }


def statement(as_of: str, by: list[str], *, scenario: str) -> Json:
    """The statement of a site with two teams; without prices, or of nobody, where the scenario says so."""
    priced, empty = scenario != "no prices", scenario == "empty"
    parts = {"day": "2026-10-01", "cluster": "north", "gpu_model": "H100"}
    rows = [
        {name: value for name, value in (parts | {"team": team, "kind": kind}).items() if name in by}
        | figures(hours, useful, held=kind == "held", priced=priced)
        for team, kind, hours, useful in _LINES
    ]
    whole = figures(1600.5, 1280.25, held=True, priced=priced)
    books = {"capacity": 1900.5, "held": 1600.5, "idle": 300.0, "unavailable": 0.0, "overlap": 0.0}
    unknown = {
        "cluster": "north",
        "node": "n1",
        "start_at": as_of,
        "end_at": as_of,
        "because": "not known then",
    }
    return {
        "month": "2026-10",
        **dict.fromkeys(("as_of", "start_at", "end_at"), as_of),
        "complete": False,
        "zone": "Europe/Berlin",
        "currency": "EUR" if priced else None,
        "billing": "showback",
        "no_money_because": None if priced else "no prices are set",
        "no_causes_because": None,
        "no_commitment_because": "no quota is known in these days",
        "unused_commitment_gpu_hours": None,
        "total": whole | {"unit_cost": 2.97 if priced else None, "unit_cost_upper_bound": False},
        "books": {f"{name}_gpu_hours": value for name, value in (books | {"difference": 0.0}).items()},
        "unknown": [unknown] if scenario == "unknown nodes" else [],
        "rows": [] if empty else rows,
    }


def answer(path: str, at: str, query: dict[str, str], *, scenario: str) -> tuple[int, Json]:
    """Status and document of a request about money or quotas."""
    if path.startswith("quota/"):
        return fake_quota.answer(path, at, scenario=scenario)
    return 200, statement(at, query.get("by", "").split(","), scenario=scenario)
