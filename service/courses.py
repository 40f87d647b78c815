"""Workloads as the books of fairness see them: read from their lives, and from what they asked for."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from analytics.claims import gpu_resources
from analytics.fairness.books.course import FOREVER, Course, Stay, Stretch
from domain import objects
from domain.claims import ResourceClaim
from domain.facts import ObjectKind
from domain.quantity import is_gpu_resource
from store.embedded import Store

# One row per workload.
_WORKLOADS: Final = """
select
    workload_uid, namespace, team, queue, coalesce(requested_micro_gpus, 0) as requested,
    requested_micro_gpus is null as unknown, gang_size, skewed
from workload
where
    cluster = $cluster
    and open_until_ms between $since_ms and $until_ms
    and workload_uid in (select unnest($uids::varchar[]))
order by workload_uid
"""
# One row per member object that says what the workload asks, by its first description.
_SAID: Final = """
select
    member.workload_uid,
    description.uid,
    description.kind,
    arg_min(description.body, description.seq) as body,
    min(description.from_ms) as from_ms
from member
inner join description
    on member.cluster = description.cluster and member.object_uid = description.uid
where
    member.cluster = $cluster
    and member.open_until_ms between $since_ms and $until_ms
    and member.workload_uid in (select unnest($uids::varchar[]))
group by member.workload_uid, description.uid, description.kind
order by from_ms, description.uid
"""
_SPANS: Final = """
-- One row per span.
select workload_uid, state as what, start_ms, end_ms, 0 as micro_gpus from span
where
    cluster = $cluster
    and open_until_ms between $since_ms and $until_ms
    and workload_uid in (select unnest($uids::varchar[]))
order by start_ms
"""
_STAYS: Final = """
-- One row per pod that held GPUs.
select workload_uid, node, gpu_model, coalesce(micro_gpus, 0) as micro_gpus, bound_ms, released_ms
from holding
where
    cluster = $cluster
    and open_until_ms between $since_ms and $until_ms
    and workload_uid in (select unnest($uids::varchar[]))
order by bound_ms, pod_uid
"""
_MEMBER_WAITS: Final = """
-- One row per wait of a lost or further member.
select workload_uid, 'member' as what, start_ms, end_ms, coalesce(micro_gpus, 0) as micro_gpus
from member_wait
where
    cluster = $cluster
    and open_until_ms between $since_ms and $until_ms
    and workload_uid in (select unnest($uids::varchar[]))
order by start_ms, pod_uid
"""
_RESERVATIONS: Final = """
-- One row per stretch of reserved quota in a flavor.
select workload_uid, flavor as what, start_ms, end_ms, coalesce(micro_gpus, 0) as micro_gpus
from reservation
where
    cluster = $cluster
    and open_until_ms between $since_ms and $until_ms
    and workload_uid in (select unnest($uids::varchar[]))
order by start_ms, flavor
"""
_DECODERS: Final = {
    kind: msgspec.json.Decoder(objects.BODY_TYPES[kind])
    for kind in (
        ObjectKind.WORKLOAD,
        ObjectKind.VOLCANO_JOB,
        ObjectKind.VOLCANO_POD_GROUP,
        ObjectKind.JOB,
        ObjectKind.POD,
        ObjectKind.KAI_POD_GROUP,
        ObjectKind.RESOURCE_CLAIM,
    )
}
_MANAGERS: Final = {
    ObjectKind.WORKLOAD: "kueue",
    ObjectKind.VOLCANO_POD_GROUP: "volcano",
    ObjectKind.VOLCANO_JOB: "volcano",
    ObjectKind.KAI_POD_GROUP: "kai",
}


@dataclass(slots=True)
class _Asks:
    """What a workload's objects say of what it asks, units by resource."""

    manager: str = ""
    local_queue: str = ""
    kueue: list[objects.PodSet] = field(default_factory=list)
    jobs: list[tuple[objects.Resources, int]] = field(default_factory=list)
    pods: list[objects.Resources] = field(default_factory=list)

    def take(self, kind: ObjectKind, body: objects.Body) -> None:
        """One of its objects, the earliest first."""
        self.manager = self.manager or _MANAGERS.get(kind, "")
        if isinstance(body, objects.Workload) and not self.kueue:
            self.local_queue, self.kueue = body.local_queue, list(body.pod_sets)
        elif isinstance(body, objects.VolcanoJob):
            pods = max(body.replicas, 1)
            self.jobs.append(({name: -(-count // pods) for name, count in body.gpu_requests.items()}, pods))
        elif isinstance(body, objects.Job):
            self.jobs.append((body.gpu_requests_per_pod, max(body.parallelism, 1)))
        elif isinstance(body, objects.Pod):
            self.pods.append(body.gpu_requests)
        elif isinstance(body, ResourceClaim):
            # What is claimed as devices stands in no request.
            self.pods.append(gpu_resources(body))

    def shape(self, *, requested: int, gang_size: int) -> tuple[objects.Resources, objects.Resources]:
        """What its largest pod asks, and what all of them do."""
        parts = [(pods.gpu_requests, pods.count) for pods in self.kueue] or self.jobs
        if not any(resources for resources, _ in parts):
            largest = _largest(self.pods)
            whole = sum(largest.values())
            # Pods that a controller made again ask for no more: the workload's own figure tells how many.
            alike = set(largest) <= {"nvidia.com/gpu"} and whole
            count = round(requested / (whole * 1_000_000)) if alike and requested else gang_size
            parts = [(largest, max(count, 1))]
        total: objects.Resources = {}
        for resources, count in parts:
            for name, each in resources.items():
                if is_gpu_resource(name):
                    total[name] = total.get(name, 0) + each * count
        return _largest([resources for resources, _ in parts]), total

    def selector(self) -> objects.Labels:
        """Labels that a Kueue Workload wants of its nodes."""
        return {name: value for pods in self.kueue for name, value in _labels(pods).items()}


def courses(store: Store, cluster: str, uids: Collection[str]) -> Iterator[Course]:
    """The courses of these workloads; one that has vanished has none."""
    asked: dict[str, object] = {"cluster": cluster, "uids": sorted(uids)}
    asked["since_ms"], asked["until_ms"] = store.counting(cluster, uids)
    asks: dict[str, _Asks] = {}
    for said in _rows(store, _SAID, asked):
        kind = ObjectKind(said["kind"])
        if kind in _DECODERS:
            asks.setdefault(said["workload_uid"], _Asks()).take(kind, _DECODERS[kind].decode(said["body"]))
    spans, waits = _stretches(store, _SPANS, asked), _stretches(store, _MEMBER_WAITS, asked)
    reservations = _stretches(store, _RESERVATIONS, asked)
    stays: dict[str, list[Stay]] = {}
    for row in _rows(store, _STAYS, asked):
        stay = Stay(
            row["node"], row["gpu_model"], row["micro_gpus"], row["bound_ms"], _end(row["released_ms"])
        )
        stays.setdefault(row["workload_uid"], []).append(stay)
    for row in _rows(store, _WORKLOADS, asked):
        uid = row["workload_uid"]
        said_of = asks.get(uid, _Asks())
        each, total = said_of.shape(requested=row["requested"], gang_size=row["gang_size"])
        if not (total or row["requested"] or stays.get(uid)):
            continue
        yield Course(
            uid=uid,
            namespace=row["namespace"],
            team=row["team"],
            queue=row["queue"],
            local_queue=said_of.local_queue,
            manager=said_of.manager,
            each=each,
            total=total,
            requested=row["requested"],
            selector=said_of.selector(),
            set_aside=bool(row["skewed"]),
            spans=spans.get(uid, ()),
            stays=stays.get(uid, ()),
            member_waits=waits.get(uid, ()),
            reservations=reservations.get(uid, ()),
        )


def _labels(pods: objects.PodSet) -> Mapping[str, str]:
    return pods.placement.labels if pods.placement else {}


def _largest(pods: list[objects.Resources]) -> objects.Resources:
    largest: objects.Resources = {}
    for resources in pods:
        for name, count in resources.items():
            if is_gpu_resource(name):
                largest[name] = max(count, largest.get(name, 0))
    return largest


def _stretches(store: Store, sql: str, asked: Mapping[str, object]) -> dict[str, list[Stretch]]:
    found: dict[str, list[Stretch]] = {}
    for row in _rows(store, sql, asked):
        stretch = Stretch(row["what"], row["start_ms"], _end(row["end_ms"]), row["micro_gpus"])
        found.setdefault(row["workload_uid"], []).append(stretch)
    return found


def _rows(store: Store, sql: str, asked: Mapping[str, object]) -> list[dict[str, Any]]:
    return [dict(row) for row in store.rows(sql, dict(asked))]


def _end(end_ms: int | None) -> int:
    return FOREVER if end_ms is None else end_ms
