"""The typical wait is the median of the percentiles, or nothing where that rests on few."""

import random
from typing import Any

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask, Sample
from domain.window import Window
from tests.golden.cases import store_of

NOW = 6 * 3_600_000


def spans(uid: str, start_ms: int, wait_ms: int, dice: random.Random) -> list[dict[str, Any]]:
    waits = {"workload_uid": uid, "state": "queued", "start_ms": start_ms}
    if dice.random() < 0.2:
        return [waits]
    end_ms = start_ms + wait_ms
    return [
        {**waits, "end_ms": end_ms},
        {"workload_uid": uid, "state": "running", "start_ms": end_ms},
    ]


def test_it_is_the_censored_median_where_that_is_not_few() -> None:
    dice = random.Random(7)
    names = [f"{team}-{number}" for team in ("a", "b", "c", "d") for number in range(dice.randint(1, 14))]
    tables = {
        "workload": [{"workload_uid": name, "team": name[0]} for name in names],
        "span": [
            span
            for name in names
            for span in spans(name, dice.randrange(NOW), dice.randrange(0, 3_600_000, 60_000), dice)
        ],
    }
    ask = Ask(window=Window(start_ms=0, end_ms=NOW), by=("team",))
    found: dict[str, list[Sample]] = {}
    with store_of(tables) as store:
        for name in ("queue_wait_seconds", "typical_wait_seconds"):
            metric = REGISTRY[name]
            found[name] = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    medians = {
        sample.labels["team"]: sample
        for sample in found["queue_wait_seconds"]
        if (sample.labels["quantile"], sample.labels["estimator"]) == ("0.5", "censored")
    }
    assert {sample.few for sample in medians.values()} == {True, False}
    for sample in found["typical_wait_seconds"]:
        median = medians.pop(sample.labels["team"])
        told = None if median.few else (median.value, median.lower_bound)
        assert (None if sample.value is None else (sample.value, sample.lower_bound)) == told
    assert not medians
