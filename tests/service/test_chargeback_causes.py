"""Causes in a statement, read through the real view, are those that the metric tells at the same instant."""

from datetime import timedelta

import pytest

from api.answers import Question
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR, FixedClock, parse_instant
from service.answers import Answers
from store.derived import Replacement
from tests.quota_site import END, MONDAY, piece, site

DAY = 24 * MS_PER_HOUR


@pytest.mark.parametrize("late_ms", [-1, 0, 1, MS_PER_HOUR])
def test_month_to_date_a_statement_and_the_metric_tell_the_same_causes(late_ms: int) -> None:
    # Midnight: the first instant that knows of the loss is the end of one day and the start of the next.
    known_ms, week = parse_instant("2026-03-05T00:00:00Z"), site(red_lost=0.0)
    lost = piece("w-red", "crash_lost", MONDAY, MONDAY + DAY, 1000.0)
    pieces = [
        lost | {"known_ms": known_ms, "earlier_cause": "useful"},
        piece("w-red", "useful", MONDAY + DAY, END, 1000.0),
    ]
    week.store.replace("c", [Replacement(table="waste_piece", rows=pieces, keys=("workload_uid", {"w-red"}))])
    answers, red = Answers(week.store, Tenancy(), Policy(), FixedClock(END)), {"team": ("red",)}
    at_ms = known_ms + late_ms
    window = timedelta(milliseconds=at_ms - parse_instant("2026-03-01T00:00:00Z"))
    asked = Question(by=("cause",), window=window, as_of_ms=at_ms, filters=red)
    total = answers.chargeback("2026-03", Question(by=("team",), as_of_ms=at_ms, filters=red))["total"]
    found = {
        row.labels["cause"]: row.value for row in answers.metric("held_gpu_hours", asked).rows if row.value
    }
    booked = {name: total[f"{name}_gpu_hours"] for name in ("useful", "crash_lost")}
    assert found == pytest.approx({name: hours for name, hours in booked.items() if hours})
    assert ("crash_lost" in found) is (late_ms >= 0)
