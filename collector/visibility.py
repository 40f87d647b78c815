"""Kueue's visibility API: who waits in a queue, in the order in which Kueue would admit."""

from typing import Final

import msgspec

from collector.decoding import UNREADABLE
from collector.kube.discovery import Asks, discover
from collector.kube.refusal import refused
from collector.kube.watch_steps import Outcome
from domain.errors import UnreachableError

GROUP: Final = "visibility.kueue.x-k8s.io"
# What Kueue gives where nothing else is asked for; the rest of a longer queue is not told.
MOST: Final = 1000
_OK: Final = 200
_NOT_FOUND: Final = 404


class Visible:
    """Where the API is, for discovery; versions in order of preference. It serves both resources or none."""

    group = GROUP
    versions = ("v1beta2", "v1beta1")
    resource = "clusterqueues/pendingworkloads"
    # What an account of some namespaces may be granted, by a Role in each.
    namespaced_resource = "localqueues/pendingworkloads"


class _Metadata(msgspec.Struct, gc=False):
    name: str
    namespace: str


class Pending(msgspec.Struct, gc=False, rename="camel"):
    """A workload that waits; the positions count from 0."""

    metadata: _Metadata
    position_in_cluster_queue: int
    position_in_local_queue: int


class _Summary(msgspec.Struct, gc=False):
    items: list[Pending] | None = None


_SUMMARY: Final = msgspec.json.Decoder(_Summary)


class Untold(Exception):  # noqa: N818 (it is an answer, not an error)
    """The API tells nothing; says why, as the mark of a source does."""


class Refused(Untold):
    """The account may not ask this; it may ask something else."""


def version_of(connection: Asks) -> str:
    """The version that the cluster serves; raises Untold."""
    found = discover(connection, Visible())
    if found.outcome is Outcome.FOUND:
        return found.version
    label = found.outcome if found.outcome in {Outcome.NO_PERMISSION, Outcome.NOT_INSTALLED} else "retry"
    message = f"{label}: {found.because}"
    raise Untold(message)


def pending_in(connection: Asks, version: str, queue: str) -> list[Pending]:
    """
    Who waits in a ClusterQueue, at most `MOST`; nobody in one that is not there any more.

    Raises:
        Refused: the account may not ask.
        Untold: the leader of Kueue changes, or the answer cannot be read.
    """
    return _pending(connection, f"/apis/{GROUP}/{version}/clusterqueues/{queue}/pendingworkloads")


def pending_in_local(connection: Asks, version: str, namespace: str, queue: str) -> list[Pending]:
    """Who waits in a LocalQueue, with the positions in its ClusterQueue too; otherwise as `pending_in`."""
    path = f"/apis/{GROUP}/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
    return _pending(connection, path)


def _pending(connection: Asks, path: str) -> list[Pending]:
    try:
        answer = connection.get(path, {"limit": str(MOST)})
        if answer.status == _NOT_FOUND:
            return []
        if answer.status == _OK:
            return _SUMMARY.decode(answer.body).items or []
    except (UnreachableError, *UNREADABLE) as cause:
        message = f"retry: GET {path}: {cause}"
        raise Untold(message) from cause
    told = refused(f"GET {path}", answer.status, answer.body, answer.headers)
    if told.outcome is Outcome.NO_PERMISSION:
        message = f"{Outcome.NO_PERMISSION}: {told.because}"
        raise Refused(message)
    message = f"retry: {told.because}"
    raise Untold(message)
