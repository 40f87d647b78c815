"""What keeps a workload from starting, found by search and arithmetic: room, quota, the order of queues."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from analytics.fragmentation.places import written
from analytics.why.ceilings import Ceiling, of_kai, of_namespace, of_volcano, within
from analytics.why.nodes import Gang
from analytics.why.order import Waiting, positions, queue_order
from analytics.why.placement import place
from analytics.why.quota import PodSetAsk, Request
from analytics.why.reason import Finding, Reason, Source
from domain.facts import ObjectKind
from domain.objects import PodSet, Workload
from domain.window import MS_PER_SECOND
from domain.workload import WAITING_STATES, State
from service import why_sql
from service.why_facts import Known
from service.why_orders import Order
from service.why_scene import Scene, Shape
from service.why_site import Site
from store.embedded import Store

_WORKLOAD: Final = msgspec.json.Decoder(Workload)
# Whose queues have hard limits, and lend nothing.
OF_OTHERS: Final = frozenset({ObjectKind.VOLCANO_JOB, ObjectKind.VOLCANO_POD_GROUP, ObjectKind.KAI_POD_GROUP})
_STRICT: Final = "StrictFIFO"
# What `analytics.why.quota` counts in the units of the terms, which are thousandths.
_AMOUNTS: Final = frozenset(
    {"asked", "nominal", "used", "available", "at_most", "missing", "borrowing_limit", "cohort_quota",
     "cohort_used", "cohort_unused", "cohort_borrowing_limit", "lent_out", "namespace_free"}
)  # fmt: skip


def _shape(body: Workload) -> Shape:
    """
    What a Workload asks, GPUs first, in thousandths; under partial admission the least.

    Kueue counts pods too, where a queue has quota of them.
    """
    return tuple(
        (
            tuple((name, each * (one.min_count or one.count)) for name, each in _each(one).items()),
            "" if one.placement is None else written(one.placement),
        )
        for one in body.pod_sets
    )


def _each(pods: PodSet) -> dict[str, int]:
    """What one pod asks of a quota."""
    gpus = {name: each * 1000 for name, each in pods.gpu_requests.items()}
    others = pods.other_requests if isinstance(pods.other_requests, dict) else {}
    return gpus | dict(sorted(others.items())) | {"pods": 1000}


@lru_cache(maxsize=32_768)
def _read_body(text: str) -> tuple[str, int, Shape]:
    """
    The local queue and priority of a Workload, and what it asks.

    Between two looks most descriptions stay as they are.
    """
    body = _WORKLOAD.decode(text)
    return body.local_queue, body.priority, _shape(body)


@dataclass(frozen=True, slots=True)
class Search:
    """Looks for what is in the way of workloads of one cluster, just before an instant."""

    store: Store
    cluster: str
    as_of_ms: int
    scene: Scene
    looked: Order | None = None
    # What the pods of a namespace ask, from facts, which change without the scene.
    _in_namespaces: dict[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, cluster: str, as_of_ms: int, looked: Order | None = None) -> "Search":
        """With the nodes, queues and quotas as the store has them; `looked` is the order of the last look."""
        return cls(store, cluster, as_of_ms, Scene(store, cluster, as_of_ms), looked)

    @property
    def site(self) -> Site:
        """The nodes, queues and quotas."""
        return self.scene.site

    def found(self, known: Known) -> tuple[Finding, ...]:
        """All that would keep it from starting now; nothing of work that does not wait."""
        if known.state not in WAITING_STATES:
            return ()
        quota = self.without_quota(known)
        return (
            *quota,
            *self.without_namespace(known),
            *self._behind(known, has_quota=not quota),
            *self.without_room(known),
        )

    def without_room(self, known: Known) -> tuple[Finding, ...]:
        """Why there is no room for it on the nodes."""
        gang = known.gang(self.site)
        return place(gang, self.site.stock) if gang.pod_sets else ()

    def without_quota(self, known: Known) -> tuple[Finding, ...]:
        """Why the quota of its queue would not admit it; nothing where it has some, or there is no queue."""
        if known.course["kind"] in OF_OTHERS:
            asked = _asked(known.gang(self.site))
            return tuple(_in_units(one) for one in within(asked, self._ceilings(known, asked)))
        if not self._waits_for_quota(known):
            return ()
        return tuple(
            _in_units(one)
            for one in self.site.quota.findings(self.request(str(known.course["queue"]), known.kueue))
        )

    def without_namespace(self, known: Known) -> tuple[Finding, ...]:
        """
        Why ResourceQuotas of its namespace let not all of its pods be made.

        Nothing where they are there; Kueue's workloads make theirs once they are admitted.
        """
        namespace = str(known.course["namespace"])
        quotas = self.site.resource_quotas.get(namespace)
        if not quotas or known.gang_size <= len(known.pods) or self._waits_for_quota(known):
            return ()
        asked = _asked(known.gang(self.site))
        unbound = {row["uid"] for row in known.pods if not row["bound"]}
        for row in known.asks:
            if row["pod_uid"] in unbound:
                asked[row["resource"]] = asked.get(row["resource"], 0) - int(row["devices"]) * 1000
        ceilings = of_namespace(quotas, used=self._in_namespace(namespace))
        return tuple(_in_units(one) for one in within(asked, ceilings))

    def _in_namespace(self, namespace: str) -> Mapping[str, int]:
        """What the pods of a namespace ask, in thousandths by resource."""
        if namespace not in self._in_namespaces:
            asked = {"cluster": self.cluster, "namespace": namespace, "as_of_ms": self.as_of_ms}
            self._in_namespaces[namespace] = {
                str(row["resource"]): int(str(row["devices"])) * 1000
                for row in self.store.rows(why_sql.ASKED_IN_NAMESPACE, asked)
            }
        return self._in_namespaces[namespace]

    def lets_in(self, known: Known, gang: Gang) -> bool:
        """Whether hard limits of its queue and namespace would let it in, were it this gang, made anew."""
        asked = _asked(gang)
        if known.course["kind"] in OF_OTHERS and within(asked, self._ceilings(known, asked)):
            return False
        namespace = str(known.course["namespace"])
        quotas = self.site.resource_quotas.get(namespace)
        if not quotas:
            return True
        used, there = dict(self._in_namespace(namespace)), {row["uid"] for row in known.pods}
        for row in known.asks:
            if row["pod_uid"] in there:
                used[row["resource"]] = used.get(row["resource"], 0) - int(row["devices"]) * 1000
        return not within(asked, of_namespace(quotas, used=used))

    def is_blocked(self, known: Known, queue: str) -> bool:
        """Whether others would stand before it in a queue that lets nobody pass, were it submitted anew."""
        body = self.site.cluster_queues.get(queue)
        if body is None or body.strategy != _STRICT:
            return False
        uid, priority = str(known.course["uid"]), known.kueue.priority if known.kueue else 0
        return any(one.uid != uid and one.priority >= priority for one in self._waiting(queue))

    def _ceilings(self, known: Known, asked: Mapping[str, int]) -> Iterable[Ceiling]:
        """The hard limits of Volcano's and KAI's queues that bind it."""
        queue = str(known.course["queue"])
        for resource in asked:
            of_resource = self.site.held_by_queue.get(resource, {})
            if known.course["kind"] == ObjectKind.KAI_POD_GROUP:
                yield from of_kai(queue, self.site.kai_queues, used=of_resource, resource=resource)
            else:
                yield from of_volcano(queue, resource, self.site.volcano_queues, used=of_resource)

    def request(self, queue: str, body: Workload | None) -> Request:
        """What a Workload asks of the quota of a queue, in thousandths."""
        return self._request(queue, _shape(body) if body else ())

    def _request(self, queue: str, shape: Shape) -> Request:
        """Those that ask alike have one request."""
        known = self.scene.requests.get((queue, shape))
        if known is None:
            known = self.scene.requests[queue, shape] = Request(
                queue=queue,
                pod_sets=tuple(
                    PodSetAsk(amounts=dict(amounts), flavors=self.site.open_flavors(wants))
                    for amounts, wants in shape
                ),
            )
        return known

    def _waits_for_quota(self, known: Known) -> bool:
        if known.state is not State.QUEUED or known.kueue is None:
            return False
        return known.course["queue"] in self.site.cluster_queues

    def _behind(self, known: Known, *, has_quota: bool) -> Iterable[Finding]:
        """That others of its queue come first; who has no quota is behind in a strict queue only."""
        queue = str(known.course["queue"])
        if not self._waits_for_quota(known):
            return
        is_strict = self.site.cluster_queues[queue].strategy == _STRICT
        if not (is_strict or has_quota):
            return
        uid = str(known.course["uid"])
        if has_quota and self.looked is not None and uid in self.looked.known:
            behind = self.looked.behind.get(uid)
            if behind is not None:
                ago = {"order_seconds_ago": (self.as_of_ms - self.looked.at_ms) // MS_PER_SECOND}
                behind = replace(behind, evidence={**behind.evidence, **ago})
        else:
            behind = self._order(None if has_quota else queue).get(uid)
        if behind is not None:
            passed = self._passed(known, queue) if is_strict else 0
            yield replace(behind, evidence={**behind.evidence, "passed": passed})
        elif has_quota and (ahead := self._place(queue).get(uid, 0)):
            # There is quota for all of them: Kueue has not come to it yet, or says why it did not let it in.
            yield Finding(
                reason=Reason.BEHIND_IN_QUEUE,
                source=Source.ORDER,
                evidence={"queue": queue, "ahead": ahead},
                remedy="Wait: Kueue comes to those before it first.",
                is_coarse=True,
            )

    def ahead(self, known: Known) -> int | None:
        """How many of its queue come before it, by priority and time; None where it waits for no quota."""
        if not self._waits_for_quota(known):
            return None
        return self._place(str(known.course["queue"])).get(str(known.course["uid"]))

    def order(self) -> Order | None:
        """The order of all, where it was needed; for the next who asks."""
        behind = self.scene.orders.get(None)
        if behind is None:
            return None
        known = frozenset(one.uid for one in self._waiting(None))
        return Order(at_ms=self.as_of_ms, behind=behind, known=known)

    def _order(self, queue: str | None) -> Mapping[str, Finding]:
        """Who is behind others, of all that wait for quota, or of one queue."""
        if queue not in self.scene.orders:
            strict = [name for name, body in self.site.cluster_queues.items() if body.strategy == _STRICT]
            self.scene.orders[queue] = queue_order(self._waiting(queue), self.site.quota, strict=strict)
        return self.scene.orders[queue]

    def _place(self, queue: str) -> Mapping[str, int]:
        """How many of a queue come before each that waits in it."""
        if queue not in self.scene.places:
            self.scene.places[queue] = positions(self._waiting(queue))
        return self.scene.places[queue]

    def _waiting(self, queue: str | None) -> list[Waiting]:
        """All that waits for quota, or what waits in one queue."""
        if queue not in self.scene.lines:
            everybody = self.scene.lines.get(None)
            self.scene.lines[queue] = (
                self._read(queue) if everybody is None else [one for one in everybody if one.queue == queue]
            )
        return self.scene.lines[queue]

    def _read(self, queue: str | None) -> list[Waiting]:
        asked = {"cluster": self.cluster, "queue": queue, "as_of_ms": self.as_of_ms}
        found = []
        for row in self.store.rows(why_sql.WAITING_FOR_QUOTA, asked):
            name = str(row["queue"])
            if name not in self.site.cluster_queues:
                continue
            local_queue, priority, shape = _read_body(str(row["body"]))
            # Kueue takes what came through a stopped queue out of the line.
            if not self.site.stopped(str(row["namespace"]), local_queue, name):
                found.append(
                    Waiting(
                        uid=str(row["uid"]),
                        queue=name,
                        priority=priority,
                        since_ms=int(str(row["submitted_ms"])),
                        request=self._request(name, shape),
                    )
                )
        return found

    def _passed(self, known: Known, queue: str) -> int:
        """How many of its queue were given quota that it could use, too, since it has waited for it."""
        since_ms = int(known.course["since_ms"])
        sets = self.request(queue, known.kueue).pod_sets
        return sum(
            any(
                (one.flavors is None or row["flavor"] in one.flavors)
                and any(one.amounts.get(resource) for resource in json.loads(row["resources"]))
                for one in sets
            )
            for row in self._admitted(queue, since_ms)
            if row["start_ms"] >= since_ms
        )

    def _admitted(self, queue: str, since_ms: int) -> Sequence[Mapping[str, Any]]:
        """What was reserved of a queue since then, or since earlier."""
        known = self.scene.given.get(queue)
        if known is None or known[0] > since_ms:
            asked = {"cluster": self.cluster, "queue": queue, "as_of_ms": self.as_of_ms, "since_ms": since_ms}
            known = self.scene.given[queue] = since_ms, self.store.rows(why_sql.ADMITTED, asked)
        return known[1]


def _asked(gang: Gang) -> dict[str, int]:
    """What must start at once asks together, in thousandths."""
    asked: dict[str, int] = {}
    for pods in gang.pod_sets:
        for resource, each in pods.devices.items():
            asked[resource] = asked.get(resource, 0) + each * pods.pods * 1000
    return asked


def _in_units(finding: Finding) -> Finding:
    """Amounts in units of their resource."""
    evidence = {
        name: _units(value) if isinstance(value, int) and name in _AMOUNTS else value
        for name, value in finding.evidence.items()
    }
    return replace(finding, evidence=evidence)


def _units(thousandths: int) -> int | float:
    return thousandths / 1000 if thousandths % 1000 else thousandths // 1000


QUOTA_REASONS: Final = (Reason.QUOTA_EXHAUSTED, Reason.BORROWING_LIMIT, Reason.COHORT_EXHAUSTED)
