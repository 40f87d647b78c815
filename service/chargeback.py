"""The statement of a month: who held what, what it was good for, and what it costs."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.capacity import Kind
from analytics.chargeback.distribution import Distribution, IdlePolicy, Pool
from analytics.chargeback.quota_lines import (
    QUOTA,
    QuotaLine,
    at_average_price,
)
from analytics.chargeback.settle import settle_sums
from analytics.chargeback.statement import COSTS, DIMENSIONS, Row, Statement, Terms
from api.answers import Filters, Question, Record
from api.parameters import ALIASES, check_labels
from domain.calendar import Period, Unit, cut, month
from domain.errors import PolicyError, UsageError
from domain.money import Price, PriceBook
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import Window, format_instant
from service.caused_time import caused_time, in_teams
from service.held_days import held_in
from service.held_time import first_reading_ms, unread
from service.observation import share_of_window
from service.quota_time import borrowed_from_nobody, quota_by_pool, quota_lines
from service.statement_figures import Line, Month, books, figures, gpu_hours, unit_cost, unknown_stretches
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
# Dimensions of which rows of whole teams tell as much as the finest ones.
_OF_TEAMS: Final = frozenset({"day", "kind", "team"})


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
    found = settled(store, agreement, period, of_teams={*by, *filters} <= _OF_TEAMS)
    present = {team: tenancy.present(team) for team in {line.row.team for line in found.lines}}
    called = {team: tenancy.called(name, period.end_ms) for team, name in present.items()}
    lines = [
        _of_team(line, called[line.row.team])
        for line in found.lines
        if _fits(_of_team(line, present[line.row.team]).row, filters)
    ]
    quotas = [line for line in lines if line.quota is not None]
    no_commitment_because = "" if quotas else _NONE_HERE if filters else NO_QUOTA
    unseen_because = "" if lines else _unseen(store, filters, period)
    total = figures(lines, found, agreement)
    total |= unit_cost(total)
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
        "from_unassigned_gpu_hours": None if from_nobody is None else gpu_hours(from_nobody),
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
        "books": None if filters or unseen_because else books(found.statement.hours),
        "by_kind": [
            {"kind": kind} | figures(members, found, agreement) for kind, members in sorted(by_kind.items())
        ],
        "unknown": [] if filters else unknown_stretches(found.statement.unknown),
        "rows": [
            dict(zip(by, key, strict=True))
            | _cost_centre(by, key, agreement, tenancy)
            | figures(members, found, agreement)
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


def settled(store: Store, agreement: Agreement, period: Period, *, of_teams: bool = False) -> Month:
    """
    A month, or its days until now, from what the store knows.

    Args:
        of_teams: whether rows of whole teams are enough, one for each cluster, model and day: amounts
            are apportioned to teams first, so that their sums are the same.
    """
    window, days = period.window, cut(period.window, agreement.zone, Unit.DAY)
    # Only a share of idle capacity is a second kind of row of a team.
    of_teams = of_teams and agreement.idle is IdlePolicy.NONE
    because = "" if agreement.book.prices else NO_PRICES
    held = held_in(store, agreement, days, fine=not of_teams)
    quotas = quota_by_pool(store, days)
    terms = Terms(
        currency=agreement.currency,
        billing=agreement.billing,
        distribution=Distribution(
            policy=agreement.idle, unavailable_too=agreement.unavailable_too, quotas=quotas
        ),
    )

    def priced(book: PriceBook) -> Statement:
        parts = [(part, cutter.at(book)) for part, cutter in held]
        made = settle_sums(parts, period=period, terms=terms)
        return replace(made, unknown=(*unread(store, window), *made.unknown))

    try:
        found = priced(_UNPRICED if because else agreement.book)
    except PolicyError as missing:
        # Where a part has no price, every sum would be wrong: GPU-hours only, and the reason.
        because, found = str(missing), priced(_UNPRICED)
    causes = caused_time(store, days)
    causes = in_teams(causes) if of_teams else causes
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
    lines += [_quota_line(line, found.average_prices, agreement) for line in quota_lines(store, days)]
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


def _of_team(line: Line, team: str) -> Line:
    return line if line.row.team == team else replace(line, row=replace(line.row, team=team))


def _fits(row: Row, filters: Filters) -> bool:
    return all(getattr(row, name) in values for name, values in filters.items())


def _cost_centre(by: Sequence[str], key: Sequence[str], agreement: Agreement, tenancy: Tenancy) -> Record:
    if "team" not in by or not agreement.cost_centres:
        return {}
    team, told = key[by.index("team")], agreement.cost_centres
    return {"cost_centre": told.get(tenancy.present(team), told.get(team, ""))}
