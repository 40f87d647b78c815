"""The days that speak for buying are those of the report, whatever pool is asked about."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from analytics.evaluate import evaluate, exported_asks, parameters
from analytics.metrics import REGISTRY
from api.answers import ReportQuestion
from api.reports import REPORTS
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from tests.golden.cases import store_of

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = parse_instant("2026-01-10T06:00:00Z")
POOLS = ("A100", "H100")


def site(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Two pools of a node each: on most days full, useful and waited for, and on some not."""
    dice = random.Random(seed)
    tables: dict[str, list[dict[str, Any]]] = {
        "node_span": [{"node": pool, "gpu_model": pool, "start_ms": NOW - 30 * DAY} for pool in POOLS],
        "workload": [],
        "span": [],
        "holding": [],
        "waste_piece": [],
    }
    for pool in POOLS:
        for day in range(8):
            start, uid = NOW - (day + 1) * DAY, f"{pool}-{day}"
            length = DAY - dice.choice([0, 0, 0, HOUR, 4 * HOUR])
            wait = dice.choice([4, 4, 4, 2, 0]) * HOUR
            used = length - dice.choice([0, 0, 0, 5 * HOUR])
            row = {"workload_uid": uid, "gpu_model": pool}
            node = {"node": pool, **row, "gpus": 8}
            running = start + 5 * HOUR
            tables["workload"].append(row)
            tables["span"] += [
                {"workload_uid": uid, "state": "queued", "start_ms": running - wait, "end_ms": running},
                {"workload_uid": uid, "state": "running", "start_ms": running},
            ]
            tables["holding"].append({**node, "bound_ms": start, "released_ms": start + length})
            tables["waste_piece"] += [
                {**node, "cause": "useful", "start_ms": start, "end_ms": start + used},
                {**node, "cause": dice.choice(["idle", "unknown"]), "start_ms": start + used,
                 "end_ms": start + length},
            ]  # fmt: skip
    return tables


@pytest.mark.parametrize("seed", [1, 2])
def test_the_metric_and_the_page_count_the_same_days(seed: int) -> None:
    metric = REGISTRY["buying_days"]
    with store_of(site(seed)) as store:
        (ask,) = exported_asks(metric, NOW, Policy())
        found = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
        assert [sample.labels["gpu_model"] for sample in found] == [*POOLS]
        answers = Answers(store, Tenancy(), Policy(), FixedClock(NOW))
        for sample in found:
            asked: Mapping[str, tuple[str, ...]] = {name: (value,) for name, value in sample.labels.items()}
            report = REPORTS["capacity"].build(answers, ReportQuestion(as_of_ms=NOW, filters=asked))
            words = [row["all"] for row in report.sections[0].rows]
            assert (sample.value, sample.lower_bound) == (words.count("yes"), "not known" in words)
            assert len(set(words)) > 1
