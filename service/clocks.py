"""What "now" is: the machine's time while clusters are watched, else the end of the data."""

from dataclasses import dataclass

from domain.window import MS_PER_SECOND, Clock, FixedClock, SystemClock
from service.settings import Settings
from store.embedded import Store


@dataclass(frozen=True, slots=True)
class EndOfData:
    """
    The first whole second after everything that was read.

    A store of imported history has nothing to say of today; asked without an instant, it answers
    for the end of what it knows. An empty store takes the machine's time.
    """

    store: Store

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        seen = [mark["seen_ms"] for mark in [*self.store.marks(), *self.store.sample_marks()]]
        last_ms = max((at_ms for at_ms in seen if isinstance(at_ms, int)), default=None)
        if last_ms is None:
            return SystemClock().now_ms()
        return (last_ms // MS_PER_SECOND + 1) * MS_PER_SECOND


def stands(clock: Clock) -> bool:
    """Whether time passes by it only when more data comes."""
    return isinstance(clock, EndOfData | FixedClock)


def clock_of(settings: Settings, store: Store) -> Clock:
    """The clock that fits the settings."""
    return SystemClock() if settings.clusters or settings.gpu_metrics else EndOfData(store)
