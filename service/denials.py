"""The stage `denials`: pods that a quota, a policy or a webhook refused, by their controllers' Events."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from analytics.denials import REASONS, denial
from api.answers import Record
from domain import objects
from domain.facts import EventSighting, ObjectKind
from domain.tenant import Subject, Tenancy
from domain.window import format_instant
from store.derived import Replacement
from store.embedded import Store
from store.lives import Watermark

JOB: Final = "denials"
_NAMESPACE: Final = msgspec.json.Decoder(objects.Namespace)

# One row per rule that refused pods of a workload before $as_of_ms.
_OF_WORKLOAD: Final = """
select
    denied_by,
    rule,
    arg_max(text, at_ms) as text,
    arg_max(requested, at_ms) as requested,
    arg_max(used, at_ms) as used,
    arg_max(limited, at_ms) as limited,
    sum(count)::bigint as count,
    min(at_ms) as first_ms,
    max(at_ms) as last_ms
from pod_denial
where cluster = $cluster and workload_uid = $uid and at_ms < $as_of_ms
group by denied_by, rule
order by last_ms desc, denied_by, rule
"""


@dataclass(frozen=True, slots=True)
class Denials:
    """Keeps the table `denial` up to date with the Events."""

    store: Store
    tenancy: Tenancy

    def refresh(self, cluster: str, as_of_ms: int) -> int:  # noqa: ARG002 (Events say when they were)
        """Read the Events about objects with news anew; gives how many of these were refused pods."""
        changed = self.store.changed_since(cluster, JOB)
        if not changed.uids:
            return 0
        by_owner: dict[str, list[EventSighting]] = defaultdict(list)
        for event in self.store.events_of(cluster, REASONS, changed.uids):
            by_owner[event.regarding_uid].append(event)
        labels = self._labels(cluster) if by_owner else {}
        rows = [
            {"cluster": cluster} | row for events in by_owner.values() for row in self._rows(events, labels)
        ]
        replaced = Replacement(table="denial", rows=rows, keys=("owner_uid", sorted(by_owner)))
        self.store.replace(cluster, [replaced] if by_owner else [], Watermark(JOB, changed.seq))
        return len(by_owner)

    def _rows(
        self, events: Iterable[EventSighting], labels: Mapping[str, Mapping[str, str]]
    ) -> Iterable[dict[str, object]]:
        """An Event that is seen again counts by how much its count grew."""
        counted: dict[str, int] = {}
        for event in sorted(events, key=lambda one: (one.last_ms, one.count)):
            more = event.count - counted.get(event.uid, 0)
            found = denial(event)
            if found is None or more <= 0:
                continue
            counted[event.uid] = event.count
            subject = Subject(
                namespace=event.regarding_namespace,
                namespace_labels=labels.get(event.regarding_namespace, {}),
                labels={},
                queue="",
                priority_class="",
            )
            yield {
                "owner_uid": event.regarding_uid,
                "owner_kind": event.regarding_kind,
                "owner_name": event.regarding_name,
                "namespace": event.regarding_namespace,
                "team": self.tenancy.team(subject, event.last_ms),
                "denied_by": str(found.by),
                "rule": found.rule,
                "text": found.text,
                "requested": found.requested,
                "used": found.used,
                "limited": found.limited,
                "count": more,
                "at_ms": event.last_ms,
            }

    def _labels(self, cluster: str) -> dict[str, Mapping[str, str]]:
        """The labels of each namespace, as they were told last."""
        said = self.store.descriptions(cluster, [ObjectKind.NAMESPACE])
        return {one.name: _NAMESPACE.decode(one.body).labels for one in said}


def denials_of(store: Store, cluster: str, uid: str, as_of_ms: int) -> list[Record]:
    """Who refused pods of a workload by then, what last, and how often."""
    asked = {"cluster": cluster, "uid": uid, "as_of_ms": as_of_ms}
    return [_record(row) for row in store.rows(_OF_WORKLOAD, asked)]


def _record(row: Mapping[str, Any]) -> Record:
    texts = ("denied_by", "rule", "text", "requested", "used", "limited")
    return {
        **{name: row[name] for name in texts},
        "count": row["count"],
        "first_at": format_instant(row["first_ms"]),
        "last_at": format_instant(row["last_ms"]),
    }
