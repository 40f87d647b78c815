"""Reports: the same figures as the metrics, as table, markdown, CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.metrics import REGISTRY
from api.answers import Question, ReportQuestion
from api.reports import REPORTS
from api.reports.report import document
from api.reports.report import made as finished
from api.reports.sections import figure
from domain.errors import UsageError
from domain.policy import Policy
from domain.report import Column, Figure, Report, Section
from domain.tenant import Tenancy
from domain.window import FixedClock
from service import report_text
from service.answers import Answers
from service.cli import run
from store.embedded import Store
from tests.build import at, busy_morning
from tests.quota_site import END as WEEK_END
from tests.quota_site import site
from tests.service.test_chargeback import FIRST
from tests.service.test_chargeback_quota import lent_out

Ask = Callable[..., str]


def _answers(store: Store) -> Answers:
    return Answers(store, Tenancy(), Policy(), FixedClock(at(180)))


@pytest.fixture
def morning() -> Iterator[Answers]:
    store = Store.open(None)
    busy_morning().write(store)
    yield _answers(store)
    store.close()


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    store = Store.open(tmp_path / "gpuledger.duckdb")
    busy_morning().write(store)
    store.close()

    def asked(*words: str) -> str:
        capsys.readouterr()
        assert run([*words, "--data-dir", str(tmp_path)]) == 0
        return capsys.readouterr().out

    return asked


def made(*rows: dict[str, Any], **section: Any) -> dict[str, Any]:
    columns = (
        Column(key="team", title="Team"),
        Column(key="held", title="Held", unit="gpu_hours", metric="held_gpu_hours"),
        Column(key="ratio", title="Wastage", unit="ratio", metric="wastage_ratio"),
    )
    return document(
        Report(
            name="waste",
            title="Waste",
            as_of_ms=at(0),
            window=None,
            lead=("red wastes most.",),
            sections=(Section(key="teams", title="By team", columns=columns, rows=rows, **section),),
        )
    )


def test_every_report_is_listed_with_the_question_that_it_answers(ask: Ask) -> None:
    lines = ask("report").splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(REPORTS)
    assert all(report.question.endswith("?") for report in REPORTS.values())


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_a_report_is_written_in_every_format(form: str, ask: Ask) -> None:
    written = ask("report", "waits", "-o", form)
    if form == "json":
        assert json.loads(written)["report"] == "waits"
    elif form == "csv":
        assert {row["report"] for row in csv.DictReader(io.StringIO(written))} == {"waits"}
    else:
        assert "Waiting as of 2026-03-02" in written.splitlines()[0]


class HastyClock:
    """A minute later each time that somebody looks."""

    def __init__(self) -> None:
        self._looks = 0

    def now_ms(self) -> int:
        self._looks += 1
        return at(180 + self._looks)


@pytest.mark.parametrize("name", list(REPORTS))
def test_all_figures_of_a_report_are_of_one_instant(name: str, morning: Answers) -> None:
    hasty = replace(morning, clock=HastyClock())
    later = replace(morning, clock=FixedClock(at(500)))
    asked = ReportQuestion(as_of_ms=at(181))
    assert finished(REPORTS[name], hasty, ReportQuestion()) == finished(REPORTS[name], later, asked)


@pytest.mark.parametrize("name", list(REPORTS))
def test_a_figure_of_a_report_is_that_of_its_metric(name: str, morning: Answers) -> None:
    told = REPORTS[name].build(morning, ReportQuestion())
    assert told.lead
    for section in told.sections:
        by = tuple(column.key for column in section.columns if not column.unit)
        for column in section.columns:
            if not column.metric or not set(by) <= set(REGISTRY[column.metric].dimensions):
                continue
            asked = morning.metric(column.metric, Question(window=section.window or told.window, by=by))
            known = [figure(sample) for sample in asked.rows]
            cells = [row[column.key] for row in section.rows if column.key in row]
            assert [cell for cell in cells if cell not in known] == [], (section.key, column.key)


@pytest.mark.parametrize(
    "name", [name for name, report in REPORTS.items() if report.window and name != "capacity"]
)
def test_a_report_is_about_the_window_that_was_asked(name: str, morning: Answers) -> None:
    told = REPORTS[name].build(morning, ReportQuestion(window=timedelta(hours=2)))
    assert told.window == timedelta(hours=2)


def test_the_sentence_about_waste_is_about_the_window_of_its_tables() -> None:
    # Red lost 30 % of 1,000 GPU-hours, all of it in the first half of the week.
    store = site().store
    answers = Answers(store, Tenancy(), Policy(), FixedClock(WEEK_END))
    leads = {
        window: REPORTS["waste"].build(answers, ReportQuestion(window=window)).lead
        for window in (None, timedelta(days=7), timedelta(days=6), timedelta(days=1))
    }
    store.close()
    assert leads[None] == leads[timedelta(days=7)] == ("red wasted most: 300.0 GPU-hours.",)
    # One day of the 2.1 in which red lost all that it held lies before the last six.
    assert leads[timedelta(days=6)] == ("red wasted most: 157.1 GPU-hours.",)
    assert leads[timedelta(days=1)] == ("No team wasted GPU-time in the window.",)


def test_a_report_that_cannot_take_the_window_says_which_one_it_can(morning: Answers) -> None:
    asked = ReportQuestion(window=timedelta(hours=2))
    told = r"report capacity, window 2h: it judges the last 7 days.*leave the window out, or ask for 7d"
    with pytest.raises(UsageError, match=told):
        finished(REPORTS["capacity"], morning, asked)
    with pytest.raises(UsageError, match=r"report fragmentation, window 2h: its figures are those of an"):
        finished(REPORTS["fragmentation"], morning, asked)
    week = finished(REPORTS["capacity"], morning, ReportQuestion(window=timedelta(days=7)))
    assert week["window"] == "1w"


def test_a_report_says_how_much_of_its_window_was_observed(morning: Answers) -> None:
    # It was read from 9:00 on, and is asked at 12:00.
    half = finished(REPORTS["waits"], morning, ReportQuestion(window=timedelta(hours=6)))
    whole = finished(REPORTS["waits"], morning, ReportQuestion(window=timedelta(hours=3)))
    assert (half["coverage"], whole["coverage"]) == (0.5, 1.0)
    sentence = "Not complete: 50 % of the window was observed."
    assert half["lead"][-1] == sentence
    assert sentence in report_text.plain(half)
    assert sentence in report_text.markdown(half)
    assert not any("observed" in each for each in whole["lead"])
    assert {row["coverage"] for row in csv.DictReader(io.StringIO(report_text.to_csv(half)))} == {"0.5"}


def test_a_report_for_a_team_that_does_not_exist_says_so_first(morning: Answers) -> None:
    told = finished(REPORTS["waits"], morning, ReportQuestion(filters={"team": ("bleu",)}))
    assert told["lead"][0] == "No team 'bleu' is known; did you mean 'blue'?"


def test_the_report_of_fairness_says_who_shares_a_quota_and_whether_loans_meet() -> None:
    store = lent_out()
    answers = Answers(store, Tenancy(), Policy(), FixedClock(FIRST + 3_600_000))
    found = REPORTS["fairness"].build(answers, ReportQuestion())
    store.close()
    sections = {section.key: section for section in found.sections}
    teams = {row["queue"]: row["team"] for row in sections["holders"].rows}
    assert teams == {"main": "red", "common": "shared by blue, green", "new": "(no team yet)", "none": "grey"}
    [pool] = sections["pools"].rows
    loans = [pool[name] for name in ("lent_gpus", "borrowed_gpus", "from_unassigned_gpus")]
    assert loans == [Figure(value=2), Figure(value=3), Figure(value=1)]


@pytest.mark.parametrize("name", list(REPORTS))
def test_a_report_of_an_empty_store_still_reads_well(name: str) -> None:
    store = Store.open(None)
    told = document(REPORTS[name].build(_answers(store), ReportQuestion()))
    store.close()
    assert all(sentence.strip().endswith((".", "?")) for sentence in told["lead"])
    assert report_text.plain(told)
    assert report_text.markdown(told)


def test_a_wrong_name_or_format_says_which_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "wait"]) == 2
    assert "did you mean 'waits'?" in capsys.readouterr().err
    assert run(["report", "waits", "-o", "markdwn"]) == 2
    assert "did you mean 'markdown'?" in capsys.readouterr().err


def test_limits_and_reasons_are_never_dropped() -> None:
    told = made(
        {
            "team": "red",
            "held": Figure(value=1234.56, lower_bound=True, few=True),
            "ratio": Figure(value=None, undefined_because="no GPU was held"),
        },
        {"team": "blue", "ratio": Figure(value=0.151)},
    )
    for text in (report_text.plain(told), report_text.markdown(told)):
        assert ">= 1,234.6 *" in text
        assert "unknown (1)" in text
        assert "\n(1) no GPU was held" in text
        assert "15.1%" in text
    rows = list(csv.DictReader(io.StringIO(report_text.to_csv(told))))
    assert [(r["row"], r["column"], r["value"], r["lower_bound"], r["undefined_because"]) for r in rows] == [
        ("red", "held", "1234.56", "True", ""),
        ("red", "ratio", "", "False", "no GPU was held"),
        ("blue", "ratio", "0.151", "False", ""),
    ]


def test_names_cannot_break_the_table_or_become_a_formula() -> None:
    told = made({"team": "=cmd|' /C calc'!A0", "held": Figure(value=1.0)})
    assert "| =cmd\\|' /C calc'!A0 |" in report_text.markdown(told)
    row = next(csv.DictReader(io.StringIO(report_text.to_csv(told))))
    assert row["row"].startswith("'=cmd")


def test_markdown_links_each_table_to_its_page_at_the_same_instant() -> None:
    told = made({"team": "red"}, page="waste") | {"window": "1w"}
    text = report_text.markdown(told, dashboard_url="https://gpu.example.org/ledger/")
    address = "https://gpu.example.org/ledger/waste?as_of=2026-03-02T09%3A00%3A00.000Z&window=7d"
    assert f"[These figures on their page]({address})" in text
