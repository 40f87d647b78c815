"""What keeps a workload from starting, found by search and arithmetic: room, quota, the order of queues."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from analytics.why.ceilings import Ceiling, of_kai, of_volcano, within
from analytics.why.order import Waiting, positions, queue_order
from analytics.why.placement import place
from analytics.why.quota import PodSetAsk, Request
from analytics.why.reason import Finding, Reason, Source
from domain.facts import ObjectKind
from domain.objects import Workload
from domain.workload import WAITING_STATES, State
from service import why_sql
from service.why_facts import Known
from service.why_site import Site
from store.embedded import Store

_WORKLOAD: Final = msgspec.json.Decoder(Workload)
# Whose queues have hard limits, and lend nothing.
OF_OTHERS: Final = frozenset({ObjectKind.VOLCANO_JOB, ObjectKind.VOLCANO_POD_GROUP, ObjectKind.KAI_POD_GROUP})
_STRICT: Final = "StrictFIFO"
# What `analytics.why.quota` counts in the units of the terms, which are thousandths.
_AMOUNTS: Final = frozenset(
    {"asked", "nominal", "used", "available", "at_most", "missing", "borrowing_limit", "cohort_quota",
     "cohort_used", "cohort_unused", "cohort_borrowing_limit", "lent_out"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Search:
    """Looks for what is in the way of workloads of one cluster, just before an instant."""

    store: Store
    cluster: str
    as_of_ms: int
    site: Site
    _lines: dict[str | None, list[Waiting]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, cluster: str, as_of_ms: int) -> "Search":
        """With the nodes, queues and quotas as the store has them."""
        return cls(store, cluster, as_of_ms, Site(store, cluster, as_of_ms))

    def found(self, known: Known) -> tuple[Finding, ...]:
        """All that would keep it from starting now; nothing of work that does not wait."""
        if known.state not in WAITING_STATES:
            return ()
        quota = self.without_quota(known)
        return (*quota, *self._behind(known, has_quota=not quota), *self.without_room(known))

    def without_room(self, known: Known) -> tuple[Finding, ...]:
        """Why there is no room for it on the nodes."""
        gang = known.gang(self.site)
        return place(gang, self.site.stock) if gang.pod_sets else ()

    def without_quota(self, known: Known) -> tuple[Finding, ...]:
        """Why the quota of its queue would not admit it; nothing where it has some, or there is no queue."""
        if known.course["kind"] in OF_OTHERS:
            return tuple(_in_units(one) for one in within(_asked(known, self.site), self._ceilings(known)))
        if not self._waits_for_quota(known):
            return ()
        return tuple(
            _in_units(one)
            for one in self.site.quota.findings(self.request(str(known.course["queue"]), known.kueue))
        )

    def _ceilings(self, known: Known) -> Iterable[Ceiling]:
        """The hard limits of Volcano's and KAI's queues that bind it."""
        queue, asked = str(known.course["queue"]), _asked(known, self.site)
        used: dict[str, dict[str, int]] = {}
        rows = self.store.rows(why_sql.HELD_BY_QUEUE, {"cluster": self.cluster, "as_of_ms": self.as_of_ms})
        for row in rows:
            by_queue = used.setdefault(str(row["resource"]), {})
            by_queue[str(row["queue"])] = int(str(row["devices"])) * 1000
        for resource in asked:
            of_resource = used.get(resource, {})
            if known.course["kind"] == ObjectKind.KAI_POD_GROUP:
                yield from of_kai(queue, self.site.kai_queues, used=of_resource, resource=resource)
            else:
                yield from of_volcano(queue, resource, self.site.volcano_queues, used=of_resource)

    def request(self, queue: str, body: Workload | None) -> Request:
        """What a Workload asks of the quota of a queue, in thousandths; under partial admission the least."""
        return Request(
            queue=queue,
            pod_sets=tuple(
                PodSetAsk(
                    amounts={
                        name: each * (one.min_count or one.count) * 1000
                        for name, each in one.gpu_requests.items()
                    },
                    flavors=self.site.open_flavors(one.placement),
                )
                for one in (body.pod_sets if body else ())
            ),
        )

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
        strict = [name for name, body in self.site.cluster_queues.items() if body.strategy == _STRICT]
        waiting = self._waiting(None if has_quota else queue)
        uid = str(known.course["uid"])
        behind = queue_order(waiting, self.site.quota, strict=strict).get(uid)
        if behind is not None:
            passed = self._passed(known, queue) if is_strict else 0
            yield replace(behind, evidence={**behind.evidence, "passed": passed})
        elif ahead := positions(waiting).get(uid, 0):
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
        return positions(self._waiting(str(known.course["queue"]))).get(str(known.course["uid"]))

    def _waiting(self, queue: str | None) -> list[Waiting]:
        """All that waits for quota, or what waits in one queue."""
        if queue not in self._lines:
            self._lines[queue] = self._read(queue)
        return self._lines[queue]

    def _read(self, queue: str | None) -> list[Waiting]:
        asked = {"cluster": self.cluster, "queue": queue, "as_of_ms": self.as_of_ms}
        found = []
        for row in self.store.rows(why_sql.WAITING_FOR_QUOTA, asked):
            body = _WORKLOAD.decode(str(row["body"]))
            name = str(row["queue"])
            if name in self.site.cluster_queues:
                found.append(
                    Waiting(
                        uid=str(row["uid"]),
                        queue=name,
                        priority=body.priority,
                        since_ms=int(str(row["submitted_ms"])),
                        request=self.request(name, body),
                    )
                )
        return found

    def _passed(self, known: Known, queue: str) -> int:
        """How many of its queue were given quota that it could use, too, since it has waited for it."""
        asked = {"cluster": self.cluster, "queue": queue, "as_of_ms": self.as_of_ms}
        rows: Iterable[Mapping[str, Any]] = self.store.rows(
            why_sql.ADMITTED, asked | {"since_ms": known.course["since_ms"]}
        )
        sets = self.request(queue, known.kueue).pod_sets
        return sum(
            any(
                (one.flavors is None or row["flavor"] in one.flavors)
                and any(one.amounts.get(resource) for resource in json.loads(row["resources"]))
                for one in sets
            )
            for row in rows
        )


def _asked(known: Known, site: Site) -> dict[str, int]:
    """What must start at once asks together, in thousandths."""
    asked: dict[str, int] = {}
    for pods in known.gang(site).pod_sets:
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
