"""Figures of a statement as the API gives them: GPU-hours by cause, costs, the books, what is unknown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from analytics.chargeback.capacity import Hours
from analytics.chargeback.line import CORRECTION, Line
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.quota_lines import NOTE_COSTS, NOTES
from analytics.chargeback.statement import COSTS, Statement
from analytics.chargeback.usage import Unknown, neighbours_joined
from analytics.wastage.causes import Cause
from api.answers import Record
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR
from domain.window import format_instant
from service.caused_time import LOSS_ADJUSTMENT

_USEFUL_OR_UNKNOWN: Final = frozenset({Cause.USEFUL, Cause.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A month settled. `no_money_because` and `no_causes_because` say why figures are missing."""

    statement: Statement
    lines: tuple[Line, ...]
    no_money_because: str
    no_causes_because: str


def figures(lines: Sequence[Line], found: MonthStatement) -> Record:
    """
    The sums of some lines: GPU-hours, of them held and by cause, and costs; and of quota, where there is one.

    `loss_adjustment` is what was booked as useful on an earlier day and is not any more: that much was
    taken from useful here, and stands under what it counts as now. `correction` is the GPU-time that was
    learnt of closed months; it counts in the other figures too, which so are the books' and what was learnt.

    Held time whose cause nobody knows yet, because the causes lag or a record is set aside, stands
    under `unattributed`. Where there is some, or activity is unknown, useful and not useful are lower
    bounds.
    """
    held = sum(line.row.micro_gpu_ms for line in lines if line.is_held)
    sums: dict[str, int] = dict.fromkeys(Cause, 0)
    for line in lines:
        for cause, amount in line.causes.items():
            sums[cause] = sums.get(cause, 0) + amount
    # Nothing said of what is held is not the same as nothing useful.
    known = not found.no_causes_because and (held == 0 or any(sums.values()))
    unattributed = held - sum(sums.values())
    not_useful = sum(amount for cause, amount in sums.items() if cause not in _USEFUL_OR_UNKNOWN)
    by_cause = {f"{cause}_gpu_hours": gpu_hours(amount) if known else None for cause, amount in sums.items()}
    if sums[Cause.UNKNOWN] and not sums[Cause.USEFUL]:
        # It ran, and nobody saw whether it did anything.
        by_cause[f"{Cause.USEFUL}_gpu_hours"] = None
    costs: Mapping[str, Decimal | None] = {
        name: None
        if found.no_money_because
        else sum((getattr(line.row, name) for line in lines), found.currency.amount(0))
        for name in COSTS
    }
    return {
        "gpu_hours": gpu_hours(sum(line.row.micro_gpu_ms for line in lines)),
        "held_gpu_hours": gpu_hours(held),
        "not_useful_gpu_hours": gpu_hours(not_useful) if known else None,
        **by_cause,
        "unattributed_gpu_hours": gpu_hours(unattributed) if known else None,
        "loss_adjustment_gpu_hours": gpu_hours(_adjusted(lines)) if known else None,
        "correction_gpu_hours": gpu_hours(
            sum(line.row.micro_gpu_ms for line in lines if line.row.kind == CORRECTION)
        ),
        "causes_lower_bound": known and (sums[Cause.UNKNOWN] > 0 or unattributed > 0),
        **costs,
        **_quota_figures(lines, found),
    }


def _adjusted(lines: Sequence[Line]) -> int:
    return -sum(line.causes.get(Cause.USEFUL, 0) for line in lines if line.row.kind == LOSS_ADJUSTMENT)


def _quota_figures(lines: Sequence[Line], found: MonthStatement) -> Record:
    """What was lent, borrowed and left unused, GPU-hours and worth; None without any line of quota."""
    quotas = [(line.quota, line.worth) for line in lines if line.quota is not None]
    hours = {
        f"{name}_gpu_hours": gpu_hours(sum(time[place] for time, _ in quotas)) if quotas else None
        for place, name in enumerate(NOTES)
    }
    costs: dict[str, Decimal | None] = dict.fromkeys(NOTE_COSTS)
    for place, name in enumerate(NOTE_COSTS):
        amounts = [worth[place] for _, worth in quotas]
        if amounts and None not in amounts and not found.no_money_because:
            costs[name] = sum((each for each in amounts if each is not None), found.currency.amount(0))
    return hours | costs


def unit_cost(total: Mapping[str, Any]) -> Record:
    """
    What a useful GPU-hour costs, effectively; None where there is no money or nothing useful.

    At most that, where useful is at least that.
    """
    cost, useful = total["effective_cost"], total[f"{Cause.USEFUL}_gpu_hours"]
    known = cost is not None and useful
    return {
        "unit_cost": float(Fraction(cost) / Fraction(useful)) if known else None,
        "unit_cost_upper_bound": bool(known and total["causes_lower_bound"]),
    }


def books(hours: Hours) -> Record:
    """The books' sum, in GPU-hours, and by how much it does not close."""
    parts = {f"{part.name}_gpu_hours": gpu_hours(getattr(hours, part.name)) for part in fields(hours)}
    return parts | {"difference_gpu_hours": gpu_hours(hours.difference)}


def unknown_stretches(stretches: Iterable[Unknown]) -> list[Record]:
    """What is not known of which node, neighbouring stretches in one."""
    return [
        {
            "cluster": each.cluster,
            "node": each.node,
            "start_at": format_instant(each.start_ms),
            "end_at": format_instant(each.end_ms),
            "because": each.because,
        }
        for each in neighbours_joined(stretches)
    ]


def gpu_hours(micro_gpu_ms: int) -> float:
    """GPU-time in hours."""
    return micro_gpu_ms / MICRO_GPU_MS_PER_GPU_HOUR
