"""Alerts over HTTP: their shape, their filters, and who hears which."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from alerts.wording import Links
from api.answers import ReportQuestion
from api.schemas import SCHEMAS
from api.scope import scoped
from api.viewer import Role, Viewer
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, format_instant
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.answers import Answers
from tests.api.conftest import HEADER_AUTH, NOW, Connect, as_member
from tests.api.test_answers_over_http import check
from tests.build import filled

LIST = "/api/v1/alerts"
# One of each kind of label: of nobody, of a queue, of a team.
FIRES = {
    "starvation_index_seconds": [
        {"cluster": "north", "queue": queue, "service_class": "interactive"} for queue in ("main", "far")
    ],
    "wastage_ratio": [{"cluster": "north", "team": team} for team in ("red", "blue")],
    "interactive_reserve_shortfall_gpus": [{"cluster": "north", "gpu_model": "H100"}],
}


class Noon:
    """A clock that goes, though nobody waits for it: by one that stands, the past is measured too."""

    def now_ms(self) -> int:
        return NOW


@pytest.fixture
def answers() -> Iterator[Answers]:
    store = filled()
    made = Answers(store, Tenancy(), Policy(), Noon())
    links = Links(dashboard_url="https://gpu.example")
    alerting = Alerting(
        made, AlertingSettings(), links=links, every=timedelta(seconds=15), clock=FixedClock(NOW)
    )
    for as_of_ms in (NOW - 7_200_000, NOW):
        target = Sample(labels={"service_class": "interactive"}, value=300.0)
        measured = [Measurement(metric="wait_target_seconds", as_of_ms=as_of_ms, sample=target)]
        measured += [
            Measurement(metric=metric, as_of_ms=as_of_ms, sample=Sample(labels=labels, value=1000.0))
            for metric, found in FIRES.items()
            for labels in found
        ]
        alerting.take(measured, as_of_ms, {})
    made.alarms.sound("disk_full", "/secret/path has no room")
    alerting.watch()
    yield made
    store.close()


def told(client: TestClient, **params: str) -> set[tuple[str, ...]]:
    rows = client.get(LIST, params=params).json()["rows"]
    return {(row["alert"], *[v for name, v in row["labels"].items() if name != "cluster"]) for row in rows}


def test_alerts_have_their_shape_and_can_be_filtered_and_taken_as_a_table(client: TestClient) -> None:
    listed = client.get(LIST).json()
    check(listed, SCHEMAS["AlertList"], at="list")
    assert listed["total"] == len(listed["rows"]) == 6
    # The most urgent first; what is only pending last.
    assert [row["state"] for row in listed["rows"]] == ["firing"] * 5 + ["pending"]
    assert told(client, team="blue") == {("GpuWastageTooHigh", "blue")}
    assert told(client, queue="far") == {("GpuQueueWaitTooLong", "far", "interactive")}
    table = client.get(LIST, headers={"Accept": "text/csv"}).text.splitlines()
    assert len(table) == 7
    assert {"alert", "state", "queue", "team", "value", "threshold", "coverage"} <= set(table[0].split(","))


def test_a_researcher_hears_of_own_teams_and_shared_queues_and_of_what_is_nobodys(connect: Connect) -> None:
    red = connect(as_member("red-people"), auth=HEADER_AUTH)
    everybody = connect(as_member("gpu-admins"), auth=HEADER_AUTH)
    assert told(red) == {
        ("GpuQueueWaitTooLong", "main", "interactive"),
        ("GpuWastageTooHigh", "red"),
        ("GpuInteractiveReserveShort", "H100"),
    }
    text = red.get(LIST).text
    assert [word for word in ("blue", "far", "disk_full", "/secret") if word in text] == []
    assert told(everybody) - told(red) == {
        ("GpuQueueWaitTooLong", "far", "interactive"),
        ("GpuWastageTooHigh", "blue"),
        ("GpuledgerAlarm", "disk_full", "gpuledger"),
    }
    assert red.get(LIST, params={"team": "blue"}).status_code == 403
    assert told(red, queue="far") == set()


def test_that_nobody_looked_is_no_silence_for_anybody() -> None:
    unseen = Answers(filled(), Tenancy(), Policy(), FixedClock(NOW))
    researcher = Viewer(name="ada", role=Role.RESEARCHER, teams=frozenset({"red"}))
    for viewer in (researcher, Viewer(name="ops", role=Role.OPERATOR)):
        assert "no alert was evaluated yet" in scoped(unseen, viewer).alerts(ReportQuestion()).hints[0]


def test_a_researcher_hears_that_little_is_known_of_an_earlier_instant(connect: Connect) -> None:
    red = connect(as_member("red-people"), auth=HEADER_AUTH)
    [hint] = red.get(LIST, params={"as_of": format_instant(NOW - 3_600_000)}).json()["hints"]
    assert "only what fired is kept" in hint


def test_the_newest_is_that_of_the_last_evaluation_also_of_a_store_that_was_read_before_it(
    answers: Answers,
) -> None:
    unserved = Answers(answers.store, Tenancy(), Policy(), FixedClock(NOW - 4_000))
    newest = unserved.alerts(ReportQuestion())
    assert (newest.as_of_ms, newest.hints) == (NOW, ())
    assert [row["state"] for row in newest.rows] == ["firing"] * 5 + ["pending"]
