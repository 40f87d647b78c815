"""Pages of a large cluster: hundreds of queues, teams and nodes, and still one screen to read."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import streamlit as st

from dashboard.shared import capacity_charts, charts, filters, frame, longest, node_grid, tables
from dashboard.shared import format as text
from dashboard.shared.charts import Labelled
from dashboard.shared.data import Answer, Value
from dashboard.shared.tables import Column
from dashboard.shared.verdict import of_alerts
from dashboard.views import cluster
from tests.dashboard import fake_alerts, fake_api
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Json, Scenario, sample
from tests.dashboard.test_pages import words

QUEUES = 120
NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def _of_many_queues(name: str, by: list[str]) -> list[Json]:
    """Queue 7 has most workloads past their target, then queue 90; of the rest nobody waits."""
    found = []
    for number in range(QUEUES):
        labels = {"cluster": "north", "queue": f"q-{number}", "service_class": "batch", "team": "nlp"}
        kept = {label: labels[label] for label in by if label in labels}
        past = {7: 9.0, 90: 4.0}.get(number, 0.0)
        added = {"quantile": "0.99", "estimator": "censored"} if name == "queue_wait_seconds" else {}
        found.append(sample(past, kept | added))
    return found


@pytest.fixture
def many_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    few = fake_api.metric_rows

    def rows(name: str, by: list[str]) -> list[Json]:
        return _of_many_queues(name, by) if "queue" in by else few(name, by)

    monkeypatch.setattr(fake_api, "metric_rows", rows)


def _queues_shown(shown: str) -> list[str]:
    table = shown[shown.index('aria-label="queues and classes"') :]
    table = table[: table.index("</table>")]
    return [part.split("<")[0] for part in table.split(">") if part.startswith("q-")]


@pytest.mark.usefixtures("many_queues")
def test_of_many_queues_the_worst_come_first_and_fifty_at_a_time(open_page: Open) -> None:
    app = open_page("queues", Scenario())
    assert not app.exception
    shown = words(app)
    assert _queues_shown(shown)[:4] == ["q-7", "q-90", "q-0", "q-1"]
    assert len(_queues_shown(shown)) == tables.ROWS_SHOWN
    assert "1 to 50 of 120 rows" in shown
    assert "The first 30 of the 120 lines of the table." in shown


@pytest.mark.usefixtures("many_queues")
def test_by_name_a_number_in_it_counts_and_the_address_holds_the_page(open_page: Open) -> None:
    app = open_page("queues", Scenario(), order="name", **{"page-queues-and-classes": "3"})
    assert not app.exception
    assert _queues_shown(words(app)) == [f"q-{number}" for number in range(100, QUEUES)]
    assert "101 to 120 of 120 rows" in words(app)


def test_a_page_that_does_not_exist_shows_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "from_url", lambda _: "99")
    assert list(filters.paged(range(120), 50, "page-x")) == list(range(100, 120))
    assert list(filters.paged([], 50, "page-x")) == []


def test_a_sum_ends_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(filters, "from_url", lambda _: "2")
    monkeypatch.setattr(st, "html", drawn.append)
    monkeypatch.setattr(filters, "pages_of", lambda *_: None)
    rows = [{"a": f"team-{number}."} for number in range(60)]
    tables.show([Column(key="a", title="A")], rows, caption="t", foot=[{"a": "All"}])
    assert "team-49." not in drawn[0]
    assert drawn[0].index("team-59.") < drawn[0].index("All")


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["node-10", "node-9", "node-1"], ["node-1", "node-9", "node-10"]),
        (["b", "a10c", "a9d", "a10b"], ["a9d", "a10b", "a10c", "b"]),
        (["x007", "x7", "x07"], ["x007", "x07", "x7"]),
        (["2", "", "a"], ["", "2", "a"]),
        ([f"n{'9' * 5000}", "n1"], ["n1", f"n{'9' * 5000}"]),
        (["n²", "n٣", "n3"], ["n3", "n²", "n٣"]),
    ],
)
def test_a_number_in_a_name_is_ordered_by_its_value(names: list[str], ordered: list[str]) -> None:
    assert sorted(names, key=text.natural) == ordered


def test_a_chart_shows_the_longest_lines_and_says_so() -> None:
    depth = {(f"q-{number}", "batch"): float(number) for number in range(100)}
    (trace,) = json.loads(charts.depth_bars(depth, "workloads").to_json())["data"]
    assert trace["y"] == [f"q-{number}" for number in range(99, 69, -1)]
    assert longest.note(depth, "queue") == "The longest 30 of 100 queues."
    few = {("a", "batch"): 1.0}
    assert (longest.longest(few, float), longest.note(few, "queue")) == (few, "")
    hours = {(f"t-{number}", "idle"): Labelled(length=1.0 + number, shown="") for number in range(40)}
    (bars,) = json.loads(charts.cause_bars(hours).to_json())["data"]
    assert bars["y"] == [f"t-{number}" for number in range(39, 9, -1)]


def test_teams_without_a_colour_of_their_own_are_one_line_of_the_legend() -> None:
    held = {f"team-{number}": float(100 - number) for number in range(12)}
    of_team = node_grid.colours(held)
    assert list(of_team) == [f"team-{number}" for number in range(9)]
    assert len(set(of_team.values())) == len(of_team)
    assert node_grid.others(held, of_team) == "3 other teams"
    found = json.loads(
        capacity_charts.findings({(team, "no_owner"): n for team, n in held.items()}).to_json()
    )
    assert [trace["name"] for trace in found["data"]] == [*of_team, "3 other teams"]
    assert sum(trace["x"][0] for trace in found["data"]) == sum(held.values())


def test_a_row_is_found_by_any_of_its_labels() -> None:
    def value(number: float, **labels: str) -> Value:
        return Value(labels=labels, value=number, lower_bound=False, few=False, undefined_because="")

    answer = Answer(
        metric="m", unit="gpus", as_of=NOON, window="", coverage=None,
        rows=(value(1.0, team="a", queue="p"), value(2.0, team="a", queue="q"), value(3.0, team="b")),
    )  # fmt: skip
    assert answer.where(team="a") is answer.rows[0]
    assert answer.where(queue="q", team="a") is answer.rows[1]
    assert answer.where(team="b") is answer.rows[2]
    assert answer.where() is answer.rows[0]
    assert answer.where(team="c") is answer.where(queue="") is answer.where(model="x") is None
    assert replace(answer, rows=()).where(team="a") is None


def test_a_gpu_model_that_only_pods_tell_of_is_a_row_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def gpus(metric: str, model: str, number: float) -> Answer:
        labels = {"cluster": "north", "gpu_model": model}
        row = Value(labels=labels, value=number, lower_bound=False, few=False, undefined_because="")
        return Answer(metric=metric, unit="gpus", as_of=NOON, window="", coverage=None, rows=(row,))

    drawn: list[str] = []
    monkeypatch.setattr(st, "html", drawn.append)
    monkeypatch.setattr(frame, "freshness", lambda _: None)
    cluster._models(
        {}, {"capacity_gpus": gpus("capacity_gpus", "", 8), "held_gpus": gpus("held_gpus", "A100", 5)}
    )
    rows = [row.split("</td>") for row in drawn[0].split("<tbody>")[1].split("</tr>")[:-1]]
    assert [[cell.rpartition(">")[2] for cell in row[:3]] for row in rows] == [
        ["(not known)", "8", text.UNDEFINED],
        ["A100", text.UNDEFINED, "5"],
    ]


def test_thousands_of_alerts_are_counted_as_people_write_numbers() -> None:
    alert = fake_alerts.alert("2026-11-02T12:00:00.000Z")
    assert of_alerts([alert] * 1200, [alert] * 2) == "1,200 alerts fire. 2 more may follow."
