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


FLAVORS = ("a100", "t4")


def on(flavor: str) -> str:
    """What pods of a flavor want of a node."""
    return f'{{"labels":{{"gpu":"{flavor}"}},"terms":[],"tolerations":[]}}'


@given(
    st.lists(st.tuples(st.sampled_from([*FLAVORS, "any"]), st.integers(1, 3)), min_size=1, max_size=4),
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
@law(12, phases=WITHOUT_SHRINKING)
def test_quota_is_compared_flavor_by_flavor(
    waits: list[tuple[str, int]], quotas: tuple[int, int], used: tuple[int, int]
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "node_device": [
            {"node": name, "gpu_model": name, "labels": f'{{"gpu":"{name}"}}', "start_ms": 0}
            for name in FLAVORS
        ],
        "queue_flavor": [{"flavor": name, "wants": on(name), "start_ms": 0} for name in FLAVORS],
        "share_span": [
            {"pool": f"all/{name}", "gpu_model": name, "quota": quota * 1_000_000, "start_ms": 0}
            for name, quota in zip(FLAVORS, quotas, strict=True)
        ],
        # Reserved without pods, so that only quota is less.
        "workload": [{"workload_uid": "r", "submitted_ms": 1}],
        "reservation": [
            {"workload_uid": "r", "flavor": name, "micro_gpus": gpus * 1_000_000, "start_ms": 2}
            for name, gpus in zip(FLAVORS, used, strict=True)
        ],
        "span": [],
        "workload_shape": [],
    }
    for number, (where, gpus) in enumerate(waits):
        uid = f"w{number}"
        tables["workload"].append({"workload_uid": uid, "requested_micro_gpus": gpus * 1_000_000})
        tables["workload"][-1]["submitted_ms"] = NOW - 9 * MINUTE
        tables["span"].append({"workload_uid": uid, "state": "queued", "start_ms": NOW - 9 * MINUTE})
        wants = "" if where == "any" else on(where)
        tables["workload_shape"].append({"workload_uid": uid, "devices": gpus, "wants": wants})
    ask = Ask(window=Window(start_ms=0, end_ms=NOW), by=())
    with store_of(tables) as store:
        (said,) = evaluate(METRIC, store.rows(METRIC.sql, parameters(METRIC, ask)), ask)
    # All that might go to a flavor must fit into it at once; who may go anywhere needs one such.
    is_open = {
        name: sum(gpus for where, gpus in waits if where in {name, "any"}) + reserved <= quota
        for name, quota, reserved in zip(FLAVORS, quotas, used, strict=True)
    }
    stuck = sum(any(is_open.values()) if where == "any" else is_open[where] for where, _ in waits)
    assert said.value == stuck
