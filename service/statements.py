"""A month's statement: read as it was closed, or settled from what the store knows, with its corrections."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.canonical import agreement_record, decode, decode_lines, dumped, fingerprint
from analytics.chargeback.corrections import booked
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from api.answers import Filters
from domain.calendar import Period, Unit, cut, month
from domain.errors import UsageError
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import Window, format_instant
from service.balance import checks_of
from service.held_time import first_reading_ms
from service.observation import share_of_window
from service.quota_time import borrowed_from_nobody
from service.settlement import settled
from service.version import version
from store import statements as kept
from store.embedded import Store
from store.statements import Correction

CURRENT: Final = "current"


def whole_month(label: str, agreement: Agreement, as_of_ms: int) -> Period:
    """
    The whole month of that name, or the one that runs for `current`.

    Raises:
        UsageError: there is no such month, or it has not begun.
    """
    if label == CURRENT:
        label = cut(Window(start_ms=as_of_ms - 1, end_ms=as_of_ms), agreement.zone, Unit.MONTH)[0].label
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


def statement_of(  # noqa: PLR0913 - what a site agreed on, and what is asked, all named
    store: Store,
    agreement: Agreement,
    policy: Policy,
    *,
    label: str,
    as_of_ms: int,
    tenancy: Tenancy,
    of_teams: bool = False,
    clusters: Collection[str] = (),
) -> MonthStatement:
    """
    The statement of a month, or of its part before `as_of_ms`.

    A closed month is what was closed, whatever was learnt or agreed since.

    Args:
        label: such as 2026-10, or `current`.
        of_teams: whether an open month may come in rows of whole teams.
        clusters: of which ones the coverage is told; all, where none is named.

    Raises:
        UsageError: there is no such month, or it has not begun.
        StoreError: a closed month was changed in the store.
    """
    whole = whole_month(label, agreement, as_of_ms)
    closed = closed_statement(store, whole.label)
    if closed is not None and as_of_ms >= closed.whole_end_ms:
        return closed
    period = replace(whole, end_ms=min(whole.end_ms, as_of_ms))
    found = settled(store, agreement, period, tenancy=tenancy, of_teams=of_teams)
    late, corrected = _late(store, agreement, whole, as_of_ms)
    present = {line.row.team: tenancy.present(line.row.team) for line in (*found.lines, *late)}
    called = {team: tenancy.called(name, period.end_ms) for team, name in present.items()}
    lines = called_by((*found.lines, *late), called)
    made = MonthStatement(
        month=whole.label,
        zone_name=agreement.zone_name,
        start_ms=period.start_ms,
        end_ms=period.end_ms,
        whole_end_ms=whole.end_ms,
        as_of_ms=as_of_ms,
        agreement=agreement,
        lines=tuple(lines),
        hours=found.statement.hours,
        exact_costs=found.statement.exact_costs,
        no_money_because=found.no_money_because,
        no_causes_because=found.no_causes_because,
        coverage=_coverage(store, period, policy, clusters),
        teams={name: present[team] for team, name in called.items() if present[team] != name},
        cost_centres=_cost_centres(lines, agreement, tenancy, period.end_ms),
        from_nobody=borrowed_from_nobody(store, period.window),
        unknown=found.statement.unknown,
        versions=_versions(agreement, policy, tenancy),
        corrected=corrected,
    )
    return replace(made, checks=checks_of(store, tenancy, made)) if made.over else made


def closed_statement(store: Store, label: str) -> MonthStatement | None:
    """
    A month as it was closed; None while it is open.

    Raises:
        StoreError: it was changed in the store.
    """
    head = next((each for each in kept.closed_months(store) if each.month == label), None)
    return None if head is None else _read(store, label, head.sha256)


@lru_cache(maxsize=4)
def _read(store: Store, label: str, sha256: str) -> MonthStatement | None:  # noqa: ARG001 (it never changes)
    closed = kept.closed_month(store, label)
    return None if closed is None else decode(closed.content)


def fitting(statement: MonthStatement, filters: Filters, tenancy: Tenancy) -> MonthStatement:
    """The lines that have these dimensions; teams are asked for by their present names."""
    asked = dict(filters)
    if "team" in filters:
        names = {line.row.team for line in statement.lines}
        now = {name: tenancy.present(statement.teams.get(name, name)) for name in names}
        asked["team"] = tuple(sorted(name for name in names if now[name] in filters["team"]))
    return statement.only(asked)


def called_by(lines: Collection[Line], names: Mapping[str, str]) -> list[Line]:
    """The lines, with teams renamed; a team without another name keeps its own."""
    return [
        replace(line, row=replace(line.row, team=names[line.row.team]))
        if names.get(line.row.team, line.row.team) != line.row.team
        else line
        for line in lines
    ]


def booking_month(store: Store, of_month: str, agreement: Agreement) -> str:
    """The earliest month after a closed one that is not closed: where corrections of it are booked."""
    closed = {each.month for each in kept.closed_months(store)}
    label = of_month
    while label in closed or label == of_month:
        label = cut(_after(label, agreement), agreement.zone, Unit.MONTH)[0].label
    return label


def _after(label: str, agreement: Agreement) -> Window:
    end_ms = month(label, agreement.zone).end_ms
    return Window(start_ms=end_ms, end_ms=end_ms + 1)


def foreign_corrections(store: Store, agreement: Agreement, label: str) -> list[str]:
    """Why corrections that this month should book cannot be, for they are in another currency."""
    return [
        f"correction {each.number} of {each.month} is in another currency than {agreement.currency.code}"
        for each in _waiting(store, agreement, label)
        if not _in_currency(store, each, agreement)
    ]


def _late(
    store: Store, agreement: Agreement, whole: Period, as_of_ms: int
) -> tuple[list[Line], tuple[tuple[str, int], ...]]:
    """What was learnt of closed months by then, and is to be booked in this one."""
    taken = [
        each
        for each in _waiting(store, agreement, whole.label)
        if each.found_ms < as_of_ms and _in_currency(store, each, agreement)
    ]
    lines = [line for each in taken for line in _lines_of(each, agreement, whole)]
    return lines, tuple((each.month, each.number) for each in taken)


def _waiting(store: Store, agreement: Agreement, label: str) -> list[Correction]:
    """Corrections that no statement has yet, and that are to be booked in this month."""
    return [
        each
        for each in kept.corrections(store)
        if not each.booked_in and each.month < label and booking_month(store, each.month, agreement) == label
    ]


def _in_currency(store: Store, correction: Correction, agreement: Agreement) -> bool:
    closed = closed_statement(store, correction.month)
    return closed is not None and closed.currency == agreement.currency


def _lines_of(correction: Correction, agreement: Agreement, whole: Period) -> list[Line]:
    at_ms = max(whole.start_ms, min(correction.found_ms, whole.end_ms - 1))
    day = cut(Window(start_ms=at_ms, end_ms=at_ms + 1), agreement.zone, Unit.DAY)[0].label
    lines = decode_lines(correction.content)
    return booked(lines, month=correction.month, number=correction.number, day=day)


def _coverage(store: Store, period: Period, policy: Policy, clusters: Collection[str]) -> float | None:
    """The share of the days that was observed, as of every figure on samples; None where nothing ever was."""
    share = share_of_window(store, period.window, policy=policy, samples=True, clusters=clusters)
    if share is None:
        return None if first_reading_ms(store, clusters) is None else 0.0
    return float(share)


def _cost_centres(
    lines: Collection[Line], agreement: Agreement, tenancy: Tenancy, end_ms: int
) -> Mapping[str, str]:
    """By team, as the lines call it, whichever of its names the settings use."""
    told: dict[str, str] = {}
    for team in sorted({line.row.team for line in lines}):
        names = (tenancy.present(team), team)
        code = next((code for name in names if (code := agreement.cost_centre(name, end_ms))), "")
        if code:
            told[team] = code
    return told


@lru_cache(maxsize=8)
def _fingerprint_of(text: str) -> str:
    return fingerprint(text.encode())


def _versions(agreement: Agreement, policy: Policy, tenancy: Tenancy) -> Mapping[str, str]:
    """What the statement was made by: fingerprints of prices, policy and tenancy, and our own version."""
    told: dict[str, Any] = agreement_record(agreement)
    return {
        "price_book": fingerprint(dumped(told["prices"])),
        "policy": _fingerprint_of(repr(policy)),
        "tenancy": _fingerprint_of(repr(tenancy)),
        "gpuledger": version(),
    }
