"""
A month's statement as bytes, and back: the same statement always gives the same bytes.

JSON in UTF-8: keys in order, no blanks, a newline at the end. Whole numbers have all digits (readers that
take them as floats lose some); amounts are texts with all decimals;
instants are milliseconds since 1970 in UTC.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from decimal import Decimal
from typing import Any, Final, TypeAlias

from analytics.chargeback.agreement import Agreement, CostCentre
from analytics.chargeback.capacity import Hours
from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.extras import BorneBy, Preempted, SharedBy, SharedCost
from analytics.chargeback.line import About, Line
from analytics.chargeback.month_statement import Check, Closing, MonthStatement
from analytics.chargeback.quota_lines import QuotaTime
from analytics.chargeback.statement import COSTS, DIMENSIONS, Billing, Row
from analytics.chargeback.usage import Unknown
from domain.calendar import billing_zone
from domain.errors import DataError
from domain.money import CapacityType, Currency, Price, PriceBook

Json: TypeAlias = dict[str, Any]
FORMAT: Final = "gpuledger statement 1"
_PLAIN: Final = (
    "month", "zone_name", "start_ms", "end_ms", "whole_end_ms", "as_of_ms", "no_money_because",
    "no_causes_because", "coverage", "from_nobody",
)  # fmt: skip


def encode(statement: MonthStatement, *, closed_ms: int, closed_by: str, reason: str) -> Closing:
    """The bytes of a statement as it is closed, with their fingerprint."""
    told: Json = {
        "format": FORMAT,
        "closed_ms": closed_ms,
        "closed_by": closed_by,
        "reason": reason,
        **{name: getattr(statement, name) for name in _PLAIN},
        "agreement": agreement_record(statement.agreement),
        "lines": [_line_record(line) for line in statement.lines],
        "hours": None if statement.hours is None else asdict(statement.hours),
        "unknown": [asdict(each) for each in statement.unknown],
        "checks": [asdict(each) for each in statement.checks],
        "teams": dict(statement.teams),
        "cost_centres": dict(statement.cost_centres),
        "versions": dict(statement.versions),
        "corrected": [list(each) for each in statement.corrected],
        "method": list(statement.method),
    }
    content = dumped(told)
    return Closing(
        sha256=fingerprint(content), closed_ms=closed_ms, closed_by=closed_by, reason=reason, content=content
    )


def decode(content: bytes) -> MonthStatement:
    """
    The statement of such bytes.

    Raises:
        DataError: they are no statement that this version can read.
    """
    try:
        told: Json = json.loads(content)
        if told["format"] != FORMAT:
            message = (
                f"statement of format {told['format']!r}: expected {FORMAT!r}; install a newer gpuledger"
            )
            raise DataError(message)
        return MonthStatement(
            **{name: told[name] for name in _PLAIN},
            agreement=agreement_of(told["agreement"], told["zone_name"]),
            lines=tuple(map(_line, told["lines"])),
            hours=None if told["hours"] is None else Hours(**told["hours"]),
            unknown=tuple(Unknown(**each) for each in told["unknown"]),
            checks=tuple(Check(**each) for each in told["checks"]),
            teams=told["teams"],
            cost_centres=told["cost_centres"],
            versions=told["versions"],
            corrected=tuple((month, number) for month, number in told["corrected"]),
            closing=Closing(
                sha256=fingerprint(content),
                closed_ms=told["closed_ms"],
                closed_by=told["closed_by"],
                reason=told["reason"],
                content=content,
            ),
        )
    except (ValueError, KeyError, TypeError, ArithmeticError) as cause:
        message = (
            f"a statement of {len(content):,} bytes cannot be read: {cause!r}; restore a backup of the store"
        )
        raise DataError(message) from cause


def encode_lines(lines: Iterable[Line]) -> bytes:
    """Lines alone, as a correction is kept."""
    return dumped([_line_record(line) for line in lines])


def decode_lines(content: bytes) -> tuple[Line, ...]:
    """The lines of a correction."""
    return tuple(map(_line, json.loads(content)))


def dumped(told: object) -> bytes:
    """JSON that is the same for the same content."""
    return (
        json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
        + b"\n"
    )


def fingerprint(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def agreement_record(agreement: Agreement) -> Json:
    """All that was agreed on, without the name of the zone."""
    return {
        "currency": agreement.currency.code,
        "billing": str(agreement.billing),
        "idle": str(agreement.idle),
        "unavailable_too": agreement.unavailable_too,
        "close_coverage": agreement.close_coverage,
        "shared_costs": [asdict(each) | {"monthly": str(each.monthly)} for each in agreement.shared_costs],
        "preempted": str(agreement.preempted),
        "preempted_borne_by": str(agreement.preempted_borne_by),
        "provider": agreement.provider,
        "billing_account": agreement.billing_account,
        "prices": [_price_record(price) for price in agreement.book.prices],
        "cost_centres": {
            team: [asdict(each) for each in centres] for team, centres in agreement.cost_centres.items()
        },
    }


def agreement_of(told: Mapping[str, Any], zone_name: str) -> Agreement:
    """What was agreed on then."""
    usual = Agreement()
    return Agreement(
        currency=Currency.of(told["currency"]),
        book=PriceBook(tuple(map(_price, told["prices"]))),
        zone=billing_zone(zone_name),
        zone_name=zone_name,
        billing=Billing(told["billing"]),
        idle=IdlePolicy(told["idle"]),
        unavailable_too=told["unavailable_too"],
        close_coverage=told["close_coverage"],
        shared_costs=tuple(
            SharedCost(**each | {"monthly": Decimal(each["monthly"]), "by": SharedBy(each["by"])})
            for each in told["shared_costs"]
        ),
        preempted=Preempted(told["preempted"]),
        preempted_borne_by=BorneBy(told["preempted_borne_by"]),
        # Months that were closed before these were settings had their defaults.
        provider=told.get("provider", usual.provider),
        billing_account=told.get("billing_account", usual.billing_account),
        cost_centres={
            team: tuple(CostCentre(**each) for each in centres)
            for team, centres in told["cost_centres"].items()
        },
    )


def _price_record(price: Price) -> Json:
    told = {each.name: getattr(price, each.name) for each in fields(price)}
    if not price.note:
        del told["note"]
    amounts = {
        name: None if told[name] is None else str(told[name])
        for name in ("listed", "contracted", "effective")
    }
    return told | amounts | {"node_labels": dict(price.node_labels)}


def _price(told: Json) -> Price:
    amounts = {
        name: None if told[name] is None else Decimal(told[name])
        for name in ("listed", "contracted", "effective")
    }
    bought = told["capacity_type"]
    return Price(
        **told
        | amounts
        | {
            "node_labels": frozenset(told["node_labels"].items()),
            "capacity_type": None if bought is None else CapacityType(bought),
        }
    )


def _line_record(line: Line) -> Json:
    """What is empty, or 0, is left out; costs never."""
    row = line.row
    told: Json = {name: value for name in DIMENSIONS if (value := getattr(row, name))}
    told |= {name: str(getattr(row, name)) for name in COSTS}
    if row.micro_gpu_ms:
        told["micro_gpu_ms"] = row.micro_gpu_ms
    if row.prices:
        told["prices"] = list(row.prices)
    if line.causes:
        told["causes"] = {str(cause): amount for cause, amount in line.causes.items()}
    if line.quota is not None:
        told["quota"] = list(line.quota)
        told["worth"] = [None if worth is None else str(worth) for worth in line.worth]
    if line.about is not None:
        told["about"] = asdict(line.about)
    return told


def _line(told: Json) -> Line:
    row = Row(
        **{name: told.get(name, "") for name in DIMENSIONS},
        **{name: Decimal(told[name]) for name in COSTS},  # type: ignore[arg-type]
        micro_gpu_ms=told.get("micro_gpu_ms", 0),
        prices=tuple(told.get("prices", ())),
    )
    line = Line(row=row, causes=told.get("causes", {}))
    if "quota" in told:
        worth = tuple(None if each is None else Decimal(each) for each in told["worth"])
        line = replace(line, quota=QuotaTime(*told["quota"]), worth=worth)
    return replace(line, about=About(**told["about"])) if "about" in told else line
