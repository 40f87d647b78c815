"""Each page on a filled, an empty, a stale and a failing API."""

import json
import os
import re
from datetime import timedelta

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shared import data, frame
from dashboard.shared import format as text
from dashboard.shared.launch import APP
from tests.dashboard import fake_api, fake_why
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario

PAGES = ("home", "queues", "jobs", "job", "sources", "definitions")
WITH_DATA = tuple(page for page in PAGES if page != "definitions")
JOB = {"uid": "uid-7"}


def words(app: AppTest) -> str:
    """Everything that a reader sees as text."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")
    found = [getattr(element, "value", "") for kind in kinds for element in app.get(kind)]
    found += [element.proto.body for element in app.get("html")]
    found += [f"{tile.label} {tile.value} {tile.delta}" for tile in app.metric]
    return "\n".join(str(text) for text in found)


def params(page: str) -> dict[str, str]:
    return JOB if page == "job" else {}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_data_and_no_trouble(page: str, open_page: Open) -> None:
    app = open_page(page, Scenario(), **params(page))
    assert not app.exception
    assert not [warning.value for warning in app.warning]
    expected = {
        "home": [
            "≥ 9 m 0 s",
            "at least 4 m 0 s past target",
            "asking 71 GPUs",
            "nlp/train-llm-0",
            "Past target: interactive",
        ],
        "queues": ["nlp-interactive", "≥ 9 m 0 s", "1 h 21 m (few)", "2 h 14 m", "60 m"],
        "jobs": ["nlp/train-llm-0", "1 to 25 of 60 workloads", "job?uid=uid-0"],
        "job": [
            "Waited 9 m 0 s for placement, then ran 40 m on gpu-node-03; succeeded",
            "Preempted once",
            'job?uid=uid-0"',
            "nlp/train-llm-0",
        ],
        "sources": ["ClusterQueue", "410 Gone", "read in time", "is negative", "kubectl edit"],
        "definitions": ["What queue wait means", "queue_wait_seconds", "kept back by its owner"],
    }[page]
    shown = words(app)
    assert [text for text in expected if text not in shown] == []
    if page in WITH_DATA:
        # As of 22:41:03 UTC, 12 s ago; or more, where the page took its time.
        assert re.search(r"as of [-0-9: ]+ UTC, \d+ (s|m \d+ s) ago", shown)


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_store_is_told_in_a_sentence(page: str, open_page: Open) -> None:
    app = open_page(page, Scenario(name="empty"), **params(page))
    assert not app.exception
    assert not app.error
    expected = {
        "home": "Nobody waits for GPUs.",
        "queues": "No workload waited here, last 24 h.",
        "jobs": "No workload matches these filters.",
        "job": "there is none",
        "sources": "No source has been read yet.",
        "definitions": "What queue wait means",
    }[page]
    assert expected in words(app)


@pytest.mark.parametrize("page", PAGES)
def test_stale_sources_are_told_on_every_page(page: str, open_page: Open) -> None:
    app = open_page(page, Scenario(name="stale", age=timedelta(hours=2)), **params(page))
    assert not app.exception
    assert any("Stale data." in warning.value for warning in app.warning)
    assert any("Not live." in info.value and "2 h 0 m ago" in info.value for info in app.info)


def test_a_page_says_how_much_of_the_window_was_observed(open_page: Open) -> None:
    def captions(scenario: str) -> str:
        return " ".join(caption.value for caption in open_page("queues", Scenario(name=scenario)).caption)

    assert "last 24 h · " in captions("stale")
    assert "97 % of the window was observed" in captions("stale")
    assert "observed" not in captions("")


def test_a_queue_that_does_not_exist_is_told_once(open_page: Open) -> None:
    app = open_page("queues", Scenario(), queue="nowhere")
    assert [warning.value for warning in app.warning] == ["No queue 'nowhere' is known"]


@pytest.mark.parametrize("page", PAGES)
def test_a_failing_api_is_told_with_what_it_said(page: str, open_page: Open) -> None:
    app = open_page(page, Scenario(status=500), **params(page))
    assert not app.exception
    assert any("the store is closed" in error.value for error in app.error)


@pytest.mark.parametrize("page", PAGES)
def test_a_viewer_without_permission_is_told_whom_to_ask(page: str, open_page: Open) -> None:
    app = open_page(page, Scenario(status=403), **params(page))
    assert not app.exception
    assert any("Ask an admin" in warning.value for warning in app.warning)


def test_an_api_that_is_down_is_told_with_the_command_that_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    st.cache_data.clear()
    monkeypatch.setitem(os.environ, data.API_URL, "http://127.0.0.1:9")
    app = AppTest.from_file(str(APP), default_timeout=60).run()
    assert not app.exception
    assert any("gpuledger serve" in error.value for error in app.error)


def test_a_job_that_waits_past_its_target_says_by_how_much(open_page: Open) -> None:
    app = open_page("job", Scenario(), uid="uid-0")
    (verdict,) = [error.value for error in app.error]
    assert "for quota in queue nlp-batch; target of batch is 60 m: past it by 1 h 14 m." in verdict.replace(
        "\\", ""
    )


def test_an_unknown_job_is_not_found(open_page: Open) -> None:
    app = open_page("job", Scenario(), uid="nobody")
    assert any("Not found." in warning.value for warning in app.warning)


def test_filters_of_the_address_reach_the_api(open_page: Open) -> None:
    scenario = Scenario()
    open_page("jobs", scenario, team="nlp", state="waiting", sort="-queue_wait_seconds", page="2")
    asked = [query for path, query in scenario.seen if path == "/api/v1/workloads"][-1]
    wanted = {
        "team": "nlp",
        "state": "queued,checking,placing",
        "sort": "-queue_wait_seconds",
        "page": "2",
        "page_size": "25",
    }
    assert {name: asked.get(name) for name in wanted} == wanted


def test_home_asks_for_the_longest_current_wait_first_and_shows_it(open_page: Open) -> None:
    scenario = Scenario()
    shown = words(open_page("home", scenario))
    asked = [query for path, query in scenario.seen if path == "/api/v1/workloads"][-1]
    assert asked["sort"] == "-waiting_seconds"
    assert "Waits now" in shown
    # The first of the fake's workloads waits 8040 s, past the 60 minutes of batch.
    assert shown.count("▲ 2 h 14 m") == 2


def test_the_instant_of_the_address_reaches_every_question(open_page: Open) -> None:
    scenario = Scenario()
    app = open_page("queues", scenario, as_of="2026-11-01T00:00:00Z")
    assert any("2026-11-01T00:00:00Z" in info.value for info in app.info)
    asked = [query for path, query in scenario.seen if path == "/api/v1/metrics/queue_wait_seconds"]
    assert asked[-1]["as_of"] == "2026-11-01T00:00:00Z"


def test_what_one_viewer_was_told_is_not_served_to_another() -> None:
    st.cache_data.clear()
    scenario = Scenario()
    secret = ("X-Gpuledger-Proxy-Secret", "s")
    with fake_api.running(scenario) as address:
        for user in ("ann", "ann", "bob"):
            data._fetch(f"{address}/api/v1/sources", (), (("X-Forwarded-User", user), secret))
    assert [query["x-forwarded-user"] for _, query in scenario.seen] == ["ann", "bob"]
    assert all(query["x-gpuledger-proxy-secret"] == "s" for _, query in scenario.seen)


@pytest.mark.parametrize("uid", ["../teams", "..", ".", "a/b?c#d", "%2e%2e/teams"])
def test_a_uid_that_would_lead_elsewhere_is_not_found(uid: str, open_page: Open) -> None:
    scenario = Scenario()
    app = open_page("job", scenario, uid=uid)
    assert not app.exception
    assert any("Not found." in warning.value for warning in app.warning)
    assert "/api/v1/teams" not in [path for path, _ in scenario.seen]


def test_queues_of_two_clusters_with_one_name_are_two_lines_of_the_charts(open_page: Open) -> None:
    app = open_page("queues", Scenario(name="two clusters"))
    assert not app.exception
    _, depth = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert {queue for bar in depth["data"] for queue in bar["y"]} == {
        f"{queue} · {cluster}"
        for queue in ("nlp-interactive", "nlp-batch", "sweeps")
        for cluster in ("north", "south")
    }


def test_one_cluster_is_not_named_in_the_charts(open_page: Open) -> None:
    _, depth = [json.loads(chart.proto.spec) for chart in open_page("queues", Scenario()).get("plotly_chart")]
    assert {queue for bar in depth["data"] for queue in bar["y"]} == {
        "nlp-interactive",
        "nlp-batch",
        "sweeps",
    }


def test_the_address_can_ask_for_workloads_without_a_queue(open_page: Open) -> None:
    scenario = Scenario()
    open_page("jobs", scenario, queue=text.NO_QUEUE)
    asked = [query for path, query in scenario.seen if path == "/api/v1/workloads"]
    assert asked[-1]["queue"] == ""
    open_page("jobs", Scenario(), team="nlp")
    open_page("jobs", scenario)
    asked = [query for path, query in scenario.seen if path == "/api/v1/workloads"]
    assert "queue" not in asked[-1]


def test_a_workload_with_skewed_stamps_says_so_and_has_no_waits(open_page: Open) -> None:
    app = open_page("job", Scenario(), uid="uid-9")
    assert not app.exception
    assert any("bound 90 s before the submission" in warning.value for warning in app.warning)
    assert {tile.label: tile.value for tile in app.metric}["Queue wait"] == text.UNDEFINED


def test_kueues_order_of_a_queue_stands_beside_ours_or_the_reason_why_it_is_unknown(open_page: Open) -> None:
    told = words(open_page("job", Scenario(), uid="uid-0"))
    assert "3 by Kueue's own order, as it was 20 s ago; by our order (priority, then submission) 4" in told
    untold = words(open_page("job", Scenario(), uid="uid-9"))
    assert "by our order (priority, then submission) 4. Kueue's own order: no\\_permission" in untold


def test_waits_of_single_pods_are_shown_where_there_are_any(open_page: Open) -> None:
    shown = words(open_page("job", Scenario(), uid="uid-7"))
    assert "Waits of single pods: 1" in shown
    assert "pod-2-9" in shown
    assert "Waits of single pods" not in words(open_page("job", Scenario(), uid="uid-0"))


def test_preemptions_of_a_window_stay_a_lower_bound(open_page: Open) -> None:
    app = open_page("home", Scenario(name="unseen"))
    assert {tile.label: tile.value for tile in app.metric}["Preemptions, last 24 h"] == "≥ 7"


def test_a_played_sample_is_called_so(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, frame.PLAYED, "1")
    app = open_page("home", Scenario(age=timedelta(hours=2)))
    assert any("Played sample." in info.value for info in app.info)
    assert not any("Not live." in info.value for info in app.info)


def test_a_list_of_several_pages_opens_without_a_warning(
    open_page: Open, caplog: pytest.LogCaptureFixture
) -> None:
    # Streamlit warns, with a trace, of a widget that has a default and whose state was written too.
    app = open_page("jobs", Scenario(), page="2")
    (pagination,) = app.get("pagination")
    assert pagination.proto.default == 2
    assert [line for line in caplog.messages if "Session State" in line] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_one_title(open_page: Open, page: str) -> None:
    assert len(open_page(page, Scenario(), **params(page)).title) == 1


def test_a_job_that_waits_says_why_and_who_holds_what_it_needs(open_page: Open) -> None:
    shown = words(open_page("job", Scenario(), uid="uid-0")).replace("\\", "")
    expected = [
        "Why it waits",
        "QUOTA_EXHAUSTED** · The quota of nlp-batch is used up. What to do: Wait until work",
        "asked 8, nominal 24",
        fake_why.TEXT,
        "It needs 8 GPUs, and 6 are free.",
        "nlp/train-llm-7",
        "2 other workloads with 8 together; the first may end at about 2026-11-01 12:45:00",
        "2026-11-01 13:00:00",
        "Waited 3 h 0 m so far: 2 h 0 m QUOTA_EXHAUSTED, 1 h 0 m BEHIND_IN_QUEUE.",
        "queue nlp-batch",
        "batch-low 1,000, +100 for its age; outranks training (1,150) at",
        f"**When it starts.** {fake_why.STARTS}",
        "In 8 of 10 cases between 2026-11-01 12:40:00 UTC and 2026-11-01 15:00:00 UTC.",
        f"**Start sooner**, the best way first:\n- {fake_why.SOONER}",
    ]
    assert [text for text in expected if text not in shown] == []


def test_a_job_that_ran_is_not_asked_why(open_page: Open) -> None:
    scenario = Scenario()
    open_page("job", scenario, uid="uid-7")
    assert not [path for path, _ in scenario.seen if path.endswith("/why")]
