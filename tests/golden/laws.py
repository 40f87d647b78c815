"""
What every metric keeps, whatever its figures: its golden cases are changed in ways whose effect is known.

A case is data of every kind that its metric looks at, so that no law holds for want of figures.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from analytics.metrics import REGISTRY
from domain.metric import Unit
from domain.window import format_instant, parse_duration
from domain.workload import WAITING_STATES
from tests.golden.cases import DEFAULTS, FOLDER, answer, completed, instant, read

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]
Case = dict[str, Any]

DAY_MS = 86_400_000
# Amounts of GPUs and of GPU-time beside the columns that are called so.
_AMOUNTS = frozenset({
    "quota", "demand", "held", "entitled", "received", "lent", "borrowed", "over_quota", "capacity",
    "without_quota", "from_unassigned", "opening_debt", "opening_forgiven", "seen", "active", "own_seen",
    "own_active", "waiting_gpus", "held_gpus", "idle_gpus", "total_gpus",
})  # fmt: skip
_OF_AMOUNTS = frozenset({
    "share_span", "team_share_span", "pool_span", "gpu_hour", "queue_state",
})  # fmt: skip


def cases_of(name: str) -> list[Case]:
    """A metric's cases that expect a figure other than 0, each with its tables written out."""
    files: list[Path] = sorted((FOLDER / name).glob("*.yaml"))
    found = [read(file) for file in files]
    return [
        # What is made of other tables is made again of them, changed as they may be.
        {**case, "given": {name: rows for name, rows in completed(case["given"]).items() if name in DEFAULTS}}
        for case in found
        if any(row.get("value") for row in case["expect"])
    ]


def said(case: Case, name: str, **changed: Any) -> dict[tuple[tuple[str, str], ...], dict[str, Any]]:
    """What the product says in a case, some of whose parts are others; by labels."""
    rows = answer({**case, **changed}, name)
    flags = {"value", "lower_bound", "few", "undefined_because"}
    return {
        tuple(sorted((label, str(value)) for label, value in row.items() if label not in flags)): {
            flag: row[flag] for flag in flags if flag in row
        }
        for row in rows
    }


def each_row(tables: Tables, change: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Tables:
    """The tables with every row changed."""
    return {table: [change(table, row) for row in rows] for table, rows in tables.items()}


def renamed(tables: Tables, names: Mapping[str, str]) -> Tables:
    """Teams under other names."""
    return each_row(
        tables, lambda _, row: {**row, "team": names.get(row["team"], row["team"])} if "team" in row else row
    )


def teams_of(tables: Tables) -> list[str]:
    """All teams of a case."""
    return sorted({row["team"] for rows in tables.values() for row in rows if row.get("team")})


def scaled(tables: Tables, factor: int) -> Tables:
    """Everything with so many times the GPUs."""

    def larger(table: str, row: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value * factor
            if value and ("micro_gpus" in name or (table in _OF_AMOUNTS and name in _AMOUNTS))
            else value
            for name, value in row.items()
        }

    return each_row(tables, larger)


def shifted(case: Case, by_ms: int) -> Case:
    """The whole case so much later."""

    def later(_: str, row: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value + by_ms
            if name.endswith("_ms") and value and value < 2**60 and _is_instant(name)
            else value
            for name, value in row.items()
        }

    as_of = format_instant(instant(case["as_of"]) + by_ms)
    return {**case, "given": each_row(case["given"], later), "as_of": as_of}


def _is_instant(column: str) -> bool:
    return column not in {"step_ms", "wait_ms", "waited_ms", "ran_ms", "low_ms", "median_ms", "high_ms"}


def halves(case: Case) -> Iterator[dict[str, Any]]:
    """The case asked for each half of its window."""
    end_ms, length = instant(case["as_of"]), parse_duration(case.get("window", "24h"))
    half_ms = round(length.total_seconds() * 500)
    for until_ms in (end_ms - half_ms, end_ms):
        yield {"as_of": format_instant(until_ms), "window": f"{half_ms}ms"}


def without_waiting(tables: Tables) -> Tables:
    """The case as it would be had nobody waited: who was never placed is not there."""
    starts: dict[str, int] = {}
    for row in tables.get("attempt", []):
        starts[row["workload_uid"]] = min(row["start_ms"], starts.get(row["workload_uid"], row["start_ms"]))
    placed = {
        row["workload_uid"]: starts.get(row["workload_uid"], row.get("first_placed_ms"))
        for row in tables.get("workload", [])
    }
    at_once = {uid: at_ms for uid, at_ms in placed.items() if at_ms is not None}
    found = {
        table: [row for row in rows if row.get("workload_uid") in {None, "", *at_once}]
        for table, rows in tables.items()
        if table not in {"member_wait", "own_failure_wait"}
    }
    found["span"] = [row for row in found.get("span", []) if row["state"] not in WAITING_STATES]
    found["workload"] = [
        {
            **row,
            "submitted_ms": at_once[row["workload_uid"]],
            **({"first_wait_ms": 0} if "first_wait_ms" in row else {}),
        }
        for row in found.get("workload", [])
    ]
    found["queue_state"] = [
        {**row, "waiting_workloads": 0, "waiting_gpus": 0} for row in found.get("queue_state", [])
    ]
    return {table: rows for table, rows in found.items() if rows}


def without_quantities(tables: Tables) -> Tables:
    """Nobody knows how much of a card any work asks or holds."""
    told = {"holding", "workload", "member_wait", "reservation", "waste_piece"}
    return each_row(
        tables,
        lambda table, row: {
            name: None if table in told and name in {"micro_gpus", "requested_micro_gpus"} else value
            for name, value in row.items()
        },
    )


def values(rows: Mapping[tuple[tuple[str, str], ...], Mapping[str, Any]]) -> dict[Any, float]:
    """Figures that are known, by labels."""
    return {labels: row["value"] for labels, row in rows.items() if "value" in row}


def factor_of(name: str, labels: Mapping[str, str], factor: int) -> float:
    """What becomes of a figure when there are so many times the GPUs."""
    unit = REGISTRY[name].unit
    if labels.get("resource", "gpu") != "gpu":
        return 1
    amounts = unit in {Unit.GPUS, Unit.GPU_HOURS, Unit.MONEY} or name in {
        "phantom_reservation_gpu_seconds", "xdmod_used_hours", "xdmod_used_per_job_hours",
    }  # fmt: skip
    if amounts:
        return factor
    return 1 / factor if unit is Unit.PER_1000_GPU_HOURS else 1
