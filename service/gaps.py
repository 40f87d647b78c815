"""What nobody tells although everything is read: nodes without an exporter, fields, priority classes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from analytics.activity.lag import NODE_LAGS
from api.answers import Record, SourceState
from domain.facts import ObjectKind
from domain.gpu_sample import GPU_METRICS, Field
from domain.policy import Policy
from domain.window import MS_PER_SECOND
from service import features, identity, words
from store.embedded import Store

# The kind of row that names a gap; no source of its own.
GAP: Final = "gap"
_NAMED: Final = 3
_ENGINE_ONLY: Final = (
    "activity is the share of time in which anything ran: one small kernel counts as a busy GPU"
)

# One row per node with GPUs, in clusters of which samples are read: what its samples of late have.
_NODES: Final = """
with described as (
    select cluster, uid, arg_max(body, observed_ms) as body
    from description
    where kind = 'Node' and observed_ms < $as_of_ms
    group by cluster, uid
),

told as (
    select
        cluster,
        node,
        count(*) as samples,
        count(activity) as activities,
        count(*) filter (where engine and activity is not null) as engines,
        count(memory_mib) as memories
    from gpu_sample
    where at_ms >= $since_ms and at_ms < $as_of_ms
    group by cluster, node
)

select
    object_state.cluster,
    object_state.name as node,
    coalesce(told.samples, 0) as samples,
    coalesce(told.activities, 0) as activities,
    coalesce(told.engines, 0) as engines,
    coalesce(told.memories, 0) as memories
from object_state
inner join described
    on object_state.cluster = described.cluster and object_state.uid = described.uid
left join told on object_state.cluster = told.cluster and object_state.name = told.node
where
    object_state.kind = 'Node'
    and coalesce(object_state.gone_ms >= $as_of_ms, true)
    and len(json_keys(described.body::json -> 'gpu_capacity')) > 0
    and object_state.cluster in (select cluster from gpu_sample_mark where first_sample_ms < $as_of_ms)
order by object_state.cluster, object_state.name
"""
# One row per cluster with nodes with GPUs of whose GPU metrics no source was ever known: how many nodes.
_WITHOUT_METRICS: Final = """
select
    node_capacity.cluster,
    count(distinct node_capacity.node) as nodes
from node_capacity
where
    node_capacity.start_ms < $as_of_ms
    and coalesce(node_capacity.end_ms >= $as_of_ms, true)
    and coalesce(node_capacity.capacity_micro_gpus, node_capacity.allocatable_micro_gpus, 1) > 0
    and node_capacity.cluster not in (
        select cluster from gpu_sample_mark where coalesce(first_sample_ms < $as_of_ms, true)
    )
group by node_capacity.cluster
order by node_capacity.cluster
"""
# One row per cluster with pods whose priority classes are read and are all Kubernetes' own, which begin so.
_ONE_PRIORITY: Final = """
select source_mark.cluster
from source_mark
where
    source_mark.kind = 'PriorityClass'
    and source_mark.seen_ms > 0
    and source_mark.cluster in (select cluster from object_state where kind = 'Pod')
    and source_mark.cluster not in (
        select cluster
        from object_state
        where
            kind in ('PriorityClass', 'WorkloadPriorityClass')
            and gone_ms is null
            and not starts_with(name, 'system-')
    )
order by source_mark.cluster
"""


def rows(store: Store, as_of_ms: int, *, policy: Policy) -> list[Record]:
    """One record per cluster and gap, shaped as those of `service.sources.rows`."""
    since_ms = as_of_ms - round(policy.stale_after(GPU_METRICS).total_seconds() * MS_PER_SECOND)
    nodes: Sequence[Mapping[str, Any]] = store.rows(_NODES, {"as_of_ms": as_of_ms, "since_ms": since_ms})
    found = [*_of_two_names(store), *_of_late_nodes(store, as_of_ms, tolerated_ms=as_of_ms - since_ms)]
    found += [
        gap
        for cluster in dict.fromkeys(str(row["cluster"]) for row in nodes)
        for gap in _of_nodes(cluster, [row for row in nodes if row["cluster"] == cluster])
    ]
    found += [
        _gap(
            str(row["cluster"]),
            GPU_METRICS,
            f"GPU metrics of its nodes ({row['nodes']} with GPUs) were never read, and are in no setting",
            missing=features.missing(GPU_METRICS),
            remedy=(
                "name its dcgm-exporters, or a Prometheus that has their metrics, in gpu_metrics; if it is to"
                " have none there is nothing to do, and no alert tells of it"
            ),
        )
        for row in store.rows(_WITHOUT_METRICS, {"as_of_ms": as_of_ms})
    ]
    return found + [
        _gap(
            str(row["cluster"]),
            ObjectKind.PRIORITY_CLASS,
            "there is no priority class beside Kubernetes' own",
            missing="all work has one priority, and its service class comes from rules only",
            remedy="make priority classes, or name classes by tenancy.service_classes",
        )
        for row in store.rows(_ONE_PRIORITY)
    ]


def of_alarms(sounding: Mapping[str, str]) -> list[Record]:
    """One record per alarm that sounds now, by its name and its sentence; no cluster alone is meant."""
    return [
        _gap(
            "",
            name,
            sentence,
            missing="while that is so, figures may be old or missing",
            remedy="do what it says",
        )
        for name, sentence in sounding.items()
    ]


def _of_two_names(store: Store) -> Iterator[Record]:
    """Clusters that were read under a second name, each under all but the one that was read last."""
    for _, (first, *others) in sorted(identity.names_by_uid(store.marks()).items()):
        for other in others:
            yield _gap(
                other,
                "two names",
                identity.told_twice(other, first),
                missing="what was read under both counts twice, such as the GPUs that its work holds",
                remedy=identity.of_the_past(other),
            )


def _of_late_nodes(store: Store, as_of_ms: int, *, tolerated_ms: int) -> Iterator[Record]:
    """Nodes of which nobody ever told, and nodes of which nobody tells any more, the latest first."""
    rows: Sequence[Mapping[str, Any]] = store.rows(NODE_LAGS, {"as_of_ms": as_of_ms})
    late = sorted(
        (row for row in rows if row["lag_ms"] > tolerated_ms), key=lambda row: (-row["lag_ms"], row["node"])
    )
    for cluster in sorted({str(row["cluster"]) for row in late}):
        of_cluster = [row for row in late if row["cluster"] == cluster]
        beside = f"of {sum(row['cluster'] == cluster for row in rows)} with GPUs"
        if silent := [_since(row) for row in of_cluster if not row["has_told"]]:
            yield _gap(
                cluster,
                "nodes without samples",
                f"no exporter tells of {_named(silent)}, {beside}",
                missing="what their GPUs did is unknown",
                remedy="run dcgm-exporter on them (its DaemonSet must tolerate their taints), and scrape it",
            )
        if stopped := [_since(row) for row in of_cluster if row["has_told"]]:
            yield _gap(
                cluster,
                "late nodes",
                f"nothing is told any more of {_named(stopped)}, {beside}",
                missing="what their GPUs have done since is unknown",
                remedy=(
                    "look at dcgm-exporter on them: does its pod run, does it give values, and does what "
                    "scrapes it reach it?"
                ),
            )


def _since(row: Mapping[str, Any]) -> str:
    return f"{row['node']} for {words.duration(row['lag_ms'] / MS_PER_SECOND)}"


def _of_nodes(cluster: str, nodes: list[Mapping[str, Any]]) -> Iterator[Record]:
    telling = [row for row in nodes if row["samples"]]
    engine = [str(row["node"]) for row in telling if row["activities"] and not row["engines"]]
    if engine:
        yield _gap(
            cluster,
            Field.ENGINE,
            f"{Field.ENGINE} is missing on {_named(engine)}",
            missing=_ENGINE_ONLY,
            remedy="switch the profiling metrics of dcgm-exporter on; one profiler at a time may hold a GPU",
        )
    for field, count, missing in (
        (Field.UTIL, "activities", "idle time and wastage of their GPUs are unknown"),
        (Field.USED, "memories", "whether an idle GPU holds a model in its memory is unknown"),
    ):
        without = [str(row["node"]) for row in telling if not row[count]]
        if without:
            yield _gap(
                cluster,
                field,
                f"{field} is missing on {_named(without)}",
                missing=missing,
                remedy=f"add {field} to the counters of dcgm-exporter",
            )


def _named(nodes: list[str]) -> str:
    """
    How many nodes, and the first of them by name.

    >>> _named(["a"]), _named(["a", "b", "c", "d"])
    ('1 node (a)', '4 nodes (a, b, c and 1 more)')
    """
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"{len(nodes)} node{'s' if len(nodes) > 1 else ''} ({', '.join(nodes[:_NAMED])}{more})"


def _gap(cluster: str, what: str, because: str, *, missing: str, remedy: str) -> Record:
    return {
        "cluster": cluster,
        "kind": GAP,
        "source": str(what),
        "state": str(SourceState.NEVER_READ),
        "seen_at": None,
        "lag_seconds": None,
        "stale": False,
        "epoch": 0,
        "restarts": 0,
        "last_error": because,
        "missing": missing,
        "remedy": remedy,
        "set_aside": 0,
        "set_aside_causes": [],
    }
