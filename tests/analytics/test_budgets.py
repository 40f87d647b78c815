"""Budgets of GPU-hours: against sums over random holdings, in any zone, and for those who may not see all."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.folding import evaluate_seen
from analytics.metrics import REGISTRY
from domain.calendar import Unit, billing_zone, running
from domain.metric import Ask, Sample
from domain.policy import Policy
from domain.view import View
from domain.window import MS_PER_HOUR, Window, parse_instant
from store.embedded import Store
from tests.golden.cases import store_of
from tests.laws import law

NOW = parse_instant("2026-03-30T10:30:00Z")
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
BUDGETS = {"nlp": {"day": 10.0, "week": 50.0, "month": 300.0}, "cv": {"month": 5.0}}
# Whose, hours before now and length, GPUs.
HOLDINGS = st.tuples(
    st.sampled_from(["nlp", "cv", "ads"]), st.integers(0, 900), st.integers(1, 200), st.integers(1, 8)
)


def asked(store: Store, name: str, policy: Policy, view: View | None = None) -> list[Sample]:
    metric = REGISTRY[name]
    ask = Ask(window=Window(start_ms=0, end_ms=NOW), by=("team",), policy=policy)
    rows = store.rows(metric.sql, parameters(metric, ask))
    return evaluate(metric, rows, ask) if view is None else evaluate_seen(metric, rows, ask, view)


@given(st.lists(HOLDINGS, min_size=1, max_size=6), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
@law(12, phases=WITHOUT_SHRINKING)
def test_what_is_burned_is_what_was_held_since_the_period_began(
    holdings: list[tuple[str, int, int, int]], zone_name: str
) -> None:
    zone = billing_zone(zone_name)
    policy = Policy(gpu_hour_budgets=BUDGETS, budget_zone=zone)
    tables: dict[str, list[dict[str, Any]]] = {
        "workload": [{"workload_uid": team, "team": team} for team in ("nlp", "cv", "ads")],
        "holding": [],
    }
    expected = {(team, period): 0.0 for team, budgets in BUDGETS.items() for period in budgets}
    for number, (team, ago, length, gpus) in enumerate(holdings):
        bound = NOW - ago * MS_PER_HOUR
        released = bound + length * MS_PER_HOUR
        row = {"workload_uid": team, "pod_uid": f"p{number}", "bound_ms": bound, "released_ms": released}
        tables["holding"].append(row | {"micro_gpus": gpus * 1_000_000})
        for period in BUDGETS.get(team, {}):
            start = running(NOW, zone, Unit(period)).start_ms
            hours = max(min(released, NOW) - max(bound, start), 0) / MS_PER_HOUR
            expected[team, period] += gpus * hours
    # At 2.50 an hour.
    tables["node_price"] = [{"node": "n1", "start_ms": 0, "nano_price": 2_500_000_000}]
    with store_of(tables) as store:
        money = asked(store, "budget_burned_money", replace(policy, money_budgets=BUDGETS))
        hours_told, shares = (
            [sample for sample in asked(store, name, policy) if "period" in sample.labels]
            for name in ("budget_burned_gpu_hours", "budget_burned_ratio")
        )
    told = {(s.labels["team"], s.labels["period"]): s.value for s in hours_told}
    assert told == pytest.approx(expected)
    spent = {(s.labels["team"], s.labels["period"]): s.value for s in money if "period" in s.labels}
    assert spent == pytest.approx({key: 2.5 * hours for key, hours in expected.items()})
    for sample in shares:
        team, period = sample.labels["team"], sample.labels["period"]
        assert sample.value == pytest.approx(expected[team, period] / BUDGETS[team][period])


def test_a_foreign_budget_is_told_in_sums_only() -> None:
    policy = Policy(gpu_hour_budgets=BUDGETS | {"ads": {"month": 7.0}})
    workloads = [{"workload_uid": team, "team": team} for team in ("nlp", "cv", "ads")]
    with store_of({"workload": workloads}) as store:
        told = asked(store, "budget_gpu_hours", policy, View(teams={"nlp"}))
    assert {(s.labels["team"], s.labels["period"]): s.value for s in told} == {
        ("nlp", "day"): 10.0,
        ("nlp", "week"): 50.0,
        ("nlp", "month"): 300.0,
        ("others", "month"): 12.0,
    }


def test_a_period_that_ends_now_is_not_over_before_now() -> None:
    midnight = round(datetime(2026, 4, 1, tzinfo=UTC).timestamp() * 1000)
    labels = [running(at_ms, UTC, Unit.MONTH).label for at_ms in (midnight, midnight + 1)]
    assert labels == ["2026-03", "2026-04"]
