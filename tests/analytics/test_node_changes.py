"""Nodes that come and go, against a count over random stretches."""

from typing import Any

from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask
from domain.window import Window
from tests.golden.cases import store_of
from tests.laws import law

NOW, THEN = 100, 40
DAY_MS = 86_400_000
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
# When a node came, how long it stayed (for ever), whether it changed on the way, and whether a pod was on it.
LIVES = st.tuples(st.integers(1, 110), st.none() | st.integers(2, 90), st.booleans(), st.booleans())


@given(st.lists(LIVES, min_size=1, max_size=6))
@law(20, phases=WITHOUT_SHRINKING)
def test_nodes_joined_left_and_lost_are_those_of_a_count(
    lives: list[tuple[int, int | None, bool, bool]],
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        # The first node that was read: it was there before, and so did not join.
        "node_span": [{"node": "old", "start_ms": 0}],
        "workload": [{"workload_uid": "w", "submitted_ms": 0}],
        "holding": [],
    }
    expected = {"joined": 0, "left": 0, "lost": 0}
    for number, (start, length, changed, in_use) in enumerate(lives):
        node, end = f"n{number}", None if length is None else start + length
        turns = [start, start + 1] if changed else [start]
        tables["node_span"] += [
            {"node": node, "start_ms": at, "end_ms": until, "schedulable": place == 0}
            for place, (at, until) in enumerate(zip(turns, [*turns[1:], end], strict=True))
        ]
        if in_use:
            tables["holding"].append(
                {"workload_uid": "w", "pod_uid": node, "node": node, "bound_ms": start, "released_ms": end}
            )
        expected["joined"] += THEN <= start < NOW
        if end is not None and THEN <= end < NOW:
            expected["lost" if in_use else "left"] += 1
    metric = REGISTRY["node_changes_nodes"]
    ask = Ask(window=Window(start_ms=THEN, end_ms=NOW), by=())
    with store_of(tables) as store:
        samples = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    days = (NOW - THEN) / DAY_MS
    assert {sample.labels["change"]: round((sample.value or 0) * days) for sample in samples} == expected
