"""Quota proposals over HTTP: their shape, and who sees which."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.answers import Answers
from api.app import Api, create_app
from api.schemas import SCHEMAS
from api.scope import Scope, scoped
from api.viewer import Viewer
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR, FixedClock
from service.answers import Answers as StoreAnswers
from tests.api.conftest import HEADER_AUTH, as_member
from tests.api.test_answers_over_http import check
from tests.quota_site import END, Week, site

NOW = END + MS_PER_HOUR
LIST = "/api/v1/quota/proposals"


def everything(answers: Answers, viewer: Viewer) -> Answers:
    """No scope."""
    return answers


@pytest.fixture(scope="module")
def week() -> Iterator[Week]:
    made = site(blue_debt=0.0, own=16)
    made.proposer.refresh("c", NOW)
    yield made
    made.store.close()


def client(week: Week, group: str, scope: Scope = scoped) -> TestClient:
    answers = StoreAnswers(week.store, Tenancy(), Policy(), FixedClock(NOW))
    app = create_app(Api(answers=answers, auth=HEADER_AUTH, metrics_text=lambda: b"", scope=scope))
    return TestClient(
        app, base_url="http://127.0.0.1", headers=as_member(group), raise_server_exceptions=False
    )


def holders(of: TestClient) -> set[str]:
    return {row["holder"] for row in of.get(LIST).json()["rows"]}


def ids(of: TestClient) -> dict[str, Any]:
    return {row["holder"]: row["id"] for row in of.get(LIST).json()["rows"]}


def test_proposals_have_their_shape(week: Week) -> None:
    admin = client(week, "gpu-admins")
    listed = admin.get(LIST).json()
    check(listed, SCHEMAS["QuotaProposalList"], at="list")
    assert listed["total"] == 2
    for row in listed["rows"]:
        check(admin.get(f"{LIST}/{row['id']}").json(), SCHEMAS["QuotaProposalDetail"], at=row["id"])


def test_a_researcher_sees_the_proposals_about_an_own_team(week: Week) -> None:
    assert holders(client(week, "gpu-admins")) == {"red", ""}
    assert holders(client(week, "red-people")) == {"red"}
    assert holders(client(week, "blue-people")) == set()
    assert holders(client(week, "blue-people", everything)) == {"red", ""}


def test_nothing_in_a_list_tells_how_many_foreign_proposals_there_are(week: Week) -> None:
    for group, count in (("red-people", 1), ("blue-people", 0)):
        listed = client(week, group).get(LIST).json()
        assert (listed["total"], listed["page_size"]) == (count, 1)


def test_a_foreign_proposal_looks_like_one_that_does_not_exist(week: Week) -> None:
    foreign = ids(client(week, "gpu-admins"))["red"]
    blue = client(week, "blue-people")
    assert blue.get(f"{LIST}/{foreign}").status_code == blue.get(f"{LIST}/q-none").status_code == 404
    assert client(week, "red-people").get(f"{LIST}/{foreign}").status_code == 200
    assert client(week, "blue-people", everything).get(f"{LIST}/{foreign}").status_code == 200


def test_what_a_foreign_team_runs_has_no_name() -> None:
    from api.scope import ResearcherAnswers
    from api.viewer import Role

    viewer = Viewer(name="ada", role=Role.RESEARCHER, teams=frozenset({"red"}))
    proposal = {
        "teams": ["red", "blue"],
        "exposed": [{"team": "red", "name": "r"}, {"team": "blue", "name": "b"}],
        "funding": [{"proposal": "q-1", "gpus": 2}, {"proposal": "q-2", "gpus": 3}],
    }
    shown = ResearcherAnswers(None, viewer)._told_of(proposal, {"q-1"})  # type: ignore[arg-type]
    assert shown == {
        "teams": ["red"],
        "exposed": [{"team": "red", "name": "r"}],
        "funding": [{"proposal": "q-1", "gpus": 2}, {"proposal": "others", "gpus": 3}],
    }


def test_an_earlier_instant_knows_no_later_proposal(week: Week) -> None:
    reply = client(week, "gpu-admins").get(LIST, params={"as_of": "2026-03-08T00:00:00Z"})
    assert reply.json()["rows"] == []


def test_nobody_is_told_nothing(week: Week) -> None:
    app = client(week, "gpu-admins").app
    assert TestClient(app, base_url="http://127.0.0.1").get(LIST).status_code == 401
