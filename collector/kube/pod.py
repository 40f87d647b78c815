"""Pods: created, bound, containers started and ended, deleted."""

from collections.abc import Iterator

import msgspec

from collector.kai.pod_words import kai_pod_group, kai_queue, kai_requests
from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests
from collector.raw import (
    NOT_WRITTEN,
    NULL,
    Condition,
    Int,
    Metadata,
    OwnerReference,
    Part,
    PodSpec,
    RawObject,
    Strings,
    references,
    strings,
)
from collector.remembered import Remembered
from collector.wording import (
    body_text,
    condition,
    created,
    described,
    instant,
    instant_after_epoch,
    owners_of,
    seen,
)
from collector.yunikorn.pod_words import yunikorn_queue, yunikorn_task
from domain.claims import PodClaim
from domain.facts import Fact, Moment, ObjectKind, Transition
from domain.objects import Pod

KIND = ObjectKind.POD
_ENDS = ("Succeeded", "Failed")
_MARKED_FOR_REMOVAL = ("DisruptionTarget", "TerminationTarget")
# To find a member of an enum takes Python as long as to make a fact of it.
_BOUND, _STARTED, _ENDED = Moment.BOUND, Moment.CONTAINER_STARTED, Moment.CONTAINER_ENDED
_POD_ENDED, _DELETE_REQUESTED = Moment.ENDED, Moment.DELETE_REQUESTED


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


class Said(msgspec.Struct, frozen=True, gc=False):
    """
    What a pod says of itself: its body as text, and what its transitions need of it.

    `asked` are the parts of which all but the node was made.
    """

    body: bytes
    node: str
    sidecars: frozenset[str | None]
    asked: tuple[object, ...]


def facts(raw: RawPod, observed_ms: int) -> list[Fact]:
    """The transitions that one reading of a pod shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    metadata, status = raw.metadata, raw.status
    said = _SAID.of(
        metadata.uid,
        metadata.namespace,
        metadata.written_labels,
        metadata.written_annotations,
        metadata.written_owners,
        raw.written_spec,
        status.written_claims,
    )
    found: list[Fact] = [creation]
    if status.conditions or said.node:
        found += _scheduling(raw, creation, said.node)
    if status.container_statuses or status.init_container_statuses:
        found += _runs(status, creation, said.sidecars)
    if status.phase in _ENDS:
        found.append(_end(status, creation))
    if metadata.deletion_timestamp:
        found += _deletion(metadata, creation)
    found.append(described(raw, creation, said.body))
    return found


def _scheduling(raw: RawPod, creation: Transition, node: str) -> list[Transition]:
    found: list[Transition] = []
    bound = False
    for written in raw.status.conditions or ():
        if written.type == "PodScheduled":
            if written.status == "False":
                found.append(condition(creation, written))
            elif written.status == "True" and (at_ms := instant(written.last_transition_time)) is not None:
                bound = True
                found.append(
                    Transition(
                        uid=creation.uid,
                        kind=KIND,
                        moment=_BOUND,
                        at_ms=at_ms,
                        observed_ms=creation.observed_ms,
                        subject=node,
                    )
                )
        elif written.type in _MARKED_FOR_REMOVAL and written.status == "True":
            found.append(condition(creation, written))
    if node and not bound:
        found.append(seen(creation, _BOUND, subject=node))
    return found


def _runs(status: Status, creation: Transition, sidecars: frozenset[str | None]) -> list[Transition]:
    found: list[Transition] = []
    for container in status.init_container_statuses or ():
        found += _runs_of(container, "sidecar" if container.name in sidecars else "init", creation)
    for container in status.container_statuses or ():
        found += _runs_of(container, "main", creation)
    return found


def _runs_of(status: ContainerStatus, role: str, creation: Transition) -> list[Transition]:
    found: list[Transition] = []
    name = status.name or ""
    for state in (status.last_state, status.state):
        if state is None:
            continue
        run = state.terminated or state.running
        started_ms = instant_after_epoch(run.started_at) if run else None
        if started_ms is not None:
            found.append(
                Transition(
                    uid=creation.uid,
                    kind=KIND,
                    moment=_STARTED,
                    at_ms=started_ms,
                    observed_ms=creation.observed_ms,
                    subject=name,
                    state=role,
                )
            )
        if state.terminated is not None:
            found.append(_container_end(state.terminated, name, role, creation))
    if status.restart_count:
        found.append(seen(creation, Moment.RESTARTS, subject=name, amount=status.restart_count))
    return found


def _container_end(run: Terminated, name: str, role: str, creation: Transition) -> Transition:
    at_ms = instant_after_epoch(run.finished_at)
    reason = run.reason or ""
    if at_ms is None:
        return seen(creation, _ENDED, subject=name, state=role, reason=reason, amount=run.exit_code)
    return Transition(
        uid=creation.uid,
        kind=KIND,
        moment=_ENDED,
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
        return seen(creation, _POD_ENDED, state=phase, reason=reason)
    return Transition(
        uid=creation.uid,
        kind=KIND,
        moment=_POD_ENDED,
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
    last_ms: int | None = None
    for container in status.container_statuses or ():
        at_ms = _finished(container)
        if at_ms is None:
            return None
        last_ms = at_ms if last_ms is None else max(at_ms, last_ms)
    if last_ms is not None:
        for container in status.init_container_statuses or ():
            last_ms = max(_finished(container) or last_ms, last_ms)
    return last_ms


def _finished(container: ContainerStatus) -> int | None:
    if container.state is None or container.state.terminated is None:
        return None
    return instant_after_epoch(container.state.terminated.finished_at)


def _deletion(metadata: Metadata, creation: Transition) -> list[Transition]:
    deadline_ms = instant(metadata.deletion_timestamp)
    if deadline_ms is None:
        return []
    # The stamp is the deadline: the request plus the grace then in force.
    grace_ms = (metadata.deletion_grace_period_seconds or 0) * 1000
    request = Transition(
        uid=creation.uid,
        kind=KIND,
        moment=_DELETE_REQUESTED,
        at_ms=deadline_ms - grace_ms,
        observed_ms=creation.observed_ms,
    )
    return [request]


def _said(  # noqa: PLR0913, PLR0917 - the parts of a pod
    before: Said | None,
    namespace: str | None,
    written_labels: msgspec.Raw,
    written_annotations: msgspec.Raw,
    written_owners: msgspec.Raw,
    written_spec: msgspec.Raw,
    written_claims: msgspec.Raw,
) -> Said:
    spec = _SPEC.decode(written_spec) if written_spec and written_spec != NULL else PodSpec()
    node, spec.node_name = spec.node_name or "", None
    asked = (namespace, written_labels, written_annotations, written_owners, written_claims, spec)
    if before is not None and before.asked == asked:  # it was bound
        return Said(body=before.body, node=node, sidecars=before.sidecars, asked=before.asked)
    claims = _CLAIMS.decode(written_claims) if written_claims else None
    body = _body(
        namespace or "",
        labels=strings(written_labels) or {},
        annotations=strings(written_annotations) or {},
        owners=references(written_owners),
        spec=spec,
        claims=claims,
    )
    return Said(
        body=body_text(body),
        node=node,
        sidecars=frozenset(
            [one.name for one in spec.init_containers or () if one.restart_policy == "Always"]
        ),
        asked=asked,
    )


_SAID = Remembered(_said)


def _body(
    namespace: str,
    *,
    labels: Strings,
    annotations: Strings,
    owners: list[OwnerReference] | None,
    spec: PodSpec,
    claims: list[ClaimStatus] | None,
) -> Pod:
    return Pod(
        owner=next(owners_of(owners, controller_only=True), None),
        labels=labels,
        gpu_requests=kai_requests(namespace, annotations, effective_gpu_requests(spec)),
        gates=tuple([gate.name or "" for gate in spec.scheduling_gates or ()]),
        containers=max(len(spec.containers or ()), 1),
        scheduler=spec.scheduler_name or "",
        priority=spec.priority or 0,
        priority_class=spec.priority_class_name or "",
        kueue_workload=annotations.get("kueue.x-k8s.io/workload", ""),
        kueue_pod_group=labels.get("kueue.x-k8s.io/pod-group-name", ""),
        kueue_queue=labels.get("kueue.x-k8s.io/queue-name", ""),
        volcano_pod_group=annotations.get("scheduling.k8s.io/group-name", ""),
        plugin_pod_group=labels.get("scheduling.x-k8s.io/pod-group", ""),
        kai_pod_group=kai_pod_group(annotations),
        scheduling_group=(spec.scheduling_group.pod_group_name if spec.scheduling_group else None) or "",
        queue=kai_queue(labels) or yunikorn_queue(labels, annotations, spec),
        claims=tuple(_claims(spec, claims)),
        yunikorn=yunikorn_task(labels, annotations, spec),
        placement=placement_of(spec),
    )


def _claims(spec: PodSpec, claims: list[ClaimStatus] | None) -> Iterator[PodClaim]:
    """Claims of the pod's spec; the one that stands for an extended resource is not among them."""
    made = {one.name: one.resource_claim_name or "" for one in claims or ()}
    for used in spec.resource_claims or ():
        name = used.resource_claim_name or made.get(used.name, "")
        yield PodClaim(name=name, own=bool(used.resource_claim_template_name))
