"""What gateways of inference say of their own queues: asked by query, and passed on under our name."""

import logging
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

from alerts.exporter import Outside
from collector.addresses import shown
from domain.errors import UnreachableError
from domain.window import MS_PER_SECOND, Clock
from service.outside_settings import GatewaySettings
from service.token_files import token_of

if TYPE_CHECKING:
    from collector.dcgm.prometheus import Prometheus

log = logging.getLogger("gpuledger.gateways")

# What was told longer ago than so many polls is not passed on.
_POLLS_KEPT: Final = 4
_ABOUT: Final = {
    "depth": ("gateway_depth_requests", "Requests that wait at a gateway of inference, as it says itself."),
    "too_many_requests": (
        "gateway_too_many_requests_per_second",
        "Requests a second that a gateway of inference refuses with status 429, as it says itself.",
    ),
    "shed": (
        "gateway_shed_per_second",
        "Requests a second that a gateway of inference sheds, as it says itself.",
    ),
}


class Gateways:
    """
    The gateways of the settings; safe to use from many threads.

    Of a query that gives several series the sum is passed on. One that gives none has no value, which is
    not zero.
    """

    def __init__(self, settings: Sequence[GatewaySettings], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._lines = [_line(one) for one in settings]
        self._told: dict[tuple[int, str], tuple[int, float]] = {}

    def poll(self, number: int) -> None:
        """Ask the queries of the gateway of that number in the settings."""
        settings, line = self._settings[number], self._lines[number]
        for what in _ABOUT:
            query = getattr(settings, what)
            if not query:
                continue
            try:
                values = [value for _, value in line.at_instant(query) if abs(value) < float("inf")]
            except UnreachableError as error:
                log.warning("gateway %s: %s", settings.name, error)
                continue
            with self._lock:
                if values:
                    self._told[number, what] = (self._clock.now_ms(), sum(values))
                else:
                    self._told.pop((number, what), None)

    def outside(self) -> Iterator[Outside]:
        """What was told lately."""
        now_ms = self._clock.now_ms()
        with self._lock:
            told = dict(self._told)
        for (number, what), (at_ms, value) in sorted(told.items()):
            settings = self._settings[number]
            if now_ms - at_ms <= _POLLS_KEPT * settings.every.total_seconds() * MS_PER_SECOND:
                name, about = _ABOUT[what]
                labels = {
                    "cluster": settings.cluster,
                    "gateway": settings.name,
                    "source": shown(settings.prometheus),
                }
                yield Outside(name=name, about=about, labels=labels, value=value)

    def close(self) -> None:
        """Let go of the connections."""
        for line in self._lines:
            line.close()


def _line(settings: GatewaySettings) -> "Prometheus":
    from collector.dcgm.prometheus import Prometheus

    return Prometheus(settings.prometheus, token=token_of(settings.token_file, "gateways.token_file"))
