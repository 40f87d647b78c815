"""Laws of closing: whatever is learnt between closes, in whatever order they are, nothing is lost."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analytics.chargeback.line import Line
from analytics.chargeback.statement import COSTS
from service.corrections import said, settled_anew
from service.statements import closed_statement
from store import statements as kept
from store.embedded import Store
from tests.analytics.chargeback.test_correction_laws import cents, units
from tests.service.closing_world import NOBODY, as_before, closed, learn, look, read, site
from tests.service.test_chargeback import EUR

MONTHS = ("2026-10", "2026-11", "2026-12")
OVER = 93 * 24
BOOKED_IN = "2027-01"
# Hours since the first of October at which somebody held a GPU, of whom nobody knew.
LATE = st.tuples(st.just("learn"), st.integers(0, 91 * 24), st.sampled_from(["green", "red"]))
EVENTS = st.lists(LATE | st.sampled_from([("close", month, "") for month in MONTHS]), min_size=2, max_size=6)
FAST = settings(
    max_examples=3, deadline=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    made = site()
    yield made
    made.close()


def lines_of(store: Store, labels: tuple[str, ...]) -> list[Line]:
    return [line for label in labels for line in read(store, label, OVER + 500).lines]


def costs(lines: list[Line]) -> dict[tuple[str, str], Decimal]:
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for line in lines:
        for name in COSTS:
            sums[line.row.team, name] += getattr(line.row, name)
    return {key: amount for key, amount in sums.items() if amount}


def check(store: Store, events: list[tuple[str, object, str]]) -> None:
    as_before(store)
    signed: dict[str, str] = {}
    for number, (what, where, team) in enumerate(events):
        if what == "learn":
            learn(store, f"late{number}", float(str(where)), float(str(where)) + 3, team=team)
            look(store, OVER + number)
        elif where not in signed:
            closing = closed(store, str(where), OVER + number).closing
            assert closing is not None
            signed[str(where)] = closing.sha256
    look(store, OVER + 100)
    for label, sha256 in signed.items():
        whole = closed_statement(store, label)
        assert whole is not None
        assert whole.closing is not None
        assert whole.closing.sha256 == sha256
        now, because = settled_anew(store, NOBODY, whole)
        assert because == ""
        told = said(store, NOBODY, whole)
        assert units(told) == units(now)
        assert cents(told, EUR) == cents(now, EUR)
    # All that is billed, in whichever months, is what all months come to when nothing was closed.
    billed = costs(lines_of(store, (*MONTHS, BOOKED_IN)))
    for table in ("closed_month", "month_correction", "month_basis"):
        with store.transaction() as connection:
            connection.execute(f"delete from {table}")  # noqa: S608 (names from here)
    assert billed == costs(lines_of(store, (*MONTHS, BOOKED_IN)))


@FAST
@given(events=EVENTS)
def test_what_is_closed_and_what_is_learnt_is_what_is_known(
    store: Store, events: list[tuple[str, object, str]]
) -> None:
    check(store, events)


@pytest.mark.long
@pytest.mark.timeout(900)
@settings(FAST, max_examples=40)
@given(events=EVENTS)
def test_long_courses_of_closes_and_late_facts_balance_too(
    store: Store, events: list[tuple[str, object, str]]
) -> None:
    check(store, events)


def test_the_order_of_closing_does_not_matter(store: Store) -> None:
    found = []
    for order in permutations(("2026-11", "2026-12")):
        as_before(store)
        closed(store, "2026-10", OVER)
        learn(store, "late", 30, 35, team="green")
        look(store, OVER + 1)
        found.append({label: closed(store, label, OVER + 2) for label in order})
        assert [each.booked_in for each in kept.corrections(store)] == ["2026-11"]
    first, second = found
    for label in ("2026-11", "2026-12"):
        assert first[label].closing == second[label].closing
