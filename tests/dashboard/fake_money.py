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
_NOTES = ("lent", "borrowed", "unused_commitment")
# Team, and what its quota lent, borrowed and left unused, GPU-hours.
_QUOTAS = (("nlp", (0.0, 60.0, 0.0)), ("shared by audio, video", (48.0, 0.0, 12.0)))
_ADJUSTED = 5.5
SHA256 = "5f" * 32
_CLOSED = {"sha256": SHA256, "closed_at": "2026-11-03T09:00:00.000Z", "closed_by": "=rosa", "reason": ""}
# Name, whether it holds, whether it may be closed all the same.
_CHECKS = {
    "over": (("capacity", True, False), ("coverage", True, True)),
    "little seen": (("capacity", True, False), ("coverage", False, True)),
    "unbalanced": (("capacity", False, False), ("coverage", False, True)),
}


def figures(gpu_hours: float, useful: float | None, *, held: bool, priced: bool) -> Json:
    causes: dict[str, float | None] = dict.fromkeys((f"{cause}_gpu_hours" for cause in _CAUSES), 0.0)
    causes |= {"useful_gpu_hours": useful}
    causes |= {"not_useful_gpu_hours": None if useful is None else gpu_hours - useful}
    return {
        "gpu_hours": gpu_hours,
        "held_gpu_hours": gpu_hours if held else 0.0,
        **causes,
        "causes_lower_bound": False,
        "loss_adjustment_gpu_hours": 0.0,
        "correction_gpu_hours": 0.0,
        **dict.fromkeys(_COSTS, f"{2 * gpu_hours:.2f}" if priced else None),
        **notes(None, priced=priced),
    }


def notes(hours: tuple[float, ...] | None, *, priced: bool) -> Json:
    """What a quota lent, borrowed and left unused, and its worth at 2 per GPU-hour."""
    told = dict.fromkeys(_NOTES) if hours is None else dict(zip(_NOTES, hours, strict=True))
    return {f"{name}_gpu_hours": value for name, value in told.items()} | {
        f"{name}_cost": f"{2 * value:.2f}" if priced and value is not None else None
        for name, value in told.items()
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
    quotas = () if scenario == "no quotas" else _QUOTAS
    rows += [
        {name: value for name, value in (parts | {"team": team, "kind": "quota"}).items() if name in by}
        | figures(0.0, 0.0, held=False, priced=priced)
        | notes(hours, priced=priced)
        for team, hours in quotas
    ]
    whole = figures(1600.5, 1280.25, held=True, priced=priced)
    whole |= {"loss_adjustment_gpu_hours": _ADJUSTED}
    if quotas:
        whole |= notes((48.0, 60.0, 12.0), priced=priced)
    by_kind = [
        {"kind": "held"} | figures(1600.5, 1285.75, held=True, priced=priced),
        {"kind": "idle"} | figures(300.0, None, held=False, priced=priced),
        {"kind": "loss_adjustment"}
        | figures(0.0, -_ADJUSTED, held=False, priced=priced)
        | {"loss_adjustment_gpu_hours": _ADJUSTED},
    ]
    over = scenario == "closed" or scenario in _CHECKS
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
        "over": over,
        "closed": _CLOSED if scenario == "closed" else None,
        "corrections": [correction(priced=priced)] if scenario == "corrections" else [],
        "checks": checks(scenario),
        "complete": False,
        "coverage": 0.4,
        "nothing_because": "nothing was held in 2026-10 and no node with GPUs is known then"
        if empty
        else None,
        "zone": "Europe/Berlin",
        "currency": "EUR" if priced else None,
        "billing": "showback",
        "no_money_because": None if priced else "no prices are set",
        "no_causes_because": None,
        "no_commitment_because": None if quotas else "no quota is known in these days",
        "hints": [],
        "unused_commitment_gpu_hours": 12.0 if quotas else None,
        "from_unassigned_gpu_hours": 12.0 if quotas else None,
        "by_kind": by_kind,
        "total": whole | {"unit_cost": 2.97 if priced else None, "unit_cost_upper_bound": False},
        "books": {f"{name}_gpu_hours": value for name, value in (books | {"difference": 0.0}).items()},
        "unknown": [unknown] if scenario == "unknown nodes" else [],
        "rows": [] if empty else rows,
    }


def correction(*, priced: bool) -> Json:
    """Three GPU-hours of September that were not held after all."""
    costs = dict.fromkeys(_COSTS, "-6.00" if priced else None)
    found = figures(-3.0, -3.0, held=True, priced=priced) | costs | {"correction_gpu_hours": -3.0}
    return {"of_month": "2026-09"} | found


def checks(scenario: str) -> list[Json]:
    """The reconciliation of a month that is over."""
    return [
        {
            "name": name,
            "left": "1,900.5",
            "right": "1,900.5" if holds else "1,899.5",
            "holds": holds,
            "words": f"what {name} must be",
            "may_be_forced": may_be_forced,
            "forced": False,
        }
        for name, holds, may_be_forced in _CHECKS.get("over" if scenario == "closed" else scenario, ())
    ]


def close(body: Json, *, scenario: str) -> tuple[int, Json]:
    """Status and document of a close."""
    if scenario == "unbalanced" or (scenario == "little seen" and not body["reason"]):
        return 409, {"title": "Conflict", "status": 409, "detail": "month 2026-10 is not closed: capacity"}
    return 201, {"month": "2026-10", **_CLOSED, "checks": checks(scenario)}


def answer(path: str, at: str, query: dict[str, str], *, scenario: str) -> tuple[int, Json]:
    """Status and document of a request about money or quotas."""
    if path.startswith("quota/"):
        return fake_quota.answer(path, at, scenario=scenario)
    return 200, statement(at, query.get("by", "").split(","), scenario=scenario)
