"""What becomes of an alert where an Alertmanager, or our own store, does not take it."""

from pathlib import Path

import pytest

from domain.errors import StoreError
from domain.window import format_instant
from service.answers import Answers
from store import alerts
from tests.alerts.fake_alertmanager import alertmanager
from tests.service.test_alerting import MINUTE, RED, START, of_work, site


# One that refuses some of what it is told does not say which.
@pytest.mark.parametrize("status", [503, 400])
def test_an_end_that_an_alertmanager_did_not_take_is_told_it_after_days(status: int) -> None:
    with alertmanager() as fake, site(None, fake, announces=False) as here:
        announcer = here.alerting._announcers[0]
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        announcer.send()
        fake.status = status
        for minute in range(2, 30):
            here.measured(minute, {RED: 0.0})
            announcer.send()
        assert here.answers.alarms.sounding()
        fake.status = 200
        here.measured(48 * 60, {RED: 0.0})
        announcer.send()
        [ended] = [one for one in of_work(fake.heard[-1]) if one["labels"].get("queue") == "red"]
        assert ended["endsAt"] == format_instant(START + 7 * MINUTE)
        # No Alertmanager can hold it any more: it is forgotten.
        here.measured(4 * 24 * 60, {RED: 0.0})
        assert [one for one in here.alerting.told() if "queue" in one.labels] == []


def test_an_alert_says_how_much_of_what_it_rests_on_was_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def half(_: Answers, *what: object) -> float:
        asked.append(what)
        return 0.5

    monkeypatch.setattr(Answers, "coverage_of", half)
    with site(None) as here:
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        [row] = here.listed()
    assert (row["state"], row["coverage"]) == ("firing", 0.5)
    assert asked == [("starvation_index_seconds", "east", START + MINUTE)]


def test_what_the_store_did_not_take_is_told_all_the_same_and_kept_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        message = "no room on the disk"
        raise StoreError(message)

    with site(None) as here:
        here.measured(0, {RED: 400.0})
        with monkeypatch.context() as patched:
            patched.setattr(alerts, "keep", full)
            here.measured(1, {RED: 460.0})
        assert [one.labels["queue"] for one in here.alerting.told() if "queue" in one.labels] == ["red"]
        assert here.states() == [("pending", "GpuQueueWaitTooLong", "red")]
        here.measured(2, {RED: 500.0})
        [row] = here.listed()
        assert (row["state"], row["fired_at"]) == ("firing", format_instant(START + MINUTE))


def test_an_end_that_was_not_told_before_a_restart_is_told_after_it_with_its_instant(tmp_path: Path) -> None:
    file = tmp_path / "s.duckdb"
    with alertmanager() as fake:
        with site(file, fake, announces=False) as here:
            here.measured(0, {RED: 400.0})
            here.measured(1, {RED: 460.0})
            here.alerting._announcers[0].send()
            fake.status = 503
            for minute in range(2, 9):
                here.measured(minute, {RED: 0.0})
        fake.status = 200
        with site(file, fake, at_minute=9, announces=False) as here:
            # It was pending in between, which takes nothing back.
            here.measured(9, {RED: 400.0})
            here.measured(10, {RED: 0.0})
            here.alerting._announcers[0].send()
        [ended] = [one for one in of_work(fake.heard[-1]) if one["labels"].get("queue") == "red"]
        assert ended["endsAt"] == format_instant(START + 7 * MINUTE)
