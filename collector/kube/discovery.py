"""
Which version of a kind the cluster serves.

Asked before listing: a CRD that is not installed answers a list with 403, not 404, when the
account may read only some things, so a list cannot tell "not there" from "not allowed".
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import msgspec

from collector.kube.client import Answer
from collector.kube.refusal import refused
from collector.kube.watch_steps import Answered, Outcome
from domain.errors import UnreachableError

_OK = 200
_FORBIDDEN = 403
_NOT_FOUND = 404


class Asks(Protocol):
    """The part of a connection that reads whole answers."""

    def get(self, path: str, params: Mapping[str, str], *, read_seconds: float = ...) -> Answer:
        """Ask, and read the answer to its end."""


class Served(Protocol):
    """The part of a translator that says where its objects are; versions in order of preference."""

    @property
    def group(self) -> str:
        """The API group, empty for core."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Those we can read, the best first."""

    @property
    def resource(self) -> str:
        """The plural name in paths."""


class _Version(msgspec.Struct, gc=False):
    version: str


class _Group(msgspec.Struct, gc=False):
    versions: list[_Version] = []


class _Resource(msgspec.Struct, gc=False):
    name: str


class _Resources(msgspec.Struct, gc=False):
    resources: list[_Resource] = []


def version_path(served: Served, version: str) -> str:
    """The path of a version of a group: `/api/v1` or `/apis/<group>/<version>`."""
    return f"/apis/{served.group}/{version}" if served.group else f"/api/{version}"


def discover(connection: Asks, served: Served) -> Answered:
    """The best version that the cluster serves of a kind: FOUND, NOT_INSTALLED, or what hindered."""
    name = f"{served.resource}.{served.group}".rstrip(".")
    try:
        offered = _offered(connection, served)
        for version in (version for version in served.versions if version in offered):
            if _serves(connection, served, version):
                return Answered(outcome=Outcome.FOUND, version=version)
        others = (version for version in offered if version not in served.versions)
        removed = bool(served.group) and not any(_serves(connection, served, other) for other in others)
    except _RefusedError as error:
        answer = error.answer
        said = refused(f"discovery of {name}", answer.status, answer.body, answer.headers)
        forbidden = answer.status == _FORBIDDEN
        return replace(said, outcome=Outcome.NO_PERMISSION if forbidden else Outcome.BROKEN)
    except (UnreachableError, msgspec.MsgspecError) as cause:
        return Answered(outcome=Outcome.BROKEN, because=f"discovery of {name}: {cause}")
    return Answered(
        outcome=Outcome.NOT_INSTALLED,
        removed=removed,
        because=f"the cluster does not serve {name} in {' or '.join(served.versions)}",
    )


class _RefusedError(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def _accept(answer: Answer) -> None:
    if answer.status != _OK:
        raise _RefusedError(answer)


def _offered(connection: Asks, served: Served) -> list[str]:
    """The versions that the group has, also those that we cannot read; core has one and no group."""
    if not served.group:
        return list(served.versions)
    answer = connection.get(f"/apis/{served.group}", {})
    if answer.status == _NOT_FOUND:
        return []
    _accept(answer)
    return [version.version for version in msgspec.json.decode(answer.body, type=_Group).versions]


def _serves(connection: Asks, served: Served, version: str) -> bool:
    answer = connection.get(version_path(served, version), {})
    if answer.status == _NOT_FOUND:
        return False
    _accept(answer)
    listed = msgspec.json.decode(answer.body, type=_Resources).resources
    return any(resource.name == served.resource for resource in listed)
