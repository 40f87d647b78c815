"""Who sees what. The scope is taken off as well, to show that it is the scope that hides."""

from dataclasses import replace
from ipaddress import ip_network

import pytest
from starlette.testclient import TestClient

from api.answers import Answers
from api.app import Api, create_app
from api.auth import Caller, NoAuth, UnauthenticatedError
from api.viewer import Role, Viewer
from domain.errors import SettingsError
from domain.facts import Batch, SetAside
from domain.metric import Row
from domain.tenant import Tenancy
from service.answers import Answers as StoreAnswers
from store.lives import Watermark
from tests.api.conftest import HEADER_AUTH, SECRET, TOKEN, Connect, as_member
from tests.build import busy_morning

DEPTH = "/api/v1/metrics/queue_depth_workloads"


def everything(answers: Answers, viewer: Viewer) -> Answers:
    """No scope."""
    return answers


@pytest.fixture
def red(connect: Connect) -> TestClient:
    return connect(as_member("red-people"), auth=HEADER_AUTH)


@pytest.fixture
def red_unscoped(connect: Connect) -> TestClient:
    return connect(as_member("red-people"), auth=HEADER_AUTH, scope=everything)


def listed(client: TestClient) -> set[str]:
    return {row["uid"] for row in client.get("/api/v1/workloads").json()["rows"]}


def depth_by_team(client: TestClient) -> dict[str, float]:
    rows = client.get(DEPTH, params={"by": "team"}).json()["rows"]
    return {row["labels"]["team"]: row["value"] for row in rows}


def test_a_foreign_workload_is_not_listed(red: TestClient, red_unscoped: TestClient) -> None:
    assert listed(red) == {"r-done", "r-wait"}
    assert listed(red_unscoped) == {"r-done", "r-wait", "b-run", "b-wait"}


def test_of_who_waits_for_quota_own_workloads_are_listed_only(
    red: TestClient, red_unscoped: TestClient
) -> None:
    def pending(client: TestClient) -> set[str]:
        return {row["uid"] for row in client.get("/api/v1/pending-workloads").json()["rows"]}

    assert pending(red) == {"r-wait"}
    assert pending(red_unscoped) == {"r-wait", "b-wait"}


def test_a_foreign_workload_looks_like_one_that_does_not_exist(
    red: TestClient, red_unscoped: TestClient
) -> None:
    foreign, absent = red.get("/api/v1/workloads/b-run"), red.get("/api/v1/workloads/x-run")
    assert foreign.status_code == absent.status_code == 404
    assert foreign.json()["detail"].replace("b-run", "") == absent.json()["detail"].replace("x-run", "")
    assert red_unscoped.get("/api/v1/workloads/b-run").status_code == 200


def test_a_foreign_team_is_only_seen_among_the_others(red: TestClient, red_unscoped: TestClient) -> None:
    assert depth_by_team(red) == {"red": 1.0, "others": 1.0}
    assert depth_by_team(red_unscoped) == {"red": 1.0, "blue": 1.0}


def people(client: TestClient, by: str) -> set[tuple[str, ...]]:
    rows = client.get("/api/v1/metrics/at_risk_gpu_hours", params={"by": by}).json()["rows"]
    return {tuple(row["labels"].values()) for row in rows}


def test_a_foreign_person_has_no_name(red: TestClient, red_unscoped: TestClient) -> None:
    own = {("red", "ada"), ("red", "bob")}
    assert people(red, "user_name") == {("ada",), ("bob",), ("others",)}
    assert people(red, "team,user_name") == {*own, ("others", "others")}
    assert people(red_unscoped, "team,user_name") == {*own, ("blue", "ada")}


def test_a_total_counts_everybody(red: TestClient) -> None:
    assert [row["value"] for row in red.get(DEPTH, params={"by": ""}).json()["rows"]] == [2.0]


@pytest.mark.parametrize("path", [DEPTH, "/api/v1/workloads", "/api/v1/pending-workloads"])
def test_a_question_about_a_foreign_team_is_forbidden(
    red: TestClient, red_unscoped: TestClient, path: str
) -> None:
    assert red.get(path, params={"team": "blue"}).status_code == 403
    assert red.get(path, params={"team": "red,blue"}).status_code == 403
    assert red.get(path, params={"team": "red"}).status_code == 200
    assert red_unscoped.get(path, params={"team": "blue"}).status_code == 200


PREEMPTOR = ("preempted_by", "preempted_by_name", "preempted_by_workload")


def preemptor(client: TestClient) -> list[str]:
    attempt = client.get("/api/v1/workloads/r-done").json()["attempts"][0]
    return [attempt[key] for key in PREEMPTOR]


def test_a_foreign_preemptor_has_no_name(red: TestClient, red_unscoped: TestClient) -> None:
    assert preemptor(red) == ["", "", ""]
    assert preemptor(red_unscoped) == ["b-run", "blue/b-run", "b-run"]
    assert "b-run" not in red.get("/api/v1/workloads/r-done").text


@pytest.mark.parametrize(("team", "shown"), [("red", ["pod-1", "blue/b-run", "b-run"]), ("blue", [""] * 3)])
def test_a_preemptor_that_is_told_by_its_pod_is_seen_by_its_own_team_only(
    connect: Connect, answers: StoreAnswers, team: str, shown: list[str]
) -> None:
    answers.store.write_lives("north", ["b-run", "r-done"], preempted_by_a_pod(team), Watermark("lives", 2))
    assert preemptor(connect(as_member("red-people"), auth=HEADER_AUTH)) == shown
    assert preemptor(connect()) == ["pod-1", "blue/b-run", "b-run"]


def preempted_by_a_pod(team: str) -> dict[str, list[Row]]:
    """The busy morning, where r-done lost its place to a pod of b-run, a workload of that team."""
    books = busy_morning()
    books.add("member", workload_uid="b-run", object_uid="pod-1", kind="Pod")
    kept: dict[str, list[Row]] = {
        table: [{**row} for row in rows if row["workload_uid"] in {"b-run", "r-done"}]
        for table, rows in books.tables.items()
    }
    kept["workload"] = [
        {**row, "team": team} if row["workload_uid"] == "b-run" else row for row in kept["workload"]
    ]
    kept["attempt"] = [
        {**row, "preempted_by": "pod-1"} if row["preempted_by"] else row for row in kept["attempt"]
    ]
    return kept


def test_what_was_set_aside_is_counted_for_a_researcher_without_its_texts(
    red: TestClient, red_unscoped: TestClient, answers: StoreAnswers
) -> None:
    aside = SetAside(source="Pod", because="Pod blue/secret has no uid", sample="", count=3, observed_ms=1)
    answers.store.append(Batch(cluster="north", set_aside=[aside]))

    def causes(client: TestClient) -> list[dict[str, object]]:
        return list(client.get("/api/v1/sources").json()["rows"][0]["set_aside_causes"])

    assert causes(red) == [{"because": "see the operator's page", "count": 3}]
    assert causes(red_unscoped) == [{"because": "Pod blue/secret has no uid", "count": 3}]


def test_foreign_teams_are_not_listed(red: TestClient, red_unscoped: TestClient) -> None:
    def teams(client: TestClient) -> list[str]:
        return [row["team"] for row in client.get("/api/v1/teams").json()["rows"]]

    assert teams(red) == ["red"]
    assert teams(red_unscoped) == ["blue", "red"]
    assert red.get("/api/v1/teams").json()["page_size"] == 1
    assert red_unscoped.get("/api/v1/teams").json()["page_size"] == 2


def test_a_researcher_of_no_team_sees_aggregates_only(connect: Connect) -> None:
    nobody = connect(as_member("strangers"), auth=HEADER_AUTH)
    assert listed(nobody) == set()
    assert nobody.get("/api/v1/workloads").json()["total"] == 0
    assert depth_by_team(nobody) == {"others": 2.0}


@pytest.mark.parametrize("group", ["gpu-admins", "ops"])
def test_admin_and_operator_see_all_workloads(connect: Connect, group: str) -> None:
    client = connect(as_member(group), auth=HEADER_AUTH)
    assert listed(client) == {"r-done", "r-wait", "b-run", "b-wait"}


def test_headers_without_the_proxys_secret_are_nobody(connect: Connect) -> None:
    for secret in ("", "guess", SECRET + "x", SECRET[:-1]):
        headers = as_member("gpu-admins") | {"X-Gpuledger-Proxy-Secret": secret}
        reply = connect(headers, auth=HEADER_AUTH).get("/api/v1/teams")
        assert (reply.status_code, reply.headers["content-type"]) == (401, "application/problem+json")


def test_a_sender_outside_the_trusted_networks_is_nobody() -> None:
    auth = replace(HEADER_AUTH, trusted=(ip_network("10.0.0.0/8"),))
    headers = {name.lower(): value for name, value in as_member("ops").items()}
    assert auth.viewer(Caller(headers=headers, address="10.1.2.3")).role is Role.OPERATOR
    for address in ("192.168.1.1", "", "\u00e4"):
        with pytest.raises(UnauthenticatedError, match="trusted proxies"):
            auth.viewer(Caller(headers=headers, address=address))


def test_a_proxy_that_forwards_a_scrape_needs_the_token() -> None:
    auth = replace(HEADER_AUTH, token="")
    assert auth.may_scrape(Caller(headers={}, address="127.0.0.1"))
    assert not auth.may_scrape(Caller(headers={"x-forwarded-for": "8.8.8.8"}, address="127.0.0.1"))
    assert not auth.may_scrape(Caller(headers={}, address="10.1.2.3"))


def test_a_proxy_that_names_no_user_is_nobody(connect: Connect) -> None:
    assert connect(as_member("gpu-admins", user=""), auth=HEADER_AUTH).get("/api/v1/teams").status_code == 401


def test_the_service_token_asks_for_programs(connect: Connect) -> None:
    program = connect({"Authorization": f"Bearer {TOKEN}"}, auth=HEADER_AUTH)
    assert program.get("/metrics").status_code == 200
    assert program.get("/api/v1/teams").status_code == 200
    stranger = connect({"Authorization": "Bearer guess"}, auth=HEADER_AUTH)
    assert stranger.get("/metrics").status_code == 403
    assert stranger.get("/api/v1/teams").status_code == 401


def test_every_route_but_the_probes_asks_who_is_there(connect: Connect) -> None:
    nobody = connect(auth=HEADER_AUTH)
    for path in ("metrics", "metrics/held_gpus", "workloads", "workloads/r-done", "teams", "sources"):
        assert nobody.get(f"/api/v1/{path}").status_code == 401
    assert nobody.get("/openapi.json").status_code == 401
    assert nobody.get("/livez").status_code == nobody.get("/readyz").status_code == 200


def test_without_authentication_another_hosts_name_is_refused(connect: Connect) -> None:
    # A web page can point its own name at 127.0.0.1 and read through the user's browser.
    assert connect({"Host": "evil.example"}).get("/api/v1/teams").status_code == 403
    assert connect({"Host": "localhost:8080"}).get("/api/v1/teams").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "gpu.example"])  # noqa: S104 (refused)
def test_without_authentication_only_loopback_is_served(host: str) -> None:
    with pytest.raises(SettingsError, match="expected a loopback address"):
        NoAuth().check_bind(host)
    HEADER_AUTH.check_bind(host)


def test_an_earlier_name_of_a_team_is_honoured_by_lists_metrics_and_groups(answers: StoreAnswers) -> None:
    renamed = replace(answers, tenancy=Tenancy(renamed={"crimson": "red"}))
    auth = replace(HEADER_AUTH, team_groups={"crimson-people": ("crimson",)})
    app = create_app(Api(answers=renamed, auth=auth, metrics_text=lambda: b""))
    for headers in (as_member("gpu-admins"), as_member("crimson-people")):
        client = TestClient(app, base_url="http://127.0.0.1", headers=headers)
        rows = client.get("/api/v1/workloads", params={"team": "crimson"}).json()["rows"]
        assert {row["uid"] for row in rows} == {"r-done", "r-wait"}
        depth = client.get(DEPTH, params={"team": "crimson", "by": "team"}).json()["rows"]
        assert [(row["labels"]["team"], row["value"]) for row in depth] == [("red", 1.0)]
    member = TestClient(app, base_url="http://127.0.0.1", headers=as_member("crimson-people"))
    assert listed(member) == {"r-done", "r-wait"}
    assert member.get("/api/v1/workloads", params={"team": "blue"}).status_code == 403


def test_a_present_name_stays_even_where_another_team_bore_it_before(answers: StoreAnswers) -> None:
    swapped = replace(answers, tenancy=Tenancy(renamed={"a": "b", "b": "c"}))
    assert swapped.present_teams(["a", "b", "z"]) == ("b", "z")
