"""A month told by the product from facts, and from days that were added up before; and closed."""

from collections.abc import Sequence
from datetime import UTC
from decimal import Decimal
from time import process_time
from typing import Any

from analytics.chargeback.capacity import Kind
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from benchmarks.by_product import agreed
from benchmarks.questions import Data
from benchmarks.seeded_jobs import START_MS
from domain.calendar import Period, Unit, running
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.closing import Closer
from service.held_days import keep_days
from service.settlement import settled
from service.statement_figures import Month
from service.statements import closed_statement
from store.embedded import Store

# From kept days it takes so little that it is done several times; the least counts.
_TIMES = 5


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """
    The first month of these data, by team, both ways; they must be equal.

    Returns:
        CPU seconds from facts, of adding the days up, from what was kept, and of closing the month with all
        its lines; how many these are; and what teams held and pay.
    """
    data = Data.read(asked)
    store, agreement = Store.open(data.store), agreed()
    try:
        _open_again(store)
        whole = running(START_MS + 1, UTC, Unit.MONTH)
        period = Period(
            label=whole.label, start_ms=whole.start_ms, end_ms=min(whole.end_ms, data.cluster.end_ms)
        )

        def spent() -> tuple[float, Month]:
            began = process_time()
            found = settled(store, agreement, period, of_teams=True)
            return process_time() - began, found

        from_facts, facts = spent()
        began = process_time()
        days = keep_days(store, agreement, as_of_ms=period.end_ms)
        keeping = process_time() - began
        assert days >= (period.end_ms - period.start_ms) // (24 * 3_600_000), days
        again = [spent() for _ in range(_TIMES)]
        assert all(found == facts for _, found in again), "kept days tell another month than facts"
        closing, closed = _closed(store)
        held, written = _by_day_and_team(facts.lines), _by_day_and_team(closed.lines)
        assert held == {label: written[label] for label in held}, "what is closed is another month"
    finally:
        # The next run begins with the same store.
        _open_again(store)
        store.close()
    assert facts.statement.hours.difference == 0
    return {
        "facts": from_facts,
        "keeping": keeping,
        "kept": min(cpu for cpu, _ in again),
        "closing": closing,
        "lines": len(closed.lines),
        "answer": {
            label: (amount / MICRO_GPU_MS_PER_GPU_HOUR, str(cost)) for label, (amount, cost) in held.items()
        },
    }


def _closed(store: Store) -> tuple[float, MonthStatement]:
    """CPU seconds of a close from kept days, with reconciliation, bytes, hash and write; and what it is."""
    whole = running(START_MS + 1, UTC, Unit.MONTH)
    closer = Closer(
        store=store, agreement=agreed(), policy=Policy(), tenancy=Tenancy(), clock=FixedClock(whole.end_ms)
    )
    keep_days(store, closer.agreement, as_of_ms=whole.end_ms)
    began = process_time()
    statement = closer.close(whole.label, who="benchmark", reason="the jobs have no causes")
    spent = process_time() - began
    kept = closed_statement(store, whole.label)
    assert kept is not None
    assert (kept.lines, kept.closing) == (statement.lines, statement.closing), "it is kept as another month"
    return spent, statement


def _open_again(store: Store) -> None:
    with store.transaction() as connection:
        for table in ("held_day", "closed_month", "month_basis"):
            connection.execute(f"delete from {table}")  # noqa: S608 (names from here)


def _by_day_and_team(lines: Sequence[Line]) -> dict[str, tuple[int, Decimal]]:
    """What teams held, and what it costs."""
    sums: dict[str, tuple[int, Decimal]] = {}
    for line in lines:
        if line.row.kind == Kind.HELD:
            held, cost = sums.get(label := f"{line.row.day}|{line.row.team}", (0, Decimal()))
            sums[label] = held + line.row.micro_gpu_ms, cost + line.row.effective_cost
    return sums
