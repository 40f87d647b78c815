"""One intake for the readers of all kinds of a cluster: they run in threads of their own."""

import threading
from collections.abc import Iterable
from typing import Protocol

import msgspec

from collector.decoding import Payload
from collector.raw import RawObject
from collector.translator import Translator


class TakesIn(Protocol):
    """What a reader gives its readings to; `Intake` says what each does."""

    @property
    def histories(self) -> int:
        """As `Intake.histories`."""

    def see(
        self,
        translator: Translator,
        event_type: str,
        payload: Payload,
        observed_ms: int,
        *,
        read: RawObject | None = None,
    ) -> None:
        """As `Intake.see`."""

    def relisted(
        self, translator: Translator, items: Iterable[Payload], resource_version: str, observed_ms: int
    ) -> None:
        """As `Intake.relisted`."""

    def troubled(self, translator: Translator, because: str, observed_ms: int) -> None:
        """As `Intake.troubled`."""

    def accepted(self, translator: Translator, observed_ms: int) -> None:
        """As `Intake.accepted`."""

    def removed(self, translator: Translator, observed_ms: int) -> None:
        """As `Intake.removed`."""

    def identify(self, cluster_uid: str) -> None:
        """As `Intake.identify`."""

    def flush(self) -> int:
        """As `Intake.flush`."""


class SharedIntake:
    """
    Lets one reader at a time into an intake.

    A commit happens inside too, so a slow store slows the readers down, and with them the watches.
    """

    def __init__(self, intake: TakesIn) -> None:
        self._intake = intake
        self._lock = threading.Lock()

    def see(
        self,
        translator: Translator,
        event_type: str,
        payload: Payload,
        observed_ms: int,
        *,
        read: RawObject | None = None,
    ) -> None:
        """As `Intake.see`."""
        with self._lock:
            self._intake.see(translator, event_type, payload, observed_ms, read=read)

    def relisted(
        self, translator: Translator, items: list[msgspec.Raw], resource_version: str, observed_ms: int
    ) -> None:
        """As `Intake.relisted`."""
        with self._lock:
            self._intake.relisted(translator, items, resource_version, observed_ms)

    def troubled(self, translator: Translator, because: str, observed_ms: int) -> None:
        """As `Intake.troubled`."""
        with self._lock:
            self._intake.troubled(translator, because, observed_ms)

    def accepted(self, translator: Translator, observed_ms: int) -> None:
        """As `Intake.accepted`."""
        with self._lock:
            self._intake.accepted(translator, observed_ms)

    def removed(self, translator: Translator, observed_ms: int) -> None:
        """As `Intake.removed`."""
        with self._lock:
            self._intake.removed(translator, observed_ms)

    def identify(self, cluster_uid: str) -> None:
        """As `Intake.identify`."""
        with self._lock:
            self._intake.identify(cluster_uid)

    def histories(self) -> int:
        """As `Intake.histories`."""
        with self._lock:
            return self._intake.histories

    def tell(self, translator: Translator, payload: Payload, observed_ms: int) -> None:
        """Take in what somebody told us, and commit it before anybody is told that it is kept."""
        with self._lock:
            self._intake.see(translator, "ADDED", payload, observed_ms)
            self._intake.flush()

    def flush(self) -> int:
        """As `Intake.flush`."""
        with self._lock:
            return self._intake.flush()
