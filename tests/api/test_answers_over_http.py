"""What the routes give: shapes, formats, paging, instants, problems."""

import io
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from api import checkpoints, closing, who
from api.exports import route as export
from api.routes import ROUTES
from api.schemas import SCHEMAS
from domain.facts import Batch, ObjectKind, SetAside, SourceMark
from domain.window import format_instant
from service.answers import Answers
from tests.build import Books, at, make_span, make_workload

DEPTH = "/api/v1/metrics/queue_depth_workloads"


def depth(client: TestClient, **params: str) -> dict[str, float]:
    rows = client.get(DEPTH, params={"by": "team", **params}).json()["rows"]
    return {row["labels"]["team"]: row["value"] for row in rows}


def test_every_metric_is_listed_with_its_definition(client: TestClient, answers: Answers) -> None:
    listed = client.get("/api/v1/metrics").json()
    assert [row["name"] for row in listed["rows"]] == list(answers.registry())
    assert all(row["definition"] and row["unit"] for row in listed["rows"])


def test_the_list_of_metrics_is_a_table_too(client: TestClient, answers: Answers) -> None:
    told = client.get("/api/v1/metrics", headers={"Accept": "text/csv"})
    assert (told.status_code, len(pl.read_csv(io.StringIO(told.text)))) == (200, len(answers.registry()))


def test_a_metric_answer_has_its_instant_window_unit_and_coverage(client: TestClient) -> None:
    answer = client.get("/api/v1/metrics/queue_wait_seconds", params={"window": "2h", "by": "team"}).json()
    head = {key: answer[key] for key in ("metric", "unit", "as_of", "window", "coverage")}
    assert head == {
        "metric": "queue_wait_seconds",
        "unit": "seconds",
        "as_of": "2026-03-02T11:00:00.000Z",
        "window": "2h",
        "coverage": 1.0,
    }
    assert set(answer["rows"][0]) == {"labels", "value", "lower_bound", "few", "undefined_because"}


@pytest.mark.long
def test_every_metric_answers_for_every_subset_of_one_dimension(client: TestClient, answers: Answers) -> None:
    for name, metric in answers.registry().items():
        for label in ("", *metric.dimensions):
            assert client.get(f"/api/v1/metrics/{name}", params={"by": label}).status_code == 200, (
                name,
                label,
            )


def test_an_instant_after_now_is_refused_and_now_is_told(client: TestClient) -> None:
    reply = client.get(DEPTH, params={"as_of": "2026-03-02T11:01:01Z"})
    assert reply.status_code == 400
    told = "nothing is known of the time after 2026-03-02T11:00:00.000Z; ask for that instant"
    assert told in reply.json()["detail"]
    # Clocks differ: what is a minute ahead is answered.
    assert client.get(DEPTH, params={"as_of": "2026-03-02T11:01:00Z"}).status_code == 200


def test_depth_counts_who_waited_at_the_instant_asked_for(client: TestClient) -> None:
    # At 9:15 r-done runs and b-run waits; at 9:27 r-done waits again and b-run runs.
    assert {team: value for team, value in depth(client, as_of="2026-03-02T09:15:00Z").items() if value} == {
        "blue": 1
    }
    assert {team: value for team, value in depth(client, as_of="2026-03-02T09:27:00Z").items() if value} == {
        "red": 1
    }


def test_the_short_words_of_the_command_line_filter_too(client: TestClient) -> None:
    rows = client.get("/api/v1/workloads", params={"class": "interactive"}).json()["rows"]
    assert [row["uid"] for row in rows] == ["r-wait"]


def test_a_list_is_paged_and_says_how_many_there_are(client: TestClient) -> None:
    pages = [
        client.get("/api/v1/workloads", params={"page": page, "page_size": 3, "sort": "submitted_at"}).json()
        for page in (1, 2, 3)
    ]
    assert [[row["uid"] for row in page["rows"]] for page in pages] == [
        ["r-done", "b-run", "r-wait"],
        ["b-wait"],
        [],
    ]
    assert {page["total"] for page in pages} == {4}


def test_a_list_can_be_ordered_downwards_and_filtered_by_state(client: TestClient) -> None:
    params = {"state": "queued", "sort": "-queue_wait_seconds"}
    rows = client.get("/api/v1/workloads", params=params).json()["rows"]
    assert [(row["uid"], row["queue_wait_seconds"]) for row in rows] == [
        ("r-wait", 5400.0),
        ("b-wait", 4800.0),
    ]


def test_a_workload_is_told_with_its_waits_spans_attempts_and_bounds(client: TestClient) -> None:
    told = client.get("/api/v1/workloads/r-done").json()
    assert {
        key: told[key]
        for key in (
            "state", "outcome", "queue_wait_seconds", "time_to_running_seconds", "requeue_wait_seconds",
            "preemptions", "evictions", "gpu_seconds",
        )
    } == {
        "state": "ended",
        "outcome": "succeeded",
        "queue_wait_seconds": 600.0,
        "time_to_running_seconds": 660.0,
        "requeue_wait_seconds": 300.0,
        "preemptions": 1,
        "evictions": 0,
        "gpu_seconds": (15 + 30) * 60.0,
    }  # fmt: skip
    assert told["ended_at"] == told["ended_at_latest"] == "2026-03-02T10:00:00.000Z"
    assert told["ended_at_earliest"] == "2026-03-02T09:58:00.000Z"
    assert [attempt["outcome"] for attempt in told["attempts"]] == ["preempted", "succeeded"]
    assert told["attempts"][0]["preempted_by"] == "b-run"
    pods = [pod for attempt in told["attempts"] for pod in attempt["pods"]]
    assert sum(pod["gpu_seconds"] for pod in pods) == told["gpu_seconds"]


@pytest.mark.parametrize("minutes", range(0, 121, 5))
def test_the_current_wait_of_a_workload_is_what_the_starvation_index_says(
    client: TestClient, minutes: int
) -> None:
    as_of = format_instant(at(minutes))
    rows = client.get("/api/v1/workloads", params={"as_of": as_of, "sort": "-waiting_seconds"}).json()["rows"]
    waits = [row["waiting_seconds"] for row in rows]
    assert all(
        (wait is not None) == (row["state"] == "queued") for wait, row in zip(waits, rows, strict=True)
    )
    known = [wait for wait in waits if wait is not None]
    assert waits == sorted(known, reverse=True) + [None] * (len(waits) - len(known))
    index = client.get("/api/v1/metrics/starvation_index_seconds", params={"as_of": as_of, "by": ""}).json()
    assert max(known, default=0.0) == (index["rows"][0]["value"] or 0.0)


def test_the_current_wait_is_that_of_the_episode_and_a_workload_tells_its_instant(client: TestClient) -> None:
    # r-done waited 10 minutes at first, and since 9:25 again.
    told = client.get("/api/v1/workloads/r-done", params={"as_of": "2026-03-02T09:28:00Z"}).json()
    assert (told["as_of"], told["waiting_seconds"]) == ("2026-03-02T09:28:00.000Z", 180.0)
    assert (told["queue_wait_seconds"], told["requeue_wait_seconds"]) == (600.0, 180.0)
    assert client.get("/api/v1/workloads/r-done").json()["waiting_seconds"] is None


def test_an_earlier_instant_knows_nothing_of_what_came_later(client: TestClient) -> None:
    told = client.get("/api/v1/workloads/r-done", params={"as_of": "2026-03-02T09:20:00Z"}).json()
    assert (told["state"], told["outcome"], told["ended_at"]) == ("running", "open", None)
    assert (told["preemptions"], told["requeue_wait_seconds"], told["gpu_seconds"]) == (0, 0.0, 600.0)
    assert [(span["state"], span["end_at"]) for span in told["spans"]][-1] == ("running", None)
    assert [(attempt["outcome"], attempt["preempted_by"]) for attempt in told["attempts"]] == [("open", "")]
    before = client.get("/api/v1/workloads/r-done", params={"as_of": "2026-03-02T09:00:00Z"})
    assert before.status_code == 404


def test_csv_and_arrow_give_the_rows_of_the_json(client: TestClient) -> None:
    params = {"by": "team"}
    as_json = client.get(DEPTH, params=params).json()["rows"]
    csv = client.get(DEPTH, params=params, headers={"Accept": "text/csv"})
    assert csv.headers["content-type"].startswith("text/csv")
    from_csv = pl.read_csv(io.BytesIO(csv.content))
    arrow = client.get(DEPTH, params=params, headers={"Accept": "application/vnd.apache.arrow.stream"})
    from_arrow = pl.read_ipc_stream(io.BytesIO(arrow.content))
    expected = [(row["labels"]["team"], row["value"]) for row in as_json]
    assert from_csv.select("team", "value").rows() == from_arrow.select("team", "value").rows() == expected
    assert from_arrow["metric"].unique().to_list() == ["queue_depth_workloads"]


def test_an_unknown_format_is_a_problem_that_names_the_known_ones(client: TestClient) -> None:
    reply = client.get(DEPTH, headers={"Accept": "image/png"})
    assert (reply.status_code, reply.headers["content-type"]) == (406, "application/problem+json")
    assert "text/csv" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/v1/metrics/queue_wait_second", 404, "did you mean 'queue_wait_seconds'?"),
        ("/api/v1/workloads/none", 404, "workload 'none'"),
        ("/api/v1/nothing", 404, "/api/v1/nothing"),
        (f"{DEPTH}?as_of=yesterday", 400, "RFC 3339"),
        (f"{DEPTH}?window=-1h", 400, "duration '-1h'"),
        (f"{DEPTH}?by=colour", 400, "label 'colour'"),
        (f"{DEPTH}?tema=red", 400, "did you mean 'team'?"),
        (f"{DEPTH}?as_of=2026-01-01T00:00:00Z&as_of=2026-01-02T00:00:00Z", 400, "stands 2 times"),
        ("/api/v1/workloads?page=0", 400, "page = '0'"),
        ("/api/v1/workloads?page=2000000000", 400, "at most 999999999"),
        ("/api/v1/workloads?page_size=100000", 400, "at most 1000"),
        ("/api/v1/workloads?sort=password", 400, "sort 'password'"),
        ("/api/v1/workloads?state=asleep", 400, "state 'asleep'"),
    ],
)
def test_a_wrong_question_is_a_problem_that_says_what_to_do(
    client: TestClient, path: str, status: int, says: str
) -> None:
    reply = client.get(path)
    problem = reply.json()
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json")
    assert set(problem) == {"type", "title", "status", "detail", "instance"}
    assert problem["status"] == status
    assert says in problem["detail"]


def test_a_wrong_method_is_a_problem(client: TestClient) -> None:
    reply = client.post("/api/v1/teams")
    assert (reply.status_code, reply.headers["content-type"]) == (405, "application/problem+json")


def test_an_inner_error_tells_nothing_of_the_inside(client: TestClient, answers: Answers) -> None:
    answers.store.close()
    reply = client.get("/api/v1/teams")
    assert reply.status_code == 500
    assert "store" not in reply.text.lower()
    assert client.get("/readyz").status_code == 503


def test_teams_and_sources_are_listed(client: TestClient) -> None:
    teams = client.get("/api/v1/teams").json()["rows"]
    assert [(row["team"], row["workloads"], row["open_workloads"]) for row in teams] == [
        ("blue", 2, 2),
        ("red", 2, 1),
    ]
    source = client.get("/api/v1/sources").json()["rows"][0]
    assert (source["cluster"], source["kind"], source["stale"], source["set_aside"]) == (
        "north",
        "Pod",
        False,
        0,
    )


def test_a_source_never_read_is_not_stale_and_has_no_instant(client: TestClient, answers: Answers) -> None:
    never = SourceMark(kind=ObjectKind.NODE, resource_version="", epoch=0, seen_ms=0, last_error="broken: no")
    aside = [
        SetAside(source="nodes", because=f"cause {number}", sample="", count=number, observed_ms=1)
        for number in range(1, 13)
    ]
    answers.store.append(Batch(cluster="north", marks={ObjectKind.NODE: never}, set_aside=aside))
    reply = client.get("/api/v1/sources").json()
    check(reply, SCHEMAS["SourceList"], at="sources")
    states = [(row["kind"], row["state"], row["stale"], row["seen_at"] is None) for row in reply["rows"]]
    assert states == [
        ("Node", "never_read", False, True),
        ("Pod", "read", False, False),
        ("nodes", "set_aside_only", False, True),
    ]
    causes = reply["rows"][2]["set_aside_causes"]
    assert [causes[0], causes[-1]] == [
        {"because": "cause 12", "count": 12},
        {"because": "other causes", "count": 1 + 2},
    ]
    assert sum(cause["count"] for cause in causes) == reply["rows"][2]["set_aside"]
    csv = client.get("/api/v1/sources", headers={"Accept": "text/csv"}).text
    assert "cause 12: 12; cause 11: 11" in csv
    # What the cluster has and nobody reads is missing from the figures.
    assert client.get(DEPTH).json()["coverage"] == 0.5


def test_the_probes_and_the_exposition_answer(client: TestClient) -> None:
    assert client.get("/livez").text == client.get("/readyz").text == "ok"
    assert client.get("/readyz?verbose").text == "[+]north/Pod read, 0 s behind\nok\n"
    metrics = client.get("/metrics")
    assert metrics.text == "up 1\n"
    assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_no_cache_keeps_an_answer(client: TestClient) -> None:
    assert client.get("/api/v1/teams").headers["cache-control"] == "no-store"


def test_the_description_has_every_route_and_every_answer_has_its_shape(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    # tests/service/test_checkpoints_told.py, test_closing.py, test_chargeback_export.py
    others = (checkpoints.PATH, closing.PATH, export.PATH, who.PATH)
    assert list(described["paths"]) == [*(route.path for route in ROUTES), *others]
    for route in ROUTES:
        if route.name == "quota_proposal":
            continue  # nothing is proposed here: tests/api/test_quota.py
        name = "waits" if route.name == "report" else "queue_wait_seconds"
        path = route.path.format(name=name, uid="r-done", month="2026-03")
        asked = {"start": "2026-03-02T10:00:00Z", "step": "1h"} if route.name == "metric_range" else {}
        check(client.get(path, params=asked).json(), SCHEMAS[route.schema], at=route.path)


def check(value: Any, schema: dict[str, Any], *, at: str) -> None:
    """Types, required keys and unknown keys of a value, as far as our schemas use the language."""
    if "$ref" in schema:
        check(value, SCHEMAS[schema["$ref"].rpartition("/")[2]], at=at)
        return
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    types: dict[str, Any] = {
        "string": str, "number": (int, float), "integer": int, "boolean": bool, "array": list, "object": dict,
        "null": type(None),
    }  # fmt: skip
    assert any(isinstance(value, types[kind]) for kind in kinds), (at, value, schema)
    assert value in schema.get("enum", [value]), (at, value)
    if isinstance(value, list):
        for item in value:
            check(item, schema["items"], at=f"{at}[]")
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema["required"]) <= set(value) <= set(schema["properties"]), (at, value)
        for key, member in value.items():
            check(member, schema["properties"][key], at=f"{at}.{key}")


def test_an_empty_filter_asks_for_what_has_no_such_label(client: TestClient, answers: Answers) -> None:
    books = Books(cluster="south")
    make_workload(books, "alone", queue="")
    make_span(books, "alone", "queued", 0, first_wait=True)
    books.write(answers.store)

    def listed(**params: str | list[str]) -> set[str]:
        reply = client.get("/api/v1/workloads", params=params).json()
        return {row["uid"] for row in reply["rows"]}

    everyone = listed()
    assert listed(queue="") == {"alone"}
    assert listed(queue=["", "main", "side"]) == everyone
    assert listed(team="") == listed(**{"class": ""}) == set()
    rows = client.get(DEPTH, params={"by": "queue", "queue": ""}).json()["rows"]
    assert [(row["labels"], row["value"]) for row in rows] == [({"queue": ""}, 1.0)]


def test_workloads_with_skewed_stamps_are_counted_by_cluster_and_reason(
    client: TestClient, answers: Answers
) -> None:
    books = Books(cluster="south")
    told = "bound 90 s before the submission"
    make_workload(books, "skewed-1", skewed=told)
    make_span(books, "skewed-1", "queued", 0, 10, first_wait=True)
    make_workload(books, "skewed-2", skewed="bound 61.5 s before the submission")
    make_workload(books, "no-gpu", skewed=told, gpus=0)
    make_workload(books, "later", skewed=told, submitted=100)
    books.write(answers.store)
    reply = client.get("/api/v1/sources", params={"as_of": format_instant(at(60))}).json()
    check(reply, SCHEMAS["SourceList"], at="sources")
    row = next(row for row in reply["rows"] if row["kind"] == "skewed stamps")
    assert (row["cluster"], row["state"], row["set_aside"]) == ("south", "set_aside_only", 2)
    assert row["set_aside_causes"] == [{"because": "bound before the submission", "count": 2}]
    detail = client.get("/api/v1/workloads/skewed-1").json()
    check(detail, SCHEMAS["WorkloadDetail"], at="detail")
    assert detail["skewed"] == told
    waits = ("queue_wait_seconds", "time_to_running_seconds", "requeue_wait_seconds", "waiting_seconds")
    assert [detail[name] for name in waits] == [None] * 4
    assert client.get("/api/v1/workloads/r-done").json()["skewed"] == ""


def test_waits_of_single_members_are_told_as_they_stood(client: TestClient, answers: Answers) -> None:
    books = Books(cluster="south")
    make_workload(books, "job")
    wait = {"workload_uid": "job", "pod_uid": "p", "micro_gpus": 2_000_000}
    books.add("member_wait", start_ms=at(10), end_ms=at(20), **wait)
    books.write(answers.store)

    def waits(minutes: int) -> Any:
        reply = client.get("/api/v1/workloads/job", params={"as_of": format_instant(at(minutes))}).json()
        check(reply, SCHEMAS["WorkloadDetail"], at="detail")
        return reply["member_waits"]

    known = {"pod_uid": "p", "start_at": format_instant(at(10)), "gpus": 2.0}
    assert waits(5) == []
    assert waits(15) == [known | {"end_at": None}]
    assert waits(25) == [known | {"end_at": format_instant(at(20))}]


@pytest.mark.parametrize("path", ["/api/v1/workloads/", "/api/v1/teams/", "/metrics/"])
def test_a_slash_at_the_end_leads_nowhere(client: TestClient, path: str) -> None:
    reply = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
    assert reply.status_code == 404
    assert "location" not in reply.headers


def test_waiting_is_every_state_in_which_a_workload_waits(client: TestClient) -> None:
    def uids(state: str) -> list[str]:
        reply = client.get("/api/v1/workloads", params={"state": state})
        assert reply.status_code == 200, reply.text
        return [row["uid"] for row in reply.json()["rows"]]

    assert uids("waiting") == uids("queued,checking,placing") != []


def test_a_label_that_every_row_bears_may_be_asked_for(client: TestClient) -> None:
    asked = [client.get("/api/v1/metrics/lint_findings_workloads", params={"by": by}) for by in ("", "rule")]
    assert [reply.status_code for reply in asked] == [200, 200]
    assert asked[0].json()["rows"] == asked[1].json()["rows"] != []
