"""A month closed by the product: from facts, stay by stay, and from days that were added up before."""

from datetime import UTC
from time import process_time
from typing import Any

from analytics.chargeback.capacity import Kind
from benchmarks.by_product import agreed
from benchmarks.questions import Answer, Data
from benchmarks.seeded_jobs import START_MS
from domain.calendar import Period, Unit, running
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR
from service.held_days import keep_days
from service.settlement import settled
from service.statement_figures import Month
from store.embedded import Store

# From kept days it takes so little that it is done several times; the least counts.
_TIMES = 5


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """
    The first month of these data, by team, both ways; they must be equal.

    Returns:
        CPU seconds from facts, of adding the days up, and from what was kept; and what teams held and pay.
    """
    data = Data.read(asked)
    store, agreement = Store.open(data.store), agreed()
    try:
        with store.transaction() as connection:
            connection.execute("delete from held_day")
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
    finally:
        store.close()
    assert facts.statement.hours.difference == 0
    return {
        "facts": from_facts,
        "keeping": keeping,
        "kept": min(cpu for cpu, _ in again),
        "answer": _held(facts),
    }


def _held(found: Month) -> Answer:
    """GPU-hours and cost by day and team, as peers tell them."""
    sums: dict[str, list[Any]] = {}
    for line in found.lines:
        if line.row.kind == Kind.HELD:
            of = sums.setdefault(f"{line.row.day}|{line.row.team}", [0, 0])
            of[0] += line.row.micro_gpu_ms
            of[1] += line.row.effective_cost
    return {label: (held / MICRO_GPU_MS_PER_GPU_HOUR, str(cost)) for label, (held, cost) in sums.items()}
