"""The weekly report of waste, as it is written where nothing else is set; and what does not stop it."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.reports.report import made
from domain.errors import DataError
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from service.weekly import WeeklyReports
from tests.quota_site import END, MONDAY, WEEK_MS, site

URL = "https://gpu.example.org"
Make = Callable[..., WeeklyReports]


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[Make]:
    store = site().store

    def make(now_ms: int, *, first_ms: int = MONDAY) -> WeeklyReports:
        clock = FixedClock(now_ms)
        return WeeklyReports(
            answers=Answers(store, Tenancy(), Policy(), clock), clock=clock, folder=tmp_path,
            first_ms=lambda: first_ms, dashboard_url=URL,
        )  # fmt: skip

    yield make
    store.close()


def test_the_weeks_waste_is_told_with_links_to_its_page_at_the_weeks_end(
    reports: Make, tmp_path: Path
) -> None:
    assert reports(END).write_due() == 1
    text = (tmp_path / "waste-2026-W10.md").read_text()
    assert text.startswith("# Waste as of 2026-03-09 00:00 UTC, last 1w\n")
    assert "red wasted most: 300.0 GPU-hours." in text
    told = json.loads((tmp_path / "waste-2026-W10.json").read_text())
    with (tmp_path / "waste-2026-W10.csv").open() as file:
        figures = list(csv.DictReader(file))
    [red] = [row for row in told["sections"][0]["rows"] if row["team"] == "red"]
    in_csv = {row["value"] for row in figures if (row["row"], row["column"]) == ("red", "wasted_gpu_hours")}
    assert red["wasted_gpu_hours"]["value"] == pytest.approx(300, abs=0.01)
    assert str(red["wasted_gpu_hours"]["value"]) in in_csv
    links = [line for line in text.splitlines() if line.startswith("[These figures on their page](")]
    at_end = f"({URL}/waste?as_of=2026-03-09T00%3A00%3A00.000Z&window=7d"
    assert len(links) == len(told["sections"]) > 1
    assert all(at_end in link for link in links)


def test_a_week_that_cannot_be_written_stops_no_other(
    reports: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*asked: Any) -> Any:
        if asked[-1].as_of_ms == END + WEEK_MS:
            message = "a row that cannot be read"
            raise DataError(message)
        return made(*asked)

    monkeypatch.setattr("service.weekly.made", failing)
    assert reports(END + 2 * WEEK_MS).write_due() == 2
    assert sorted(path.name for path in tmp_path.glob("*.md")) == ["waste-2026-W10.md", "waste-2026-W12.md"]
    assert "weekly report failed" in caplog.text
    # Once it can be, it is.
    monkeypatch.setattr("service.weekly.made", made)
    assert reports(END + 2 * WEEK_MS).write_due() == 1


def test_a_week_that_ended_as_the_first_thing_was_known_has_no_report(reports: Make, tmp_path: Path) -> None:
    assert reports(END + 1, first_ms=END).write_due() == 0
    assert not list(tmp_path.iterdir())
    assert reports(END + 1, first_ms=END - 1).write_due() == 1
