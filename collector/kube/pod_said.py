"""What a pod says of itself: what it asks for, whose it is, and where its spec binds it."""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from collector.kai.pod_words import kai_pod_group, kai_queue, kai_requests
from collector.kube.placement import placement_of
from collector.kube.requests import effective_gpu_requests, effective_other_requests
from collector.raw import Part, PodSpec, Strings, references, strings
from collector.remembered import Remembered
from collector.wording import body_text, owners_of
from collector.yunikorn.pod_words import yunikorn_queue, yunikorn_task
from domain.claims import PodClaim
from domain.objects import Owner, Pod, Resources
from domain.placement import Placement

# Their pods come together.
_JOBS = 1 << 9


class ClaimStatus(Part):
    name: str | None = None
    resource_claim_name: str | None = None


class _Bound(Part):
    node_name: str | None = None


_NULL = msgspec.Raw(b"null")
_SPEC = msgspec.json.Decoder(PodSpec)
_BOUND_SPEC = msgspec.json.Decoder(_Bound)
_encoded = msgspec.json.Encoder().encode
_CLAIMS = msgspec.json.Decoder(list[ClaimStatus] | None)


class Asked(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a pod asks for in its spec: one for all that ask alike, told from others by which one it is."""

    spec: PodSpec
    gpu_requests: Resources
    other_requests: Resources
    placement: Placement | None
    sidecars: frozenset[str | None]


class Said(msgspec.Struct, frozen=True, gc=False):
    """What a pod says of itself: its body as text, and what its transitions need of it."""

    body: bytes
    node: str
    asked: Asked
    written_spec: msgspec.Raw


def _said(  # noqa: PLR0913, PLR0917 - the parts of a pod
    before: Said | None,
    namespace: str | None,
    written_labels: msgspec.Raw,
    written_annotations: msgspec.Raw,
    written_owners: msgspec.Raw,
    written_claims: msgspec.Raw,
    written_spec: msgspec.Raw,
) -> Said:
    asked, node = _asked(before, written_spec)
    body = _text(
        namespace or "",
        asked,
        bytes(written_labels),
        bytes(written_annotations),
        bytes(written_owners),
        bytes(written_claims),
    )
    return Said(body=body, node=node, asked=asked, written_spec=written_spec)


def _asked(before: Said | None, written: msgspec.Raw) -> tuple[Asked, str]:
    """What a spec asks for, and its node. To be bound changes nothing of what was asked before."""
    is_written = bool(written) and written != _NULL
    if before is not None:
        if written == before.written_spec:
            return before.asked, before.node
        if is_written and not before.node:
            node = _BOUND_SPEC.decode(written).node_name or ""
            if _without(node, bytes(written)) == bytes(before.written_spec):
                return before.asked, node
    spec = _SPEC.decode(written) if is_written else PodSpec()
    node, spec.node_name = spec.node_name or "", None
    return _meant(_encoded(spec)), node


# Pods of a job ask alike, but for what nobody keeps: each has a volume of its own for its token.
@lru_cache(_JOBS)
def _meant(kept: bytes) -> Asked:
    spec = _SPEC.decode(kept)
    return Asked(
        spec=spec,
        gpu_requests=effective_gpu_requests(spec),
        other_requests=effective_other_requests(spec),
        placement=placement_of(spec),
        sidecars=frozenset(
            [one.name for one in spec.init_containers or () if one.restart_policy == "Always"]
        ),
    )


def _without(node: str, spec: bytes) -> bytes | None:
    """
    A spec as it is written without its node; None where it cannot be told apart so simply.

    Whatever else could be written so is no spec that was read before without a node.
    """
    told = b'"nodeName":' + _encoded(node)
    start = spec.find(told)
    if start < 0:
        return None
    end = start + len(told)
    # One comma goes with it: the one behind, or the one before where it is the last.
    if spec[end : end + 1] == b",":
        return spec[:start] + spec[end + 1 :]
    return spec[: start - 1] + spec[end:]


@lru_cache(_JOBS)
def _owner(written: bytes) -> Owner | None:
    """The controlling owner; the pods of a job write it all alike."""
    return next(owners_of(references(written), controller_only=True), None)


# Most pods of a job say the same of themselves.
@lru_cache(_JOBS)
def _text(
    namespace: str,
    asked: Asked,
    written_labels: bytes,
    written_annotations: bytes,
    written_owners: bytes,
    written_claims: bytes,
) -> bytes:
    body = _body(
        namespace,
        labels=strings(written_labels) or {},
        annotations=strings(written_annotations) or {},
        owner=_owner(written_owners),
        asked=asked,
        claims=_CLAIMS.decode(written_claims) if written_claims else None,
    )
    return body_text(body)


def _body(
    namespace: str,
    *,
    labels: Strings,
    annotations: Strings,
    owner: Owner | None,
    asked: Asked,
    claims: list[ClaimStatus] | None,
) -> Pod:
    spec = asked.spec
    return Pod(
        owner=owner,
        labels=labels,
        gpu_requests=kai_requests(namespace, annotations, asked.gpu_requests),
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
        placement=asked.placement,
        other_requests=asked.other_requests,
    )


def _claims(spec: PodSpec, claims: list[ClaimStatus] | None) -> Iterator[PodClaim]:
    """Claims of the pod's spec; the one that stands for an extended resource is not among them."""
    made = {one.name: one.resource_claim_name or "" for one in claims or ()}
    for used in spec.resource_claims or ():
        name = used.resource_claim_name or made.get(used.name, "")
        yield PodClaim(name=name, own=bool(used.resource_claim_template_name))


# By the pod's uid, and then of its namespace, labels, annotations, owners, claims and spec, as written.
SAID = Remembered(_said)
