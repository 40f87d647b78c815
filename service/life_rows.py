"""The rows of a workload's life, by table."""

from dataclasses import fields
from typing import Any, Final

from analytics.copies import Place
from analytics.fairness.kueue_terms import quota_uses
from analytics.fragmentation.asked import pod_rows, shape_rows
from analytics.history import WorkloadFacts, checkpoints_ms
from analytics.portrait import Surroundings, portrait, reservations
from domain.tenant import Tenancy
from domain.workload import Life

# A copy was thrown out because its original was, and there it is told.
_BY_THE_ORIGINAL: Final = "EvictedOnManagerCluster"


def add_life(  # noqa: PLR0913 (what a life is told by)
    tables: dict[str, list[dict[str, object]]],
    cluster: str,
    facts: WorkloadFacts,
    *,
    life: Life,
    around: Surroundings,
    tenancy: Tenancy,
    original: Place | None,
) -> None:
    """
    Append the rows of one workload to each table; `original` is the one of which it is a copy.

    What the pods of its copies hold, and the quota reserved for them, is told where they are.
    """
    who = _flat(portrait(facts, life, around=around, tenancy=tenancy))
    who["user_name"] = who.pop("user")
    key: dict[str, object] = {"cluster": cluster, "workload_uid": facts.uid}
    tables["workload"].append(
        key
        | who
        | {
            "submitted_ms": life.submitted_ms,
            "first_placed_ms": life.first_placed_ms,
            "first_running_ms": life.first_running_ms,
            "ended_ms": life.ended_ms,
            "ended_earliest_ms": life.ended_earliest_ms,
            "outcome": life.outcome,
            "skewed": "; ".join(life.skewed),
        }
    )
    tables["span"] += [key | _flat(span) for span in life.spans]
    tables["attempt"] += [key | _flat(attempt) for attempt in life.attempts]
    if original is not None:
        of_uid = {"of_cluster": original.cluster, "of_workload_uid": original.uid}
        tables["workload_copy"].append(key | of_uid)
    for holding in () if facts.pods_elsewhere else life.holdings:
        row = _flat(holding)
        of_pod = key | {"pod_uid": holding.pod_uid}
        tables["run"] += [of_pod | _flat(run) for run in row.pop("runs")]
        tables["holding"].append(key | row)
    tables["eviction"] += [
        key | _flat(eviction)
        for eviction in life.evictions
        if original is None or eviction.reason != _BY_THE_ORIGINAL
    ]
    tables["member_wait"] += [key | _flat(wait) for wait in life.member_waits]
    tables["workload_shape"] += [key | row for row in shape_rows(facts)]
    here = () if facts.pods_elsewhere else facts.pods
    objects_of = (*facts.queueing, *facts.jobs, *here)
    for history in objects_of:
        tables["member"].append(key | {"object_uid": history.uid, "kind": history.kind})
    tables["checkpoint_told"] += [key | {"at_ms": at_ms} for at_ms in checkpoints_ms(objects_of)]
    if facts.pods_elsewhere:
        return
    tables["pod_device"] += [key | row for row in pod_rows(facts)]
    for history in facts.queueing:
        tables["quota_use"] += [key | row for row in quota_uses(history)]
        for flavor, quantity, start_ms, end_ms in reservations(history, facts.catalog):
            tables["reservation"].append(
                key | {"flavor": flavor, "micro_gpus": quantity, "start_ms": start_ms, "end_ms": end_ms}
            )


def _flat(one: Any) -> dict[str, Any]:
    """The fields of a dataclass; `dataclasses.asdict` copies what is in them, at ten times the cost."""
    return {field.name: getattr(one, field.name) for field in fields(one)}
