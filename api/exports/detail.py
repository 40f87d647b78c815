"""Every line of a month as a row: what CSV and Parquet hold, and the sheet `detail` of the workbook."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from analytics.chargeback.line import About, Line
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.quota_lines import NOTE_COSTS, NOTES
from analytics.chargeback.statement import COSTS
from analytics.wastage.causes import Cause
from api.exports.gpu_hours import DIGITS, gpu_hours
from api.exports.table import Column, Kind, Table, Value

_DIMENSIONS: Final = {
    "kind": "held, idle, idle_share, unavailable, unavailable_share, overlap, quota, loss_adjustment,"
    " correction, shared, preemption_credit or preemption_charge",
    "cluster": "the cluster",
    "team": "the team, as it was called when the month ended; names such as __idle__ stand for nobody's",
    "project": "the project, where one is known",
    "user": "the user, where one is known",
    "queue": "the queue",
    "gpu_model": "the GPU's model",
}
# What each of COSTS is.
ABOUT_COSTS: Final = (
    "GPU-hours at list price",
    "at the negotiated price",
    "at the price with commitments spread over their use",
    "what is invoiced: the effective cost in a chargeback, 0 in a showback",
)
# What each of NOTES is.
ABOUT_NOTES: Final = (
    "quota of the team that others used",
    "quota of others that the team used",
    "quota that was neither used nor lent",
)


ABOUT_CAUSES: Final = {
    Cause.USEFUL: "held while running, with activity, and not lost later",
    Cause.GANG_HOLD: "held by a gang that was not complete",
    Cause.STARTUP: "held from the binding until it ran, within the limit",
    Cause.STARTUP_OVER_LIMIT: "held from the binding until it ran, beyond the limit",
    Cause.DRAINING: "held after its end, until it was released",
    Cause.BACKOFF: "held while a container waited to be started again",
    Cause.INFRA_LOST: "ran, and was lost with its node",
    Cause.PREEMPTED_LOST: "ran, and was lost by preemption",
    Cause.CRASH_LOST: "ran, and was lost in a crash",
    Cause.IDLE: "ran, and the GPU did nothing",
    Cause.RESIDENT_IDLE: "ran with memory in use, and the GPU did nothing",
    Cause.UNKNOWN: "ran, and nobody saw whether the GPU did anything",
}


@dataclass(frozen=True, slots=True)
class Of:
    """What every line of a statement shares."""

    statement: MonthStatement

    @property
    def priced(self) -> bool:
        """Whether there is money."""
        return not self.statement.no_money_because

    @property
    def sha256(self) -> str | None:
        """The hash of a closed month."""
        return None if self.statement.closing is None else self.statement.closing.sha256

    def causes(self, line: Line) -> Mapping[str, int] | None:
        """Held time by cause; None where nobody knows any, or where the line is of no held time."""
        if self.statement.no_causes_because or not any(line.causes.values()):
            return None
        return line.causes


Give = Callable[[Line, Of], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column, and what stands in it for a line."""

    column: Column
    give: Give


def detail(statement: MonthStatement, *, without: Collection[str] = ()) -> Table:
    """A row per line, in the statement's order; sums of its costs are the statement's, to the cent."""
    of = Of(statement)
    fields = [field for field in detail_fields(statement.currency.digits) if field.column.name not in without]
    rows = (tuple(field.give(line, of) for field in fields) for line in statement.lines)
    return Table(columns=[field.column for field in fields], rows=rows)


def detail_fields(money_digits: int) -> list[Field]:
    """The columns of the detail, in their order."""
    return [
        _text("month", "the month of the statement", lambda _, of: of.statement.month),
        Field(
            column=Column(name="day", kind=Kind.DAY, about="the day in the billing zone"),
            give=lambda line, _: line.row.day or None,
        ),
        *(_text(name, about, _dimension(name)) for name, about in _DIMENSIONS.items()),
        _text("cost_centre", "who pays for the team", lambda line, of: cost_centre(line, of.statement)),
        _text("corrects_month", "of a correction: the closed month", _about(lambda about: about.month)),
        Field(
            column=Column(name="corrects_day", kind=Kind.DAY, about="of a correction: the day it is about"),
            give=_about(lambda about: about.day or None),
        ),
        _text("corrects_kind", "of a correction: the kind of its line", _about(lambda about: about.kind)),
        Field(
            column=Column(name="correction_number", kind=Kind.INTEGER, about="which one of that month"),
            give=_about(lambda about: about.number),
        ),
        Field(
            column=Column(
                name="micro_gpu_ms", kind=Kind.INTEGER, about="GPU-time exactly, in micro-GPU-milliseconds"
            ),
            give=lambda line, _: line.row.micro_gpu_ms,
        ),
        hours_field("gpu_hours", "the same in GPU-hours", lambda line, _: line.row.micro_gpu_ms),
        *(hours_field(f"{cause}_gpu_hours", about, caused(cause)) for cause, about in ABOUT_CAUSES.items()),
        hours_field("unattributed_gpu_hours", "held, with no cause known yet", unattributed),
        *(
            hours_field(f"{name}_gpu_hours", about, noted(place))
            for place, (name, about) in enumerate(zip(NOTES, ABOUT_NOTES, strict=True))
        ),
        *(
            money_field(name, about, money_digits, costing(name))
            for name, about in zip(COSTS, ABOUT_COSTS, strict=True)
        ),
        *(
            money_field(name, "its worth at the pool's average price; in no sum", money_digits, worth(place))
            for place, name in enumerate(NOTE_COSTS)
        ),
        _text(
            "currency",
            "of all amounts",
            lambda _, of: of.statement.currency.code if of.priced else None,
        ),
        _text(
            "prices",
            "the rows of the price book that count here",
            lambda line, of: " ".join(line.row.prices) if of.priced else None,
        ),
        _text("statement_sha256", "the closed statement's hash; empty while open", lambda _, of: of.sha256),
    ]


def cost_centre(line: Line, statement: MonthStatement) -> str | None:
    """Who pays for the line's team."""
    return statement.cost_centres.get(line.row.team) or None


def caused(cause: str) -> Callable[[Line, Of], int | None]:
    """Held time of one cause, micro-GPU-milliseconds."""

    def give(line: Line, of: Of) -> int | None:
        causes = of.causes(line)
        return None if causes is None else amount_of(cause, causes)

    return give


def amount_of(cause: str, causes: Mapping[str, int]) -> int | None:
    """Time of a cause; None for useful time where it ran and nobody saw whether it did anything."""
    amount = causes.get(cause, 0)
    return None if cause == Cause.USEFUL and not amount and causes.get(Cause.UNKNOWN) else amount


def unattributed(line: Line, of: Of) -> int | None:
    """Held time without a cause, micro-GPU-milliseconds."""
    if of.statement.no_causes_because or not line.is_held:
        return None
    return line.row.micro_gpu_ms - sum(line.causes.values())


def noted(place: int) -> Callable[[Line, Of], int | None]:
    """What a quota lent, borrowed or left unused, micro-GPU-milliseconds."""
    return lambda line, _: None if line.quota is None else line.quota[place]


def worth(place: int) -> Give:
    """What that was worth."""
    return lambda line, of: line.worth[place] if line.worth and of.priced else None


def costing(name: str) -> Give:
    """One of the costs; None without prices, for unknown is not 0."""
    return lambda line, of: getattr(line.row, name) if of.priced else None


def hours_field(name: str, about: str, micro_gpu_ms: Callable[[Line, Of], int | None]) -> Field:
    """A column of GPU-hours."""
    column = Column(name=name, kind=Kind.HOURS, digits=DIGITS, about=about)
    return Field(column=column, give=lambda line, of: gpu_hours(micro_gpu_ms(line, of)))


def money_field(name: str, about: str, digits: int, give: Give) -> Field:
    """A column of amounts."""
    return Field(column=Column(name=name, kind=Kind.DECIMAL, digits=digits, about=about), give=give)


def _text(name: str, about: str, give: Give) -> Field:
    return Field(column=Column(name=name, about=about), give=give)


def _dimension(name: str) -> Give:
    return lambda line, _: getattr(line.row, name) or None


def _about(give: Callable[[About], Value]) -> Give:
    return lambda line, _: None if line.about is None else give(line.about)
