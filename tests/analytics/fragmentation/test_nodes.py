"""What becomes of a node's GPUs: held, free, cordoned, unhealthy and unpartitioned make up the capacity."""

from typing import Any

from hypothesis import Phase, given
from hypothesis import strategies as st

from tests.golden.cases import store_of, values
from tests.laws import law

NOON = "2026-01-01T12:00:00Z"
SINCE = "2026-01-01T00:00:00Z"
PARTS = ("held_gpus", "free_gpus", "cordoned_gpus", "unhealthy_gpus", "unpartitioned_gpus")
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
NODES = st.lists(
    st.tuples(st.integers(1, 8), st.integers(0, 8), st.booleans(), st.integers(0, 9), st.integers(0, 2)),
    max_size=5,
)


@given(NODES)
@law(30, phases=WITHOUT_SHRINKING)
def test_on_each_node_all_gpus_are_told_once(nodes: list[tuple[int, int, bool, int, int]]) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "workload": [{"workload_uid": "a"}],
        "node_span": [],
        "holding": [],
    }
    for number, (created, healthy, takes, held, uncut) in enumerate(nodes):
        name = f"n{number}"
        capacity, allocatable = created + uncut, min(created, healthy)
        tables["node_span"].append({
            "node": name, "capacity_gpus": capacity, "allocatable_gpus": allocatable, "schedulable": takes,
            "unpartitioned_gpus": uncut, "start_at": SINCE,
        })  # fmt: skip
        if held:
            tables["holding"].append({"workload_uid": "a", "node": name, "gpus": held, "bound_at": SINCE})
    with store_of(tables) as store:
        told = {
            name: values(store, name, NOON, by=("node",))
            for name in (*PARTS, "capacity_gpus", "overcommitted_gpus")
        }
    for number, (created, healthy, takes, held, uncut) in enumerate(nodes):
        node = (f"n{number}",)
        capacity, allocatable = created + uncut, min(created, healthy)
        assert told["capacity_gpus"][node] == capacity
        assert told["unhealthy_gpus"][node] == created - allocatable
        assert told["unpartitioned_gpus"][node] == uncut
        assert told["overcommitted_gpus"][node] == max(0, held - allocatable)
        assert told["cordoned_gpus"][node] == (0 if takes else max(0, allocatable - held))
        assert sum(told[name][node] for name in PARTS) == capacity + told["overcommitted_gpus"][node]
