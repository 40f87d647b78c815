"""A stalled scheduler against a count: who fits, whom quota lets go, and when something was bound."""

from typing import Any

from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask
from domain.window import Window
from tests.golden.cases import store_of
from tests.laws import law

MINUTE = 60_000
NOW = 600 * MINUTE
METRIC = REGISTRY["scheduler_stalled_workloads"]
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
# State, minutes of waiting, GPUs on one node.
WAITS = st.tuples(
    st.sampled_from(["queued", "checking", "placing", "held"]), st.integers(1, 9), st.integers(1, 9)
)


@given(st.lists(WAITS, min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 20))
@law(20, phases=WITHOUT_SHRINKING)
def test_what_is_stuck_could_run_and_nothing_was_bound(
    waits: list[tuple[str, int, int]], quiet_minutes: int, quota: int
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "node_device": [{"node": "n1", "start_ms": 0}],
        "workload": [{"workload_uid": "r", "submitted_ms": 1}],
        "holding": [{"workload_uid": "r", "pod_uid": "r-0", "bound_ms": NOW - quiet_minutes * MINUTE}],
        "pod_device": [{"workload_uid": "r", "pod_uid": "r-0"}],
        "share_span": [{"quota": quota * 1_000_000, "start_ms": 0}],
        "span": [],
        "workload_shape": [],
    }
    for number, (state, minutes, gpus) in enumerate(waits):
        uid = f"w{number}"
        tables["workload"].append({"workload_uid": uid, "requested_micro_gpus": gpus * 1_000_000})
        tables["span"].append({"workload_uid": uid, "state": state, "start_ms": NOW - minutes * MINUTE})
        tables["workload_shape"].append({"workload_uid": uid, "devices": gpus})
    for row in tables["workload"][1:]:
        row["submitted_ms"] = NOW - 10 * MINUTE
    ask = Ask(window=Window(start_ms=0, end_ms=NOW), by=())
    with store_of(tables) as store:
        (said,) = evaluate(METRIC, store.rows(METRIC.sql, parameters(METRIC, ask)), ask)
    queued = sum(gpus for state, _, gpus in waits if state == "queued")
    let_go = {"placing", "queued"} if queued + 1 <= quota else {"placing"}
    # One of the node's eight GPUs is held.
    stuck = sum(minutes > 5 and gpus <= 7 and state in let_go for state, minutes, gpus in waits)
    assert said.value == (stuck if quiet_minutes > 5 else 0)
