"""Lives of workloads drawn at random, and what holds of them; no order among their instants is respected."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

import pyarrow as pa

from domain.metric import Row
from store.embedded import Store
from store.lives import OF_WORKLOADS
from store.open_until import OPEN_UNTIL
from store.workload_rows import FOLLOWING

CLUSTER: Final = "c"
HOUR: Final = 3_600_000
NODES: Final = ("n0", "n1", "n2")
_STATES: Final = ("queued", "checking", "placing", "held", "starting", "running", "draining")
_GPU: Final = 1_000_000

Tables = dict[str, list[dict[str, Any]]]


def random_lives(random: Random, *, workloads: int, end_ms: int, start_ms: int = 0) -> Tables:
    """Rows by table of so many workloads of between two instants, and of what is around them."""
    tables: Tables = {}

    def add(table: str, **row: Any) -> None:
        tables.setdefault(table, []).append({"cluster": CLUSTER, **row})

    def at(least_ms: int) -> int:
        return random.randint(least_ms, end_ms)

    def ends(start_ms: int) -> int | None:
        return None if random.random() < 0.1 else random.randint(start_ms, start_ms + 6 * HOUR)

    for number in range(workloads):
        uid = f"w{number}"
        submitted_ms = at(start_ms)
        add(
            "workload", workload_uid=uid, team=random.choice("ab"), queue=random.choice("qr"), name=uid,
            service_class=random.choice(("interactive", "batch")), gpu_model=random.choice(("A100", "H100")),
            gang_size=1, requested_micro_gpus=random.choice((_GPU, _GPU, 0)), submitted_ms=submitted_ms,
            first_placed_ms=ends(submitted_ms), first_running_ms=ends(submitted_ms),
            ended_ms=ends(submitted_ms),
        )  # fmt: skip
        add("member", workload_uid=uid, object_uid=f"{uid}-p", kind="Pod")
        add("workload_shape", workload_uid=uid, part=0, resource="nvidia.com/gpu", pods=1, devices=1)
        _spans(random, add, uid, submitted_ms, ends, ended=tables["workload"][-1]["ended_ms"] is not None)
        if random.random() < 0.7:
            _held(random, add, uid, at(submitted_ms), ends)
        if random.random() < 0.7:
            start = at(submitted_ms)
            add("attempt", workload_uid=uid, number=random.choice((1, 2)), start_ms=start, end_ms=ends(start),
                source=random.choice(("pods", "admission")))  # fmt: skip
        for table, chance in (("reservation", 0.5), ("quota_use", 0.5), ("member_wait", 0.2)):
            if random.random() < chance:
                start = at(submitted_ms)
                more: dict[str, Any] = {"pod_uid": f"{uid}-p"} if table == "member_wait" else {"flavor": "f"}
                more |= {"resources": "{}", "queue": "q"} if table == "quota_use" else {"micro_gpus": _GPU}
                add(table, workload_uid=uid, start_ms=start, end_ms=ends(start), **more)
        if random.random() < 0.4:
            add(
                "eviction", workload_uid=uid, at_ms=at(submitted_ms), preempted=True, attempt=1,
                missed=0, preemptor_uid=f"w{number // 2}-p",
            )  # fmt: skip
    for node in NODES:
        size = {"capacity_micro_gpus": 8 * _GPU, "allocatable_micro_gpus": 8 * _GPU}
        add("node_span", node=node, gpu_model="A100", start_ms=0, end_ms=ends(end_ms - 9 * HOUR),
            schedulable=True, **size)  # fmt: skip
        add("node_device", node=node, gpu_model="A100", resource="nvidia.com/gpu", replicas=1, start_ms=0,
            capacity=8, allocatable=8, schedulable=True, labels="{}", taints="[]")  # fmt: skip
    return tables


def _spans(random: Random, add: Any, uid: str, submitted_ms: int, ends: Any, *, ended: bool) -> None:
    """States, one after the other; what has ended is so for ever."""
    begin_ms: int | None = submitted_ms
    while begin_ms is not None and random.random() < 0.8:
        over_ms = ends(begin_ms)
        add("span", workload_uid=uid, state=random.choice(_STATES), start_ms=begin_ms, end_ms=over_ms,
            first_wait=random.random() < 0.5)  # fmt: skip
        begin_ms = over_ms
    if begin_ms is not None and ended:
        add("span", workload_uid=uid, state="ended", start_ms=begin_ms, end_ms=None, first_wait=False)


def _held(random: Random, add: Any, uid: str, bound_ms: int, ends: Any) -> None:
    """A pod's stay, and what was found out about it later."""
    pod, node, released_ms = f"{uid}-p", random.choice(NODES), ends(bound_ms)
    until_ms = bound_ms + HOUR if released_ms is None else released_ms
    add("holding", workload_uid=uid, attempt=1, pod_uid=pod, pod_name=pod, node=node, gpu_model="A100",
        micro_gpus=_GPU, bound_ms=bound_ms, started_ms=bound_ms, released_ms=released_ms,
        restarts=0)  # fmt: skip
    add("run", workload_uid=uid, pod_uid=pod, start_ms=bound_ms, end_ms=ends(bound_ms))
    add("pod_device", workload_uid=uid, pod_uid=pod, resource="nvidia.com/gpu", devices=1)
    add("waste_piece", workload_uid=uid, pod_uid=pod, attempt=1, node=node, gpu_model="A100", micro_gpus=_GPU,
        start_ms=bound_ms, end_ms=released_ms, cause=random.choice(("useful", "infra_lost")),
        earlier_cause="useful")  # fmt: skip
    add("activity_span", workload_uid=uid, pod_uid=pod, device="d", micro_gpus=_GPU, start_ms=bound_ms,
        end_ms=until_ms, level="low")  # fmt: skip
    if random.random() < 0.3:
        add("checkpoint_told", workload_uid=uid, at_ms=bound_ms)
    add("gpu_sample", source="s", node=node, device="d", gpu_model="A100", pod=pod, pod_uid=pod,
        at_ms=bound_ms, step_ms=60_000, memory_mib=1.0, memory_total_mib=9.0, micro_gpus=_GPU, activity=0.5,
        seq=1, shares=0,
        pod_shares=0)  # fmt: skip


def completed(store: Store, table: str, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows with all columns of their table but those that the store adds."""
    added = {OPEN_UNTIL, *FOLLOWING} if table in OF_WORKLOADS else set()
    blank = {column.name: _blank(column.type) for column in store.schema(table) if column.name not in added}
    return [{**blank, **row} for row in rows]


def _blank(kind: pa.DataType) -> object:
    return "" if pa.types.is_string(kind) else False if pa.types.is_boolean(kind) else None


def write(store: Store, tables: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write them: lives as a refresh does, the rest as it is."""
    rows = {table: completed(store, table, found) for table, found in tables.items()}
    around = {"node_span", "node_device"}
    lives = {table: found for table, found in rows.items() if table in OF_WORKLOADS or table in around}
    uids = [str(row["workload_uid"]) for row in rows["workload"]]
    store.write_lives(CLUSTER, uids, lives, ("lives", 1))
    with store.transaction() as connection:
        for table in rows.keys() - lives.keys():
            frame = pa.Table.from_pylist(rows[table], schema=store.schema(table))
            connection.from_arrow(frame).insert_into(table)
