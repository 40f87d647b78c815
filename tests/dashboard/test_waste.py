"""The page of waste: who wastes most and how, in a sentence; what is unknown stays unknown."""

from dataclasses import replace

import pytest

from dashboard.shared import charts
from dashboard.shared.data import Answer, Value
from dashboard.shared.format import parse_instant
from dashboard.views.waste import hours_by, main_cause, unknown_share, verdict
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
RATIO = answer("wastage_ratio", "team")
CAUSES = answer("held_gpu_hours", "team", "cause")


def test_the_sentence_names_the_team_that_wastes_most_and_how() -> None:
    sentence, wasteful = verdict(answer("wasted_gpu_hours", "team"), HELD, RATIO, CAUSES)
    assert sentence == (
        "ads wasted most: 30.0 GPU-hours of the 100.0 it held (30 %), mostly idle: running, with hardly any"
        " activity for a quarter of an hour. Of 49 % of held time nobody knows whether it was used."
    )
    assert wasteful


def test_no_waste_is_not_claimed_of_what_nobody_saw() -> None:
    sentence, wasteful = verdict(answer("wasted_gpu_hours", "team", ads=0.0), HELD, RATIO, CAUSES)
    assert sentence == (
        "No waste of anybody's own making, last 24 h. Of 49 % of held time nobody knows whether it was used."
    )
    assert not wasteful


def test_a_share_of_what_is_at_least_so_much_is_at_least_so_large() -> None:
    # Of nlp nobody knows how much it wasted beyond this.
    wasted, ratio = answer("wasted_gpu_hours", "team", nlp=47.0), answer("wastage_ratio", "team", nlp=0.47)
    sentence, _ = verdict(wasted, HELD, ratio, CAUSES)
    assert sentence.startswith("nlp wasted most: ≥ 47.0 GPU-hours of the 100.0 it held (≥ 47 %).")


def test_a_bar_says_what_is_only_known_from_below() -> None:
    # Of what nlp did with 40 GPU-hours nobody knows, so it may have used more than these 58.
    causes = answer("held_gpu_hours", "team", "cause")
    half_seen = [
        Value(labels={"team": "nlp", "cause": cause}, value=hours, lower_bound=False, few=False,
              undefined_because="")
        for cause, hours in (("useful", 58.0), ("unknown", 40.0))
    ]  # fmt: skip
    bars = hours_by(replace(causes, rows=tuple(half_seen)))
    assert {key: bar.shown for key, bar in bars.items()} == {
        ("nlp", "useful"): "≥ 58.0",
        ("nlp", "unknown"): "40.0",
    }
    assert charts.cause_bars(bars).data[0].customdata[0] == "≥ 58.0"
    assert hours_by(causes)["ads", "useful"].shown == "60.0"


def test_a_total_of_lower_bounds_is_a_lower_bound() -> None:
    assert answer("wasted_gpu_hours", "team").total_shown() == "≥ 30.0"
    assert HELD.total_shown() == "200.0"


def test_a_tile_says_whether_it_is_of_now_or_of_the_window(open_page: Open) -> None:
    labels = [tile.label for tile in open_page("waste", Scenario()).metric]
    assert labels == [
        "Goodput, last 24 h",
        "GPU-hours at risk, now",
        "Workloads past their checkpoint budget, now",
        "GPUs never active, now",
    ]


def test_a_loss_by_others_is_nobodys_main_cause() -> None:
    assert main_cause(CAUSES, "ads") == "idle"
    assert main_cause(CAUSES, "nlp") == ""
    assert unknown_share(CAUSES) == pytest.approx(0.49)


def test_the_page_shows_the_verdict_the_table_and_the_users(open_page: Open) -> None:
    app = open_page("waste", Scenario())
    assert not app.exception
    shown = words(app)
    expected = [
        "ads wasted most", "jobs?team=ads&amp;sort=-wasted_gpu_hours",
        "jobs?team=ads&amp;user=eve&amp;sort=-wasted_gpu_hours",
        "30.0 %", "7.7 %", "not known", "22.0", "eve", "12.5", "25.0 %",
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


def test_a_job_says_what_its_gpu_time_was_for_and_the_list_who_wasted(open_page: Open) -> None:
    job = words(open_page("job", Scenario(), uid="uid-7"))
    expected = [
        "Wasted: ≥ 1.5 of 5.0 GPU-hours held",
        "What its GPU time was for",
        "neither useful nor wasted",
    ]
    assert [part for part in expected if part not in job] == []
    scenario = Scenario()
    listed = words(open_page("jobs", scenario, user="eve", sort="-wasted_gpu_hours"))
    assert "≥ 1.5" in listed
    assert any(
        path.endswith("workloads") and (asked.get("user"), asked.get("sort")) == ("eve", "-wasted_gpu_hours")
        for path, asked in scenario.seen
    )
