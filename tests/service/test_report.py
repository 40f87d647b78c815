"""Reports: the same figures as the metrics, as table, markdown, CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.metrics import REGISTRY
from api.answers import Question, ReportQuestion
from api.reports import REPORTS
from api.reports.report import document
from api.reports.report import made as finished
from api.reports.sections import NONE, figure
from domain.errors import UsageError
from domain.policy import Policy
from domain.report import Column, Figure, Report, Section
from domain.tenant import Tenancy
from domain.window import FixedClock
from service import report_text
from service.answers import Answers
from service.cli import run
from store.derived import Replacement
from store.embedded import Store
from store.gpu_samples import Read
from tests.build import at, busy_morning, filled
from tests.quota_site import END as WEEK_END
from tests.quota_site import MONDAY, WEEK_MS, piece, site
from tests.service.test_activity import COLUMNS
from tests.service.test_activity import sample as gpu_sample
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


# A world in which each report has something to tell, and when it is asked.
WORLDS: dict[str, Callable[[], tuple[Store, int]]] = {
    "capacity": lambda: (site().store, WEEK_END),
    "fairness": lambda: (lent_out(), FIRST + 3_600_000),
    "fragmentation": lambda: (lent_out(), FIRST + 3_600_000),
    "nodes": lambda: (site().store, WEEK_END),
    "waste": lambda: (site().store, WEEK_END),
}


@pytest.mark.parametrize("name", list(REPORTS))
def test_a_figure_of_a_report_is_that_of_its_metric(name: str) -> None:
    store, as_of_ms = WORLDS.get(name, lambda: (filled(), at(180)))()
    policy = Policy(gpu_hour_budgets={team: {"month": 100.0} for team in ("red", "blue", "nlp")})
    answers = Answers(store, Tenancy(), policy, FixedClock(as_of_ms))
    told = REPORTS[name].build(answers, ReportQuestion())
    assert told.lead
    compared = 0
    for section in told.sections:
        # Who shares a quota is told of a holder's row, and does not make it.
        told_only = {"team"} if section.key == "holders" else set[str]()
        by = tuple(
            column.key for column in section.columns if not column.unit and column.key not in told_only
        )
        for column in section.columns:
            if not column.metric:
                continue
            metric = REGISTRY[column.metric]
            if not set(by) <= {*metric.dimensions, *metric.extra_labels}:
                continue
            of_rows = tuple(name for name in by if name in metric.dimensions)
            asked = answers.metric(column.metric, Question(window=section.window or told.window, by=of_rows))
            for row in section.rows:
                labels = {key: "" if row[key] == NONE else row[key] for key in by}
                # A percentile's column is of one of the samples with these labels.
                known = [figure(sample) for sample in asked.rows if labels.items() <= sample.labels.items()]
                cell = row.get(column.key)
                assert cell in known or (cell is None and not known), (section.key, column.key, labels)
                compared += isinstance(cell, Figure) and bool(cell.value)
    store.close()
    assert compared > 0


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


def test_a_report_keeps_to_the_filters_that_were_asked() -> None:
    store = site().store
    answers = Answers(store, Tenancy(), Policy(), FixedClock(WEEK_END))
    only = ReportQuestion(filters={"team": ("red",)})
    waste, fairness = (REPORTS[name].build(answers, only) for name in ("waste", "fairness"))
    everybody = REPORTS["fairness"].build(answers, ReportQuestion())
    store.close()
    teams = {row["team"] for section in waste.sections for row in section.rows if "team" in row}
    assert teams == {"red"}
    found = {section.key: section.rows for section in fairness.sections}
    assert {row["team"] for row in found["teams"]} == {"red"}
    # The figures of a pool are the same for everybody in it.
    [pools] = [section.rows for section in everybody.sections if section.key == "pools"]
    assert found["pools"] == pools != ()


def test_columns_of_one_metric_are_told_apart_by_their_extra_label(morning: Answers) -> None:
    told = REPORTS["waits"].build(morning, ReportQuestion())
    [classes] = [section for section in told.sections if section.key == "classes"]
    asked = morning.metric("queue_wait_seconds", Question(window=told.window, by=("service_class",)))
    waits = {
        (sample.labels["service_class"], sample.labels["quantile"]): figure(sample)
        for sample in asked.rows
        if sample.labels.get("estimator") == "censored"
    }
    cells = {
        (str(row["service_class"]), name): row[f"queue_wait_seconds_{name}_censored"]
        for row in classes.rows
        for name in ("0.5", "0.99")
    }
    assert cells == {key: waits[key] for key in cells}
    assert cells["batch", "0.5"] != cells["batch", "0.99"]


def test_where_some_of_the_activity_is_unknown_the_sentence_about_waste_says_at_least() -> None:
    week = site()
    half, third = MONDAY + WEEK_MS // 2, MONDAY + WEEK_MS // 3
    pieces = [
        piece("w-red", "idle", MONDAY, third, 1000.0), piece("w-red", "unknown", third, half, 1000.0),
        piece("w-red", "useful", half, WEEK_END, 1000.0),
    ]  # fmt: skip
    week.store.replace("c", [Replacement(table="waste_piece", rows=pieces, keys=("workload_uid", {"w-red"}))])
    answers = Answers(week.store, Tenancy(), Policy(), FixedClock(WEEK_END))
    lead = REPORTS["waste"].build(answers, ReportQuestion()).lead
    week.store.close()
    assert lead == ("red wasted most: at least 333.3 GPU-hours.",)


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


def test_what_a_report_on_samples_covers_is_what_their_sources_told_of_too() -> None:
    # Pods were read from 9:00 to 12:00; of the node with GPUs a source told in the first half of it.
    books = busy_morning()
    books.add(
        "node_span", node="n1", gpu_model="A100", start_ms=at(0), end_ms=None, schedulable=True,
        capacity_micro_gpus=8_000_000, allocatable_micro_gpus=8_000_000,
    )  # fmt: skip
    store = filled([books])
    of_node = gpu_sample(0, 0.5) | {"node": "n1", "step_ms": 20 * 60_000}
    # The last sample stands for half an hour.
    seen = pl.DataFrame([of_node | {"at_ms": at(minute)} for minute in (0, 20, 40, 60)], schema=COLUMNS)
    store.append_samples("north", "exporter/n1", seen, Read(until_ms=at(90), seen_ms=at(90)))
    asked = ReportQuestion(window=timedelta(hours=3))
    on_pods, on_samples = (finished(REPORTS[name], _answers(store), asked) for name in ("waits", "waste"))
    store.close()
    assert (on_pods["coverage"], on_samples["coverage"]) == (1.0, 0.5)
    assert on_samples["lead"][-1] == "Not complete: 50 % of the window was observed."


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
    told = made({"team": "red", "held": Figure(value=1.0)}, page="waste") | {"window": "1w"}
    url, only = "https://gpu.example.org/ledger/", {"service_class": ("batch",)}
    told = report_text.addressed(told, dashboard_url=url, filters=only)
    text = report_text.markdown(told)
    asked = "class=batch&as_of=2026-03-02T09%3A00%3A00.000Z&window=7d&table=waste.teams"
    address = f"{url}waste?{asked}#waste-teams"
    assert f"[These figures on their page]({address})" in text
    assert told["sections"][0]["address"] == address
    assert {row["address"] for row in csv.DictReader(io.StringIO(report_text.to_csv(told)))} == {address}


def test_beside_figures_of_the_window_those_of_the_instant_say_so(morning: Answers) -> None:
    told = REPORTS["policy"].build(morning, ReportQuestion(window=timedelta(days=7)))
    [cap] = [section for section in told.sections if section.key == "backpressure"]
    assert cap.window == timedelta(days=7)
    titles = {column.metric: column.title for column in cap.columns if column.metric}
    assert titles["queue_depth_workloads"].endswith(", now")
    assert not titles["queue_cap_seconds"].endswith("now")


def test_a_refusal_on_the_command_line_names_its_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store.open(tmp_path / "gpuledger.duckdb").close()
    assert run(["report", "fragmentation", "--window", "7d", "--data-dir", str(tmp_path)]) == 2
    assert "choose the instant with --as-of" in capsys.readouterr().err
