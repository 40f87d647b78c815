"""Held and productive parts of the capacity, against sums over random pieces."""

from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from analytics.wastage.causes import Cause
from domain.metric import Ask, Sample
from domain.window import Window
from tests.golden.cases import store_of
from tests.laws import law

FROM, NOW = 40, 100
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
PIECES = st.lists(
    st.tuples(
        st.sampled_from(list(Cause)),
        st.integers(1, 8),
        st.integers(0, NOW - 1),
        st.none() | st.integers(1, 90),
    ),
    max_size=6,
)
IN_VAIN = {"idle", "resident_idle", "gang_hold", "infra_lost", "preempted_lost", "crash_lost"}


@given(PIECES, st.lists(st.integers(0, 8), min_size=1, max_size=3))
@law(30, phases=WITHOUT_SHRINKING)
def test_the_parts_are_those_of_the_pieces_added_up(
    pieces: list[tuple[Cause, int, int, int | None]], nodes: list[int]
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "workload": [{"workload_uid": "a"}],
        "waste_piece": [
            {"workload_uid": "a", "cause": str(cause), "gpus": gpus, "start_ms": start,
             "end_ms": None if length is None else start + length}
            for cause, gpus, start, length in pieces
        ],
        "holding": [
            {"workload_uid": "a", "gpus": gpus, "bound_ms": start,
             "released_ms": None if length is None else start + length}
            for _, gpus, start, length in pieces
        ],
        "node_span": [
            {"node": f"n{number}", "capacity_gpus": gpus, "start_ms": 0} for number, gpus in enumerate(nodes)
        ],
    }  # fmt: skip
    spent: dict[str, int] = {}
    for cause, gpus, start, length in pieces:
        end = NOW if length is None else min(start + length, NOW)
        spent[cause] = spent.get(cause, 0) + gpus * max(0, end - max(start, FROM))
    told: dict[str, Sample] = {}
    with store_of(tables) as store:
        ask = Ask(window=Window(start_ms=FROM, end_ms=NOW), by=())
        for name in ("capacity_held_ratio", "capacity_productive_ratio"):
            metric = REGISTRY[name]
            (told[name],) = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    capacity = sum(nodes) * (NOW - FROM)
    held, productive = told["capacity_held_ratio"], told["capacity_productive_ratio"]
    if not capacity:
        assert held.value is None
        assert productive.value is None
        return
    assert held.value == pytest.approx(sum(spent.values()) / capacity)
    unknown = spent.get("unknown", 0)
    running = sum(spent.get(cause, 0) for cause in list(Cause)[5:])
    if unknown and unknown == running:
        assert productive.value is None
        return
    kept = sum(amount for cause, amount in spent.items() if cause not in IN_VAIN | {"unknown"})
    assert productive.value == pytest.approx(kept / capacity)
    assert productive.lower_bound == (unknown > 0)
