"""
Events, in both views of the one stored object: `v1` and `events.k8s.io/v1`.

The old recorder writes `count` and whole-second stamps, the new one `series` and `eventTime`;
each leaves the other's fields null.
"""

from collector.raw import Int, Part, RawObject
from collector.wording import instant, uid_of
from domain.facts import EventSighting, Fact, ObjectKind

KIND = ObjectKind.EVENT


class Reference(Part):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class Source(Part):
    component: str | None = None


class Series(Part):
    count: Int | None = None
    last_observed_time: str | None = None


class RawEvent(RawObject):
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    note: str | None = None
    involved_object: Reference | None = None
    regarding: Reference | None = None
    related: Reference | None = None
    source: Source | None = None
    deprecated_source: Source | None = None
    reporting_component: str | None = None
    reporting_controller: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    count: Int | None = None
    deprecated_count: Int | None = None
    series: Series | None = None


def facts(raw: RawEvent, observed_ms: int) -> list[Fact]:
    """One sighting of the Event."""
    regarding = raw.involved_object or raw.regarding or Reference()
    source = raw.source or raw.deprecated_source or Source()
    series = raw.series or Series()
    first_ms = _first(
        raw.event_time,
        raw.first_timestamp,
        raw.deprecated_first_timestamp,
        raw.metadata.creation_timestamp,
    )
    last_ms = _first(series.last_observed_time, raw.last_timestamp, raw.deprecated_last_timestamp)
    first_ms = observed_ms if first_ms is None else first_ms
    return [
        EventSighting(
            uid=uid_of(raw),
            resource_version=raw.metadata.resource_version or "",
            event_type=raw.type or "",
            reason=raw.reason or "",
            note=raw.message or raw.note or "",
            component=raw.reporting_component or raw.reporting_controller or source.component or "",
            regarding_kind=regarding.kind or "",
            regarding_uid=regarding.uid or "",
            regarding_namespace=regarding.namespace or "",
            regarding_name=regarding.name or "",
            related_uid=(raw.related.uid if raw.related else None) or "",
            first_ms=first_ms,
            last_ms=first_ms if last_ms is None else last_ms,
            count=series.count or raw.count or raw.deprecated_count or 1,
            observed_ms=observed_ms,
        )
    ]


def _first(*stamps: str | None) -> int | None:
    return next((at_ms for stamp in stamps if (at_ms := instant(stamp)) is not None), None)
