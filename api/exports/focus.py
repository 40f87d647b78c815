"""
A month as FOCUS 1.4 Cost and Usage rows with split cost allocation, and columns of ours that begin with `x_`.

What is split: the GPUs of one model in one cluster on one day are an *origin charge*. Its parts, what each
owner held and what nobody held, are the *allocated charges*; the origin itself is not in the file, so that
nothing counts twice. GPU-time that was held twice is taken off as a charge of its own.

Source: FOCUS 1.4, Cost and Usage, and its handling of data generator-calculated split cost allocation
(https://focus.finops.org). docs/finance.md has the columns; docs/adr/0046 says why they are filled so.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from analytics.chargeback.capacity import Kind as LineKind
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.statement import Billing
from api.exports.detail import Field as DetailField
from api.exports.detail import Of, detail_fields
from api.exports.focus_charge import RATIO_DIGITS, Charge, charges
from api.exports.gpu_hours import DIGITS, gpu_hours
from api.exports.table import Column, Kind, Table, Value
from domain.errors import RefusedError
from domain.window import format_instant

# Described in docs/finance.md under this name.
METHOD_ID: Final = "gpuledger-gpu-time-v1"
UNIT: Final = "GPU-Hours"
# Of the columns of the detail, those that FOCUS has its own for.
_IN_FOCUS: Final = frozenset({"gpu_hours", "list_cost", "contracted_cost", "effective_cost", "billed_cost",
                              "currency"})  # fmt: skip

Give = Callable[[Charge, Of], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column, and what stands in it for a charge."""

    column: Column
    give: Give


def focus(statement: MonthStatement) -> Table:
    """
    A row per line.

    Raises:
        RefusedError: there are no prices: in FOCUS a cost is never null, and unknown is not 0.
    """
    if statement.no_money_because:
        message = (
            f"FOCUS of {statement.month}: {statement.no_money_because}; its costs may not be null, so set"
            " prices or take csv, parquet or xlsx"
        )
        raise RefusedError(message)
    of, fields = Of(statement), focus_fields(statement.currency.digits)
    rows = (tuple(field.give(charge, of) for field in fields) for charge in charges(statement))
    return Table(columns=[field.column for field in fields], rows=rows)


def focus_fields(money_digits: int) -> list[Field]:
    """FOCUS' columns by their names, then ours."""
    origin = _text(
        "x_OriginChargeId",
        "the charge that was split; the rows that have it sum to it",
        lambda charge, _: charge.origin or None,
    )
    ours = [_ours(field) for field in detail_fields(money_digits) if field.column.name not in _IN_FOCUS]
    return [*_focus(money_digits), *ours, origin]


def _focus(money_digits: int) -> list[Field]:
    def cost(name: str, about: str, attribute: str) -> Field:
        column = Column(name=name, kind=Kind.DECIMAL, digits=money_digits, about=about)
        return Field(column=column, give=lambda charge, _: getattr(charge.line.row, attribute))

    return [
        _text("AllocatedMethodDetails", "the part of the origin charge, and its GPU-hours", _details),
        _text("AllocatedMethodId", "how it was split", lambda charge, _: _split(charge, METHOD_ID)),
        _text(
            "AllocatedResourceId",
            "team/project/user/queue; null for what nobody held",
            lambda charge, _: charge.allocated_to or None,
        ),
        _text(
            "AllocatedResourceName",
            "the team; null for what nobody held",
            lambda charge, _: charge.line.row.team if charge.allocated_to else None,
        ),
        _text("AllocatedTags", "team, project, user and queue as JSON", _tags),
        cost("BilledCost", "the billed cost: 0 in a showback", "billed_cost"),
        _text(
            "BillingAccountId",
            "`money.billing_account`",
            lambda _, of: of.statement.agreement.billing_account,
        ),
        _provider("BillingAccountName"),
        _text("BillingCurrency", "the statement's currency", lambda _, of: of.statement.currency.code),
        _instant("BillingPeriodEnd", "the month's end in the billing zone", lambda c: c.billing_end_ms),
        _instant("BillingPeriodStart", "its begin", lambda c: c.billing_start_ms),
        _text(
            "ChargeCategory",
            "Usage; Adjustment for what is not GPU-time that was there",
            lambda charge, _: "Usage" if charge.is_usage else "Adjustment",
        ),
        _text(
            "ChargeClass",
            "Correction where a closed month is corrected",
            lambda charge, _: "Correction" if charge.corrects else None,
        ),
        _text("ChargeDescription", "the origin charge in words", _description),
        _same("ChargeFrequency", "always", "Usage-Based"),
        _instant("ChargePeriodEnd", "the day's end, also of a day corrected", lambda c: c.end_ms),
        _instant("ChargePeriodStart", "its begin", lambda c: c.start_ms),
        _hours("ConsumedQuantity", "GPU-hours of usage", lambda c: c.is_usage),
        _unit("ConsumedUnit", lambda c: c.is_usage),
        cost("ContractedCost", "the contracted cost", "contracted_cost"),
        cost("EffectiveCost", "the effective cost", "effective_cost"),
        _provider("HostProviderName"),
        _text("InvoiceId", "the closed statement, in a chargeback", _invoice),
        _provider("InvoiceIssuerName"),
        cost("ListCost", "the list cost", "list_cost"),
        _hours("PricingQuantity", "GPU-hours; negative where taken off", _has_time),
        _unit("PricingUnit", _has_time),
        _text("ResourceId", "cluster/model: the GPUs that were split", lambda charge, _: _pool(charge)),
        _text("ResourceName", "the same", lambda charge, _: _pool(charge)),
        _text("ResourceType", "of every resource", lambda charge, _: _split(charge, "GPU pool")),
        _same("ServiceCategory", "always", "Compute"),
        _same("ServiceName", "always", "GPU time"),
        _provider("ServiceProviderName"),
        _same("ServiceSubcategory", "always", "Containers"),
        _text("SkuId", "the GPU model", lambda charge, _: _sku(charge)),
        _text("SkuMeter", "what is metered", lambda charge, _: "GPU time" if _has_time(charge) else None),
        _text("SkuPriceId", "the GPU model", lambda charge, _: _sku(charge)),
        _text("SubAccountId", "the cluster", lambda charge, _: charge.line.row.cluster or None),
        _text("SubAccountName", "the cluster", lambda charge, _: charge.line.row.cluster or None),
    ]  # fmt: skip


def _text(name: str, about: str, give: Give) -> Field:
    return Field(column=Column(name=name, about=about), give=give)


def _same(name: str, about: str, value: str) -> Field:
    return _text(name, f"{about}: `{value}`", lambda _, __: value)


def _provider(name: str) -> Field:
    return _text(name, "`money.provider`", lambda _, of: of.statement.agreement.provider)


def _instant(name: str, about: str, at_ms: Callable[[Charge], int]) -> Field:
    # FOCUS writes whole seconds.
    return _text(name, about, lambda charge, _: f"{format_instant(at_ms(charge))[:19]}Z")


def _hours(name: str, about: str, holds: Callable[[Charge], bool]) -> Field:
    column = Column(name=name, kind=Kind.HOURS, digits=DIGITS, about=about)
    return Field(
        column=column,
        give=lambda charge, _: gpu_hours(charge.line.row.micro_gpu_ms) if holds(charge) else None,
    )


def _unit(name: str, holds: Callable[[Charge], bool]) -> Field:
    return _text(name, f"`{UNIT}`", lambda charge, _: UNIT if holds(charge) else None)


def _has_time(charge: Charge) -> bool:
    return bool(charge.origin)


def _split(charge: Charge, value: str) -> str | None:
    return value if charge.origin else None


def _pool(charge: Charge) -> str | None:
    return f"{charge.line.row.cluster}/{charge.line.row.gpu_model}" if charge.origin else None


def _sku(charge: Charge) -> str | None:
    return (charge.line.row.gpu_model or "unknown") if charge.origin else None


def _details(charge: Charge, _: Of) -> str | None:
    if charge.ratio is None:
        return None
    # Written by hand: a double would lose digits of both.
    hours = gpu_hours(charge.line.row.micro_gpu_ms)
    return (
        f'{{"Elements":[{{"AllocatedRatio":{charge.ratio:.{RATIO_DIGITS}f},"UsageUnit":"{UNIT}",'
        f'"UsageQuantity":{hours:.{DIGITS}f}}}]}}'
    )


def _tags(charge: Charge, _: Of) -> str | None:
    if not charge.allocated_to:
        return None
    names = ("team", "project", "user", "queue")
    told = {name: value for name in names if (value := getattr(charge.line.row, name))}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _description(charge: Charge, _: Of) -> str:
    row = charge.line.row
    what = f"GPU time of {row.gpu_model or 'an unknown model'} in {row.cluster}"
    if charge.kind == LineKind.OVERLAP:
        return f"{what} that was held twice, taken off"
    if charge.origin:
        return what
    return charge.kind.replace("_", " ").capitalize()


def _invoice(_: Charge, of: Of) -> str | None:
    closed = of.statement.billing is Billing.CHARGEBACK and of.sha256
    return f"{of.statement.month}-{of.sha256[:12]}" if closed and of.sha256 else None


def _ours(field: DetailField) -> Field:
    column = field.column
    named = Column(name=our_name(column.name), kind=column.kind, digits=column.digits, about=column.about)
    return Field(column=named, give=lambda charge, of: field.give(charge.line, of))


def our_name(name: str) -> str:
    """
    A column of ours as FOCUS wants it: `x_` and Pascal case.

    >>> our_name("useful_gpu_hours"), our_name("micro_gpu_ms")
    ('x_UsefulGpuHours', 'x_MicroGpuMs')
    """
    return f"x_{''.join(part.capitalize() for part in name.split('_'))}"
