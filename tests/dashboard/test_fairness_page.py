"""The page of fairness: the verdict first, then each pool, then the ledger."""

import json

from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario
from tests.dashboard.test_pages import words


def test_the_verdict_names_whom_the_cluster_owes_most_and_who_had_too_much(open_page: Open) -> None:
    app = open_page("fairness", Scenario())
    assert not app.exception
    (verdict,) = [warning.value for warning in app.warning]
    assert verdict == (
        "The cluster owes nlp most, in pool all/a100: 340.0 GPU-hours. vision has had 52.3 GPU-hours more"
        " than its share in pool all/a100."
    )


def test_each_pool_shows_its_holders_with_quota_use_and_debt(open_page: Open) -> None:
    shown = words(open_page("fairness", Scenario()))
    expected = [
        "Pool all/a100, cluster north, now",
        "capacity 192 GPUs · fairness error 25.0 % · Jain's index 81.5 % · in no quota 0 GPUs",
        "Jain's index not defined: nobody with an entitlement holds a GPU",
        "in no quota 3 GPUs",
        "borrowed of nobody's quota 8.5 GPUs",
        "Lent 11.5 = borrowed 20 - 8.5 GPUs of nobody's quota.",
        "Lent 0 = borrowed 8 - 8 GPUs of nobody's quota.",
        "shared by audio, video",
        ">48<",
        ">11.5<",
        "▲ 2<",
        ">-52.3<",
    ]
    assert [text for text in expected if text not in shown] == []


def test_the_debt_of_a_shared_quota_is_told_by_team(open_page: Open) -> None:
    # An alert tells audio's 107.7 and links here, where the quota that it shares has had too much.
    captions = [caption.value for caption in open_page("fairness", Scenario()).caption]
    told = [caption for caption in captions if caption.startswith("Debt of")]
    assert told == ["Debt of vision by team, GPU-hours: audio 107.7, video -160.0."]


def test_the_ledger_leads_from_the_debt_at_the_start_to_the_debt_now(open_page: Open) -> None:
    tables = [element.proto.body for element in open_page("fairness", Scenario()).get("html")]
    (ledger,) = [body for body in tables if "ledger of the fairness debt" in body]
    cells = [cell.split("<")[0] for cell in ledger.split('tabular-nums">')[1:]]
    assert cells[:7] == ["nlp", "all/a100", "170.0", "1,104.0", "504.0", "12.0", "340.0"]


def test_debts_over_time_are_asked_at_thirteen_instants(open_page: Open) -> None:
    scenario = Scenario()
    app = open_page("fairness", scenario)
    (chart,) = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    lines = {line["name"]: len(line["x"]) for line in chart["data"]}
    assert lines == {"nlp · all/a100 · north": 13, "vision · all/a100 · north": 13}


def test_one_pool_can_be_chosen(open_page: Open) -> None:
    shown = words(open_page("fairness", Scenario(), pool="all/h100"))
    assert "Pool all/h100" in shown
    assert "Pool all/a100" not in shown
    assert "The cluster owes nobody GPU-hours." in shown


def test_a_fair_cluster_is_told_so(open_page: Open) -> None:
    app = open_page("fairness", Scenario(name="fair"))
    assert [success.value for success in app.success] == ["The cluster owes nobody GPU-hours."]
    assert not app.get("plotly_chart")


def test_an_empty_store_is_told_in_a_sentence(open_page: Open) -> None:
    app = open_page("fairness", Scenario(name="empty"))
    assert not app.exception
    assert "Nobody holds, asks for, or is promised a GPU here." in words(app)


def test_a_failing_api_is_told_with_what_it_said(open_page: Open) -> None:
    app = open_page("fairness", Scenario(status=500))
    assert any("the store is closed" in error.value for error in app.error)


def test_the_ledger_says_how_much_of_its_window_was_observed(open_page: Open) -> None:
    # Its lines are of a window, those of the pools of now: each with its own share.
    captions = [caption.value for caption in open_page("fairness", Scenario(name="stale")).caption]
    assert [caption for caption in captions if "97 % of the window was observed" in caption]
    whole = [caption.value for caption in open_page("fairness", Scenario()).caption]
    assert not [caption for caption in whole if "observed" in caption]
