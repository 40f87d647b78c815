"""Where facts go. The collector knows no store, only this protocol."""

from collections.abc import Iterable
from typing import Protocol

from domain.facts import Batch, Known, SetAside


class FactSink(Protocol):
    """Keeps facts of clusters."""

    def known(self, cluster: str) -> Known:
        """What is already kept of a cluster; keys and bodies only of objects that are not gone."""
        ...

    def append(self, batch: Batch) -> int:
        """
        Commit a batch and its resume positions together, all or nothing.

        Returns:
            Number of rows appended.
        """
        ...


class RecordingSink(FactSink, Protocol):
    """Keeps facts of recordings, which may be read again."""

    def set_aside_of(self, cluster: str) -> Iterable[SetAside]:
        """What was set aside of a cluster so far."""
        ...
