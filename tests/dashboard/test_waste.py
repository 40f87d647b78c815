"""The page of waste: who wastes most and how, in a sentence; what is unknown stays unknown."""

import pytest

from dashboard.shared.data import Answer, Value
from dashboard.shared.format import parse_instant
from dashboard.views.waste import main_cause, unknown_share, verdict
from tests.dashboard import fake_waste
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario
from tests.dashboard.test_pages import words


def answer(name: str, *by: str, **changed: float) -> Answer:
    found = fake_waste.rows(name, list(by))
    return Answer(
        metric=name,
        unit=fake_waste.METRICS[name][0],
        as_of=parse_instant("2026-03-02T09:00:00Z"),
        window="1d",
        coverage=1.0,
        rows=tuple(
            Value(
                labels=row["labels"],
                value=changed.get(row["labels"]["team"], row["value"]),
                lower_bound=row["lower_bound"],
                few=False,
                undefined_because=row["undefined_because"] or "",
            )
            for row in found
        ),
    )


HELD = answer("held_gpu_hours", "team")
CAUSES = answer("held_gpu_hours", "team", "cause")


def test_the_sentence_names_the_team_that_wastes_most_and_how() -> None:
    sentence, wasteful = verdict(answer("wasted_gpu_hours", "team"), HELD, CAUSES)
    assert sentence == (
        "ads wasted most: 30.0 GPU-hours of the 100.0 it held (30 %), mostly idle: running, with hardly any"
        " activity for a quarter of an hour. Of 49 % of held time nobody knows whether it was used."
    )
    assert wasteful


def test_no_waste_is_not_claimed_of_what_nobody_saw() -> None:
    sentence, wasteful = verdict(answer("wasted_gpu_hours", "team", ads=0.0), HELD, CAUSES)
    assert sentence == (
        "No waste of anybody's own making, last 24 h. Of 49 % of held time nobody knows whether it was used."
    )
    assert not wasteful


def test_a_loss_by_others_is_nobodys_main_cause() -> None:
    assert main_cause(CAUSES, "ads") == "idle"
    assert main_cause(CAUSES, "nlp") == ""
    assert unknown_share(CAUSES) == pytest.approx(0.49)


def test_the_page_shows_the_verdict_the_table_and_the_users(open_page: Open) -> None:
    app = open_page("waste", Scenario())
    assert not app.exception
    shown = words(app)
    expected = [
        "ads wasted most", "jobs?team=ads", "30.0 %", "7.7 %", "not known", "22.0", "eve", "12.5", "25.0 %",
        "preempted lost", "UTC, 1",
    ]  # fmt: skip
    assert [part for part in expected if part not in shown] == []


def test_an_empty_store_is_told_in_a_sentence(open_page: Open) -> None:
    app = open_page("waste", Scenario(name="empty"))
    assert not app.exception
    assert "No GPU was held here, last 24 h." in words(app)


def test_stale_sources_are_told(open_page: Open) -> None:
    app = open_page("waste", Scenario(name="stale"))
    assert any("Stale data." in warning.value for warning in app.warning)
