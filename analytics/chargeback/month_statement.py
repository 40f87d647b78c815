"""A month as finance reads it: its lines, and all that they rest on; open, or closed with its bytes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.capacity import Hours
from analytics.chargeback.line import Line
from analytics.chargeback.statement import Billing
from analytics.chargeback.usage import Unknown
from domain.calendar import Period
from domain.money import Currency, Price

_METHOD: Final = (
    "GPU-time is micro-GPU times ms, in whole numbers: capacity = held + idle + unavailable - overlap.",
    "What happens on a node has the price that names the node most closely, then the newest.",
    "A day is the rounded sum until its end less that until its start, half to even.",
    "Within a day cents go to teams, then to rows, by largest remainder, carried to the next day.",
    "Held time has the cause that was known when its day ended; what was learnt later is a loss_adjustment.",
    "A closed month never changes: what is learnt later is a correction of the earliest open month after it.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One comparison of the reconciliation: two figures that must be equal, or a limit that must be kept.

    `may_be_forced` where somebody may close in spite of it, and say why; `forced` where somebody did.
    """

    name: str
    left: str
    right: str
    holds: bool
    words: str
    may_be_forced: bool = False
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """Who closed a month, when, and what was written: `content` has the fingerprint `sha256`."""

    sha256: str
    closed_ms: int
    closed_by: str
    reason: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthStatement:
    """
    The statement of a month, or of its part until `end_ms`.

    Teams are called as they were when it ends; `teams` has the name that was theirs when it was made, where
    that is another one. `hours` and `from_nobody` are micro-GPU-milliseconds, and None
    where the lines are a part of the month's. `corrected` are the corrections in it, by month and number;
    `exact_costs` what list, contracted and effective cost must come to, while it is open.
    """

    month: str
    zone_name: str
    start_ms: int
    end_ms: int
    whole_end_ms: int
    as_of_ms: int
    agreement: Agreement
    lines: tuple[Line, ...]
    hours: Hours | None
    no_money_because: str = ""
    no_causes_because: str = ""
    coverage: float | None = None
    teams: Mapping[str, str] = field(default_factory=dict)
    cost_centres: Mapping[str, str] = field(default_factory=dict)
    from_nobody: int | None = None
    unknown: tuple[Unknown, ...] = ()
    checks: tuple[Check, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    corrected: tuple[tuple[str, int], ...] = ()
    exact_costs: tuple[Decimal, ...] = ()
    closing: Closing | None = None

    @property
    def period(self) -> Period:
        """What it covers."""
        return Period(label=self.month, start_ms=self.start_ms, end_ms=self.end_ms)

    @property
    def over(self) -> bool:
        """Whether it covers the whole month."""
        return self.end_ms == self.whole_end_ms

    @property
    def currency(self) -> Currency:
        """In which its amounts are."""
        return self.agreement.currency

    @property
    def billing(self) -> Billing:
        """Whether teams pay it."""
        return self.agreement.billing

    @property
    def prices(self) -> Mapping[str, Price]:
        """The price book, by the references of lines."""
        return {price.reference: price for price in self.agreement.book.prices}

    @property
    def method(self) -> tuple[str, ...]:
        """How it was computed, in sentences."""
        return (*_METHOD, *self.agreement.in_words())

    def only(self, filters: Mapping[str, Collection[str]]) -> "MonthStatement":
        """The lines that have these dimensions, without what is told of the whole month, its bytes too."""
        if not filters:
            return self
        kept = tuple(
            line for line in self.lines if all(getattr(line.row, name) in filters[name] for name in filters)
        )
        return replace(
            self, lines=kept, hours=None, from_nobody=None, unknown=(), checks=(), exact_costs=(),
            closing=None if self.closing is None else replace(self.closing, content=b""),
        )  # fmt: skip
