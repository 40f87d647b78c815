"""A month with a line of each kind, in which sums can be checked by hand."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.capacity import Hours
from analytics.chargeback.line import About, Line
from analytics.chargeback.month_statement import Check, Closing, MonthStatement
from analytics.chargeback.quota_lines import QuotaTime
from analytics.chargeback.statement import Billing, Row
from analytics.wastage.causes import Cause
from domain.calendar import billing_zone, month
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, Currency, Price, PriceBook
from domain.window import MS_PER_HOUR, parse_instant

HOUR = MICRO_GPU_MS_PER_GPU_HOUR
PRICE = Price(
    listed=Decimal("2.50"),
    contracted=Decimal(2),
    valid_from_ms=0,
    gpu_model="H100",
    pool="spare-*",
    mig_profile="1g.10gb",
    note="what was bought",
)
AGREED = Agreement(
    currency=Currency.of("EUR"),
    book=PriceBook((PRICE,)),
    zone=billing_zone("Europe/Berlin"),
    zone_name="Europe/Berlin",
    billing=Billing.CHARGEBACK,
)
OCTOBER = month("2026-10", AGREED.zone)
HOURS = Hours(
    capacity=27 * HOUR + HOUR // 3,
    held=13 * HOUR + HOUR // 3,
    idle=14 * HOUR,
    unavailable=HOUR,
    overlap=HOUR,
)


def row(kind: str, team: str, micro_gpu_ms: int, effective: str, **more: str) -> Row:
    """A row of the first of October; its list cost is a quarter above what it costs."""
    cost = Decimal(effective)
    told = {"day": "2026-10-01", "cluster": "north", "gpu_model": "H100"} | more
    return Row(
        kind=kind,
        team=team,
        micro_gpu_ms=micro_gpu_ms,
        list_cost=(cost * Decimal("1.25")).quantize(Decimal("0.01")),
        contracted_cost=cost,
        effective_cost=cost,
        billed_cost=cost,
        prices=(PRICE.reference,) if micro_gpu_ms else (),
        **told,
    )


def lines() -> Iterator[Line]:
    """A formula as a user, a third of an hour, idle, an overlap, quota, a loss, corrections, money alone."""
    ada = {"project": "llm", "user": "=cmd|'/c calc'!A1", "queue": "q-nlp"}
    yield Line(
        row=row("held", "nlp", 12 * HOUR, "24.00", **ada),
        causes={Cause.USEFUL: 9 * HOUR, Cause.IDLE: 2 * HOUR},
    )
    yield Line(row=row("held", "@vision", HOUR // 3, "0.67"), causes={Cause.UNKNOWN: HOUR // 3})
    yield Line(row=row("idle", "__idle__", 11 * HOUR, "22.00"), causes={})
    yield Line(row=row("idle_share", "nlp", 2 * HOUR, "4.00"), causes={})
    yield Line(row=row("unavailable", "__unavailable__", HOUR, "2.00"), causes={})
    yield Line(row=row("overlap", "__overlap__", -HOUR, "-2.00"), causes={})
    yield Line(row=row("held", "nlp", HOUR, "0.00", gpu_model="", cluster="south"), causes={})
    yield Line(
        row=row("quota", "nlp", 0, "0.00", queue="q-nlp"),
        causes={},
        quota=QuotaTime(HOUR, 2 * HOUR, 3 * HOUR),
        worth=(Decimal("2.00"), Decimal("4.00"), None),
    )
    yield Line(
        row=row("loss_adjustment", "nlp", 0, "0.00", day="2026-10-02"),
        causes={Cause.USEFUL: -HOUR, Cause.CRASH_LOST: HOUR},
    )
    yield Line(
        row=row("correction", "nlp", -3 * HOUR, "-6.00", day="2026-10-05"),
        causes={Cause.USEFUL: -3 * HOUR},
        about=About(month="2026-09", day="2026-09-14", kind="held", number=1),
    )
    yield Line(row=row("shared", "nlp", 0, "100.01", day="2026-10-31", cluster="", gpu_model=""), causes={})
    yield Line(row=row("preemption_credit", "nlp", 0, "-1.50"), causes={})


def october(**changes: object) -> MonthStatement:
    """The month, open at its end."""
    made = MonthStatement(
        month="2026-10",
        zone_name="Europe/Berlin",
        start_ms=OCTOBER.start_ms,
        end_ms=OCTOBER.end_ms,
        whole_end_ms=OCTOBER.end_ms,
        as_of_ms=OCTOBER.end_ms + MS_PER_HOUR,
        agreement=AGREED,
        lines=tuple(lines()),
        hours=HOURS,
        coverage=1.0,
        cost_centres={"nlp": "CC-7"},
        checks=(Check(name="hours", left="27.333", right="27.333", holds=True, words="hours balance"),),
        versions={"price_book": "abc"},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def closed_october(**changes: object) -> MonthStatement:
    """The same, closed."""
    closing = Closing(
        sha256="5f" * 32,
        closed_ms=parse_instant("2026-11-03T09:00:00Z"),
        closed_by="=finance",
        reason="",
        content=b"{}\n",
    )
    return october(closing=closing, **changes)
