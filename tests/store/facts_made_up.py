"""Facts for tests of the store: small, and different from each other only where a test says so."""

from domain.facts import (
    Batch,
    Description,
    EventSighting,
    Moment,
    ObjectKind,
    ObjectState,
    SourceMark,
    Transition,
)

CLUSTER = "city"


def bound(uid: str, at_ms: int, node: str = "n1") -> Transition:
    return Transition(
        uid=uid, kind=ObjectKind.POD, moment=Moment.BOUND, subject=node, at_ms=at_ms, observed_ms=at_ms + 5
    )


def described(uid: str, from_ms: int, body: bytes, kind: ObjectKind = ObjectKind.POD) -> Description:
    return Description(
        uid=uid,
        kind=kind,
        namespace="nlp",
        name=f"pod-{uid}",
        from_ms=from_ms,
        observed_ms=from_ms,
        body=body,
    )


def sighted(uid: str, version: int, *, regarding: str = "", reason: str = "Preempted") -> EventSighting:
    return EventSighting(
        uid=uid,
        resource_version=str(version),
        event_type="Normal",
        reason=reason,
        note="Preempted by pod x on node n1",
        component="default-scheduler",
        regarding_kind="Pod",
        regarding_uid=regarding,
        regarding_namespace="nlp",
        regarding_name=f"pod-{regarding}",
        related_uid="",
        first_ms=10,
        last_ms=10 + version,
        count=version,
        observed_ms=20,
    )


def state(uid: str, version: int, *, gone_ms: int | None = None) -> ObjectState:
    return ObjectState(
        uid=uid,
        kind=ObjectKind.POD,
        namespace="nlp",
        name=f"pod-{uid}",
        resource_version=str(version),
        seen_ms=version,
        gone_ms=gone_ms,
    )


def marked(version: int) -> SourceMark:
    return SourceMark(kind=ObjectKind.POD, resource_version=str(version), epoch=1, seen_ms=version)


def one_pod(uid: str, version: int) -> Batch:
    """A pod's binding, its description, its state and the mark up to which was read."""
    return Batch(
        cluster=CLUSTER,
        transitions=[bound(uid, version)],
        descriptions=[described(uid, version, b'{"node":"n1"}')],
        objects={uid: state(uid, version)},
        marks={ObjectKind.POD: marked(version)},
    )
