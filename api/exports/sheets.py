"""A month as the sheets of a workbook: summary, detail, price book, reconciliation, method."""

from collections.abc import Iterator, Mapping

from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.usage import Unknown
from api.exports.detail import detail
from api.exports.gpu_hours import DIGITS, gpu_hours
from api.exports.summary import by_kind, by_team
from api.exports.table import Column, Kind, Table
from api.exports.workbook import Sheet, workbook
from domain.money import Price
from domain.observed import coverage_words
from domain.window import format_instant, from_ms

SHEETS = ("summary", "detail", "price book", "reconciliation", "method")
# Which GPUs a price is for.
_CONDITIONS = ("gpu_model", "flavor", "pool", "mig_profile", "capacity_type", "node_labels")


def statement_workbook(statement: MonthStatement) -> bytes:
    """The file, as of the close or of the question: written twice, it is the same."""
    return workbook(_sheets(statement), created=from_ms(statement.as_of_ms))


def head(statement: MonthStatement) -> list[str]:
    """What month it is, of whom, and in which state, a sentence each."""
    start, end = format_instant(statement.start_ms), format_instant(statement.end_ms)
    said = [
        f"{statement.month} of {statement.zone_name}: {start} to {end}, {statement.billing}",
        state(statement),
    ]
    if statement.no_money_because:
        said.append(f"GPU-hours only: {statement.no_money_because}")
    else:
        said.append(f"Amounts in {statement.currency.code}")
    missing = coverage_words(statement.coverage, windowed=True)
    if missing:
        said.append(f"Not complete: {missing}")
    return said


def state(statement: MonthStatement) -> str:
    """Open, or closed when and by whom with which hash, as a sentence."""
    closing = statement.closing
    if closing is None:
        return f"Open, as of {format_instant(statement.as_of_ms)}: figures may still change"
    forced = f", in spite of the reconciliation because: {closing.reason}" if closing.reason else ""
    at = format_instant(closing.closed_ms)
    return f"Closed at {at} by {closing.closed_by}{forced}; SHA-256 {closing.sha256}"


def _sheets(statement: MonthStatement) -> Iterator[Sheet]:
    yield Sheet(name="summary", above=head(statement), table=by_team(statement))
    # Exact GPU-time has more digits than a spreadsheet keeps.
    yield Sheet(name="detail", table=detail(statement, without=("micro_gpu_ms",)))
    yield Sheet(name="price book", table=_price_book(statement.prices))
    yield Sheet(name="reconciliation", above=_balance(statement), table=_checks(statement))
    yield Sheet(name="from lines to invoice", table=by_kind(statement))
    yield Sheet(name="method", table=_method(statement))


def _price_book(prices: Mapping[str, Price]) -> Table:
    digits = max((_digits(price) for price in prices.values()), default=0)
    columns = [
        Column(name="reference"),
        *(Column(name=name) for name in _CONDITIONS),
        *(
            Column(name=name, kind=Kind.DECIMAL, digits=digits)
            for name in ("list", "contracted", "effective")
        ),
        Column(name="valid_from", kind=Kind.INSTANT),
        Column(name="valid_to", kind=Kind.INSTANT),
        Column(name="note"),
    ]
    rows = [
        (
            reference,
            price.gpu_model,
            price.flavor,
            price.pool,
            price.mig_profile,
            price.capacity_type or "*",
            ";".join(f"{name}={value}" for name, value in sorted(price.node_labels)) or "*",
            price.listed,
            price.contracted_price,
            price.effective_price,
            price.valid_from_ms,
            price.valid_to_ms,
            price.note,
        )
        for reference, price in prices.items()
    ]
    return Table(columns=columns, rows=rows)


def _digits(price: Price) -> int:
    amounts = (price.listed, price.contracted_price, price.effective_price)
    return max(max(0, -int(amount.as_tuple().exponent)) for amount in amounts)


def _balance(statement: MonthStatement) -> list[str]:
    hours = statement.hours
    if hours is None:
        return ["The books balance over whole clusters; these are the lines of some teams."]
    part = {name: f"{gpu_hours(getattr(hours, name)):,.{DIGITS}f}" for name in ("capacity", "held", "idle",
            "unavailable", "overlap", "difference")}  # fmt: skip
    sentence = (
        f"GPU-hours: capacity {part['capacity']} = held {part['held']} + idle {part['idle']} + unavailable"
        f" {part['unavailable']} - overlap {part['overlap']}; difference {part['difference']}"
    )
    return [sentence]


def _checks(statement: MonthStatement) -> Table:
    columns = [
        *(Column(name=name) for name in ("check", "left", "right")),
        Column(name="holds", kind=Kind.FLAG),
        Column(name="forced", kind=Kind.FLAG),
        Column(name="words"),
    ]
    rows = [
        (check.name, check.left, check.right, check.holds, check.forced, check.words)
        for check in statement.checks
    ]
    return Table(columns=columns, rows=rows)


def _method(statement: MonthStatement) -> Table:
    said = [("method", sentence) for sentence in statement.method]
    said += [(f"version of {name}", version) for name, version in sorted(statement.versions.items())]
    said += [("not known", _unknown(each)) for each in statement.unknown]
    return Table(columns=[Column(name="what"), Column(name="words")], rows=said)


def _unknown(each: Unknown) -> str:
    over = f"{format_instant(each.start_ms)} to {format_instant(each.end_ms)}"
    return f"{each.cluster}/{each.node} {over}: {each.because}"
