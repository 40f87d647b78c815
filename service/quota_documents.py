"""Proposals as the API gives them: evidence, who is exposed, and the patch for the object as last read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import msgspec

from analytics.quota.exposed import Reclaim, Running, exposed
from analytics.quota.movements import COHORT, Kind
from analytics.quota.patch import Target, inverse, patch, refused_by_volcano
from analytics.quota.rules import scaled_weight
from api.answers import Listing, Record
from domain.errors import UsageError
from domain.facts import ObjectKind
from domain.objects import VolcanoQueue, Workload
from domain.quantity import MICRO_PER_GPU
from domain.window import format_instant
from service.quota_settings import QuotaSettings
from service.quota_site import (
    RESOURCE,
    PoolSite,
    QuotaObject,
    pools,
    quota_objects,
    reclaim_policies,
    record,
    target,
)
from store import proposals as kept
from store.embedded import Store

_RECLAIMS: Final = (Reclaim.ANY, Reclaim.LOWER_PRIORITY)
_WORKLOAD = msgspec.json.Decoder(Workload)
_RESOURCES: Final = {
    ObjectKind.CLUSTER_QUEUE: "clusterqueues.kueue.x-k8s.io",
    ObjectKind.COHORT: "cohorts.kueue.x-k8s.io",
    ObjectKind.VOLCANO_QUEUE: "queues.scheduling.volcano.sh",
    ObjectKind.RESOURCE_QUOTA: "resourcequotas",
}

# One row per workload that has quota reserved at $as_of_ms in a queue and flavor.
_RESERVED: Final = """
select
    workload_uid,
    namespace,
    name,
    team,
    sum(micro_gpus) as micro_gpus,
    min(start_ms) as admitted_ms
from gpu_reservation
where
    cluster = $cluster
    and queue = $queue
    and flavor = $flavor
    and start_ms < $as_of_ms
    and coalesce(end_ms >= $as_of_ms, true)
    and micro_gpus > 0
group by workload_uid, namespace, name, team
order by workload_uid
"""


def listing(store: Store, terms: QuotaSettings, as_of_ms: int) -> Listing:
    """All proposals that were made by then, newest first, in the state of then, without their patches."""
    site = _Now(store, terms, as_of_ms)
    found = [site.document(row) for row in kept.proposals(store, as_of_ms=as_of_ms)]
    return Listing(as_of_ms=as_of_ms, rows=found, total=len(found), page_size=max(len(found), 1))


def detail(store: Store, terms: QuotaSettings, proposal_id: str, as_of_ms: int) -> Record | None:
    """One proposal with its patch, its exact inverse and its history; None where there is none."""
    rows: list[dict[str, Any]] = kept.proposals(store, proposal_id, as_of_ms=as_of_ms)
    if not rows:
        return None
    site = _Now(store, terms, as_of_ms)
    changes: list[dict[str, Any]] = kept.audit(store, proposal_id, as_of_ms=as_of_ms)
    return (
        site.document(rows[0])
        | {"as_of": format_instant(as_of_ms)}
        | site.patches(rows[0])
        | {
            "audit": [
                {
                    "at": format_instant(each["at_ms"]),
                    "from_state": each["from_state"],
                    "to_state": each["to_state"],
                    "who": each["who"],
                    "note": each["note"],
                }
                for each in changes
            ]
        }
    )


@dataclass(slots=True)
class _Now:
    """The clusters' quotas as they stand, read once for all proposals of an answer."""

    store: Store
    terms: QuotaSettings
    as_of_ms: int
    _pools: dict[str, dict[str, PoolSite]] = field(default_factory=dict)
    _objects: dict[str, dict[str, QuotaObject]] = field(default_factory=dict)
    _weeks: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def document(self, row: Mapping[str, Any]) -> Record:
        """A proposal: what is to change, why, until when, and who is exposed now."""
        says = self._says(row)
        live = self._live(row)
        base = row["base"]
        self._weeks = self._weeks or kept.week_bounds(self.store)
        start_ms, end_ms = self._weeks[row["cluster"], row["week"]]
        return {
            "id": row["proposal_id"],
            "cluster": row["cluster"],
            "pool": row["pool"],
            "holder": row["holder"],
            "teams": [team for team in row["teams"].split(",") if team],
            "week": row["week"],
            "week_start_at": format_instant(start_ms),
            "week_end_at": format_instant(end_ms),
            "kind": row["kind"],
            "state": row["state"],
            "before_gpus": base + row["before"],
            "after_gpus": base + row["after"],
            "live_gpus": live,
            "made_at": format_instant(row["made_ms"]),
            "expires_at": format_instant(row["expires_ms"]),
            "because": row["because"],
            "evidence": json.loads(row["evidence"]),
            "funding": json.loads(row["funding"]),
            "from_free_gpus": row["from_free"],
            "object": {"kind": row["object_kind"], "namespace": "", "name": ""}
            if says is None
            else record(says),
            **self._exposed(row),
        }

    def patches(self, row: Mapping[str, Any]) -> Record:
        """The patch and its inverse for the object as last read, with the command that applies a file."""
        none: Record = {"patch": None, "inverse": None, "command": "", "no_patch_because": ""}
        says, before = self._says(row), row["base"] + row["before"]
        if says is None:
            return none | {"no_patch_because": "the object that says this quota is gone"}
        live = self._live(row)
        if live != before:
            now = "no quota of whole GPUs" if live is None else f"{live} GPU"
            return none | {
                "no_patch_because": f"drifted: the object says {now}, and this was made for {before}"
            }
        weight = self.terms.volcano == "weight"
        try:
            found = target(says, flavor=row["flavor"], weight=weight)
        except UsageError as cause:
            return none | {"no_patch_because": str(cause)}
        if found is None:
            return none | {"no_patch_because": "the object does not say this quota any more"}
        after: int = row["base"] + row["after"]
        if weight and isinstance(says.body, VolcanoQueue):
            scaled = scaled_weight(Decimal(says.body.weight), agreed=before, proposed=after)
            after = max(1, round(scaled))
        elif isinstance(says.body, VolcanoQueue):
            refused = refused_by_volcano(says.body, resource=RESOURCE, after=after)
            if refused:
                return none | {"no_patch_because": refused}
        return {
            "patch": list(patch(found, after)),
            "inverse": list(inverse(found, after)),
            "command": _command(found),
            "no_patch_because": "",
        }

    def _exposed(self, row: Mapping[str, Any]) -> Record:
        """
        What runs on the quota now, and which of it a cut turns into borrowing that may be reclaimed.

        `when_free` waits until no more is used than the cut leaves.
        """
        site, holder = self._pool(row), row["holder"]
        unknown: Record = {"used_gpus": None, "exposed": [], "waits_until_free": None}
        if not row["flavor"] or holder == COHORT or site is None or holder not in site.holders:
            return unknown
        asked = {
            "cluster": row["cluster"],
            "queue": holder,
            "flavor": row["flavor"],
            "as_of_ms": self.as_of_ms,
        }
        reserved: list[dict[str, Any]] = self.store.rows(_RESERVED, asked)
        used = sum(each["micro_gpus"] for each in reserved)
        lowers = Kind(row["kind"]).lowers
        at_risk: Sequence[Running] = ()
        if lowers and row["state"] not in {"rejected", "expired", "superseded"}:
            priorities = self._priorities(row["cluster"], [each["workload_uid"] for each in reserved])
            policies = reclaim_policies(site, holder)
            at_risk = exposed(
                [
                    Running(
                        workload_uid=each["workload_uid"],
                        # Quota is counted in whole GPUs; a part of one takes one.
                        gpus=-(-int(each["micro_gpus"]) // MICRO_PER_GPU),
                        priority=priorities.get(each["workload_uid"], 0),
                        admitted_ms=each["admitted_ms"],
                    )
                    for each in reserved
                ],
                after=row["after"],
                reclaim=next((way for way in _RECLAIMS if way in policies), Reclaim.NEVER),
            )
        names = {each["workload_uid"]: each for each in reserved}
        return {
            "used_gpus": used / MICRO_PER_GPU,
            "exposed": [
                {
                    "uid": each.workload_uid,
                    **{key: names[each.workload_uid][key] for key in ("namespace", "name", "team")},
                    "gpus": each.gpus,
                    "priority": each.priority,
                }
                for each in at_risk
            ],
            "waits_until_free": lowers and used > row["after"] * MICRO_PER_GPU,
        }

    def _priorities(self, cluster: str, uids: list[str]) -> dict[str, int]:
        if not uids:
            return {}
        _, told = self.store.facts_of(cluster, uids)
        bodies = {each.uid: each.body for each in told if each.kind is ObjectKind.WORKLOAD}
        return {uid: _WORKLOAD.decode(body).priority for uid, body in bodies.items()}

    def _live(self, row: Mapping[str, Any]) -> int | None:
        site = self._pool(row)
        holding = None
        if site is not None:
            holding = site.holders.get(row["holder"]) if row["holder"] else site.cohort
        return None if holding is None else holding.gpus

    def _pool(self, row: Mapping[str, Any]) -> PoolSite | None:
        cluster = row["cluster"]
        if cluster not in self._pools:
            found = pools(self.store, cluster, self.as_of_ms)
            self._pools[cluster] = {site.pool: site for site in found}
        return self._pools[cluster].get(row["pool"])

    def _says(self, row: Mapping[str, Any]) -> QuotaObject | None:
        cluster = row["cluster"]
        if cluster not in self._objects:
            self._objects[cluster] = quota_objects(self.store, cluster, self.as_of_ms)
        return self._objects[cluster].get(row["object_uid"])


def _command(found: Target) -> str:
    where = f" --namespace {found.namespace}" if found.namespace else ""
    return f"kubectl patch {_RESOURCES[found.kind]} {found.name}{where} --type json --patch-file FILE"
