"""The page of a month's cost: what it says with prices, without, and with nodes that nobody knows."""

from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from api.exports.formats import EXPORT_FORMATS
from api.schemas import SCHEMAS
from dashboard.shared.statement_files import FORMATS
from dashboard.views.chargeback import months_until, verdict
from tests.api.test_answers_over_http import check
from tests.dashboard import fake_money
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario
from tests.dashboard.test_pages import words

AT = "2026-10-15T00:00:00.000Z"


def test_the_fake_statement_has_the_shape_of_the_real_one() -> None:
    for scenario in ("filled", "no prices", "empty", "unknown nodes", "closed", "unbalanced", "corrections"):
        check(fake_money.statement(AT, ["team"], scenario=scenario), SCHEMAS["Statement"], at=scenario)


def test_the_page_names_the_total_the_biggest_team_and_whether_the_books_close(open_page: Open) -> None:
    app = open_page("chargeback", Scenario())
    assert not app.exception
    shown = words(app)
    for expected in (
        "2026-10 so far: 3,201.00 EUR; 1,600.5 GPU-hours were held, most by nlp: 1,200.5 GPU-hours (75 %).",
        "Not complete: 40 % of the window was observed.",
        "may be a cent off its GPU-hours times the price",
        "Effective cost, EUR 3,201.00",
        "(idle capacity)",
        "Capacity 1,900.5 = held 1,600.5 + idle 300.0 + unavailable 0.0 - overlap 0.0",
        "jobs?team=nlp",
        "showback",
        "UTC, 1",
    ):
        assert expected in shown, expected


def test_without_prices_the_page_tells_gpu_hours_and_why_there_is_no_money(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(name="no prices"))
    assert not app.exception
    shown = words(app)
    assert "No money: no prices are set." in shown
    assert "2026-10 so far: 1,600.5 GPU-hours were held" in shown
    assert "EUR" not in shown


def test_nodes_that_nobody_knows_are_told(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(name="unknown nodes"))
    assert "1 stretch on nodes are not known" in words(app)
    assert "not known then" in words(app)


def test_an_empty_month_is_a_sentence(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(name="empty"))
    assert not app.exception
    assert "Nothing was held in 2026-10 and no node with GPUs is known then." in words(app)


def test_a_month_of_the_address_is_the_one_that_is_asked_for(open_page: Open) -> None:
    scenario = Scenario()
    now = datetime.now(UTC)
    month = months_until(now)[1]
    open_page("chargeback", scenario, month=month)
    assert any(path.endswith(f"/chargeback/{month}") for path, _ in scenario.seen)


def test_lines_that_are_no_team_are_not_the_biggest_team() -> None:
    rows = [{"team": "__idle__", "held_gpu_hours": 0.0}]
    total = {"effective_cost": None, "held_gpu_hours": 0.0}
    statement = {"month": "2026-10", "over": True, "currency": None, "rows": rows, "total": total}
    assert verdict(statement | {"coverage": 1.0}) == "2026-10: 0.0 GPU-hours were held by no team."
    assert verdict(statement | {"coverage": 0.403}) == (
        "2026-10: 0.0 GPU-hours were held by no team. Not complete: 40 % of the window was observed."
    )


def test_a_failing_or_forbidden_api_is_told(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(status=500))
    assert any("the store is closed" in error.value for error in app.error)
    app = open_page("chargeback", Scenario(status=403))
    assert any("Ask an admin" in warning.value for warning in app.warning)


def said(app: AppTest) -> str:
    """What a reader sees, without what makes it bold."""
    return words(app).replace("**", "").replace("`", "").replace("\\", "")


def disabled(app: AppTest) -> list[bool]:
    return [button.disabled for button in app.button]


def buttons(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def test_a_month_that_runs_is_open_and_has_no_button_to_close_it(open_page: Open) -> None:
    app = open_page("chargeback", Scenario())
    assert "Open. The month still runs." in said(app)
    assert buttons(app) == []


def test_a_closed_month_tells_when_by_whom_and_with_which_fingerprint(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(name="closed"))
    shown = said(app)
    assert "Closed 2026-11-03 09:00:00 UTC by =rosa · SHA-256 5f5f" in shown
    assert "All 2 checks hold." in shown
    assert "Close 2026-10" not in shown


def test_a_balanced_month_is_closed_by_who_confirms_it(open_page: Open) -> None:
    scenario = Scenario(name="over")
    app = open_page("chargeback", scenario)
    assert "All 2 checks hold." in said(app)
    assert disabled(app) == [True]
    app.checkbox[0].check().run()
    assert disabled(app) == [False]
    app.button[0].click().run()
    assert not app.exception
    assert scenario.seen.count(("/api/v1/chargeback/2026-10/close", {"reason": ""})) == 1


@pytest.mark.parametrize("role", ["researcher", "operator"])
def test_other_roles_see_the_reconciliation_and_no_button(open_page: Open, role: str) -> None:
    app = open_page("chargeback", Scenario(name="over", role=role))
    assert "All 2 checks hold." in said(app)
    assert buttons(app) == []
    assert not app.checkbox


def test_a_month_of_which_little_was_seen_is_closed_with_a_reason(open_page: Open) -> None:
    scenario = Scenario(name="little seen", role="finance")
    app = open_page("chargeback", scenario)
    assert "These checks do not hold: coverage. Say why" in said(app)
    app.checkbox[0].check().run()
    assert app.button[0].disabled
    app.text_input[0].input("the collector was down").run()
    app.button[0].click().run()
    assert ("/api/v1/chargeback/2026-10/close", {"reason": "the collector was down"}) in scenario.seen


def test_a_month_that_does_not_balance_says_what_must_hold_first(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(name="unbalanced"))
    shown = said(app)
    assert "2 of 2 checks do not hold." in shown
    assert "2026-10 cannot be closed yet. 1 check above must hold first: capacity." in shown
    assert "1,899.5" in shown
    assert buttons(app) == []


def test_what_the_api_refuses_is_told(open_page: Open) -> None:
    # Between the page and the button somebody else was faster.
    scenario = Scenario(name="over")
    app = open_page("chargeback", scenario)
    app.checkbox[0].check().run()
    scenario.name = "unbalanced"
    app.button[0].click().run()
    assert not app.exception
    assert "Not closed. month 2026-10 is not closed: capacity" in said(app)


def test_corrections_of_closed_months_are_told_with_the_month(open_page: Open) -> None:
    app = open_page("chargeback", Scenario(name="corrections"))
    shown = said(app)
    assert "Corrections of closed months" in shown
    assert "chargeback?month=2026-09" in shown
    assert "-6.00" in shown
    assert "Corrections of closed months" not in said(open_page("chargeback", Scenario()))


def test_each_format_has_a_button_that_asks_for_it(open_page: Open) -> None:
    assert {form for form, _, _ in FORMATS} == set(EXPORT_FORMATS)
    app = open_page("chargeback", Scenario())
    labels = [button.proto.label for button in app.get("download_button")]
    assert labels == ["Excel", "CSV", "Parquet", "FOCUS 1.4"]
    unpriced = open_page("chargeback", Scenario(name="no prices"))
    disabled = [button.proto.disabled for button in unpriced.get("download_button")]
    assert disabled == [False, False, False, True]
