"""
A sample that is played: the rest of a recording comes in as a clock passes it.

The clock runs faster than the machine's and stops at the end of the sample, because nothing more is
known. A sample that was made for it ends where both clocks meet; a recorded one keeps its own time.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from collector.dcgm.answers import Part
from collector.intake import Intake
from collector.recording import Reading, deliver, readings
from domain.errors import ProductError
from domain.window import MS_PER_SECOND, Clock
from service.gpu_metrics import keep_parts
from store.embedded import Store

log = logging.getLogger("gpuledger.play")

_STEP_SECONDS = 0.2
# So much of the machine's time may be played that is not measured yet.
_AHEAD_SECONDS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayClock:
    """
    `speed` times as fast as the machine's clock, until `end_ms`.

    There it is as late as the machine's, or `behind_ms` behind it.
    """

    machine: Clock
    end_ms: int
    speed: float
    behind_ms: int = 0

    @classmethod
    def over(cls, machine: Clock, *, length_ms: int, speed: float) -> "PlayClock":
        """
        A clock that runs through the last `length_ms` before its end, from now on.

        >>> from domain.window import FixedClock
        >>> clock = PlayClock.over(FixedClock(10_000), length_ms=6_000, speed=2)
        >>> clock.end_ms, clock.now_ms()
        (13000, 7000)
        """
        return cls(machine=machine, end_ms=machine.now_ms() + round(length_ms / speed), speed=speed)

    @classmethod
    def before(cls, end_ms: int, machine: Clock, *, length_ms: int, speed: float) -> "PlayClock":
        """
        A clock that runs through the last `length_ms` before this end, from now on.

        >>> from domain.window import FixedClock
        >>> PlayClock.before(8_000, FixedClock(10_000), length_ms=6_000, speed=2).now_ms()
        2000
        """
        behind_ms = machine.now_ms() + round(length_ms / speed) - end_ms
        return cls(machine=machine, end_ms=end_ms, speed=speed, behind_ms=behind_ms)

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the sample's clock."""
        left_ms = max(0, self.end_ms + self.behind_ms - self.machine.now_ms())
        return self.end_ms - round(left_ms * self.speed)


@dataclass(slots=True, kw_only=True)
class Meters:
    """Hands GPU samples to a store, in order of time, as far as asked."""

    store: Store
    cluster: str
    rest: Iterator[Part]
    _next: Part | None = field(default=None, init=False)

    def advance(self, until_ms: int) -> int:
        """Hand over the samples before this instant; gives how many those were."""
        return keep_parts(self.store, self.cluster, self._before(until_ms)).read

    def _before(self, until_ms: int) -> Iterator[Part]:
        while (part := self._next or next(self.rest, None)) is not None:
            first, later = part.cut(until_ms)
            self._next = later if later.samples.frame.height else None
            if first.samples.frame.height:
                yield first
            if self._next is not None:
                return


@dataclass(slots=True, kw_only=True)
class Feed:
    """
    Hands a recording to an intake, in order of receipt, as far as asked; with GPU samples, if it has any.

    It is itself a clock, which tells how far that is: what is answered as of its time knows
    everything that was recorded before.
    """

    intake: Intake
    rest: Iterator[Reading]
    meters: Meters | None = None
    until_ms: int = 0
    _next: Reading | None = field(default=None, init=False)

    @classmethod
    def of(cls, folder: Path, intake: Intake, meters: Meters | None = None) -> "Feed":
        """The feed of a whole recording, before its first line."""
        return cls(intake=intake, rest=readings(folder), meters=meters)

    def now_ms(self) -> int:
        """Everything that came in before this instant has been handed over."""
        return self.until_ms

    def advance(self, until_ms: int) -> int:
        """Hand over what came in before this instant; gives how many pieces of the recording that were."""
        handed = 0
        while (reading := self._next or next(self.rest, None)) is not None:
            if reading.observed_ms >= until_ms:
                self._next = reading
                break
            self._next = None
            deliver(self.intake, reading)
            handed += 1
        if handed:
            self.intake.flush()
        if self.meters is not None:
            self.meters.advance(until_ms)
        self.until_ms = max(self.until_ms, until_ms)
        return handed


class Player:
    """
    Moves a feed along with a clock, from a thread, up to the clock's end.

    Use it as a context. `error` is what stopped it before its end.

    Args:
        measured: the last instant of which everything was measured. Where measuring takes long the time of
            the sample waits for it, so that nothing comes and goes unseen; by default it waits for nothing.
    """

    def __init__(self, feed: Feed, clock: PlayClock, *, measured: Callable[[], int] | None = None) -> None:
        self.error: ProductError | None = None
        self._feed = feed
        self._clock = clock
        self._measured = measured
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="play")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def join(self, seconds: float) -> None:
        """Wait until the sample has been played, at most that long."""
        self._thread.join(seconds)

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._feed.now_ms() < self._clock.end_ms and not self._stopping.wait(_STEP_SECONDS):
                self._feed.advance(self._now_ms())
        except ProductError as error:
            log.exception("the sample cannot be played on")
            self.error = error

    def _now_ms(self) -> int:
        clock, now_ms = self._clock, self._clock.now_ms()
        if self._measured is None:
            return now_ms
        latest_ms = self._measured() + round(_AHEAD_SECONDS * MS_PER_SECOND * clock.speed)
        if now_ms <= latest_ms:
            return now_ms
        # It goes on from here, and does not run after what was missed.
        left_ms = clock.end_ms - latest_ms
        self._clock = PlayClock.before(clock.end_ms, clock.machine, length_ms=left_ms, speed=clock.speed)
        return latest_ms
