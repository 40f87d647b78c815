"""Thresholds are told as they are set, and read back as the policy that they came from."""

from datetime import timedelta

from analytics.evaluate import evaluate
from analytics.metrics import REGISTRY
from analytics.thresholds import policy_of
from domain.metric import Ask, Sample
from domain.policy import Policy
from domain.window import Window
from store.embedded import Store

POLICY = Policy(buy_held_ratio=0.9, buy_wait=timedelta(hours=1), buy_days=3, interactive_reserve_ratio=0.1)


def test_a_policy_told_is_the_policy_read() -> None:
    ask = Ask(window=Window(start_ms=0, end_ms=1), by=("rule",), policy=POLICY)
    store = Store.open(None)
    told: list[Sample] = []
    for unit in ("ratio", "seconds", "days"):
        metric = REGISTRY[f"policy_threshold_{unit}"]
        told += evaluate(metric, store.rows(metric.sql, {}), ask)
    store.close()
    assert policy_of(told) == POLICY
    assert {sample.labels["rule"]: sample.value for sample in told}["buy_wait"] == 3600
