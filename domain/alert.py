"""
What an alert is: one declaration.

The rule file for Prometheus, the evaluation without one, the runbooks and the pages are made from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from domain.errors import PolicyError


class Severity(StrEnum):
    """How urgent: somebody is woken, looks today, or reads it when they next look."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Comparison(StrEnum):
    """On which side of its limit a value breaches; of several series of one alert the worst counts."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"

    def breaches(self, value: float, limit: float) -> bool:
        """
        Whether the value is on the wrong side.

        >>> Comparison.ABOVE.breaches(5, 5), Comparison.AT_LEAST.breaches(5, 5)
        (False, True)
        >>> Comparison.BELOW.breaches(4, 5)
        True
        """
        if self is Comparison.ABOVE:
            return value > limit
        return value >= limit if self is Comparison.AT_LEAST else value < limit

    @property
    def worst(self) -> str:
        """The aggregation of Prometheus that keeps the worst of several values."""
        return "min" if self is Comparison.BELOW else "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """
    What a value is held against, in the metric's own unit: `times`, by a setting, by a gauge, as given.

    `setting` is a threshold of the policy, lengths in seconds. `gauge` is a metric whose series is
    the limit where it has the same labels `on`; of several the worst for the value counts, the one that
    is breached first. A limit that is only `times` can be set by the site, by the alert's name:
    `policy.alert_limits`.
    """

    times: float = 1.0
    setting: str = ""
    gauge: str = ""
    on: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """Whether it is a number of the alert's own, which the site may set."""
        return not self.setting and not self.gauge


# How long an alert stays after its last breach, if its rule says nothing else.
KEEP: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """
    When a metric should wake somebody.

    Args:
        name: of the alert, and of its runbook.
        summary: one line; `{label}` stands for a label of the identity, `{value}` and `{limit}` for the
            numbers, in the words of the metric's unit.
        description: what it means, with the numbers; the metric's definition follows it.
        link: the page that shows it, with its filters; labels are quoted.
        limit: what the value is held against.
        comparison: on which side it breaches.
        identity: labels that tell one alert from another; never one whose value changes. Series that
            differ in others only are one alert, and the worst of them counts.
        match: further labels that the series has.
        hold: how long a breach lasts before it is told.
        window: a missing value is the last one for so long.
        keep: how long the alert stays after the last breach.
        severity: how urgent.
        fine_if_undefined: the metric is undefined where all is well, as a time to the cap while nothing
            grows; otherwise an undefined value is unknown, and what fired stays.
        counted: a gauge with the labels of the identity, told as `{count}`: how many it is about.
        facts: further annotations, for programs; `{number}` is the value as a whole number.
        example: the annotation that names who it is about; only where the ledger tells it itself, because
            a name in a series would make a new one with each workload.
        inhibited_by: alerts which say the same louder; where one fires with the same labels, this one is
            not told.

    Raises:
        PolicyError: the limit is joined on a label that the identity does not have.
    """

    name: str
    summary: str
    description: str
    link: str
    limit: Limit
    comparison: Comparison = Comparison.ABOVE
    identity: tuple[str, ...] = ()
    match: Mapping[str, str] = field(default_factory=dict)
    hold: timedelta = timedelta(minutes=1)
    window: timedelta = timedelta(minutes=15)
    keep: timedelta = KEEP
    severity: Severity = Severity.WARNING
    fine_if_undefined: bool = False
    counted: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    inhibited_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        strangers = set(self.limit.on) - set(self.identity)
        if strangers:
            message = f"alert {self.name}: limit on {sorted(strangers)}, which its identity does not have"
            raise PolicyError(message)
