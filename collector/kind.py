"""How one kind of object is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collector.raw import RawObject
from domain.facts import Fact, ObjectKind


@dataclass(frozen=True)
class Translator:
    """
    How one kind is read.

    `versions` are those that `raw` understands, the one to ask for first; `resource` is the
    plural in the API's path. `facts` is pure: the same object twice gives the same facts.
    """

    kind: ObjectKind
    group: str
    api_kind: str
    versions: tuple[str, ...]
    resource: str
    namespaced: bool
    raw: type[RawObject]
    facts: Callable[[Any, int], list[Fact]]
