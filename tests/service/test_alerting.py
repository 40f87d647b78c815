"""The alerts of a service: kept across restarts, told to every Alertmanager, never ended by silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from alerts.wording import Links
from analytics.metrics import REGISTRY
from api.alerts import BEFORE_THE_LAST
from api.answers import Record, ReportQuestion
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, SystemClock, format_instant, parse_instant
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.answers import Answers
from store import adoption, alerts, retention
from store.embedded import Store
from tests.alerts.fake_alertmanager import FakeAlertmanager, alertmanager
from tests.build import busy_morning

START = 1_700_000_000_000
MINUTE = 60_000
TARGETS = {"interactive": 300.0, "batch": 3600.0}


@dataclass(slots=True)
class Clock:
    """Stands until it is moved."""

    at_ms: int = START

    def now_ms(self) -> int:
        return self.at_ms


@dataclass(slots=True)
class Site:
    """A service that is measured by hand, minute by minute."""

    store: Store
    settings: AlertingSettings
    clock: Clock
    alerting: Alerting
    answers: Answers

    def measured(
        self, minute: float, waits: dict[tuple[str, str], float], *, seen: float | None = None
    ) -> None:
        """The longest waits by queue and class; the cluster was read at minute `seen`, by default now."""
        self.clock.at_ms = START + round(minute * MINUTE)
        as_of_ms = self.clock.at_ms
        measurements = [
            Measurement(
                metric="starvation_index_seconds",
                as_of_ms=as_of_ms,
                sample=Sample(
                    labels={"cluster": "east", "queue": queue, "service_class": service_class}, value=seconds
                ),
            )
            for (queue, service_class), seconds in waits.items()
        ] + [
            Measurement(
                metric="wait_target_seconds",
                as_of_ms=as_of_ms,
                sample=Sample(labels={"service_class": service_class}, value=seconds),
            )
            for service_class, seconds in TARGETS.items()
        ]
        read_ms = as_of_ms if seen is None else START + round(seen * MINUTE)
        self.alerting.take(measurements, as_of_ms, {"east": read_ms})

    def listed(self, **question: object) -> list[Record]:
        """What the API tells, work only."""
        rows = self.answers.alerts(ReportQuestion(as_of_ms=self.clock.at_ms, **question)).rows  # type: ignore[arg-type]
        return [row for row in rows if row["about"] == "work"]

    def states(self) -> list[tuple[str, str, str]]:
        return [(row["state"], row["alert"], row["labels"]["queue"]) for row in self.listed()]


@contextmanager
def site(
    file: Path | None, *fakes: FakeAlertmanager, at_minute: float = 0, announces: bool = True
) -> Iterator[Site]:
    """From a start of the service to its stop; without announcing, the test itself sends."""
    urls = [{"url": fake.url, "timeout": "1m"} for fake in fakes]
    settings = AlertingSettings.model_validate({"alertmanagers": urls})
    store, clock = Store.open(file), Clock(START + round(at_minute * MINUTE))
    answers = Answers(store, Tenancy(), Policy(), clock)
    links = Links(dashboard_url="https://gpu.example/tools/fair", runbooks_url="https://book.example")
    alerting = Alerting(answers, settings, links=links, every=timedelta(seconds=15), clock=clock)
    if announces:
        alerting.start()
    try:
        yield Site(store, settings, clock, alerting, answers)
    finally:
        alerting.stop()
        store.close()


@pytest.fixture
def fake() -> Iterator[FakeAlertmanager]:
    with alertmanager() as running:
        yield running


RED = ("red", "interactive")


def of_work(heard: list[Record]) -> list[Record]:
    return [one for one in heard if not one["labels"]["alertname"].startswith("Gpuledger")]


def told_of_work(fake: FakeAlertmanager, *, ends: int | None = None) -> list[Record]:
    """The next that is told of work, with that end; what is only sent again is passed over."""
    while True:
        found = of_work(fake.wait())
        found = [one for one in found if ends is None or one["endsAt"] == format_instant(ends)]
        if found:
            return found


def test_a_breach_is_told_once_with_links_and_its_end_when_the_queue_has_drained(
    fake: FakeAlertmanager,
) -> None:
    with site(None, fake) as here:
        here.measured(0, {RED: 400.0})
        assert of_work(fake.wait()) == []  # the watchdog only
        here.measured(1, {RED: 460.0})
        (told,) = told_of_work(fake)
        assert told["labels"] == {
            "alertname": "GpuQueueWaitTooLong", "severity": "warning",
            "cluster": "east", "queue": "red", "service_class": "interactive",
        }  # fmt: skip
        assert told["startsAt"] == format_instant(START + MINUTE)
        assert told["endsAt"] == format_instant(START + MINUTE + 3 * 86_400_000)
        assert told["annotations"]["runbook_url"] == "https://book.example/GpuQueueWaitTooLong.md"
        assert told["generatorURL"] == told["annotations"]["dashboard_url"]
        assert told["generatorURL"].startswith("https://gpu.example/tools/fair/queues?")
        assert "queue=red" in told["generatorURL"]
        for minute in (2, 3, 4, 5, 6):
            here.measured(minute, {RED: 0.0})
        here.measured(7, {RED: 0.0})
        (ended,) = told_of_work(fake, ends=START + 7 * MINUTE)
        assert ended["labels"] == told["labels"]
        assert ended["startsAt"] == told["startsAt"]


def test_a_restart_resolves_nothing_and_makes_no_second_identity(tmp_path: Path) -> None:
    file = tmp_path / "s.duckdb"
    with alertmanager() as fake, site(file, fake) as here:
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        (before,) = [one for heard in fake.heard for one in of_work(heard)] or told_of_work(fake)
    # It was stopped in order, and nothing was said of it.
    assert [one for heard in fake.heard for one in of_work(heard) if one["endsAt"] < before["endsAt"]] == []
    with alertmanager() as fake, site(file, fake, at_minute=9) as here:
        # Before anything is measured it tells what it knew.
        (after,) = told_of_work(fake)
        assert {name: after[name] for name in ("labels", "startsAt", "annotations")} == {
            name: before[name] for name in ("labels", "startsAt", "annotations")
        }
        # The cluster was not read again yet: what is measured of it says nothing.
        here.measured(9, {RED: 0.0}, seen=1)
        here.measured(20, {RED: 0.0}, seen=1)
        [row] = here.listed()
        assert (row["state"], row["because"]) == ("firing", "cluster east is not read in time")
        here.measured(21, {RED: 900.0})
        [row] = here.listed()
        assert (row["fired_at"], row["because"]) == (format_instant(START + MINUTE), "")


def test_a_breach_half_told_before_a_long_stop_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "s.duckdb"
    with site(file) as here:
        here.measured(0, {RED: 400.0})
    with site(file, at_minute=60) as here:
        here.measured(60, {RED: 400.0})
        assert here.states() == [("pending", "GpuQueueWaitTooLong", "red")]
        here.measured(61, {RED: 400.0})
        assert here.states() == [("firing", "GpuQueueWaitTooLong", "red")]


def test_so_it_does_when_nothing_was_measured_for_long_in_between() -> None:
    with site(None) as here:
        here.measured(0, {RED: 400.0})
        here.measured(60, {RED: 400.0})
        assert here.states() == [("pending", "GpuQueueWaitTooLong", "red")]
        here.measured(61, {RED: 400.0})
        assert here.states() == [("firing", "GpuQueueWaitTooLong", "red")]


def test_an_upgrade_that_knows_an_alert_no_more_ends_it_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "s.duckdb"
    with site(file) as here:
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        states = [
            {**row, "labels": str(row["labels"]).replace("GpuQueueWaitTooLong", "GpuOld")}
            for row in alerts.states(here.store)
        ]
        firings = alerts.firings(here.store, start_ms=START, end_ms=START + MINUTE * 2)
        old = [
            {**row, "labels": str(row["labels"]).replace("GpuQueueWaitTooLong", "GpuOld")} for row in firings
        ]
        alerts.keep(here.store, START + MINUTE, standing=states, began=old)
    with alertmanager() as fake, site(file, fake, at_minute=3) as here:
        (told,) = told_of_work(fake)
        assert (told["labels"]["alertname"], told["endsAt"]) == ("GpuOld", format_instant(START + 3 * MINUTE))
        here.measured(3, {})
        [row] = [row for row in here.listed() if row["alert"] == "GpuOld"]
        assert (row["state"], row["because"]) == ("resolved", "it is not declared any more")


def test_every_alertmanager_is_told_and_a_dead_one_holds_up_none(fake: FakeAlertmanager) -> None:
    dead = FakeAlertmanager(url="http://127.0.0.1:1")
    with alertmanager() as second, site(None, dead, fake, second) as here:
        here.measured(0, {RED: 400.0})
        fake.wait(), second.wait()
        here.measured(1, {RED: 460.0})
        assert told_of_work(fake) == told_of_work(second)


def test_one_that_does_not_answer_is_told_later_and_sounds_an_alarm(fake: FakeAlertmanager) -> None:
    fake.status = 503
    with site(None, fake, announces=False) as here:
        announcer = here.alerting._announcers[0]
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        for second in range(1, 8):
            here.clock.at_ms += second * 1_000
            announcer.send()
        (alarm,) = here.answers.alarms.sounding()
        assert alarm.startswith("alertmanager_unreachable: 127.0.0.1:")
        failures = {one.name: one.value for one in here.alerting.outside()}
        assert failures["alertmanager_failures"] > 2
        fake.status = 200
        here.clock.at_ms += MINUTE
        announcer.send()
        assert [one["labels"]["queue"] for one in of_work(fake.heard[-1])] == ["red"]
        assert here.answers.alarms.sounding() == {}
        taken = {one.name: one.value for one in here.alerting.outside()}
        assert taken["alertmanager_taken_timestamp_seconds"] == here.clock.at_ms / 1000


def test_one_that_refuses_is_no_delivery_and_sounds_an_alarm(fake: FakeAlertmanager) -> None:
    """As Alertmanager with TLS refuses plain HTTP, with 400."""
    fake.status = 400
    with site(None, fake, announces=False) as here:
        announcer = here.alerting._announcers[0]
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        announcer.send()
        (alarm,) = here.answers.alarms.sounding()
        assert alarm.startswith("alertmanager_refuses: 127.0.0.1:")
        assert [one.name for one in here.alerting.outside()] == ["alertmanager_failures"]
        fake.status = 200
        here.clock.at_ms += 2 * MINUTE
        announcer.send()
        assert [one["labels"]["queue"] for one in of_work(fake.heard[-1])] == ["red"]
        assert here.answers.alarms.sounding() == {}
        taken = {one.name: one.value for one in here.alerting.outside()}
        assert taken["alertmanager_taken_timestamp_seconds"] == here.clock.at_ms / 1000


def test_a_storm_of_breaches_makes_an_alert_per_queue_and_class() -> None:
    waits = {(f"q{number}", service_class): 4000.0 for number in range(50) for service_class in TARGETS}
    with site(None) as here:
        here.measured(0, waits)
        here.measured(1, waits)
        assert len(here.listed()) == len(waits)
        assert {row["state"] for row in here.listed()} == {"firing"}


def test_what_is_not_known_for_three_minutes_is_told_by_an_alarm_until_it_is_known_again() -> None:
    with site(None) as here:
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        sounding = {}
        for minute in range(2, 30):
            # The cluster was read until minute 1, which is noticed at minute 5.
            here.measured(minute, {RED: 0.0}, seen=1)
            sounding[minute] = list(here.answers.alarms.sounding())
        assert [minute for minute, alarms in sounding.items() if alarms] == [*range(8, 30)]
        assert sounding[8] == ["alerts_without_data"]
        assert here.states() == [("firing", "GpuQueueWaitTooLong", "red")]
        here.measured(30, {RED: 500.0})
        assert here.answers.alarms.sounding() == {}


def test_alerts_about_ourselves_do_not_wait_for_a_measurement() -> None:
    with site(None) as here:
        here.measured(0, {})
        own = []
        for minute in range(1, 7):
            here.clock.at_ms = START + minute * MINUTE
            here.alerting.watch()
            own = [row for row in here.answers.alerts(ReportQuestion()).rows if row["state"] == "firing"]
        assert {row["alert"] for row in own} == {"GpuledgerMeasurementsStale", "GpuledgerSourceStale"}
        assert {row["about"] for row in own} == {"ledger"}


def test_a_restart_without_a_measurement_ends_no_alert_about_ourselves(tmp_path: Path) -> None:
    def own(here: Site) -> set[tuple[str, str]]:
        rows = here.answers.alerts(ReportQuestion()).rows
        return {(row["alert"], row["labels"].get("cluster", "")) for row in rows if row["state"] == "firing"}

    def watched(here: Site, minutes: range) -> None:
        for minute in minutes:
            here.clock.at_ms = START + minute * MINUTE
            here.alerting.watch()

    file = tmp_path / "s.duckdb"
    names = {
        ("GpuledgerMeasurementsStale", "east"), ("GpuledgerSourceStale", "east"), ("GpuledgerAlarm", "")
    }  # fmt: skip
    with site(file) as here:
        here.answers.alarms.sound("disk_full", "no room")
        here.measured(0, {})
        watched(here, range(1, 10))
        assert own(here) == names
    with site(file, at_minute=10) as here:
        watched(here, range(10, 40))
        assert own(here) == names
        for minute in range(40, 50):
            here.measured(minute, {})
        assert own(here) == set()


def test_what_fired_is_listed_as_of_any_instant_and_the_watchdog_never() -> None:
    with site(None) as here:
        for minute, wait in enumerate([400, 460, 900, 0, 0, 0, 0, 0, 0, 0]):
            here.measured(minute, {RED: float(wait)})
        [row] = here.listed()
        figures = {name: row[name] for name in ("value", "worst_value", "threshold")}
        assert (row["state"], figures) == ("resolved", {"value": 460, "worst_value": 900, "threshold": 300})
        assert row["fired_at"] == format_instant(START + MINUTE)
        assert row["resolved_at"] == format_instant(START + 8 * MINUTE)
        assert here.listed(window=timedelta(seconds=30)) == []
        then = here.answers.alerts(ReportQuestion(as_of_ms=START + 5 * MINUTE))
        assert [(one["state"], one["alert"]) for one in then.rows] == [("firing", "GpuQueueWaitTooLong")]
        # Then something else may have been pending, and earlier nobody evaluated.
        assert (then.hints, here.answers.alerts(ReportQuestion()).hints) == ((BEFORE_THE_LAST,), ())
        assert here.answers.alerts(ReportQuestion(filters={"queue": ("blue",)})).rows == []


def test_what_resolved_long_ago_is_dropped_and_a_rebuild_keeps_the_rest(tmp_path: Path) -> None:
    with site(tmp_path / "s.duckdb") as here:
        for minute, wait in enumerate([400, 460, 0, 0, 0, 0, 0, 0]):
            here.measured(minute, {RED: float(wait)})
        here.measured(9, {("blue", "batch"): 4000.0})
        here.measured(10, {("blue", "batch"): 4000.0})
    rebuilt = Store.open(tmp_path / "new.duckdb")
    adoption.adopt(rebuilt, tmp_path / "s.duckdb", ["east"])
    end_ms = START + 11 * MINUTE
    assert len(alerts.firings(rebuilt, start_ms=START, end_ms=end_ms)) == 2
    assert alerts.evaluated_ms(rebuilt) == START + 10 * MINUTE
    retention.drop_before(rebuilt, [], START + 10 * MINUTE)
    [left] = alerts.firings(rebuilt, start_ms=START, end_ms=end_ms)
    assert '"blue"' in str(left["labels"])
    assert [row["state"] for row in alerts.states(rebuilt)][:1] == ["firing"]
    rebuilt.close()


def test_by_a_clock_that_stands_what_lasted_until_its_instant_fires() -> None:
    store = Store.open(None)
    busy_morning().write(store)
    clock = FixedClock(parse_instant("2026-03-02T11:44:00Z"))
    answers = Answers(store, Tenancy(), Policy(), clock)
    links = Links(dashboard_url="https://gpu.example")
    for _ in range(2):
        alerting = Alerting(
            answers, AlertingSettings(), links=links, every=timedelta(seconds=15), clock=SystemClock()
        )
        measured = [
            one
            for name in ("starvation_index_seconds", "wait_target_seconds")
            for one in answers.measure(REGISTRY[name], clock.at_ms)
        ]
        alerting.take(measured, clock.at_ms, {})
        rows = [row for row in answers.alerts(ReportQuestion()).rows if row["alert"] == "GpuQueueWaitTooLong"]
        # r-wait has waited since half past nine, b-wait since twenty to ten: the second time changes nothing.
        assert {(row["state"], row["fired_at"]) for row in rows} == {
            ("firing", format_instant(clock.at_ms - 15 * MINUTE))
        }
        assert {row["labels"]["queue"] for row in rows} == {"main", "side"}
    store.close()


def test_nobody_evaluated_yet_is_said() -> None:
    answers = Answers(Store.open(None), Tenancy(), Policy(), FixedClock(START))
    listing = answers.alerts(ReportQuestion())
    assert (listing.rows, len(listing.hints)) == ((), 1)
    assert "no alert was evaluated yet" in listing.hints[0]
