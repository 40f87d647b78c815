"""A month's statement over HTTP: its shape, its formats, and who sees which lines."""

import io

import polars as pl
import pytest
from starlette.testclient import TestClient

from api.answers import Answers
from api.schemas import SCHEMAS
from api.viewer import Viewer
from tests.api.conftest import HEADER_AUTH, Connect, as_member
from tests.api.test_answers_over_http import check

MARCH = "/api/v1/chargeback/2026-03"


def everything(answers: Answers, viewer: Viewer) -> Answers:
    """No scope."""
    return answers


@pytest.fixture
def red(connect: Connect) -> TestClient:
    return connect(as_member("red-people"), auth=HEADER_AUTH)


@pytest.fixture
def red_unscoped(connect: Connect) -> TestClient:
    return connect(as_member("red-people"), auth=HEADER_AUTH, scope=everything)


def held(client: TestClient, **params: str) -> dict[str, float]:
    rows = client.get(MARCH, params={"by": "team", **params}).json()["rows"]
    return {row["team"]: row["held_gpu_hours"] for row in rows}


def test_a_statement_has_its_shape(client: TestClient) -> None:
    for by in ({}, {"by": "team,model"}, {"by": ""}):
        check(client.get(MARCH, params=by).json(), SCHEMAS["Statement"], at=str(by))


def test_csv_and_arrow_have_a_row_per_line(client: TestClient) -> None:
    lines = client.get(MARCH).json()["rows"]
    csv = pl.read_csv(io.BytesIO(client.get(MARCH, headers={"Accept": "text/csv"}).content))
    arrow = pl.read_ipc_stream(
        io.BytesIO(client.get(MARCH, headers={"Accept": "application/vnd.apache.arrow.stream"}).content)
    )
    expected = [(row["team"], row["held_gpu_hours"]) for row in lines]
    assert csv.select("team", "held_gpu_hours").rows() == expected
    assert arrow.select("team", "held_gpu_hours").rows() == expected


def test_a_researcher_sees_the_lines_of_own_teams_only(red: TestClient, red_unscoped: TestClient) -> None:
    # red's r-done held a GPU for 15 and for 30 minutes; blue's b-run for 95.
    assert held(red) == {"red": 0.75}
    assert held(red_unscoped) == {"red": 0.75, "blue": pytest.approx(95 / 60)}


def test_a_researcher_is_told_nothing_of_the_whole(red: TestClient, red_unscoped: TestClient) -> None:
    own, whole = (client.get(MARCH).json() for client in (red, red_unscoped))
    assert (own["total"]["held_gpu_hours"], own["books"], own["unknown"]) == (0.75, None, [])
    assert own["unused_commitment_gpu_hours"] is None
    assert "blue" not in red.get(MARCH).text
    assert "b-run" not in red.get(MARCH).text
    assert whole["total"]["held_gpu_hours"] > 0.75
    assert whole["books"] is not None


def test_a_question_about_a_foreign_team_is_forbidden(red: TestClient, red_unscoped: TestClient) -> None:
    assert red.get(MARCH, params={"team": "blue"}).status_code == 403
    assert red.get(MARCH, params={"team": "red"}).status_code == 200
    assert red_unscoped.get(MARCH, params={"team": "blue"}).status_code == 200


def test_a_researcher_of_no_team_sees_no_line(connect: Connect) -> None:
    nobody = connect(as_member("strangers"), auth=HEADER_AUTH)
    assert nobody.get(MARCH).json()["rows"] == []


@pytest.mark.parametrize("group", ["gpu-admins", "money", "ops"])
def test_every_other_role_sees_all_lines(connect: Connect, group: str) -> None:
    assert set(held(connect(as_member(group), auth=HEADER_AUTH))) == {"red", "blue"}


def test_nobody_is_told_nothing(connect: Connect) -> None:
    assert connect(auth=HEADER_AUTH).get(MARCH).status_code == 401


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/api/v1/chargeback/march", "expected year and month"),
        ("/api/v1/chargeback/2026-09", "has not begun"),
        (f"{MARCH}?by=colour", "label 'colour'"),
        (f"{MARCH}?tema=red", "did you mean 'team'?"),
    ],
)
def test_a_wrong_question_is_a_problem_that_says_what_to_do(client: TestClient, path: str, says: str) -> None:
    reply = client.get(path)
    assert reply.status_code == 400
    assert says in reply.json()["detail"]
