"""The statement of a month: who held what, what it was good for, and what it costs."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.statement import DIMENSIONS
from api.answers import Filters, Question, Record
from api.parameters import ALIASES, check_labels
from domain.calendar import Period
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import format_instant
from service.held_time import first_reading_ms
from service.statement_figures import books, figures, gpu_hours, unit_cost, unknown_stretches
from service.statements import fitting, statement_of
from store.embedded import Store

NO_QUOTA: Final = "no quota is known in these days"
_NONE_HERE: Final = (
    "no line of quota fits the filters: a quota has a team, a queue, a model, and no user or project"
)
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
    clusters = filters.get("cluster", ())
    whole = statement_of(
        store, agreement, policy, label=label, as_of_ms=as_of_ms, tenancy=tenancy,
        of_teams={*by, *filters} <= _OF_TEAMS, clusters=clusters,
    )  # fmt: skip
    found, period = fitting(whole, filters, tenancy), whole.period
    lines = found.lines
    quotas = [line for line in lines if line.quota is not None]
    no_commitment_because = "" if quotas else _NONE_HERE if filters else NO_QUOTA
    unseen_because = "" if lines else _unseen(store, filters, period)
    total = figures(lines, found)
    total |= unit_cost(total)
    if unseen_because:
        # Nobody looked: that is no zero.
        total |= {name: None for name, value in total.items() if not isinstance(value, bool)}
    from_nobody = of_nobodys_quota(found) if quotas else None
    head = {
        "month": whole.month,
        "as_of": format_instant(whole.as_of_ms),
        "start_at": format_instant(period.start_ms),
        "end_at": format_instant(period.end_ms),
        "over": whole.over,
        "complete": whole.over and whole.coverage == 1,
        "coverage": whole.coverage,
        "nothing_because": unseen_because or (None if lines else _nothing(filters, whole.month)),
        "zone": whole.zone_name,
        "currency": None if found.no_money_because else found.currency.code,
        "billing": str(found.billing),
        "no_money_because": found.no_money_because or None,
        "no_causes_because": found.no_causes_because or None,
        "unused_commitment_gpu_hours": total["unused_commitment_gpu_hours"],
        "from_unassigned_gpu_hours": None if from_nobody is None else gpu_hours(from_nobody),
        "no_commitment_because": no_commitment_because or None,
        "closed": closing_record(whole),
    }
    groups: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in lines:
        groups[tuple(getattr(line.row, name) for name in by)].append(line)
    by_kind: dict[str, list[Line]] = defaultdict(list)
    of_month: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_kind[line.row.kind].append(line)
        if line.about is not None:
            of_month[line.about.month].append(line)
    return head | {
        "total": total,
        "books": None if found.hours is None or unseen_because else books(found.hours),
        "by_kind": [{"kind": kind} | figures(members, found) for kind, members in sorted(by_kind.items())],
        "corrections": [
            {"of_month": label} | figures(members, found) for label, members in sorted(of_month.items())
        ],
        "checks": [] if unseen_because else [asdict(each) for each in found.checks],
        "unknown": unknown_stretches(found.unknown),
        "rows": [
            dict(zip(by, key, strict=True)) | _cost_centre(by, key, found) | figures(members, found)
            for key, members in sorted(groups.items())
        ],
    }


def of_nobodys_quota(statement: MonthStatement) -> int | None:
    """What was borrowed beyond what was lent, in its corrections too; None in a part of a month."""
    if statement.from_nobody is None:
        return None
    corrected = (line.quota for line in statement.lines if line.about is not None and line.quota is not None)
    return statement.from_nobody + sum(quota.borrowed - quota.lent for quota in corrected)


def closing_record(statement: MonthStatement) -> Record | None:
    """Who closed a month, when, and with which fingerprint; None where it is open."""
    closing = statement.closing
    if closing is None:
        return None
    return {
        "sha256": closing.sha256,
        "closed_at": format_instant(closing.closed_ms),
        "closed_by": closing.closed_by,
        "reason": closing.reason,
    }


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


def _cost_centre(by: Sequence[str], key: Sequence[str], found: MonthStatement) -> Record:
    if "team" not in by or not found.agreement.cost_centres:
        return {}
    return {"cost_centre": found.cost_centres.get(key[by.index("team")], "")}
