"""Weekly reports: each week that is over has its file once, however late somebody looks."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from domain.calendar import billing_zone, finished_week
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from service.weekly import WeeklyReports
from store.embedded import Store
from tests.build import NINE, busy_morning

MakeReports = Callable[..., WeeklyReports]


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[MakeReports]:
    store = Store.open(None)
    busy_morning().write(store)  # on a Monday: 2026-03-02

    def make(now: str, *, first_ms: int | None = NINE, weeks: int = 8, zone: str = "UTC") -> WeeklyReports:
        clock = FixedClock(parse_instant(now))
        return WeeklyReports(
            answers=Answers(store, Tenancy(), Policy(), clock),
            clock=clock,
            folder=tmp_path / "reports",
            first_ms=lambda: first_ms,
            dashboard_url="https://gpu.example.org",
            zone=billing_zone(zone),
            report="waits",
            weeks=weeks,
        )

    yield make
    store.close()


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "reports").glob("*"))


def test_a_week_that_is_not_over_has_no_report(reports: MakeReports, tmp_path: Path) -> None:
    assert reports("2026-03-08T23:59:59Z").write_due() == 0
    assert names(tmp_path) == []


def test_a_week_that_is_over_is_written_once_in_three_formats(reports: MakeReports, tmp_path: Path) -> None:
    due = reports("2026-03-09T00:00:00Z")
    assert (due.write_due(), due.write_due()) == (1, 0)
    assert names(tmp_path) == [f"waits-2026-W10.{suffix}" for suffix in ("csv", "json", "md")]
    text = (tmp_path / "reports/waits-2026-W10.md").read_text()
    assert text.startswith("# Waiting as of 2026-03-09 00:00 UTC, last 1w\n")
    assert "https://gpu.example.org/queues?as_of=2026-03-09T00%3A00%3A00.000Z&window=7d" in text
    # It was read on Monday from 9:00 to 12:00, and three minutes later was stale.
    assert "Not complete: 1 % of the window was observed." in text
    told = json.loads((tmp_path / "reports/waits-2026-W10.json").read_text())
    with (tmp_path / "reports/waits-2026-W10.csv").open() as file:
        figures = list(csv.DictReader(file))
    assert told["as_of"] == figures[0]["as_of"] == "2026-03-09T00:00:00.000Z"
    # What lies there is enough to find its figures on the page.
    assert told["sections"][0]["address"] == figures[0]["address"] != ""


def test_weeks_that_nobody_ran_are_caught_up_on(reports: MakeReports, tmp_path: Path) -> None:
    assert reports("2026-03-31T12:00:00Z").write_due() == 4
    assert names(tmp_path)[::3] == [f"waits-2026-W{week}.csv" for week in (10, 11, 12, 13)]
    assert reports("2026-06-30T12:00:00Z", weeks=2).write_due() == 2


def test_a_year_ends_in_its_own_last_week(reports: MakeReports, tmp_path: Path) -> None:
    assert reports("2027-01-06T00:00:00Z", weeks=2).write_due() == 2
    assert names(tmp_path)[::3] == ["waits-2026-W52.csv", "waits-2026-W53.csv"]


def test_of_an_empty_store_nothing_is_written(reports: MakeReports, tmp_path: Path) -> None:
    assert reports("2026-03-31T12:00:00Z", first_ms=None).write_due() == 0


def test_half_a_week_of_files_is_written_again(reports: MakeReports, tmp_path: Path) -> None:
    assert reports("2026-03-09T00:00:00Z").write_due() == 1
    (tmp_path / "reports/waits-2026-W10.md").unlink()
    assert reports("2026-03-09T00:00:00Z").write_due() == 1
    assert len(names(tmp_path)) == 3


def test_a_report_that_is_written_late_is_as_of_the_end_of_its_week(
    reports: MakeReports, tmp_path: Path
) -> None:
    assert reports("2026-03-18T12:00:00Z").write_due() == 2
    for week, end in ((10, "2026-03-09"), (11, "2026-03-16")):
        told = json.loads((tmp_path / f"reports/waits-2026-W{week}.json").read_text())
        assert (told["as_of"], told["window"]) == (f"{end}T00:00:00.000Z", "1w")


def test_a_week_is_that_of_the_billing_zone_as_quota_proposals_have_it(
    reports: MakeReports, tmp_path: Path
) -> None:
    # Sunday, 23:00 UTC: in Berlin it is Monday, and the week is over.
    assert reports("2026-03-08T22:59:59Z", zone="Europe/Berlin").write_due() == 0
    now = "2026-03-08T23:00:00Z"
    assert reports(now, zone="Europe/Berlin").write_due() == 1
    told = json.loads((tmp_path / "reports/waits-2026-W10.json").read_text())
    assert told["as_of"] == now.replace("Z", ".000Z")
    assert parse_instant(now) == finished_week(parse_instant(now), billing_zone("Europe/Berlin")).end_ms


def test_a_week_of_a_clock_change_is_reported_whole(reports: MakeReports, tmp_path: Path) -> None:
    assert reports("2026-03-30T12:00:00Z", zone="Europe/Berlin", weeks=1).write_due() == 1
    told = json.loads((tmp_path / "reports/waits-2026-W13.json").read_text())
    assert (told["as_of"], told["window"]) == ("2026-03-29T22:00:00.000Z", "167h")
