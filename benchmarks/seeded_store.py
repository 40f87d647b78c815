"""Seeded jobs as the store keeps them: what watching them would have left, written chunk by chunk."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import polars as pl

from benchmarks.seeded_jobs import CLUSTER, GPUS, QUEUES, START_MS, Cluster
from domain.facts import Batch, Description, ObjectKind, SourceMark
from domain.objects import Node
from domain.observed import Stretch
from domain.workload import State
from store import dimensions
from store.embedded import Store

MICRO: Final = 1_000_000
RESOURCE: Final = "nvidia.com/gpu"
FOREVER: Final = 2**63 - 1
# Quota is there so long before the pods are bound, and containers run so long after.
_PLACING_MS: Final = 3_000
_STARTING_MS: Final = 4_000
# The tables that questions about waits, depth and money read; the others make a store of ten million larger.
ASKED: Final = ("workload", "span", "holding")
ALL: Final = (*ASKED, "attempt", "run", "member", "reservation", "workload_shape", "pod_device")
# What the store itself finds from the other columns.
_DERIVED: Final = ("open_until_ms", "first_wait_ms", "is_copy", "waits_again", "waits_in_pieces")
_ANYTHING: Final = pl.lit(None, pl.Int64)


def written(store: Store, jobs: Iterable[pl.DataFrame], cluster: Cluster, *, only: Iterable[str] = ()) -> int:
    """
    Write jobs, and the nodes and queues around them; gives how many jobs.

    Args:
        store: an empty one.
        jobs: frames as of `days_of_jobs`; each is written at once.
        cluster: whose jobs.
        only: names of tables, into which rows are put as they are; otherwise all are written as lives
            are by the refresh that cuts them, which takes longer.
    """
    _around(store, cluster)
    wanted, count = set(only), 0
    for day in jobs:
        if wanted:
            tables = tables_of(day, cluster)
            _insert(store, {name: rows for name, rows in tables.items() if name in wanted})
        else:
            rewritten(store, day, cluster)
        count += day.height
    if wanted:
        with store.transaction() as connection:
            dimensions.recount(connection, CLUSTER)
    return count


def rewritten(store: Store, jobs: pl.DataFrame, cluster: Cluster) -> None:
    """Write what is known of these jobs now, in the place of what was known before."""
    tables = tables_of(jobs, cluster)
    store.write_lives(
        CLUSTER,
        workload_uids=tables["workload"]["workload_uid"].to_list(),
        tables={name: rows.drop(_DERIVED, strict=False) for name, rows in tables.items()},
        watermark=("lives", 1),
    )


def _insert(store: Store, tables: Mapping[str, pl.DataFrame]) -> None:
    with store.transaction() as connection:
        for name, rows in tables.items():
            connection.register("incoming", rows.to_arrow())
            connection.execute(f"insert into {name} by name from incoming")
            connection.unregister("incoming")


def tables_of(jobs: pl.DataFrame, cluster: Cluster) -> dict[str, pl.DataFrame]:
    """
    What the store derives of these jobs, by table; rows in the order in which they cease to count.

    A job waits for quota, then for its pods to be bound, one on each of its nodes; it starts up, and runs.
    """
    placed = pl.col("start_ms").is_not_null()
    over = pl.col("state") != "open"
    quota_ms = pl.max_horizontal("submit_ms", pl.col("start_ms") - _PLACING_MS)
    running_ms = pl.min_horizontal(
        pl.col("start_ms") + _STARTING_MS, pl.coalesce(pl.col("end_ms"), pl.lit(cluster.end_ms))
    )
    known = jobs.with_columns(
        cluster=pl.lit(CLUSTER),
        workload_uid=pl.format("job-{}", "job"),
        quota_ms=quota_ms,
        running_ms=running_ms,
        open_until_ms=pl.when(over).then("end_ms").otherwise(FOREVER),
        outcome=pl.col("state"),
    ).sort("open_until_ms", maintain_order=True)
    held = known.filter(placed)
    pods = held.with_columns(place=pl.int_ranges(0, "nodes")).explode("place").with_columns(
        pod_uid=pl.format("job-{}-{}", "job", "place"),
        node=pl.format("node-{}", pl.col("node") + pl.col("place")),
        devices=pl.min_horizontal("gpus", pl.lit(GPUS, pl.Int64)),
        attempt=pl.lit(1, pl.Int64),
    )  # fmt: skip
    key = ("cluster", "workload_uid", "open_until_ms")
    return {
        "workload": known.select(
            *key, "team", "queue", "priority_class", "service_class", "outcome",
            kind=pl.lit(str(ObjectKind.WORKLOAD)), namespace="team", name="workload_uid", job_uid=pl.lit(""),
            user_name="user", project=pl.lit(""),
            gpu_model=pl.when(placed).then("gpu_model").otherwise(pl.lit("")),
            gang_size="nodes", requested_micro_gpus=pl.col("gpus") * MICRO, submitted_ms="submit_ms",
            first_placed_ms="start_ms", first_running_ms=pl.when(placed).then("running_ms"),
            ended_ms="end_ms", ended_earliest_ms=_ANYTHING, skewed=pl.lit(""),
            first_wait_ms=pl.coalesce("start_ms", "end_ms") - pl.col("submit_ms"),
            is_copy=pl.lit(False),  # noqa: FBT003 (a value)
            waits_again=pl.lit(False),  # noqa: FBT003 (a value)
            waits_in_pieces=pl.coalesce("start_ms", "end_ms").is_null(),
        ),
        "span": _spans(known),
        "attempt": held.select(
            *key, "outcome", number=pl.lit(1, pl.Int64), start_ms="start_ms", end_ms="end_ms",
            reason=pl.lit(""), preempted_by=pl.lit(""), source=pl.lit("pods"),
        ),
        "holding": pods.select(
            *key, "attempt", "pod_uid", "node", "gpu_model", pod_name="pod_uid",
            micro_gpus=pl.col("devices") * MICRO, bound_ms="start_ms", bound_earliest_ms=_ANYTHING,
            bound_source=pl.lit("condition"), started_ms="running_ms", released_ms="end_ms",
            released_earliest_ms=_ANYTHING,
            phase=pl.col("state").replace_strict(
                {"open": "Running", "failed": "Failed", "succeeded": "Succeeded"}, return_dtype=pl.String
            ),
            restarts=pl.lit(0, pl.Int64), cut=pl.lit(""), cut_known_ms=_ANYTHING, milli_cpus=_ANYTHING,
            nodes=_ANYTHING, memory_bytes=_ANYTHING, other_asks=pl.lit(""),
        ),
        "run": pods.select(
            *key, "pod_uid", start_ms="running_ms", end_ms="end_ms",
            exit_code=pl.when(over).then((pl.col("state") == "failed").cast(pl.Int64)), reason=pl.lit(""),
        ),
        "member": pl.concat([
            known.select(*key, object_uid="workload_uid", kind=pl.lit(str(ObjectKind.WORKLOAD))),
            pods.select(*key, object_uid="pod_uid", kind=pl.lit(str(ObjectKind.POD))),
        ]),
        "reservation": held.select(
            *key, flavor="gpu_model", micro_gpus=pl.col("gpus") * MICRO, start_ms="quota_ms", end_ms="end_ms"
        ),
        "workload_shape": known.select(
            *key, part=pl.lit(0, pl.Int64), resource=pl.lit(RESOURCE), pods="nodes",
            devices=pl.col("gpus") // pl.col("nodes"), wants=pl.lit(""), others=pl.lit(""),
        ),
        "pod_device": pods.select(
            *key, "pod_uid", "devices", resource=pl.lit(RESOURCE), wants=pl.lit(""), others=pl.lit("")
        ),
    }  # fmt: skip


def _spans(known: pl.DataFrame) -> pl.DataFrame:
    placed, at_ms = pl.col("start_ms").is_not_null(), pl.col
    ends = {
        "queued": ("submit_ms", pl.when(placed).then("quota_ms").otherwise("end_ms")),
        "placing": ("quota_ms", at_ms("start_ms")),
        "starting": ("start_ms", at_ms("running_ms")),
        "running": ("running_ms", at_ms("end_ms")),
    }
    parts = [
        known.filter(True if state == "queued" else placed).select(
            "cluster", "workload_uid", "open_until_ms",
            state=pl.lit(state), start_ms=start, end_ms=end, start_earliest_ms=_ANYTHING, reason=pl.lit(""),
            first_wait=pl.lit(state in {"queued", "placing"}),
        )
        for state, (start, end) in ends.items()
    ]  # fmt: skip
    lasting = pl.col("end_ms").is_null() | (pl.col("end_ms") > pl.col("start_ms"))
    # What has ended has for ever.
    ended = known.filter(pl.col("state") != "open").select(
        "cluster", "workload_uid", "open_until_ms",
        state=pl.lit(str(State.ENDED)), start_ms="end_ms", end_ms=_ANYTHING, start_earliest_ms=_ANYTHING,
        reason=pl.lit(""), first_wait=pl.lit(False),  # noqa: FBT003 (a value)
    )  # fmt: skip
    return pl.concat([*(part.filter(lasting) for part in parts), ended]).sort(
        "open_until_ms", maintain_order=True
    )


def _around(store: Store, cluster: Cluster) -> None:
    """Nodes and queues, all there from the first instant on, and the readings that told of them."""
    names = [f"node-{node}" for node in range(cluster.nodes)]
    body = msgspec.json.encode(
        Node(labels={}, gpu_capacity={RESOURCE: GPUS}, gpu_allocatable={RESOURCE: GPUS}, unschedulable=False,
             ready="True", taints=())
    )  # fmt: skip
    kinds = (ObjectKind.NODE, ObjectKind.POD, ObjectKind.WORKLOAD)
    store.append(
        Batch(
            cluster=CLUSTER,
            descriptions=[
                Description(
                    uid=name, kind=ObjectKind.NODE, namespace="", name=name, from_ms=START_MS,
                    observed_ms=START_MS, body=body,
                )
                for name in names
            ],
            marks={
                kind: SourceMark(kind=kind, resource_version="1", epoch=0, seen_ms=cluster.end_ms)
                for kind in kinds
            },
            sights={kind: [Stretch(start_ms=START_MS, end_ms=cluster.end_ms)] for kind in kinds},
        )
    )  # fmt: skip
    nodes = pl.DataFrame(
        {"node": names, "gpu_model": [cluster.model(node) for node in range(cluster.nodes)]}
    ).with_columns(
        cluster=pl.lit(CLUSTER),
        start_ms=pl.lit(START_MS, pl.Int64),
        end_ms=_ANYTHING,
        schedulable=pl.lit(value=True),
    )
    whole = pl.lit(GPUS * MICRO, pl.Int64)
    queues = pl.DataFrame({"queue": [f"queue-{number}" for number in range(QUEUES)]}).with_columns(
        cluster=pl.lit(CLUSTER),
        kind=pl.lit("cluster_queue"),
        start_ms=pl.lit(START_MS, pl.Int64),
        end_ms=_ANYTHING,
    )
    _insert(
        store,
        {
            "node_span": nodes.with_columns(
                capacity_micro_gpus=whole, allocatable_micro_gpus=whole,
                unpartitioned_micro_gpus=pl.lit(0, pl.Int64),
            ),
            "node_device": nodes.with_columns(
                resource=pl.lit(RESOURCE), replicas=pl.lit(1, pl.Int64), capacity=pl.lit(GPUS, pl.Int64),
                allocatable=pl.lit(GPUS, pl.Int64), product="gpu_model", labels=pl.lit("{}"),
                taints=pl.lit("[]"),
            ),
            "queue_span": queues,
        },
    )  # fmt: skip
