"""Held and productive parts of the capacity, as their metrics ask for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from analytics.evaluate import grouped, whole
from analytics.wastage.asked import bill_of
from analytics.wastage.bill import Bill
from analytics.wastage.causes import LOST_CAUSES, Cause
from analytics.wastage.goodput import HELD
from domain.metric import Ask, Compute, Row, Sample

# Held, and yet no work that stays.
_IN_VAIN = (Cause.IDLE, Cause.RESIDENT_IDLE, Cause.GANG_HOLD, *LOST_CAUSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """GPU-time of a pool in a window: all that pods held, and the bill of what it was for."""

    held: int
    is_known: bool
    bill: Bill


def held(use: Use) -> tuple[int, bool, str]:
    """All that was held; a lower bound where the share of a pod is unknown."""
    return use.held, not use.is_known, ""


def productive(use: Use) -> tuple[int, bool, str]:
    """What was held and neither idle, waiting for a gang, nor lost; unknown activity may be more."""
    bill = use.bill
    if use.held and not bill.held:
        return 0, False, "what the GPUs did in the window is not accounted yet"
    unknown = bill.by_cause[Cause.UNKNOWN]
    if unknown and unknown == bill.running:
        return 0, False, "no activity is known in the window"
    kept = sum(amount for cause, amount in bill.by_cause.items() if cause not in _IN_VAIN)
    return kept - unknown, unknown > 0 or bill.unmeasured_ms > 0, ""


def _use(rows: Sequence[Row]) -> Use:
    of_pods = [row for row in rows if row["cause"] == HELD]
    return Use(
        held=sum(whole(row, "amount") for row in of_pods),
        is_known=not any(row["unmeasured_ms"] for row in of_pods),
        bill=bill_of(row for row in rows if row["cause"] not in (None, HELD)),
    )


def part_of_capacity(amount: Callable[[Use], tuple[int, bool, str]]) -> Compute:
    """A `compute` over rows of causes and capacity: GPU-time of that kind over what the nodes had."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            there = [row for row in members if row["cause"] is None]
            if not there or any(row["amount"] is None for row in there):
                because = "the capacity is unknown" if there else "there was no capacity in the window"
                samples.append(Sample.undefined(labels, because))
                continue
            capacity = sum(whole(row, "amount") for row in there)
            value, lower_bound, because = amount(_use(members))
            if because or not capacity:
                samples.append(Sample.undefined(labels, because or "there was no capacity in the window"))
                continue
            ratio = float(Fraction(value, capacity))
            samples.append(Sample(labels=labels, value=ratio, lower_bound=lower_bound))
        return samples or [Sample.undefined({}, "there was no capacity in the window")]

    return compute
