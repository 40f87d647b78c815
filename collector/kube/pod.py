"""Pods: created, bound, containers started and ended, deleted."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from collector.kai.pod_words import kai_pod_group, kai_queue, kai_requests
from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests
from collector.raw import ABSENT, NOT_WRITTEN, Condition, Int, Metadata, Part, PodSpec, RawObject
from collector.wording import (
    body_text,
    condition,
    created,
    described,
    instant,
    instant_after_epoch,
    owner,
    seen,
)
from collector.yunikorn.pod_words import yunikorn_queue, yunikorn_task
from domain.claims import PodClaim
from domain.facts import Fact, Moment, ObjectKind, Transition
from domain.objects import Pod

KIND = ObjectKind.POD
_ENDS = ("Succeeded", "Failed")
_MARKED_FOR_REMOVAL = ("DisruptionTarget", "TerminationTarget")


class Running(Part):
    started_at: str | None = None


class Terminated(Part):
    exit_code: Int | None = None
    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Part):
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part):
    name: str | None = None
    restart_count: Int | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class ClaimStatus(Part):
    name: str | None = None
    resource_claim_name: str | None = None


class Status(Part):
    phase: str | None = None
    reason: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    written_claims: msgspec.Raw = msgspec.field(default=NOT_WRITTEN, name="resourceClaimStatuses")


class RawPod(RawObject):
    written_spec: msgspec.Raw = msgspec.field(default=NOT_WRITTEN, name="spec")
    status: Status = msgspec.field(default_factory=Status)


_SPEC = msgspec.json.Decoder(PodSpec)
_CLAIMS = msgspec.json.Decoder(list[ClaimStatus] | None)


class Said(NamedTuple):
    """What a pod says of itself: its body as text, and what its transitions need of it."""

    body: bytes
    node: str
    sidecars: frozenset[str | None]


def facts(raw: RawPod, observed_ms: int) -> list[Fact]:
    """The transitions that one reading of a pod shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    metadata = raw.metadata
    said = _said(
        metadata.namespace,
        labels=bytes(metadata.written_labels),
        annotations=bytes(metadata.written_annotations),
        owners=bytes(metadata.written_owners),
        spec=bytes(raw.written_spec),
        claims=bytes(raw.status.written_claims),
    )
    found: list[Fact] = [creation]
    status = raw.status
    if status.conditions or said.node:
        found += _scheduling(raw, creation, said.node)
    if status.container_statuses or status.init_container_statuses:
        found += _runs(raw, creation, said.sidecars)
    if status.phase in _ENDS:
        found.append(_end(status, creation))
    if metadata.deletion_timestamp:
        found += _deletion(raw, creation)
    found.append(described(raw, creation, said.body))
    return found


def _scheduling(raw: RawPod, creation: Transition, node: str) -> Iterator[Fact]:
    bound = False
    for written in raw.status.conditions or ():
        if written.type == "PodScheduled" and written.status == "True":
            at_ms = instant(written.last_transition_time)
            if at_ms is not None:
                bound = True
                yield Transition(
                    uid=creation.uid,
                    kind=KIND,
                    moment=Moment.BOUND,
                    at_ms=at_ms,
                    observed_ms=creation.observed_ms,
                    subject=node,
                )
        elif (written.type == "PodScheduled" and written.status == "False") or (
            written.type in _MARKED_FOR_REMOVAL and written.status == "True"
        ):
            yield condition(creation, written)
    if node and not bound:
        yield seen(creation, Moment.BOUND, subject=node)


def _runs(raw: RawPod, creation: Transition, sidecars: frozenset[str | None]) -> Iterator[Fact]:
    for status in raw.status.init_container_statuses or ():
        yield from _runs_of(status, "sidecar" if status.name in sidecars else "init", creation)
    for status in raw.status.container_statuses or ():
        yield from _runs_of(status, "main", creation)


def _runs_of(status: ContainerStatus, role: str, creation: Transition) -> Iterator[Fact]:
    name = status.name or ""
    for state in (status.last_state, status.state):
        if state is None:
            continue
        run = state.terminated or state.running
        started_ms = instant_after_epoch(run.started_at) if run else None
        if started_ms is not None:
            yield Transition(
                uid=creation.uid,
                kind=KIND,
                moment=Moment.CONTAINER_STARTED,
                at_ms=started_ms,
                observed_ms=creation.observed_ms,
                subject=name,
                state=role,
            )
        if state.terminated is not None:
            yield _container_end(state.terminated, name, role, creation)
    if status.restart_count:
        yield seen(creation, Moment.RESTARTS, subject=name, amount=status.restart_count)


def _container_end(run: Terminated, name: str, role: str, creation: Transition) -> Transition:
    at_ms = instant_after_epoch(run.finished_at)
    reason = run.reason or ""
    if at_ms is None:
        return seen(
            creation, Moment.CONTAINER_ENDED, subject=name, state=role, reason=reason, amount=run.exit_code
        )
    return Transition(
        uid=creation.uid,
        kind=KIND,
        moment=Moment.CONTAINER_ENDED,
        at_ms=at_ms,
        observed_ms=creation.observed_ms,
        subject=name,
        state=role,
        reason=reason,
        amount=run.exit_code,
    )


def _end(status: Status, creation: Transition) -> Transition:
    phase, reason = status.phase or "", status.reason or ""
    at_ms = _finished_ms(status)
    if at_ms is None:
        return seen(creation, Moment.ENDED, state=phase, reason=reason)
    return Transition(
        uid=creation.uid,
        kind=KIND,
        moment=Moment.ENDED,
        at_ms=at_ms,
        observed_ms=creation.observed_ms,
        state=phase,
        reason=reason,
    )


def _finished_ms(status: Status) -> int | None:
    """
    The end of the last container; None where a main container's end is not written.

    A lost node's pod is marked Failed while its containers still say that they run: then the
    stamps of its init containers must not stand for the end.
    """
    main = [_finished(container) for container in status.container_statuses or ()]
    if not main or None in main:
        return None
    init = [_finished(container) for container in status.init_container_statuses or ()]
    return max(at_ms for at_ms in (*main, *init) if at_ms is not None)


def _finished(container: ContainerStatus) -> int | None:
    if container.state is None or container.state.terminated is None:
        return None
    return instant_after_epoch(container.state.terminated.finished_at)


def _deletion(raw: RawPod, creation: Transition) -> Iterator[Fact]:
    deadline_ms = instant(raw.metadata.deletion_timestamp)
    if deadline_ms is None:
        return
    # The stamp is the deadline: the request plus the grace then in force.
    grace_ms = (raw.metadata.deletion_grace_period_seconds or 0) * 1000
    yield Transition(
        uid=creation.uid,
        kind=KIND,
        moment=Moment.DELETE_REQUESTED,
        at_ms=deadline_ms - grace_ms,
        observed_ms=creation.observed_ms,
    )


# A pod says the same in most of its readings, and they come close together.
@lru_cache(maxsize=1 << 11)
def _said(
    namespace: str | None, *, labels: bytes, annotations: bytes, owners: bytes, spec: bytes, claims: bytes
) -> Said:
    metadata = Metadata(
        namespace=namespace,
        written_labels=msgspec.Raw(labels),
        written_annotations=msgspec.Raw(annotations),
        written_owners=msgspec.Raw(owners),
    )
    read = PodSpec() if spec in ABSENT else _SPEC.decode(spec)
    made = _CLAIMS.decode(claims) if claims else None
    return Said(
        body=body_text(_body(metadata, read, made)),
        node=read.node_name or "",
        sidecars=frozenset(c.name for c in read.init_containers or () if c.restart_policy == "Always"),
    )


def _body(metadata: Metadata, spec: PodSpec, claims: list[ClaimStatus] | None) -> Pod:
    labels = metadata.labels or {}
    annotations = metadata.annotations or {}
    return Pod(
        owner=owner(metadata),
        labels=labels,
        node=spec.node_name or "",
        gpu_requests=kai_requests(metadata, effective_gpu_requests(spec)),
        gates=tuple(gate.name or "" for gate in spec.scheduling_gates or ()),
        containers=max(len(spec.containers or ()), 1),
        scheduler=spec.scheduler_name or "",
        priority=spec.priority or 0,
        priority_class=spec.priority_class_name or "",
        kueue_workload=annotations.get("kueue.x-k8s.io/workload", ""),
        kueue_pod_group=labels.get("kueue.x-k8s.io/pod-group-name", ""),
        kueue_queue=labels.get("kueue.x-k8s.io/queue-name", ""),
        volcano_pod_group=annotations.get("scheduling.k8s.io/group-name", ""),
        plugin_pod_group=labels.get("scheduling.x-k8s.io/pod-group", ""),
        kai_pod_group=kai_pod_group(metadata),
        scheduling_group=(spec.scheduling_group.pod_group_name if spec.scheduling_group else None) or "",
        queue=kai_queue(metadata) or yunikorn_queue(metadata, spec),
        claims=tuple(_claims(spec, claims)),
        yunikorn=yunikorn_task(metadata, spec),
        placement=placement_of(spec),
    )


def _claims(spec: PodSpec, claims: list[ClaimStatus] | None) -> Iterator[PodClaim]:
    """Claims of the pod's spec; the one that stands for an extended resource is not among them."""
    made = {one.name: one.resource_claim_name or "" for one in claims or ()}
    for used in spec.resource_claims or ():
        name = used.resource_claim_name or made.get(used.name, "")
        yield PodClaim(name=name, own=bool(used.resource_claim_template_name))
