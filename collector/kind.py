"""How one kind of object is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collector.raw import RawObject
from collector.wording import api_group
from domain.errors import FactError
from domain.facts import Fact, ObjectKind, ObjectState

# What shows an object: the changes of a watch, and our own word for an item of a list.
SIGHTS = frozenset({"ADDED", "MODIFIED", "DELETED", "LISTED"})


def _nothing_to_forget(_: str) -> None:
    """Most kinds remember nothing of an object."""


@dataclass(frozen=True)
class Translator:
    """
    How one kind is read.

    `versions` are those that `raw` understands, the one to ask for first; `resource` is the
    plural in the API's path. `facts` is pure: the same object twice gives the same facts. `forget` is told
    the uid of what is gone, where something is remembered to read the next reading faster.
    """

    kind: ObjectKind
    group: str
    api_kind: str
    versions: tuple[str, ...]
    resource: str
    namespaced: bool
    raw: type[RawObject]
    facts: Callable[[Any, int], list[Fact]]
    forget: Callable[[str], None] = _nothing_to_forget

    def check(self, event_type: str, raw: RawObject) -> None:
        """
        That an object is of this kind, has a name, and is shown by an event that we know.

        Raises:
            FactError: it is not.
        """
        # Items of a list of a built-in kind do not say what they are.
        if raw.kind and (raw.kind != self.api_kind or api_group(raw.api_version) != self.group):
            message = f"kind {raw.kind} ({raw.api_version}): expected {self.api_kind} here"
            raise FactError(message)
        # Of an Event only what it is about is kept.
        if raw.metadata.uid and not raw.metadata.name and self.kind is not ObjectKind.EVENT:
            nameless = f"{self.api_kind} {raw.metadata.uid}"
            message = f"{nameless} has no metadata.name: expected an object of an API server"
            raise FactError(message)
        if event_type not in SIGHTS:
            message = f"watch event {event_type!r}: expected ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"
            raise FactError(message)

    def check_same(self, before: ObjectState | None) -> None:
        """
        That what is known under the uid of an object of this kind is of this kind as well.

        Raises:
            FactError: it is not.
        """
        if before is not None and before.kind != self.kind:
            message = f"its metadata.uid is that of another object, of kind {before.kind}"
            raise FactError(message)
