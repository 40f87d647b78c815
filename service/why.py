"""Why one workload waits: the answer as the API gives it, from what the store knows."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from analytics.denials import Denier
from analytics.why.reason import BlockerKind, Explanation, Finding, Reason
from analytics.why.situation import explain
from analytics.why.verdict import sentence
from analytics.why.waterfall import waterfall
from api.answers import Record
from domain.facts import ObjectKind
from domain.policy import Policy
from domain.quantity import MICRO_PER_GPU, is_gpu_resource
from domain.window import MS_PER_SECOND, format_instant, parse_instant
from domain.workload import WAITING_STATES
from service import positions, why_ends, why_facts, why_sql, why_timeline
from service.eta import eta
from service.why_facts import Known
from service.why_orders import Orders
from service.why_scene import Scenes
from service.why_search import QUOTA_REASONS, Search
from service.why_sql import of_few
from store.embedded import Store

UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
# One row per workload that bears the uid.
_ITSELF: Final = (
    "select cluster, workload_uid as uid from workload where workload_uid = $uid order by cluster"
)
# One row per workload of which an object does: its job, a pod.
_OF_OBJECT: Final = """
select cluster, workload_uid as uid
from member
where object_uid = $uid
order by cluster, uid
"""
_MOST_HOLDERS: Final = 50
_OF_DEVICES: Final = (Reason.OTHER_RESOURCE, Reason.FRAGMENTATION, Reason.GPU_SHORTAGE)
# What a workload that waits for nothing does instead.
_NOT_WAITING: Final = {
    "running": "It runs.",
    "draining": "It leaves: its pods are being ended.",
    "ended": "It is over.",
}


def document(
    store: Store,
    uid: str,
    as_of_ms: int,
    policy: Policy,
    orders: Orders | None = None,
    scenes: Scenes | None = None,
) -> Record | None:
    """
    Why a workload waited just before an instant; None where it was not submitted by then.

    `uid` may also be that of an object that belongs to it: its job, or a pod. `orders` are those that looks
    of late found, `scenes` what earlier questions did.
    """
    meant = store.rows(_ITSELF, {"uid": uid}) or store.rows(_OF_OBJECT, {"uid": uid})
    if not meant:
        return None
    cluster, uid = str(meant[0]["cluster"]), str(meant[0]["uid"])
    known = why_facts.read(store, cluster, [uid], as_of_ms).get(uid)
    if known is None:
        return None
    looked = orders.of(cluster, as_of_ms) if orders else None
    with (scenes or Scenes()).entered(store, cluster, as_of_ms) as scene:
        return _told(Search(store, cluster, as_of_ms, scene, looked), known, policy)


def _told(search: Search, known: Known, policy: Policy) -> Record:
    answer = explain(known.situation(search.site, search.found(known)))
    course = known.course
    return {
        "as_of": format_instant(search.as_of_ms),
        "cluster": search.cluster,
        **{name: course[name] for name in ("uid", "kind", "namespace", "name", "team", "user", "queue")},
        **{name: course[name] for name in ("service_class", "state")},
        "requested_gpus": _gpus(course["requested_micro_gpus"]),
        "waits": known.state in WAITING_STATES,
        "in_state_since": format_instant(course["since_ms"]),
        "in_state_seconds": (search.as_of_ms - course["since_ms"]) / MS_PER_SECOND,
        "verdict": sentence(answer.primary) if answer else _NOT_WAITING[known.state],
        "primary": _finding(answer.primary) if answer else None,
        "further": [_finding(one) for one in answer.further] if answer else [],
        **_parties(search, known, answer),
        "eta": eta(search, known, answer, policy),
        "queue_position": _position(search, known),
        "priority": _priority(search, known, answer, policy),
        **why_timeline.reasons(search.store, search.cluster, known, search.as_of_ms),
    }


def _position(search: Search, known: Known) -> Record | None:
    """Kueue's position beside ours; None for one that does not wait in a queue of Kueue."""
    ahead = search.ahead(known)
    if ahead is None:
        return None
    row = {"cluster": search.cluster, "uid": known.course["uid"], "state": known.course["state"]}
    ours = {(search.cluster, str(row["uid"])): {"ahead": ahead}}
    return positions.Order(search.store, search.as_of_ms, uid=str(row["uid"]), ours=ours).place(row)


def _priority(search: Search, known: Known, answer: Explanation | None, policy: Policy) -> Record | None:
    """What its priority is made of; None for work that waits for nothing, or has no class."""
    course = known.course
    name = str(course["priority_class"])
    kind = ObjectKind.WORKLOAD_PRIORITY_CLASS if known.kueue else ObjectKind.PRIORITY_CLASS
    if known.state not in WAITING_STATES or not name:
        return None
    classes = search.site.priority_classes(kind)
    made = waterfall(
        name,
        classes,
        value=known.kueue.priority if known.kueue else classes.get(name, 0),
        waited_ms=int(course["waited_ms"]),
        as_of_ms=search.as_of_ms,
        submitted_ms=int(course["submitted_ms"]),
        quota_used_ratio=_quota_used(answer),
        policy=policy,
    )
    outranks_ms = made.outranks_at_ms
    return {
        "class": made.class_name,
        "class_value": made.class_value,
        "ageing_bonus": made.ageing_bonus,
        "value": made.value,
        "next_class": made.next_class,
        "next_value": made.next_value,
        "outranks_at": None if outranks_ms is None else format_instant(outranks_ms),
        "submitted_at": format_instant(made.submitted_ms),
        "quota_used_ratio": made.quota_used_ratio,
    }


def _quota_used(answer: Explanation | None) -> float | None:
    """What its queue uses of its quota, by the arithmetic of quota; None where that was not asked."""
    for finding in answer.findings if answer else ():
        used, nominal = finding.evidence.get("used"), finding.evidence.get("nominal")
        if isinstance(used, int | float) and isinstance(nominal, int | float) and nominal:
            return used / nominal
    return None


def _finding(finding: Finding) -> Record:
    return {
        "reason": str(finding.reason),
        "sentence": sentence(finding),
        "since": None if finding.since_ms is None else format_instant(finding.since_ms),
        "source": finding.source.name.lower(),
        "evidence": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in finding.evidence.items()
        },
        "remedy": finding.remedy,
        "text": finding.text,
        "blockers": [
            {"kind": str(one.kind), "name": one.name, "node": one.node, "devices": one.devices}
            for one in finding.blockers
        ],
    }


def _parties(search: Search, known: Known, answer: Explanation | None) -> Mapping[str, Any]:
    """
    Whose work the answer is about.

    Returns:
        `holds`: what the holders have, `quota` or `devices`; empty where nobody has what it needs.
        `holders`: who holds it, each with how much, on which nodes, since when, and when it may be expected
        to end; at most `_MOST_HOLDERS`. `other_holders`: how many more there are, how much they hold, and
        when the first of them may end. `named`: all workloads that the answer names, with their teams.
    """
    holds, holding = _holding(search, known, answer)
    uids = {*holding, *_named(answer)} - {str(known.course["uid"])}
    names = _about(search, why_sql.NAMES, uids, search.scene.names)
    # What is no workload may be an object of one: a job, a pod.
    owners = {
        uid: str(row["of_uid"])
        for uid, row in _about(search, why_sql.OWNERS, uids - names.keys(), search.scene.owners).items()
    }
    names |= _about(search, why_sql.NAMES, {*owners.values()}, search.scene.names)
    since_ms = {uid: parse_instant(held["since"]) for uid, held in holding.items() if uid in names}
    ends = why_ends.ends(search.store, search.cluster, since_ms, search.as_of_ms)
    holders: list[Record] = sorted(
        (
            {name: names[uid][name] for name in ("uid", "namespace", "name", "team", "user")}
            | held
            | ends.get(uid, why_ends.UNKNOWN)
            for uid, held in holding.items()
            if uid in names
        ),
        key=lambda one: (-one["amount"], one["since"], one["uid"]),
    )
    teams = {uid: names[owners.get(uid, uid)]["team"] for uid in uids if owners.get(uid, uid) in names}
    more = holders[_MOST_HOLDERS:]
    return {
        "holds": holds,
        "holders": holders[:_MOST_HOLDERS],
        "other_holders": {
            "workloads": len(more),
            "amount": sum(one["amount"] for one in more),
            "first_ends_at": why_ends.first_end(more),
        },
        "named": [{"uid": uid, "team": team} for uid, team in sorted(teams.items())],
    }


def _about(
    search: Search, sql: str, uids: Collection[str], known: dict[str, Mapping[str, Any] | None]
) -> dict[str, Mapping[str, Any]]:
    """The row of each uid that has one; those in the way of many are asked about once."""
    new = sorted(uids - known.keys())
    if new:
        known |= dict.fromkeys(new)
        asked = {"cluster": search.cluster, "uids": new}
        known |= {str(row["uid"]): row for row in search.store.rows(of_few(sql), asked)}
    return {uid: row for uid in sorted(uids) if (row := known[uid]) is not None}


def _holding(search: Search, known: Known, answer: Explanation | None) -> tuple[str, Mapping[str, Record]]:
    """Who holds what the first reason that is about something held says is missing."""
    for finding in answer.findings if answer else ():
        if finding.reason in QUOTA_REASONS and "flavor" in finding.evidence:
            # Holders are told by their GPUs; of CPUs and memory the numbers in the evidence must do.
            is_gpu = is_gpu_resource(str(finding.evidence["resource"]))
            return ("quota", _of_quota(search, finding)) if is_gpu else ("", {})
        said = finding.evidence
        if said.get("denied_by") == Denier.RESOURCE_QUOTA or "namespace_free" in said:
            return "quota", _of_namespace(search, known)
        if finding.reason in _OF_DEVICES and (
            finding.blockers or finding.reason is not Reason.OTHER_RESOURCE
        ):
            return "devices", _of_nodes(search, known, finding)
    return "", {}


def _of_quota(search: Search, finding: Finding) -> Mapping[str, Record]:
    """Who has reserved the flavor: in the queue, or in the cohort whose quota is used up."""
    flavor, resource = str(finding.evidence["flavor"]), str(finding.evidence["resource"])
    queues = {str(finding.evidence["queue"])}
    cohorts = {one.name for one in finding.blockers if one.kind is BlockerKind.COHORT}
    if cohorts:
        tree = search.site.quota.site.tree((flavor, resource)).queues
        queues |= {
            name for name, queue in tree.items() if cohorts & {above.name for above in queue.line()[1:]}
        }
    asked = {"cluster": search.cluster, "as_of_ms": search.as_of_ms}
    found = {}
    for row in search.store.rows(why_sql.RESERVED, asked):
        amount = json.loads(str(row["resources"])).get(resource, 0) / 1000
        if row["queue"] in queues and row["flavor"] == flavor and amount:
            since = format_instant(int(str(row["since_ms"])))
            found[str(row["uid"])] = {"amount": amount, "nodes": [], "since": since}
    return found


def _of_namespace(search: Search, known: Known) -> Mapping[str, Record]:
    """Whose pods on nodes count against the ResourceQuota of its namespace."""
    asked = {"cluster": search.cluster, "namespace": known.course["namespace"], "as_of_ms": search.as_of_ms}
    found = {}
    for row in search.store.rows(why_sql.HELD_IN_NAMESPACE, asked):
        found[str(row["uid"])] = {
            "amount": float(int(str(row["devices"]))),
            "nodes": row["nodes"],
            "since": format_instant(int(str(row["since_ms"]))),
        }
    return found


def _of_nodes(search: Search, known: Known, finding: Finding) -> Mapping[str, Record]:
    """Those whose end would let it be placed."""
    resources = {resource for pods in known.gang(search.site).pod_sets for resource in pods.devices}
    found = {}
    for one in finding.blockers:
        held = search.site.held.get(one.name, ())
        # Who has other devices may have the CPU or memory that is wanted.
        rows = [row for row in held if row["resource"] in resources] or held
        if rows:
            found[one.name] = {
                "amount": float(sum(int(row["devices"]) for row in rows)),
                "nodes": sorted({str(row["node"]) for row in rows}),
                "since": format_instant(min(int(row["since_ms"]) for row in rows)),
            }
    return found


def _named(answer: Explanation | None) -> Iterable[str]:
    """The uids that stand anywhere in the answer."""
    for finding in answer.findings if answer else ():
        yield from (one.name for one in finding.blockers if one.kind is BlockerKind.WORKLOAD)
        for value in (*finding.evidence.values(), finding.text):
            if isinstance(value, str):
                yield from UID.findall(value)


def _gpus(micro_gpus: int | None) -> float | None:
    return None if micro_gpus is None else micro_gpus / MICRO_PER_GPU
