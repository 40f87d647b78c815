"""The wastage ratio, the hell ratio and goodput."""

from dataclasses import dataclass
from fractions import Fraction

from analytics.wastage.bill import Bill
from analytics.wastage.causes import Cause
from analytics.wastage.rules import DEFAULT_RULES, WastageRules

# Infrastructure, preemption and gang losses are shown and never charged to those who suffered them.
SELF_INFLICTED = (
    Cause.CRASH_LOST,
    Cause.BACKOFF,
    Cause.STARTUP_OVER_LIMIT,
    Cause.IDLE,
    Cause.RESIDENT_IDLE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """
    A share between 0 and 1, exact, or the reason why there is none.

    `lower_bound`: part of the time is unknown, so the true share is at least this.
    """

    value: Fraction | None
    lower_bound: bool = False
    undefined_because: str = ""

    @classmethod
    def undefined(cls, because: str) -> "Ratio":
        """No value, with the reason."""
        return cls(value=None, undefined_because=because)


def is_charged(cause: Cause, *, resident_idle_exempt: bool) -> bool:
    """Whether time of a cause counts against its holder, whom the policy may exempt from one."""
    return cause in SELF_INFLICTED and not (cause is Cause.RESIDENT_IDLE and resident_idle_exempt)


def self_inflicted(bill: Bill) -> int:
    """GPU-time that its holder could have spared, micro-GPU x milliseconds."""
    return sum(bill.by_cause[cause] for cause in SELF_INFLICTED) - bill.resident_idle_exempt


def activity_coverage(bill: Bill) -> Ratio:
    """The share of the running GPU-time whose activity is known."""
    if bill.running == 0:
        return Ratio.undefined("nothing ran in the window")
    return Ratio(value=1 - Fraction(bill.by_cause[Cause.UNKNOWN], bill.running))


def wastage_ratio(bill: Bill) -> Ratio:
    """
    Self-inflicted over held GPU-time; a lower bound where activity is partly unknown.

    Source: definitions, section 7.
    """
    if bill.held == 0:
        return Ratio.undefined(_nothing_held(bill))
    value = Fraction(self_inflicted(bill), bill.held)
    return Ratio(value=value, lower_bound=bill.by_cause[Cause.UNKNOWN] > 0)


def hell_ratio(bill: Bill, *, rules: WastageRules = DEFAULT_RULES) -> Ratio:
    """
    H / (H + useful): how much of the way went into crashing, pausing, and starting again.

    H is what crashes surely lost, back-off, the start-up of attempts that follow an own failure, and
    the re-queue wait after own failures times the GPUs requested.

    Undefined where less than `least_samples` of the running time is known: useful time would be
    missing below the line, and somebody be accused of it.

    Source: definitions, section 7.
    """
    if bill.own_failure_wait is None:
        return Ratio.undefined("a workload waits after an own failure for an unknown number of GPUs")
    unknown, running = bill.by_cause[Cause.UNKNOWN], bill.running
    if running - unknown < rules.least_samples * running:
        return Ratio.undefined(
            f"activity is known for less than {float(rules.least_samples):.0%} of the running time"
        )
    hell = (
        bill.by_cause[Cause.CRASH_LOST]
        + bill.by_cause[Cause.BACKOFF]
        + bill.restart_startup
        + bill.own_failure_wait
    )
    whole = hell + bill.by_cause[Cause.USEFUL]
    if whole == 0:
        return Ratio.undefined(
            _nothing_held(bill) if bill.held == 0 else "nothing useful ran and nothing failed"
        )
    return Ratio(value=Fraction(hell, whole))


def goodput(bill: Bill, capacity: int | None) -> Ratio:
    """
    Useful GPU-time per capacity; a lower bound where activity is partly unknown.

    Args:
        bill: of everything on the capacity.
        capacity: micro-GPU x milliseconds in the same window; None where unknown.

    Source: definitions, section 7.
    """
    if capacity is None:
        return Ratio.undefined("the capacity is unknown")
    if capacity <= 0:
        return Ratio.undefined("there was no capacity in the window")
    unknown = bill.by_cause[Cause.UNKNOWN] > 0 or bill.unmeasured_ms > 0
    if unknown and bill.by_cause[Cause.USEFUL] == 0 and bill.running == bill.by_cause[Cause.UNKNOWN]:
        return Ratio.undefined("no activity is known in the window")
    return Ratio(value=Fraction(bill.by_cause[Cause.USEFUL], capacity), lower_bound=unknown)


def _nothing_held(bill: Bill) -> str:
    return (
        "the GPU share of those who held is unknown"
        if bill.unmeasured_ms
        else "no GPU was held in the window"
    )
