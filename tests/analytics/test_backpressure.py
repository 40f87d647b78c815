"""The queue against its cap, and who fills it, against counts over random courses."""

from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask, Sample
from domain.policy import Policy
from domain.window import Window
from tests.golden.cases import store_of
from tests.laws import law

NOW, THEN = 100, 60
POLICY = Policy(queue_cap_workloads=4)
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
WAITS = st.tuples(st.sampled_from(["red", "blue"]), st.integers(0, 120), st.none() | st.integers(0, 60))


@given(st.lists(WAITS, min_size=1, max_size=9))
@law(30, phases=WITHOUT_SHRINKING)
def test_the_queue_is_as_full_and_as_soon_full_as_a_count_says(
    waits: list[tuple[str, int, int | None]],
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {"workload": [], "span": []}
    for number, (team, start, length) in enumerate(waits):
        uid, end = f"w{number}", None if length is None else start + length
        tables["workload"].append({"workload_uid": uid, "team": team, "submitted_ms": start})
        tables["span"].append({"workload_uid": uid, "state": "queued", "start_ms": start, "end_ms": end})
    known = [team for team, start, _ in waits if start < NOW]

    def count(at_ms: int, team: str) -> int:
        return sum(
            start < at_ms and (length is None or start + length >= at_ms)
            for whose, start, length in waits
            if whose == team
        )

    with store_of(tables) as store:
        ask = Ask(window=Window(start_ms=THEN, end_ms=NOW), by=("team",), policy=POLICY)
        told: dict[str, dict[str, Sample]] = {}
        for name in ("queue_cap_ratio", "queue_cap_seconds", "submitted_workloads"):
            metric = REGISTRY[name]
            samples = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
            told[name] = {sample.labels["team"]: sample for sample in samples if sample.labels}
    for team in ("red", "blue"):
        if team not in known:
            assert all(team not in samples for samples in told.values())
            continue
        now, then = count(NOW, team), count(THEN, team)
        assert told["queue_cap_ratio"][team].value == now / 4
        new = sum(whose == team and THEN <= start < NOW for whose, start, _ in waits)
        assert told["submitted_workloads"][team].value == new
        soon = told["queue_cap_seconds"][team].value
        if now >= 4:
            assert soon == 0
        elif now > then:
            assert soon == pytest.approx((4 - now) * (NOW - THEN) / (now - then) / 1000)
        else:
            assert soon is None
