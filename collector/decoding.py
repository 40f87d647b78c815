"""From bytes of the API to raw objects: watch lines, lists, single objects."""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from collector.raw import Int, Part, RawObject

Payload: TypeAlias = bytes | memoryview | dict[str, Any] | msgspec.Raw
Read = TypeVar("Read")

# What msgspec raises for bytes that are no JSON, no text, nested too deep, or not of the expected shape.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_SAMPLE_LENGTH = 200
_VERSION_DIGITS = 20


class Line(msgspec.Struct, Generic[Read], gc=False):
    """One line of a watch stream."""

    type: str
    object: Read


class ListMetadata(Part):
    """Of a list only its version."""

    resource_version: str | None = None


class ObjectList(Part):
    """The answer to a LIST; `kind` is that of the items with `List` at its end."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ListMetadata = msgspec.field(default_factory=ListMetadata)
    items: list[msgspec.Raw] | None = None


class Status(Part):
    """What an ERROR line carries instead of an object."""

    code: Int | None = None
    reason: str | None = None
    message: str | None = None

    def words(self) -> str:
        """
        The trouble in one line.

        >>> Status(code=410, reason="Expired", message="too old resource version").words()
        '410 Expired: too old resource version'
        """
        return f"{self.code or ''} {self.reason or ''}: {self.message or ''}".strip()


class Head(RawObject):
    """Of any object only what it is and who it is."""


@lru_cache
def line_decoder(raw: type[RawObject]) -> "msgspec.json.Decoder[Line[RawObject]]":
    """Decodes lines of a watch of one kind."""
    return msgspec.json.Decoder(Line[raw])  # type: ignore[valid-type]


@lru_cache
def _object_decoder(raw: Hashable) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(raw)


def read_object(payload: Payload, raw: type[Read]) -> Read:
    """
    One object, from JSON or from what a JSON parser gave.

    Raises:
        msgspec.MsgspecError: it is not of that shape.
    """
    if isinstance(payload, dict):
        payload = msgspec.json.encode(payload)
    read: Read = _object_decoder(cast("Hashable", raw)).decode(payload)
    return read


def sample_of(payload: Payload | str) -> str:
    """The beginning of something, to show what it was."""
    if isinstance(payload, bytes | memoryview | msgspec.Raw):
        return bytes(payload)[: _SAMPLE_LENGTH * 4].decode(errors="replace")[:_SAMPLE_LENGTH]
    return str(payload)[:_SAMPLE_LENGTH]


def is_older(version: str, than: str) -> bool:
    """
    Whether a resource version comes before another; False where they cannot be compared.

    >>> is_older("99", "100"), is_older("100", "100"), is_older("a", "b")
    (True, False, False)
    """
    if len(version) == len(than):
        return version < than and version.isdecimal() and than.isdecimal()
    if not (version.isdecimal() and than.isdecimal()):
        return False
    # Versions are 64 bits wide; a longer number is none, and may be too long for int().
    return len(version) <= _VERSION_DIGITS >= len(than) and int(version) < int(than)
