"""A gate that lets readers pass, and closes while what they read is exchanged."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Gate:
    """Any number of readers are inside, or somebody who is alone."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = 0
        self._closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Inside with other readers; waits while the gate is closed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def passing_at_once(self) -> Iterator[bool]:
        """As `passing`, but nobody waits: where the gate is closed it gives False, and one is not inside."""
        with self._changed:
            inside = not self._closed
            self._readers += inside
        try:
            yield inside
        finally:
            with self._changed:
                self._readers -= inside
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Alone: waits for those inside. One at a time may close the gate."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._readers)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
