"""The reconciliation of a month: what must agree before finance signs it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from analytics.chargeback.capacity import Kind
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import Check, MonthStatement
from analytics.chargeback.statement import COSTS, Billing
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR

_BY_KIND: Final = {
    "held": {Kind.HELD},
    "idle": {Kind.IDLE, Kind.IDLE_SHARE},
    "unavailable": {Kind.UNAVAILABLE, Kind.UNAVAILABLE_SHARE},
    "overlap": {Kind.OVERLAP},
}


def reconciled(
    statement: MonthStatement,
    *,
    unassigned: Collection[str],
    set_aside: str,
) -> tuple[Check, ...]:
    """
    Every check of a whole month, in the order in which finance reads them.

    Args:
        statement: of the whole month, with `hours` and `exact_costs`.
        unassigned: namespaces that held GPUs and that no team rule matches; empty without team rules.
        set_aside: the team of held time whose records contradict each other: it has no cause.
    """
    own = [line for line in statement.lines if line.about is None]
    return (
        *_capacity(statement, own),
        *_money(statement, own),
        *_causes(statement, own, set_aside),
        _teams(unassigned),
        _coverage(statement, statement.agreement.close_coverage),
    )


def forced(checks: Collection[Check]) -> tuple[Check, ...]:
    """The checks with those marked that do not hold and may be forced."""
    return tuple(replace(each, forced=not each.holds and each.may_be_forced) for each in checks)


def _capacity(statement: MonthStatement, own: Sequence[Line]) -> Iterator[Check]:
    hours = statement.hours
    if hours is None:
        message = "a part of a month cannot be reconciled: ask for it without filters"
        raise ValueError(message)
    there = hours.held + hours.idle + hours.unavailable - hours.overlap
    yield _equal(
        "capacity", hours.capacity, there, "capacity = held + idle + unavailable - overlap, micro-GPU-ms"
    )
    for name, kinds in _BY_KIND.items():
        lines = sum(line.row.micro_gpu_ms for line in own if line.row.kind in kinds)
        sign = -1 if name == "overlap" else 1
        yield _equal(
            f"{name}_lines", sign * lines, getattr(hours, name), f"lines of {name} = the books, micro-GPU-ms"
        )


def _money(statement: MonthStatement, own: Sequence[Line]) -> Iterator[Check]:
    because = statement.no_money_because
    yield Check(name="prices", left=because or "all priced", right="all priced", holds=not because,
                words=f"everything has a price{f': {because}' if because else ''}")  # fmt: skip
    zero = statement.currency.amount(0)
    expected = dict(zip(COSTS, statement.exact_costs, strict=False))
    expected["billed_cost"] = expected["effective_cost"] if statement.billing is Billing.CHARGEBACK else zero
    for name in COSTS:
        lines = sum((getattr(line.row, name) for line in own), zero)
        yield _equal(
            name, lines, expected[name], f"lines of {name.replace('_', ' ')} = the month rounded once"
        )


def _causes(statement: MonthStatement, own: Sequence[Line], set_aside: str) -> Iterator[Check]:
    told = time = late = wrong = 0
    for line in own:
        if line.row.kind != Kind.HELD:
            continue
        known = sum(line.causes.values())
        told += known
        time += line.row.micro_gpu_ms
        late += line.row.micro_gpu_ms - known if line.row.team != set_aside else 0
        wrong += known > line.row.micro_gpu_ms or min(line.causes.values(), default=0) < 0
    yield Check(
        name="causes", left=str(told), right=str(time), holds=not wrong,
        words="waste + useful + unknown = held, in every line, or less where a cause is not known yet"
        + (f": {wrong} lines have more" if wrong else ""),
    )  # fmt: skip
    yield Check(
        name="causes_known", left=str(late), right="0", holds=late == 0 and not statement.no_causes_because,
        words="all held time has a cause"
        + ("" if late == 0 else f": {late / MICRO_GPU_MS_PER_GPU_HOUR:.2f} GPU-hours have none yet"),
        may_be_forced=True,
    )  # fmt: skip


def _teams(unassigned: Collection[str]) -> Check:
    names = ", ".join(sorted(unassigned))
    return Check(
        name="teams", left=names or "none", right="none", holds=not unassigned,
        words=f"no namespace that held GPUs is unassigned{f': {names}; give them a team' if names else ''}",
    )  # fmt: skip


def _coverage(statement: MonthStatement, least: float) -> Check:
    share = statement.coverage
    return Check(
        name="coverage", left="not known" if share is None else str(share), right=str(least),
        holds=share is not None and share >= least, may_be_forced=True,
        words=f"at least {least * 100:g} % of the month was observed"
        + (": nothing was" if share is None else f": {share * 100:.2f} %" if share < least else ""),
    )  # fmt: skip


def _equal(name: str, left: object, right: object, words: str) -> Check:
    return Check(name=name, left=str(left), right=str(right), holds=left == right,
                 words=words if left == right else f"{words}: {left} is not {right}")  # fmt: skip
