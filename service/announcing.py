"""Tells an Alertmanager of alerts, from a thread of its own: however slow it is, nobody waits for it."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from alerts.alertmanager import Access, Alertmanager
from alerts.exporter import Outside
from alerts.posting import Line, Rhythm, Told, body
from domain.errors import DataError, UnreachableError
from domain.window import MS_PER_SECOND, Clock
from service.alarms import Alarms
from service.alerting_settings import AlertingSettings, AlertmanagerSettings
from service.settings import read_secret

log = logging.getLogger("gpuledger.alertmanager")

_ALARM: Final = "alertmanager_unreachable"
_REFUSAL: Final = "alertmanager_refuses"
# One lost message is nothing: the next one comes before the alert would expire.
_FAILURES_TOLERATED: Final = 2
_AFTER_A_DEFECT_SECONDS: Final = 15.0
_TAKEN: Final = ("alertmanager_taken_timestamp_seconds", "When an Alertmanager last took alerts of us.")
_FAILED: Final = ("alertmanager_failures", "How often in a row an Alertmanager did not take alerts of us.")


class Announcer:
    """
    Keeps one Alertmanager informed until it is stopped; what is firing then is left as it is there.

    Args:
        settings: which one.
        rhythm: how often alerts are sent again.
        told: what is to be announced now.
    """

    def __init__(
        self,
        settings: AlertmanagerSettings,
        rhythm: Rhythm,
        told: Callable[[], Sequence[Told]],
        *,
        alarms: Alarms,
        clock: Clock,
    ) -> None:
        seconds = settings.timeout.total_seconds()
        self._alertmanager = Alertmanager(settings.url, access_of(settings), timeout_seconds=seconds)
        self._line = Line(rhythm=rhythm)
        self._rhythm = rhythm
        self._told = told
        self._alarms = alarms
        self._clock = clock
        self._taken_ms = 0
        self._stopping = False
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"alertmanager {settings.url}", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def wake(self) -> None:
        """There may be news."""
        self._news.set()

    def stop(self) -> None:
        """Send nothing more; no alert is said to have resolved because of it."""
        self._stopping = True
        self._news.set()
        if self._thread.is_alive():
            self._thread.join()
        self._alertmanager.close()

    def outside(self) -> Iterator[Outside]:
        """How well it goes, for export."""
        labels = {"alertmanager": self._alertmanager.name}
        if self._taken_ms:
            name, about = _TAKEN
            yield Outside(name=name, about=about, labels=labels, value=self._taken_ms / MS_PER_SECOND)
        name, about = _FAILED
        yield Outside(name=name, about=about, labels=labels, value=float(self._line.failures))

    def send(self) -> float:
        """Send what is due; gives for how many seconds nothing more is, unless there are news."""
        told, now_ms = self._told(), self._clock.now_ms()
        due = self._line.due(told, now_ms)
        if due:
            self._post(due, now_ms)
        self._line.forget(told)
        return self._line.wait_ms(told, self._clock.now_ms()) / MS_PER_SECOND

    def _run(self) -> None:
        while not self._stopping:
            self._news.clear()
            try:
                seconds = self.send()
            except Exception:
                # A defect of ours must not silence what comes later.
                log.exception("alerts are not announced")
                seconds = _AFTER_A_DEFECT_SECONDS
            self._news.wait(seconds)

    def _post(self, due: Sequence[Told], now_ms: int) -> None:
        try:
            self._alertmanager.post([body(one, now_ms, self._rhythm) for one in due])
        except UnreachableError as error:
            self._line.failed(self._clock.now_ms())
            log.warning("alerts are not announced: %s", error)
            if self._line.failures > _FAILURES_TOLERATED:
                self._alarms.sound(self._alarm, f"alerts are not announced, and sent again: {error}")
            return
        except DataError as error:
            # Whether it kept the others nobody knows: a server that is none of its kind refuses all of them.
            log.warning("some alerts were refused: %s", error)
            self._alarms.sound(self._refusal, f"alerts are refused, and sent again: {error}")
            self._line.refused(due, now_ms)
        else:
            self._line.taken(due, now_ms)
            self._taken_ms = now_ms
            self._alarms.end(self._refusal)
        self._alarms.end(self._alarm)

    @property
    def _alarm(self) -> str:
        return f"{_ALARM}: {self._alertmanager.name}"

    @property
    def _refusal(self) -> str:
        return f"{_REFUSAL}: {self._alertmanager.name}"


def announcers(
    settings: AlertingSettings, told: Callable[[], Sequence[Told]], *, alarms: Alarms, clock: Clock
) -> list[Announcer]:
    """
    One for each Alertmanager of the settings; none of them waits for another.

    Raises:
        SettingsError: a file with a secret cannot be read.
    """
    rhythm = rhythm_of(settings)
    return [Announcer(one, rhythm, told, alarms=alarms, clock=clock) for one in settings.alertmanagers]


def rhythm_of(settings: AlertingSettings) -> Rhythm:
    """How often alerts are sent again, by the settings."""
    return Rhythm(
        resend_ms=round(settings.resend.total_seconds() * MS_PER_SECOND),
        expire_ms=round(settings.expire.total_seconds() * MS_PER_SECOND),
    )


def access_of(settings: AlertmanagerSettings) -> Access:
    """
    How to get into one of the settings.

    Raises:
        SettingsError: a file with a secret cannot be read.
    """
    password, token = settings.password_file, settings.token_file
    where = "alerting.alertmanagers"
    return Access(
        user=settings.user,
        password="" if password is None else read_secret(password, f"{where}.password_file"),
        token="" if token is None else read_secret(token, f"{where}.token_file"),
        ca_file="" if settings.ca_file is None else str(settings.ca_file),
    )
