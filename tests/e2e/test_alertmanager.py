"""
What an Alertmanager that goes away, and a ledger that dies, make of an alert: nothing false.

Without Prometheus: the real component against Debian's Alertmanager, in real time; once with the real three
minutes. With Prometheus: a sample, with lengths of rules twenty times as short; but sent again every minute
and away for three minutes, as anywhere.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from alerts.posting import WATCHDOG
from alerts.wording import Links
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import SystemClock, parse_instant
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.answers import Answers
from store.embedded import Store
from tests.e2e.alertmanagers import Alertmanager, Receiver, alertmanager, receiver
from tests.e2e.processes import Addresses, demo, free_ports
from tests.e2e.prometheuses import prometheus

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

IDENTITY: Final = {"cluster": "east", "queue": "red", "service_class": "interactive"}
LABELS: Final = IDENTITY | {"alertname": "GpuQueueWaitTooLong"}
MINUTE_MS: Final = 60_000
AWAY_SECONDS: Final = 180


# Nobody waits so long but for what does not come: on a machine with six times the load that it can bear a
# sample that is played takes as much longer, for it waits until it is measured.
PATIENCE_SECONDS: Final = 600


def wait_for(look: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}"
        time.sleep(0.2)


@dataclass(slots=True)
class Ledger:
    """The alerting of a service that is measured by hand; its data's clock is moved by hand too."""

    alerting: Alerting
    as_of_ms: int

    def measured(self, wait_seconds: float, *, minutes: float = 0) -> None:
        """So long waits who waits longest, so many minutes of the data later."""
        self.as_of_ms += round(minutes * MINUTE_MS)
        found = {
            "starvation_index_seconds": (IDENTITY, wait_seconds),
            "wait_target_seconds": ({"service_class": "interactive"}, 300.0),
        }
        self.alerting.take(
            [
                Measurement(metric=name, as_of_ms=self.as_of_ms, sample=Sample(labels=labels, value=value))
                for name, (labels, value) in found.items()
            ],
            self.as_of_ms,
            {},
        )


@contextmanager
def ledger(file: Path, url: str, **lengths: str) -> Iterator[Ledger]:
    """From its start to its stop."""
    store = Store.open(file)
    settings = AlertingSettings.model_validate({"alertmanagers": [{"url": url}], **lengths})
    answers = Answers(store, Tenancy(), Policy(), SystemClock())
    links, every = Links(dashboard_url="https://gpu.example/tools/fair"), timedelta(seconds=15)
    alerting = Alerting(answers, settings, links=links, every=every, clock=SystemClock())
    alerting.start()
    try:
        yield Ledger(alerting, SystemClock().now_ms())
    finally:
        alerting.stop()
        store.close()


def only(running: Alertmanager) -> dict[str, int]:
    """When the one alert of our identity began and ends, in ms, as Alertmanager has it."""
    [alert] = running.alerts(**LABELS)
    return {name: parse_instant(alert[name]) for name in ("startsAt", "endsAt")}


def out_and_back(tmp_path: Path, told: Receiver, *, away_seconds: float, **lengths: str) -> None:
    """It fires, the Alertmanager is away and comes back, the ledger too, and then it ends: told once each."""
    (port,) = free_ports(1)
    file, url = tmp_path / "s.duckdb", f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        running = first.enter_context(alertmanager(tmp_path / "am", port, told))
        here = stack.enter_context(ExitStack())
        books = here.enter_context(ledger(file, url, **lengths))
        books.measured(400.0)
        books.measured(460.0, minutes=1)
        wait_for(lambda: told.statuses(**LABELS) == ["firing"], "it fires")
        began = only(running)["startsAt"]

        first.close()
        deadline = time.monotonic() + away_seconds
        while time.monotonic() < deadline:
            books.measured(500.0, minutes=0.1)
            time.sleep(min(1.0, away_seconds / 4))
        running = stack.enter_context(alertmanager(tmp_path / "am", port, told))
        wait_for(lambda: running.alerts(**LABELS), "it is told again")
        assert only(running)["startsAt"] == began

        here.close()
        ends = only(running)["endsAt"]
        books = stack.enter_context(ledger(file, url, **lengths))
        wait_for(lambda: only(running)["endsAt"] > ends, "the new process tells it again")
        assert only(running)["startsAt"] == began
        assert told.statuses(**LABELS) == ["firing"]

        books.measured(0.0, minutes=1)
        books.measured(0.0, minutes=6)
        wait_for(lambda: told.statuses(**LABELS) == ["firing", "resolved"], "it ends")
        assert len({alert["fingerprint"] for alert in told.told(**LABELS)}) == 1
        # Its messages leave out the zeros at the end of a second's parts, its API does not.
        assert {parse_instant(alert["startsAt"]) for alert in told.told(**LABELS)} == {began}


@pytest.mark.timeout(1800)
def test_an_alertmanager_and_a_ledger_that_were_away_resolve_nothing_and_make_no_second_identity(
    tmp_path: Path,
) -> None:
    """Three minutes are 3 s here: what is sent each minute is sent each second."""
    with receiver() as told:
        out_and_back(tmp_path, told, away_seconds=3, resend="1s", expire="5m")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_alertmanager_that_was_away_for_three_minutes_resolves_nothing(tmp_path: Path) -> None:
    with receiver() as told:
        out_and_back(tmp_path, told, away_seconds=AWAY_SECONDS)


@pytest.mark.timeout(1800)
def test_a_dead_ledger_is_missed_within_four_messages_and_resolves_nothing_over_a_weekend(
    tmp_path: Path,
) -> None:
    """It is stopped here, which tells an Alertmanager as little as a kill does (test_killed_ledger.py)."""
    (port,) = free_ports(1)
    watchdog = {"alertname": WATCHDOG}
    with receiver() as told, alertmanager(tmp_path / "am", port, told) as running:
        with ledger(tmp_path / "s.duckdb", running.url, resend="1s") as books:
            books.measured(400.0)
            books.measured(460.0, minutes=1)
            wait_for(lambda: told.statuses(**LABELS) == ["firing"], "it fires")
            wait_for(lambda: told.statuses(**watchdog) == ["firing"], "the watchdog is there")
        wait_for(lambda: told.statuses(**watchdog) == ["firing", "resolved"], "the watchdog is missed")
        assert told.statuses(**LABELS) == ["firing"]
        two_days_ms = 2 * 24 * 60 * MINUTE_MS
        assert only(running)["endsAt"] > SystemClock().now_ms() + two_days_ms


SPEED: Final = 20
NLP: Final = {
    "alertname": "GpuQueueWaitTooLong", "service_class": "interactive", "queue": "nlp", "cluster": "sample",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_with_prometheus_an_outage_resolves_nothing_and_a_dead_ledger_is_told_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Prometheus tells an end four minutes ahead, of which the outage takes three."""
    (port,) = free_ports(1)
    at = Addresses.free()
    with receiver() as told, ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        running = first.enter_context(alertmanager(tmp_path / "am", port, told))
        # Before the demo, whose time runs as soon as it is up.
        watching = prometheus(tmp_path, at, running.url, speed=SPEED)
        stack.enter_context(watching)
        options = ["--sample", "small", "--play", str(SPEED)]
        playing = stack.enter_context(demo(tmp_path, *options, at=at, ready_seconds=240))
        wait_for(lambda: told.statuses(**NLP) == ["firing"], "it fires")
        # Before it was up it was missed, too.
        absent = {"alertname": "GpuledgerMeasurementsAbsent"}
        wait_for(lambda: told.statuses(**absent)[-1:] != ["firing"], "it is not missed any more")
        # Killed while the breach lasts: nobody can end anything in order.
        playing.process.send_signal(signal.SIGKILL)
        [alert] = running.alerts(**NLP)
        wait_for(lambda: told.statuses(**absent)[-1:] == ["firing"], "the ledger is missed")
        # For longer than any window, hold and stay of the alert, a twentieth of which is 63 s.
        began = parse_instant(alert["startsAt"])
        _still_the_same(running, told, began, seconds=70)

        first.close()
        time.sleep(AWAY_SECONDS)
        running = stack.enter_context(alertmanager(tmp_path / "am", port, told))
        wait_for(lambda: running.alerts(**NLP) and running.alerts(**absent), "both are told again")
        _still_the_same(running, told, began, seconds=10)


# At its end the small sample stands still: what interactive work has waited there stays past the target.
P99: Final = {
    "alertname": "GpuQueueWaitP99TooLong", "service_class": "interactive",
    "queue": "nlp", "cluster": "sample",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_with_prometheus_an_outage_while_a_breach_lasts_and_the_ledger_lives_resolves_nothing(
    tmp_path: Path,
) -> None:
    (port,) = free_ports(1)
    at = Addresses.free()
    with receiver() as told, ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        running = first.enter_context(alertmanager(tmp_path / "am", port, told))
        stack.enter_context(demo(tmp_path, "--sample", "small", at=at))
        watching = prometheus(tmp_path, at, running.url, speed=SPEED)
        stack.enter_context(watching)
        wait_for(lambda: told.statuses(**P99) == ["firing"], "it fires")
        [before] = running.alerts(**P99)
        first.close()
        time.sleep(AWAY_SECONDS)
        running = stack.enter_context(alertmanager(tmp_path / "am", port, told))
        wait_for(lambda: running.alerts(**P99), "it is told again")
        # For longer than it waits before it says what is new.
        for _ in range(10):
            [after] = running.alerts(**P99)
            assert [after[name] for name in ("startsAt", "fingerprint")] == [
                before[name] for name in ("startsAt", "fingerprint")
            ]
            # Nothing silences it: an end of it would have been told.
            assert after["status"]["inhibitedBy"] == []
            assert told.statuses(**P99) == ["firing"]
            time.sleep(1)


def _still_the_same(running: Alertmanager, told: Receiver, began: int, *, seconds: int) -> None:
    """It fires on since then, under the ledger's own alert, and nobody was told that it ended."""
    for _ in range(seconds):
        assert told.statuses(**NLP) == ["firing"]
        time.sleep(1)
    [alert] = running.alerts(**NLP)
    assert (parse_instant(alert["startsAt"]), bool(alert["status"]["inhibitedBy"])) == (began, True)
