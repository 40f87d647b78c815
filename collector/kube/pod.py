"""Pods: created, bound, containers started and ended, deleted."""

import msgspec

from collector.kube.pod_said import SAID
from collector.raw import (
    NOT_WRITTEN,
    Condition,
    Int,
    Metadata,
    Part,
    RawObject,
)
from collector.wording import (
    OF_THE_FUTURE,
    condition,
    created,
    described,
    instant,
    instant_after_epoch,
    past_instant,
    seen,
)
from domain.facts import Fact, Moment, ObjectKind, Transition

KIND = ObjectKind.POD
_ENDS = ("Succeeded", "Failed")
# Where it is scheduled, and that it is marked for removal; what other conditions tell, its containers do.
_TOLD_BY_CONDITIONS = frozenset({"PodScheduled", "DisruptionTarget", "TerminationTarget"})
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


def facts(raw: RawPod, observed_ms: int) -> list[Fact]:
    """The transitions that one reading of a pod shows, and its description."""
    creation = created(raw, KIND, observed_ms)
    metadata, status = raw.metadata, raw.status
    said = SAID.of(
        metadata.uid,
        metadata.namespace,
        metadata.written_labels,
        metadata.written_annotations,
        metadata.written_owners,
        status.written_claims,
        raw.written_spec,
    )
    found: list[Fact] = [creation]
    if status.conditions or said.node:
        found += _scheduling(raw, creation, said.node)
    if status.container_statuses or status.init_container_statuses:
        found += _runs(status, creation, said.asked.sidecars)
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
        if written.type not in _TOLD_BY_CONDITIONS:
            continue
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
        elif written.status == "True":
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
        if run and run.started_at:
            started = _container_start(run.started_at, name, role, creation)
            if started is not None:
                found.append(started)
        if state.terminated is not None:
            found.append(_container_end(state.terminated, name, role, creation))
    if status.restart_count:
        found.append(seen(creation, Moment.RESTARTS, subject=name, amount=status.restart_count))
    return found


def _container_start(written: str, name: str, role: str, creation: Transition) -> Transition | None:
    # A stamp that is none tells of no start.
    if instant_after_epoch(written) is None:
        return None
    return _of_container(_STARTED, written, creation, subject=name, state=role)


def _container_end(run: Terminated, name: str, role: str, creation: Transition) -> Transition:
    reason, amount = run.reason or "", run.exit_code
    return _of_container(
        _ENDED, run.finished_at, creation, subject=name, state=role, reason=reason, amount=amount
    )


def _of_container(  # noqa: PLR0913 (the fields of a fact)
    moment: Moment,
    written: str | None,
    creation: Transition,
    *,
    subject: str,
    state: str,
    reason: str = "",
    amount: int | None = None,
) -> Transition:
    """What a container did when it is written, or until it was seen."""
    at_ms = past_instant(written, creation.observed_ms)
    if at_ms is None:
        detail = OF_THE_FUTURE if instant_after_epoch(written) is not None else ""
        return seen(
            creation, moment, subject=subject, state=state, reason=reason, amount=amount, detail=detail
        )
    return Transition(
        uid=creation.uid,
        kind=KIND,
        moment=moment,
        at_ms=at_ms,
        observed_ms=creation.observed_ms,
        subject=subject,
        state=state,
        reason=reason,
        amount=amount,
    )


def _end(status: Status, creation: Transition) -> Transition:
    phase, reason = status.phase or "", status.reason or ""
    at_ms = _finished_ms(status, creation.observed_ms)
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


def _finished_ms(status: Status, observed_ms: int) -> int | None:
    """
    The end of the last container; None where a main container's end is not written, or of the future.

    A lost node's pod is marked Failed while its containers still say that they run: then the
    stamps of its init containers must not stand for the end.
    """
    last_ms: int | None = None
    for container in status.container_statuses or ():
        at_ms = _finished(container, observed_ms)
        if at_ms is None:
            return None
        last_ms = at_ms if last_ms is None else max(at_ms, last_ms)
    if last_ms is not None:
        for container in status.init_container_statuses or ():
            last_ms = max(_finished(container, observed_ms) or last_ms, last_ms)
    return last_ms


def _finished(container: ContainerStatus, observed_ms: int) -> int | None:
    if container.state is None or container.state.terminated is None:
        return None
    return past_instant(container.state.terminated.finished_at, observed_ms)


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
