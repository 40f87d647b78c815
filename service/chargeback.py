"""The statement of a month: who held what, what it was good for, and what it costs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.capacity import Hours, Kind
from analytics.chargeback.distribution import Distribution, Pool
from analytics.chargeback.quota_lines import (
    NOTE_COSTS,
    NOTES,
    QUOTA,
    QuotaLine,
    QuotaTime,
    at_average_price,
    average_prices,
)
from analytics.chargeback.settle import settle
from analytics.chargeback.statement import COSTS, DIMENSIONS, Row, Statement, Terms
from analytics.chargeback.usage import Unknown
from analytics.wastage.causes import Cause
from api.answers import Filters, Question, Record
from api.parameters import ALIASES, check_labels
from domain.calendar import Period, Unit, cut, month
from domain.errors import PolicyError, UsageError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, Price, PriceBook
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import Window, format_instant
from service.caused_time import LOSS_ADJUSTMENT, Causes, caused_time
from service.held_time import first_reading_ms, node_stretches, stays, unread
from service.observation import share_of_window
from service.quota_time import borrowed_from_nobody, quota_by_pool, quota_lines
from store.embedded import Store

NO_PRICES: Final = "no prices are set: add money.prices or money.price_file to the settings"
NO_CAUSES: Final = "no cause is known yet of what was held in these days"
CURRENT: Final = "current"
NO_QUOTA: Final = "no quota is known in these days"
_NONE_HERE: Final = (
    "no line of quota fits the filters: a quota has a team, a queue, a model, and no user or project"
)
# Makes lines where nothing is priced; no amount of it is ever shown.
_UNPRICED: Final = PriceBook((Price(listed=Decimal(0), valid_from_ms=0),))
_NEVER_RENAMED: Final = Tenancy()
_USEFUL_OR_UNKNOWN: Final = frozenset({Cause.USEFUL, Cause.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    A row of the statement, with its held time by cause; a row of other kinds has none.

    A row of quota has what was lent, borrowed and left unused, and what that was worth instead.
    """

    row: Row
    causes: Causes
    quota: QuotaTime | None = None
    worth: tuple[Decimal | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A month settled. `no_money_because` and `no_causes_because` say why figures are missing."""

    statement: Statement
    lines: tuple[Line, ...]
    no_money_because: str
    no_causes_because: str


def document(  # noqa: PLR0913 - what a site agreed on, and what is asked, all named
    store: Store,
    agreement: Agreement,
    policy: Policy,
    *,
    label: str,
    question: Question,
    as_of_ms: int,
    tenancy: Tenancy = _NEVER_RENAMED,
) -> Record:
    """
    The statement of a month, or of its part before `as_of_ms`, as the API gives it.

    Args:
        policy: says after which silence a source counts as stale.
        label: such as 2026-10, or `current`.
        question: `by` None asks for every line; filters are by dimension of a line, teams by present name.
        tenancy: says what teams were called; a renamed one is one team, by its name when the period ends.

    Raises:
        UsageError: the month is none or has not begun, or there is no such dimension.
    """
    by = tuple(_dimension(name) for name in (DIMENSIONS if question.by is None else question.by))
    filters = {_dimension(name): values for name, values in question.filters.items()}
    check_labels([*by, *filters], DIMENSIONS)
    if label == CURRENT:
        label = cut(Window(start_ms=as_of_ms - 1, end_ms=as_of_ms), agreement.zone, Unit.MONTH)[0].label
    whole = _month(label, agreement, as_of_ms)
    period = Period(label=label, start_ms=whole.start_ms, end_ms=min(whole.end_ms, as_of_ms))
    found = settled(store, agreement, period)
    present = [replace(line.row, team=tenancy.present(line.row.team)) for line in found.lines]
    lines = [
        replace(line, row=replace(row, team=tenancy.called(row.team, period.end_ms)))
        for line, row in zip(found.lines, present, strict=True)
        if _fits(row, filters)
    ]
    quotas = [line for line in lines if line.quota is not None]
    no_commitment_because = "" if quotas else _NONE_HERE if filters else NO_QUOTA
    unseen_because = "" if lines else _unseen(store, filters, period)
    total = _figures(lines, found, agreement)
    total |= _unit_cost(total)
    if unseen_because:
        # Nobody looked: that is no zero.
        total |= {name: None for name, value in total.items() if not isinstance(value, bool)}
    coverage = _coverage(store, period, policy, filters.get("cluster", ()))
    over = period.end_ms == whole.end_ms
    from_nobody = borrowed_from_nobody(store, period.window) if quotas and not filters else None
    head = {
        "month": label,
        "as_of": format_instant(as_of_ms),
        "start_at": format_instant(period.start_ms),
        "end_at": format_instant(period.end_ms),
        "over": over,
        "complete": over and coverage == 1,
        "coverage": coverage,
        "nothing_because": unseen_because or (None if lines else _nothing(filters, label)),
        "zone": agreement.zone_name,
        "currency": None if found.no_money_because else agreement.currency.code,
        "billing": str(agreement.billing),
        "no_money_because": found.no_money_because or None,
        "no_causes_because": found.no_causes_because or None,
        "unused_commitment_gpu_hours": total["unused_commitment_gpu_hours"],
        "from_unassigned_gpu_hours": None if from_nobody is None else _gpu_hours(from_nobody),
        "no_commitment_because": no_commitment_because or None,
    }
    groups: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in lines:
        groups[tuple(getattr(line.row, name) for name in by)].append(line)
    by_kind: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_kind[line.row.kind].append(line)
    return head | {
        "total": total,
        "books": None if filters or unseen_because else _books(found.statement.hours),
        "by_kind": [
            {"kind": kind} | _figures(members, found, agreement) for kind, members in sorted(by_kind.items())
        ],
        "unknown": [] if filters else _unknown(found.statement.unknown),
        "rows": [
            dict(zip(by, key, strict=True))
            | _cost_centre(by, key, agreement, tenancy)
            | _figures(members, found, agreement)
            for key, members in sorted(groups.items())
        ],
    }


def _month(label: str, agreement: Agreement, as_of_ms: int) -> Period:
    try:
        whole = month(label, agreement.zone)
    except UsageError as cause:
        message = f"{cause}, or {CURRENT}"
        raise UsageError(message) from cause
    if whole.start_ms >= as_of_ms:
        message = (
            f"month {label!r} has not begun: in {agreement.zone_name} it begins at"
            f" {format_instant(whole.start_ms)}, and it is {format_instant(as_of_ms)}; ask for {CURRENT}"
            " or an earlier month"
        )
        raise UsageError(message)
    return whole


def settled(store: Store, agreement: Agreement, period: Period) -> Month:
    """A month, or its days until now, from what the store knows."""
    window, days = period.window, cut(period.window, agreement.zone, Unit.DAY)
    labels = {key for price in agreement.book.prices for key, _ in price.node_labels}
    held, there = stays(store, window), node_stretches(store, window, labels)
    quotas = quota_by_pool(store, days)
    terms = Terms(
        currency=agreement.currency,
        billing=agreement.billing,
        distribution=Distribution(
            policy=agreement.idle, unavailable_too=agreement.unavailable_too, quotas=quotas
        ),
    )

    def priced(book: PriceBook) -> Statement:
        made = settle(held, there, period=period, zone=agreement.zone, book=book, terms=terms)
        return replace(made, unknown=(*unread(store, window), *made.unknown))

    because = "" if agreement.book.prices else NO_PRICES
    try:
        found = priced(_UNPRICED if because else agreement.book)
    except PolicyError as missing:
        # Where a part has no price, every sum would be wrong: GPU-hours only, and the reason.
        because, found = str(missing), priced(_UNPRICED)
    causes = caused_time(store, days)
    no_causes_because = "" if causes or not found.hours.held else NO_CAUSES
    lines = [
        Line(row=row, causes=causes.pop(_key(row), {}) if row.kind == Kind.HELD else {}) for row in found.rows
    ]
    zero = agreement.currency.amount(0)
    free = dict.fromkeys(COSTS, zero)
    lines += [
        Line(row=Row(**dict(zip(DIMENSIONS, key, strict=True)), **free), causes=causes[key])  # type: ignore[arg-type]
        for key in sorted(causes)
    ]
    prices = average_prices(found.rows)
    lines += [_quota_line(line, prices, agreement) for line in quota_lines(store, days)]
    return Month(
        statement=found,
        lines=tuple(lines),
        no_money_because=because,
        no_causes_because=no_causes_because,
    )


def _quota_line(line: QuotaLine, prices: Mapping[Pool, Fraction], agreement: Agreement) -> Line:
    free = agreement.currency.amount(0)
    return Line(
        row=Row(
            day=line.day, kind=QUOTA, cluster=line.cluster, team=line.team, queue=line.queue,
            gpu_model=line.gpu_model,
            list_cost=free, contracted_cost=free, effective_cost=free, billed_cost=free,
        ),
        causes={},
        quota=line.time,
        worth=at_average_price(line, prices, agreement.currency),
    )  # fmt: skip


def _coverage(store: Store, period: Period, policy: Policy, clusters: Collection[str]) -> float | None:
    """The share of the days that was observed, as of every figure on samples; None where nothing ever was."""
    share = share_of_window(store, period.window, policy=policy, samples=True, clusters=clusters)
    if share is None:
        return None if first_reading_ms(store, clusters) is None else 0.0
    return float(share)


def _unseen(store: Store, filters: Filters, period: Period) -> str:
    """Why nothing can be said of these days, where no reading was before their end; else empty."""
    first_ms = first_reading_ms(store, filters.get("cluster", ()))
    if first_ms is None:
        return "" if filters else "no cluster was read yet: import a recording, or let serve read one"
    if first_ms < period.end_ms:
        return ""
    return (
        f"nothing of {period.label} was observed: clusters were first read at {format_instant(first_ms)};"
        " ask for that month or a later one"
    )


def _nothing(filters: Filters, label: str) -> str:
    """Why a statement of days that were observed has no line."""
    if filters:
        asked = ", ".join(f"{name} {' or '.join(values)}" for name, values in filters.items())
        return f"no line of {label} has {asked}: ask without filters to see which there are"
    return f"nothing was held in {label} and no node with GPUs is known then"


def _dimension(name: str) -> str:
    """The short words of the filters, and the words of other answers, count too."""
    return {"user_name": "user"}.get(name, ALIASES.get(name, name))


def _key(row: Row) -> tuple[str, ...]:
    return tuple(getattr(row, name) for name in DIMENSIONS)


def _fits(row: Row, filters: Filters) -> bool:
    return all(getattr(row, name) in values for name, values in filters.items())


def _figures(lines: Sequence[Line], found: Month, agreement: Agreement) -> Record:
    """
    The sums of some lines: GPU-hours, of them held and by cause, and costs; and of quota, where there is one.

    `loss_adjustment` is what was booked as useful on an earlier day and is not any more: that much was
    taken from useful here, and stands under what it counts as now.

    Held time whose cause nobody knows yet, because the causes lag or a record is set aside, stands
    under `unattributed`. Where there is some, or activity is unknown, useful and not useful are lower
    bounds.
    """
    held = sum(line.row.micro_gpu_ms for line in lines if line.row.kind == Kind.HELD)
    sums: dict[str, int] = dict.fromkeys(Cause, 0)
    for line in lines:
        for cause, amount in line.causes.items():
            sums[cause] = sums.get(cause, 0) + amount
    # Nothing said of what is held is not the same as nothing useful.
    known = not found.no_causes_because and (held == 0 or any(sums.values()))
    unattributed = held - sum(sums.values())
    not_useful = sum(amount for cause, amount in sums.items() if cause not in _USEFUL_OR_UNKNOWN)
    by_cause = {f"{cause}_gpu_hours": _gpu_hours(amount) if known else None for cause, amount in sums.items()}
    if sums[Cause.UNKNOWN] and not sums[Cause.USEFUL]:
        # It ran, and nobody saw whether it did anything.
        by_cause[f"{Cause.USEFUL}_gpu_hours"] = None
    costs: Mapping[str, Decimal | None] = {
        name: None
        if found.no_money_because
        else sum((getattr(line.row, name) for line in lines), agreement.currency.amount(0))
        for name in COSTS
    }
    return {
        "gpu_hours": _gpu_hours(sum(line.row.micro_gpu_ms for line in lines)),
        "held_gpu_hours": _gpu_hours(held),
        "not_useful_gpu_hours": _gpu_hours(not_useful) if known else None,
        **by_cause,
        "unattributed_gpu_hours": _gpu_hours(unattributed) if known else None,
        "loss_adjustment_gpu_hours": _gpu_hours(_adjusted(lines)) if known else None,
        "causes_lower_bound": known and (sums[Cause.UNKNOWN] > 0 or unattributed > 0),
        **costs,
        **_quota_figures(lines, found, agreement),
    }


def _adjusted(lines: Sequence[Line]) -> int:
    return -sum(line.causes.get(Cause.USEFUL, 0) for line in lines if line.row.kind == LOSS_ADJUSTMENT)


def _quota_figures(lines: Sequence[Line], found: Month, agreement: Agreement) -> Record:
    """What was lent, borrowed and left unused, GPU-hours and worth; None without any line of quota."""
    quotas = [(line.quota, line.worth) for line in lines if line.quota is not None]
    hours = {
        f"{name}_gpu_hours": _gpu_hours(sum(time[place] for time, _ in quotas)) if quotas else None
        for place, name in enumerate(NOTES)
    }
    costs: dict[str, Decimal | None] = dict.fromkeys(NOTE_COSTS)
    for place, name in enumerate(NOTE_COSTS):
        amounts = [worth[place] for _, worth in quotas]
        if amounts and None not in amounts and not found.no_money_because:
            costs[name] = sum((each for each in amounts if each is not None), agreement.currency.amount(0))
    return hours | costs


def _cost_centre(by: Sequence[str], key: Sequence[str], agreement: Agreement, tenancy: Tenancy) -> Record:
    if "team" not in by or not agreement.cost_centres:
        return {}
    team, told = key[by.index("team")], agreement.cost_centres
    return {"cost_centre": told.get(tenancy.present(team), told.get(team, ""))}


def _unit_cost(total: Mapping[str, Any]) -> Record:
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


def _books(hours: Hours) -> Record:
    parts = {f"{part.name}_gpu_hours": _gpu_hours(getattr(hours, part.name)) for part in fields(hours)}
    return parts | {"difference_gpu_hours": _gpu_hours(hours.difference)}


def _unknown(stretches: Iterable[Unknown]) -> list[Record]:
    """What is not known of which node, neighbouring stretches in one."""
    merged: list[Unknown] = []
    for each in sorted(stretches, key=lambda each: (each.cluster, each.node, each.because, each.start_ms)):
        last = merged[-1] if merged else None
        if (
            last is not None
            and replace(each, start_ms=last.start_ms, end_ms=last.end_ms) == last
            and (each.start_ms <= last.end_ms)
        ):
            merged[-1] = replace(last, end_ms=max(last.end_ms, each.end_ms))
        else:
            merged.append(each)
    return [
        {
            "cluster": each.cluster,
            "node": each.node,
            "start_at": format_instant(each.start_ms),
            "end_at": format_instant(each.end_ms),
            "because": each.because,
        }
        for each in merged
    ]


def _gpu_hours(micro_gpu_ms: int) -> float:
    return micro_gpu_ms / MICRO_GPU_MS_PER_GPU_HOUR
