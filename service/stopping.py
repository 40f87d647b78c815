"""
A wish to stop, which a signal may express at any moment.

The handler of a signal runs in the main thread, between two of its instructions. An `Event` that the
main thread waits for may be locked just then: a handler that sets it would wait for itself, for good.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from types import FrameType

_LOOK_SECONDS = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """A flag without a lock: whoever waits looks at it now and then."""

    __slots__ = ("_wished",)

    def __init__(self) -> None:
        self._wished = False

    def set(self) -> None:
        """Wish it; from any thread, and from a signal handler."""
        self._wished = True

    def is_set(self) -> bool:
        """Whether somebody wishes it."""
        return self._wished

    def wait(self, seconds: float | None = None) -> bool:
        """Until somebody wishes it, at most that long; gives whether somebody does."""
        give_up = None if seconds is None else monotonic() + seconds
        while not self._wished:
            left = _LOOK_SECONDS if give_up is None else min(_LOOK_SECONDS, give_up - monotonic())
            if left <= 0:
                break
            sleep(left)
        return self._wished


@contextmanager
def on_signals(stop: Stop) -> Iterator[Stop]:
    """
    Ctrl-C and SIGTERM set `stop` meanwhile; outside of the main thread nobody sends us any.

    Once it is set they stay so: who is asked again still ends in order.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in ({} if stop.is_set() else before).items():
            signal.signal(number, handler)
