"""
Pages on the real API of a small site, and of an empty store: cluster, policy and capacity.

And of all: that the links of a report lead to each of its tables.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
import streamlit as st
from streamlit.testing.v1 import AppTest

from api.answers import ReportQuestion
from api.app import Api, create_app
from api.auth import NoAuth
from api.reports import REPORTS
from api.reports.report import made
from api.server import Server
from dashboard.shared import data
from dashboard.shared.launch import APP
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, parse_instant
from service import report_text
from service.answers import Answers
from store.embedded import Store
from tests.dashboard.test_pages import words
from tests.golden.cases import store_of

NOW = "2026-01-08T12:00:00Z"
PAGES = ("cluster", "policy", "capacity")
POLICY = Policy(gpu_hour_budgets={"nlp": {"month": 1000.0}})
Open = Callable[..., AppTest]
Rows = dict[str, list[dict[str, Any]]]


def site() -> Rows:
    """
    Two nodes of 8 A100, one cordoned, and one of 8 H100 that lost one GPU.

    nlp's batch work holds 5 and 6 GPUs of the A100s and all that is left of the H100; ada, who is
    interactive, waits with two pods for 4 each, of which only one finds room.
    """
    held = [("n1", "A100", 5), ("n2", "A100", 6), ("n4", "H100", 7)]
    uids = [f"job-{node}" for node, _, _ in held]
    since, submitted = "2026-01-01T00:00:00Z", "2026-01-08T06:00:00Z"
    nodes = [
        ("n1", "A100", 8, True),
        ("n2", "A100", 8, True),
        ("n3", "A100", 8, False),
        ("n4", "H100", 7, True),
    ]
    return {
        "workload": [
            *({"workload_uid": uid, "submitted_at": submitted, "first_placed_at": submitted} for uid in uids),
            {"workload_uid": "wait", "team": "vision", "service_class": "interactive", "user_name": "ada",
             "submitted_at": submitted, "requested_gpus": 14, "gpu_model": "", "priority_class": "high"},
        ],
        "span": [
            *({"workload_uid": uid, "state": "running", "start_at": submitted} for uid in uids),
            {"workload_uid": "wait", "state": "queued", "start_at": submitted},
        ],
        "workload_shape": [{"workload_uid": "wait", "pods": 2, "devices": 7}],
        "holding": [
            {"workload_uid": f"job-{node}", "pod_uid": f"p-{node}", "node": node, "gpu_model": model,
             "gpus": gpus, "bound_at": submitted}
            for node, model, gpus in held
        ],
        "attempt": [{"workload_uid": uid, "number": 1, "start_at": submitted} for uid in uids],
        "pod_device": [
            {"workload_uid": f"job-{node}", "pod_uid": f"p-{node}", "devices": gpus} for node, _, gpus in held
        ],
        "waste_piece": [
            {"workload_uid": f"job-{node}", "node": node, "gpu_model": model, "gpus": gpus,
             "start_at": submitted, "cause": "useful" if node == "n1" else "idle"}
            for node, model, gpus in held
        ],
        "node_span": [
            {"node": name, "gpu_model": model, "start_at": since, "allocatable_gpus": gpus,
             "schedulable": takes}
            for name, model, gpus, takes in nodes
        ],
        "node_device": [
            {"node": name, "gpu_model": model, "start_at": since, "allocatable": gpus, "schedulable": takes}
            for name, model, gpus, takes in nodes
        ],
    }  # fmt: skip


def indebted() -> Rows:
    """Two teams of one quota, of which the cluster owes one what the other had too much."""
    since = "2026-01-01T00:00:00Z"
    return {
        "share_span": [{"start_at": since, "quota": 4_000_000, "held": 3_000_000, "entitled": 4_000_000}],
        "team_share_span": [
            {"opening_debt": 16.0, "entitled": 3_000_000, "held": 3_000_000, "start_at": since},
            {"opening_debt": -8.0, "team": "vision", "start_at": since},
        ],
    }


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """The API over a store, at its address."""
    answers = Answers(store, Tenancy(), POLICY, FixedClock(parse_instant(NOW)))
    app = create_app(Api(answers=answers, auth=NoAuth(), metrics_text=lambda: b""))
    with Server(app, "127.0.0.1", 0) as server:
        yield server.url


@pytest.fixture
def open_site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a page by its file's name, on these rows."""
    with ExitStack() as stack:

        def opened(page: str, rows: Rows, /, **params: str) -> AppTest:
            st.cache_data.clear()
            store = stack.enter_context(store_of(rows))
            monkeypatch.setitem(os.environ, data.API_URL, stack.enter_context(serving(store)))
            app = AppTest.from_file(str(APP), default_timeout=60)
            app.switch_page(f"views/{page}.py")
            for name, value in params.items():
                app.query_params[name] = value
            app.run()
            assert not app.exception
            return app

        yield opened
        st.cache_data.clear()


def charts(app: AppTest) -> list[str]:
    return [chart.proto.alt for chart in app.get("plotly_chart")]


def test_the_cluster_page_says_what_is_free_and_of_no_use(open_site: Open) -> None:
    app = open_site("cluster", site())
    shown = words(app)
    # 3 + 2 free, of no use to two pods of 7, and no repack makes 14 of them.
    assert "5 of 32 GPUs are free, but 5 of them are of no use to anybody who waits" in shown
    for expected in (
        "n1: 5 held by nlp, 3 free, and of no use to anybody who waits",
        "n3: 8 free, on a node that takes no pods",
        "n4: 7 held by nlp, 1 unhealthy",
        "as of",
    ):
        assert expected in shown, expected
    assert len(charts(app)) == 1


def test_the_cluster_page_keeps_to_the_model_of_its_address(open_site: Open) -> None:
    shown = words(open_site("cluster", site(), gpu_model="H100"))
    assert "0 of 8 GPUs are free." in shown
    assert "n4: " in shown
    assert "n1: " not in shown


def test_the_policy_page_tells_the_reserve_and_the_lint(open_site: Open) -> None:
    app = open_site("policy", site())
    shown = words(app)
    # A100: 20 % of 16 are 3.2, 5 are free. H100: 20 % of 7 are 1.4, and none is free.
    assert "Now 1.4 GPUs are missing from the reserve of 20.0 %" in shown
    # Each figure names its window, or that it is of now.
    assert "Waiting now, workloads 1" in shown
    assert "Of the cap, now 0.2 %" in shown
    assert "Until the cap is reached, as the queue grew in the last 1 h" in shown
    for title in ("Missing now", "Missing, last 24 h, GPU-h", "Free now", "Largest user&#x27;s part now"):
        assert f">{title}<" in shown, title
    assert "not observed: volumes of pods are not collected" in shown
    assert "jobs?team=nlp" in shown
    assert charts(app) == ["Workloads that break each rule, by team"]


def test_the_capacity_page_says_to_fill_the_gpus_first(open_site: Open) -> None:
    app = open_site("capacity", site())
    shown = words(app)
    assert "Tune first, do not buy: the GPUs are not full." in shown
    assert "All three conditions held on 0 of the last 7 days" in shown
    # 18 GPUs for 6 of 24 hours, of 32; and 5 of them useful.
    assert "14.1 %" in shown
    assert "3.9 %" in shown
    assert len(charts(app)) == 1


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("cluster", "No node with GPUs is known here."),
        ("policy", "No node with GPUs is known here, so there is no reserve to keep."),
        ("capacity", "No node with GPUs is known in the last days"),
    ],
)
def test_an_empty_store_is_told_in_a_sentence(page: str, sentence: str, open_site: Open) -> None:
    app = open_site(page, {})
    assert sentence in words(app)
    assert not app.error


@pytest.mark.parametrize("page", PAGES)
def test_a_full_cluster_with_nobody_waiting_is_no_trouble(page: str, open_site: Open) -> None:
    rows = site()
    for table in ("workload", "span", "workload_shape"):
        rows[table] = [row for row in rows[table] if row["workload_uid"] != "wait"]
    assert words(open_site(page, rows))


@pytest.mark.parametrize("name", ["capacity", "fragmentation", "lint", "policy"])
@pytest.mark.parametrize("rows", [site(), {}], ids=["site", "empty"])
def test_a_report_answers_over_http(name: str, rows: Rows) -> None:
    assert REPORTS[name].question
    with store_of(rows) as store, serving(store) as url:
        reply = requests.get(f"{url}/api/v1/reports/{name}", timeout=60)
    assert reply.status_code == 200, reply.text
    document = reply.json()
    assert document["lead"]
    assert all(section["columns"] for section in document["sections"])


def test_a_page_and_a_report_that_are_asked_the_same_answer_the_same(open_site: Open) -> None:
    shown = words(open_site("policy", site(), window="7d"))
    assert "Until the cap is reached, as the queue grew in the last 7 d" in shown
    assert "Submitted, last 7 d: " in shown
    assert "What can be written better, last 7 d" in shown
    shown = words(open_site("policy", site(), window="1d"))
    assert "What can be written better, last 24 h" in shown


@pytest.mark.parametrize("name", list(REPORTS))
def test_the_links_of_a_report_lead_to_each_of_its_tables(name: str, open_site: Open) -> None:
    rows = indebted() if name == "fairness" else site()
    with store_of(rows) as store:
        answers = Answers(store, Tenancy(), POLICY, FixedClock(parse_instant(NOW)))
        document = made(REPORTS[name], answers, ReportQuestion())
    assert any(section["rows"] for section in document["sections"])
    told = report_text.addressed(document, dashboard_url="https://gpu.example.org")
    addresses = [urlsplit(section["address"]) for section in told["sections"]]
    assert {address.path for address in addresses} == {addresses[0].path}
    app = open_site(addresses[0].path.removeprefix("/"), rows, **dict(parse_qsl(addresses[0].query)))
    anchors = {heading.proto.anchor for heading in app.subheader}
    assert [address.fragment for address in addresses if address.fragment not in anchors] == []
    drawn = [table.proto.body for table in app.get("html")]
    for section in told["sections"]:
        if section["rows"]:
            label = f'aria-label="report {name}: {section["title"]}"'
            [table] = [table for table in drawn if label in table]
            assert table.count("<tr>") == len(section["rows"]) + 1


def test_the_tables_of_a_report_are_not_asked_for_before_somebody_opens_them(open_site: Open) -> None:
    app = open_site("waste", site())
    assert 'aria-label="report waste: ' not in "".join(table.proto.body for table in app.get("html"))
    assert "Every table of the report: waste" in [box.label for box in app.expander]
