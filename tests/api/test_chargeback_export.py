"""A month as a file over HTTP: its formats, its name, and who gets which lines."""

import csv
import io
import zipfile
from typing import cast

import polars as pl
import pytest
from starlette.testclient import TestClient

from api.answers import Answers, Listing, Record
from api.exports.formats import EXPORT_FORMATS
from api.formats import to_csv
from api.scope import scoped
from api.viewer import Role, Viewer
from tests.api.conftest import HEADER_AUTH, Connect, as_member

MARCH = "/api/v1/chargeback/2026-03/export"
XLSX = EXPORT_FORMATS["xlsx"].media_type


def everything(answers: Answers, viewer: Viewer) -> Answers:
    """No scope."""
    return answers


SCOPES = (scoped, everything)


def exported(client: TestClient, **params: str) -> list[dict[str, str]]:
    reply = client.get(MARCH, params=params)
    assert reply.status_code == 200, reply.text
    return list(csv.DictReader(io.StringIO(reply.text, newline="")))


def teams(client: TestClient, **params: str) -> set[str]:
    return {row["team"] for row in exported(client, **params)}


def test_the_lines_are_those_of_the_statement(client: TestClient) -> None:
    told = client.get("/api/v1/chargeback/2026-03").json()["rows"]
    lines = exported(client)
    assert [row["team"] for row in lines] == [row["team"] for row in told]
    assert [float(row["gpu_hours"]) for row in lines] == pytest.approx([row["gpu_hours"] for row in told])


@pytest.mark.parametrize(
    ("params", "accept", "media_type", "suffix"),
    [
        ({}, "*/*", "text/csv", "csv"),
        ({}, "text/csv", "text/csv", "csv"),
        ({"format": "parquet"}, "application/json", "application/vnd.apache.parquet", "parquet"),
        ({}, "application/vnd.apache.parquet", "application/vnd.apache.parquet", "parquet"),
        ({}, XLSX, XLSX, "xlsx"),
        ({"format": "xlsx"}, "*/*", XLSX, "xlsx"),
    ],
)
def test_a_format_is_named_or_accepted(
    client: TestClient, params: dict[str, str], accept: str, media_type: str, suffix: str
) -> None:
    reply = client.get(MARCH, params=params, headers={"Accept": accept})
    assert reply.status_code == 200
    assert reply.headers["content-type"].split(";")[0] == media_type
    expected = f'attachment; filename="chargeback-2026-03-open.{suffix}"'
    assert reply.headers["content-disposition"] == expected
    assert reply.headers["cache-control"] == "no-store"
    if suffix == "parquet":
        assert pl.read_parquet(io.BytesIO(reply.content))["team"].to_list() == ["blue", "red"]


@pytest.mark.parametrize(
    ("params", "accept", "status", "says"),
    [
        ({"format": "exel"}, "*/*", 400, "format 'exel': expected one of csv, parquet, xlsx, focus"),
        ({"fromat": "csv"}, "*/*", 400, "did you mean 'format'?"),
        ({"by": "team"}, "*/*", 400, "query parameter 'by'"),
        ({}, "image/png", 406, "Accept: image/png: expected one of text/csv, application/vnd.apache"),
        # The sample has no prices.
        ({"format": "focus"}, "*/*", 409, "no prices are set: add money.prices"),
    ],
)
def test_what_cannot_be_exported_is_a_problem_that_says_what_to_do(
    client: TestClient, params: dict[str, str], accept: str, status: int, says: str
) -> None:
    reply = client.get(MARCH, params=params, headers={"Accept": accept})
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json")
    assert says in reply.json()["detail"]


def test_a_month_that_is_none_or_has_not_begun_is_refused(client: TestClient) -> None:
    for month, says in (("march", "expected year and month"), ("2026-09", "has not begun")):
        reply = client.get(f"/api/v1/chargeback/{month}/export")
        assert reply.status_code == 400
        assert says in reply.json()["detail"]


def test_a_researchers_file_has_the_own_team_only(connect: Connect) -> None:
    member = as_member("red-people")
    red, unscoped = (connect(member, auth=HEADER_AUTH, scope=scope) for scope in SCOPES)
    assert teams(red) == {"red"}
    assert red.get(MARCH, params={"team": "blue"}).status_code == 403
    workbook = red.get(MARCH, params={"format": "xlsx"}).content
    assert b"blue" not in b"".join(_parts(workbook))
    # The same without the scope: so it is the scope that hides.
    assert teams(unscoped) == {"red", "blue"}
    assert b"blue" in b"".join(_parts(unscoped.get(MARCH, params={"format": "xlsx"}).content))


def test_a_researcher_of_no_team_gets_no_line(connect: Connect) -> None:
    assert exported(connect(as_member("strangers"), auth=HEADER_AUTH)) == []


def test_finance_gets_every_line_and_no_workload(connect: Connect) -> None:
    member = as_member("money")
    finance, unscoped = (connect(member, auth=HEADER_AUTH, scope=scope) for scope in SCOPES)
    assert teams(finance) == {"red", "blue"}
    assert teams(finance, team="blue") == {"blue"}
    uid = unscoped.get("/api/v1/workloads").json()["rows"][0]["uid"]
    for path in ("workloads", "pending-workloads"):
        listed = finance.get(f"/api/v1/{path}").json()
        assert (listed["rows"], listed["total"]) == ([], 0)
        assert "the role finance sees the lines of statements" in listed["hints"][0]
    for path in (f"workloads/{uid}", f"workloads/{uid}/why"):
        assert finance.get(f"/api/v1/{path}").status_code == 404
        assert unscoped.get(f"/api/v1/{path}").status_code == 200
    assert unscoped.get("/api/v1/workloads").json()["total"] > 0
    # What is of no single workload stays.
    for path in ("metrics/held_gpus", "teams", "sources", "gpu-faults", "quota/proposals", "reports/waste"):
        assert finance.get(f"/api/v1/{path}").status_code == 200


class Hit:
    """Answers about a fault and a proposal, each with the workload that it concerns."""

    def gpu_faults(self, _: int | None) -> Listing:
        row = {"team": "red", "pod_uid": "p", "workload_uid": "w", "workload": "train", "namespace": "red"}
        return Listing(as_of_ms=0, rows=[row], total=1, page=1, page_size=1)

    def quota_proposals(self, _: int | None) -> Listing:
        return Listing(as_of_ms=0, rows=[self.quota_proposal("1", None)], total=1, page=1, page_size=1)

    def quota_proposal(self, proposal_id: str, _: int | None) -> Record:
        return {"proposal_id": proposal_id, "exposed": [{"uid": "w"}]}


def test_finance_hears_of_faults_and_proposals_without_the_workloads_that_they_hit() -> None:
    finance = scoped(cast("Answers", Hit()), Viewer(name="cfo", role=Role.FINANCE))
    [fault] = finance.gpu_faults().rows
    assert fault == {"team": "red", "pod_uid": "", "workload_uid": "", "workload": "", "namespace": ""}
    assert finance.quota_proposals().rows == [{"proposal_id": "1", "exposed": []}]
    assert finance.quota_proposal("1") == {"proposal_id": "1", "exposed": []}


def test_nobody_gets_nothing(connect: Connect) -> None:
    assert connect(auth=HEADER_AUTH).get(MARCH).status_code == 401


def test_the_route_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"][MARCH.replace("2026-03", "{month}")]["get"]
    names = {each["name"] for each in described["parameters"]}
    assert {"month", "format", "as_of", "team"} <= names
    assert "by" not in names
    media_types = {each.media_type for each in EXPORT_FORMATS.values()}
    assert set(described["responses"]["200"]["content"]) == media_types


def _parts(workbook: bytes) -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(workbook)) as book:
        return [book.read(name) for name in book.namelist()]


def test_no_csv_of_the_api_holds_a_formula() -> None:
    rows = [{"user": "=1+1", "value": -1.5, "note": None, "at": "-"}]
    assert to_csv({"rows": rows}) == b"user,value,note,at\n'=1+1,-1.5,,'-\n"


@pytest.mark.parametrize(
    ("group", "role", "teams"),
    [("red-people", "researcher", ["red"]), ("money", "finance", []), ("gpu-admins", "admin", [])],
)
def test_a_viewer_is_told_for_whom_the_api_takes_them(
    connect: Connect, group: str, role: str, teams: list[str]
) -> None:
    told = connect(as_member(group), auth=HEADER_AUTH).get("/api/v1/viewer").json()
    assert told == {"name": "ada", "role": role, "teams": teams}
    assert connect(auth=HEADER_AUTH).get("/api/v1/viewer").status_code == 401
