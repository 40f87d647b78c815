"""Numbers, instants, verdicts, figures: what needs no page."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from api.schemas import SCHEMAS
from collector.imports import records, sacct, sacct_json, swf
from dashboard.shared import charts, data, filters, frame, tables, verdict
from dashboard.shared import format as text
from dashboard.shared.causes import explained
from dashboard.shared.charts import Bar, WaitDot
from dashboard.shared.launch import streamlit_command
from dashboard.shared.tables import Cell, Column
from domain.errors import ForbiddenError, UnreachableError, UsageError
from domain.workload import ServiceClass, State
from tests.dashboard import fake_api
from tests.dashboard.fake_api import Scenario

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.4, "<1 s"),
        (59.6, "1 m 0 s"),
        (540, "9 m 0 s"),
        (600, "10 m"),
        (3599.9, "1 h 0 m"),
        (8040, "2 h 14 m"),
        (2 * 86_400, "2 d 0 h"),
    ],
)
def test_a_duration_is_two_units_and_never_a_raw_float(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


def test_a_lower_bound_and_a_small_sample_are_marked() -> None:
    assert text.bounded(8040, "seconds", lower_bound=True) == "≥ 2 h 14 m"
    assert text.bounded(8040, "seconds", few=True) == "2 h 14 m (few)"
    assert text.bounded(None, "seconds", lower_bound=True) == "–"


def test_zero_is_shown_as_zero_and_unknown_is_not() -> None:
    assert [text.quantity(value, "workloads") for value in (0.0, None)] == ["0", "–"]


def test_the_repeated_hour_in_autumn_has_two_labels() -> None:
    summer = datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2)))
    winter = datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=1)))
    assert [text.instant(at) for at in (summer, winter)] == [
        "2026-10-25 00:30:00 UTC",
        "2026-10-25 01:30:00 UTC",
    ]


def test_a_chart_is_given_utc_without_a_zone_so_that_no_browser_shifts_it() -> None:
    at = datetime(2026, 7, 2, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert charts.naive_utc(at) == datetime(2026, 7, 1, 22, 30)  # noqa: DTZ001 (that is the point)


def test_an_age_names_the_day_only_when_it_is_another_one() -> None:
    assert text.age(NOON - timedelta(seconds=12), NOON) == "as of 11:59:48 UTC, 12 s ago"
    assert text.age(NOON - timedelta(days=3), NOON) == "as of 2025-12-29 12:00:00 UTC, 3 d 0 h ago"


def test_a_link_keeps_only_filters_that_are_set_and_stays_relative() -> None:
    assert filters.link("jobs", team="a&b", queue="") == "jobs?team=a%26b"


def test_a_choice_offers_what_the_link_names_even_if_nobody_knows_it() -> None:
    assert filters.options(["b", "a"], "gone") == ["", "a", "b", "gone"]


def test_every_state_and_class_has_a_colour_of_its_own_and_a_meaning() -> None:
    assert list(charts.STATE_COLOURS) == [str(state) for state in State] == list(charts.STATE_MEANINGS)
    assert set(charts.CLASS_COLOURS) == {str(service_class) for service_class in ServiceClass}
    colours = [*charts.STATE_COLOURS.values(), *charts.CLASS_COLOURS.values()]
    assert len(set(colours)) == len(colours)


def test_the_timeline_keeps_the_order_of_lines_and_one_colour_per_state() -> None:
    hour = timedelta(hours=1)
    bars = [
        Bar(line="workload", state="queued", start_at=NOON, end_at=NOON + hour),
        Bar(line="1 · pod-0", state="running", start_at=NOON + hour, end_at=NOON + 2 * hour),
    ]
    figure = json.loads(charts.timeline(bars).to_json())
    colours = {trace["name"]: trace["marker"]["color"] for trace in figure["data"]}
    assert colours == {"queued": charts.STATE_COLOURS["queued"], "running": charts.STATE_COLOURS["running"]}
    assert figure["layout"]["xaxis"]["title"]["text"] == "time, UTC"


def test_a_lower_bound_is_drawn_apart_and_a_wait_of_zero_stays_on_the_axis() -> None:
    dots = [
        WaitDot(line="a", quantile="0.5", service_class="batch", seconds=0.0),
        WaitDot(line="a", quantile="0.99", service_class="batch", seconds=90.0, lower_bound=True),
    ]
    figure = json.loads(charts.wait_dots(dots, {"batch": 3600.0}).to_json())
    traces = {trace["name"]: trace for trace in figure["data"]}
    assert traces["p50"]["x"] == [1.0]
    assert traces["at least (lower bound)"]["customdata"] == ["p99: ≥ 1 m 30 s"]
    assert traces["target"]["x"] == [3600.0]


def test_depth_is_stacked_by_class_and_leaves_out_classes_without_work() -> None:
    figure = json.loads(charts.depth_bars({("q", "batch"): 3.0, ("q", "interactive"): 1.0}, "GPUs").to_json())
    assert [trace["name"] for trace in figure["data"]] == ["interactive", "batch"]


def test_names_from_the_cluster_cannot_become_markup() -> None:
    shown = tables.html(
        [Column(key="a", title="A")], [{"a": Cell(shown="<script>", href='x"y', note='"><b>')}], caption="t"
    )
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert 'x"y' not in shown


def judged(workload: dict[str, Any], target: float | None = 3600.0, **changes: object) -> str:
    return verdict.judge({**workload, **changes}, as_of=NOON, target_seconds=target).sentence


def test_the_verdict_of_a_finished_job_tells_wait_run_place_and_preemption() -> None:
    assert judged(fake_api.finished(NOON)) == (
        "Waited 9 m 0 s for placement, then ran 40 m on gpu-node-03; succeeded."
        " Preempted once, which cost 10 m of waiting again."
    )


def test_the_verdict_tells_evictions_for_other_reasons_beside_preemptions() -> None:
    sentence = judged(fake_api.finished(NOON), evictions=2)
    assert "Preempted once and evicted twice for other reasons, which cost" in sentence


def test_the_verdict_of_a_waiting_job_tells_the_target_and_the_rest() -> None:
    waiting = fake_api.waiting(NOON)
    assert judged(waiting) == (
        "Waiting for 2 h 14 m for quota in queue nlp-batch; target of batch is 60 m: past it by 1 h 14 m."
    )
    assert judged(waiting, 86_400.0).endswith("target of batch is 24 h: 21 h 46 m left.")
    assert judged(waiting, None) == "Waiting for 2 h 14 m for quota in queue nlp-batch."


def test_a_cancelled_job_that_never_ran_says_so() -> None:
    span = {**fake_api.waiting(NOON)["spans"][0], "end_at": fake_api.text(NOON)}
    sentence = judged(fake_api.waiting(NOON), state="ended", outcome="cancelled", spans=[span])
    assert sentence == "Never placed: it waited 2 h 14 m and ended cancelled."


def test_the_verdict_tells_the_current_wait_of_the_api_and_none_where_it_gives_none() -> None:
    again = fake_api.waiting(NOON) | {"first_placed_at": fake_api.text(NOON), "waiting_seconds": 660.0}
    assert judged(again).startswith("Waiting again for 11 m for quota")
    sentence = judged(fake_api.waiting(NOON), waiting_seconds=None)
    assert sentence == "Waiting for quota in queue nlp-batch."


def test_the_viewers_headers_are_those_that_the_settings_name() -> None:
    headers = {"X-User": "ada", "X-Forwarded-User": "eve", "X-Forwarded-Groups": "red", "Cookie": "c"}
    assert data.identity(headers, {"GPULEDGER_AUTH__HEADER__USER_HEADER": "X-User"}) == (
        ("X-User", "ada"),
        ("X-Forwarded-Groups", "red"),
    )


@pytest.mark.parametrize(
    ("because", "plainly"),
    [
        ("pods.jsonl.gz is cut off or broken: Compressed file ended", "the data ends in the middle"),
        ("pods.times: no receive time for the rest of the lines", "nobody noted when these lines came in"),
        ("JSON is malformed: invalid character (byte 0)", "this is not JSON"),
        ("Pod red/a has no metadata.uid: expected an object", "objects without a uid or a name"),
        ("time stamp 'now': expected RFC 3339", "a time stamp that is no time"),
        ("quota '-4': expected at least 0", "a quantity that is no number"),
        ("Expected `str`, got `int` - at `$.metadata.uid`", "a field has another type"),
        ("see the operator's page", "not understood"),
        ("something new", "not understood"),
    ],
)
def test_a_cause_of_setting_aside_is_told_in_plain_words_with_what_to_do(because: str, plainly: str) -> None:
    cause = explained(because)
    assert cause.plainly.startswith(plainly)
    assert cause.remedy


def test_a_cluster_is_named_when_nothing_of_it_was_read() -> None:
    def row(cluster: str, state: str, seen_at: str | None = None) -> dict[str, Any]:
        return {"cluster": cluster, "state": state, "seen_at": seen_at}

    partly = [row("a", "never_read"), row("a", "read", "2026-01-01T00:00:00Z")]
    assert frame.never_read([*partly, row("b", "not_installed"), row("c", "never_read")]) == ["c"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, ForbiddenError),
        (403, ForbiddenError),
        (404, data.NotFoundError),
        (400, UsageError),
        (502, UnreachableError),
    ],
)
def test_a_refusal_becomes_an_error_that_says_what_the_api_said(status: int, kind: type[Exception]) -> None:
    error = data.problem(status, '{"title": "No", "detail": "because of that"}', "http://x")
    assert isinstance(error, kind)
    assert "because of that" in str(error)
    assert isinstance(data.problem(status, "<html>", "http://x"), kind)


def test_the_command_asks_nothing_of_the_internet() -> None:
    command = streamlit_command("python", port=8501, address="0.0.0.0", base_url="/gpu/")  # noqa: S104
    for flag in (
        "--browser.gatherUsageStats=false",
        "--server.showEmailPrompt=false",
        "--browser.serverAddress=localhost",
        "--server.baseUrlPath=gpu",
    ):
        assert flag in command


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("metrics", "MetricList"),
        ("metrics/queue_wait_seconds", "MetricAnswer"),
        ("workloads", "WorkloadList"),
        ("workloads/uid-7", "WorkloadDetail"),
        ("teams", "TeamList"),
        ("sources", "SourceList"),
    ],
)
def test_the_fake_api_answers_in_the_shapes_of_the_real_one(path: str, schema: str) -> None:
    _, document = fake_api.answer(Scenario(), path, {})
    assert missing_keys(document, SCHEMAS[schema]) == []


def missing_keys(document: Any, schema: dict[str, Any]) -> list[str]:
    if "$ref" in schema:
        return missing_keys(document, SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if schema.get("type") == "array":
        return [key for item in document for key in missing_keys(item, schema["items"])]
    if schema.get("type") != "object":
        return []
    missing = [key for key in schema.get("required", ()) if key not in document]
    known = [key for key in schema.get("properties", {}) if key in document]
    return missing + [m for key in known for m in missing_keys(document[key], schema["properties"][key])]


@pytest.mark.parametrize("stamp", [sacct.NO_STAMP, sacct_json.NO_STAMP, swf.NO_STAMP, records.NO_STAMP])
def test_a_stamp_of_a_file_that_is_none_is_explained_with_column_format_and_zone(stamp: str) -> None:
    cause = explained(stamp)
    assert "a time that is none" in cause.plainly
    assert all(word in cause.remedy for word in ("column", "ISO 8601", "--zone"))


@pytest.mark.parametrize("cut", [sacct_json.ENDS_WITHIN, records.NO_END])
def test_a_file_that_was_cut_is_explained(cut: str) -> None:
    assert explained(cut).plainly == "the data ends in the middle"
