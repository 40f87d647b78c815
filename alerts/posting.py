"""
What an Alertmanager is told, and when.

As Prometheus does it: an alert that fires is sent again and again before it would expire, one that resolved
is sent resolved for a while, so that a lost message or a restarted Alertmanager does no harm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from domain.window import format_instant

Identity: TypeAlias = tuple[tuple[str, str], ...]

# As long as Prometheus does.
RETENTION_MS: Final = 15 * 60_000
WATCHDOG: Final = "GpuledgerWatchdog"
# As in Prometheus.
_RESENDS: Final = 4
_FIRST_PAUSE_MS: Final = 1_000
_LONGEST_PAUSE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """
    An alert as it is announced, by the machine's clock.

    Args:
        labels: its identity, the alert's name among them.
        link: where its numbers can be looked at.
        starts_ms: since when it fires; the same as long as it does.
        ends_ms: when it resolved; None while it fires.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    link: str
    starts_ms: int
    ends_ms: int | None = None

    @property
    def is_watchdog(self) -> bool:
        """Whether it fires for as long as alerts are sent at all."""
        return self.labels.get("alertname") == WATCHDOG

    @property
    def identity(self) -> Identity:
        """What makes it the same alert in every message."""
        return tuple(sorted(self.labels.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """
    How often alerts are sent again, and for how long one stands without being sent; milliseconds.

    The watchdog, whose end says that nothing is sent any more, stands for four times `resend_ms` only.
    """

    resend_ms: int
    expire_ms: int

    def end_of(self, told: "Told", now_ms: int) -> int:
        """Until when an Alertmanager is to believe it."""
        if told.ends_ms is not None:
            return told.ends_ms
        return now_ms + (_RESENDS * self.resend_ms if told.is_watchdog else self.expire_ms)

    @property
    def retention_ms(self) -> int:
        """
        For how long what resolved is known: an Alertmanager that missed it holds the alert for as long.

        Who has taken the end is told it again for a quarter of an hour only, as Prometheus does.
        """
        return max(RETENTION_MS, self.expire_ms)


def body(told: Told, now_ms: int, rhythm: Rhythm) -> dict[str, Any]:
    """
    An alert as `POST /api/v2/alerts` takes it.

    While it fires its end lies ahead: if we fall silent, an Alertmanager takes it for resolved only then.
    What ends before it began, by a clock that was set back meanwhile, it would refuse.
    """
    end_ms = rhythm.end_of(told, now_ms)
    return {
        "labels": dict(told.labels),
        "annotations": dict(told.annotations),
        "startsAt": format_instant(min(told.starts_ms, end_ms)),
        "endsAt": format_instant(end_ms),
        "generatorURL": told.link,
    }


@dataclass(frozen=True, slots=True)
class _Sent:
    """When an alert was sent last, whether that said its end, and whether it was taken."""

    at_ms: int
    is_end: bool
    is_taken: bool


@dataclass(slots=True, kw_only=True)
class Line:
    """
    What one Alertmanager was told, and when it is asked again; holds no connection.

    It forgets all with its process: a new one tells everything at once, which changes nothing there.
    """

    rhythm: Rhythm
    _sent: dict[Identity, _Sent] = field(default_factory=dict, init=False)
    _failures: int = field(default=0, init=False)
    _not_before_ms: int = field(default=0, init=False)

    @property
    def failures(self) -> int:
        """How often in a row it did not take what was sent."""
        return self._failures

    def due(self, told: Iterable[Told], now_ms: int) -> list[Told]:
        """What is to be sent now: news at once, the rest when it is time to say it again."""
        if self._pause_ms(now_ms):
            return []
        return [one for one in told if self._is_due(one, now_ms)]

    def taken(self, sent: Sequence[Told], now_ms: int) -> None:
        """It took these."""
        self._answered(sent, now_ms, is_taken=True)

    def refused(self, sent: Sequence[Told], now_ms: int) -> None:
        """It refused some of these, and nobody knows which: all are sent again as if it had none."""
        self._answered(sent, now_ms, is_taken=False)

    def failed(self, now_ms: int) -> None:
        """It did not answer: leave it alone for a while, longer each time, a minute at most."""
        pause_ms = min(_FIRST_PAUSE_MS * 2 ** min(self._failures, 10), _LONGEST_PAUSE_MS)
        self._failures += 1
        self._not_before_ms = now_ms + min(pause_ms, self.rhythm.resend_ms)

    def wait_ms(self, told: Iterable[Told], now_ms: int) -> int:
        """How long nothing is due, as far as is known now."""
        instants = [self._at_ms(one) for one in told if not self._is_past(one, now_ms)]
        wait_ms = min(instants, default=now_ms + self.rhythm.resend_ms) - now_ms
        return max(0, min(wait_ms, self.rhythm.resend_ms), self._pause_ms(now_ms))

    def forget(self, told: Iterable[Told]) -> None:
        """Forget what was sent of alerts that are not among these any more."""
        known = {one.identity for one in told}
        self._sent = {identity: sent for identity, sent in self._sent.items() if identity in known}

    def _answered(self, sent: Sequence[Told], now_ms: int, *, is_taken: bool) -> None:
        self._failures, self._not_before_ms = 0, 0
        for one in sent:
            is_end = one.ends_ms is not None
            self._sent[one.identity] = _Sent(now_ms, is_end=is_end, is_taken=is_taken)

    def _pause_ms(self, now_ms: int) -> int:
        """For how long it is left alone. A clock that was set back makes that no longer."""
        pause_ms = self._not_before_ms - now_ms
        return pause_ms if 0 < pause_ms <= self.rhythm.resend_ms else 0

    def _at_ms(self, one: Told) -> int:
        """When it is to be sent: 0 for news."""
        sent = self._sent.get(one.identity)
        if sent is None or sent.is_end is (one.ends_ms is None):
            return 0
        return sent.at_ms + self.rhythm.resend_ms

    def _is_due(self, one: Told, now_ms: int) -> bool:
        at_ms = self._at_ms(one)
        # A clock that was set back must not silence anything.
        is_time = at_ms <= now_ms or at_ms > now_ms + self.rhythm.resend_ms
        return is_time and not self._is_past(one, now_ms)

    def _is_past(self, one: Told, now_ms: int) -> bool:
        if one.ends_ms is None:
            return False
        sent = self._sent.get(one.identity)
        has_end = sent is not None and sent.is_end and sent.is_taken
        return now_ms - one.ends_ms > (RETENTION_MS if has_end else self.rhythm.retention_ms)
