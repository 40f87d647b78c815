"""The page of a month's cost: what it says with prices, without, and with nodes that nobody knows."""

from datetime import UTC, datetime

from api.schemas import SCHEMAS
from dashboard.views.chargeback import months_until, verdict
from tests.api.test_answers_over_http import check
from tests.dashboard import fake_money
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario
from tests.dashboard.test_pages import words

AT = "2026-10-15T00:00:00.000Z"


def test_the_fake_statement_has_the_shape_of_the_real_one() -> None:
    for scenario in ("filled", "no prices", "empty", "unknown nodes"):
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
