"""Whatever is asked over HTTP: an answer, or a problem in words; never an inner error."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from api.app import Api, create_app
from api.auth import NoAuth
from api.checkpoints import PATH
from api.routes import ROUTES, ApiRoute
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from tests.build import at, filled
from tests.laws import law

NAMES = sorted({parameter.name for route in ROUTES for parameter in route.parameters} | {"x", ""})
METRICS = ("queue_wait_seconds", "held_gpus", "wastage_ratio", "free_gpus")
TEXTS = st.one_of(
    st.sampled_from([
        "", " ", ",", ",,", "red", "red,blue", "x", "0", "1", "-1", "99999999999999999999", "1e9",
        "\u0661", "\u00b2",
        "2026-03-02T11:00:00Z", "2026-03-02T11:00:00+99:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
        "2026-02-30", "NaN", "24h", "0h", "1e400h", "999999w", "0.0001ms", "%00", "\x00", "'",
        '"; drop table x',
        "team", "team,team", "cluster,queue,team", "-submitted_at", "--uid", "uid", "waiting",
        "running", "2026-03",
        "2026-13", "0000-00", "a" * 3000, "\u202e", "../..", "*",
    ]),
    st.text(max_size=8),
)  # fmt: skip
ACCEPTS = st.sampled_from(
    ["application/json", "text/csv", "*/*", "", "text/html", "application/*;q=x", "\x7f"]
)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    store = filled()
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(120)))
    app = create_app(Api(answers=answers, auth=NoAuth(), metrics_text=lambda: b""))
    yield TestClient(
        app, base_url="http://127.0.0.1", raise_server_exceptions=False, client=("127.0.0.1", 5000)
    )
    store.close()


@law(150)
@given(
    route=st.sampled_from(ROUTES),
    name=st.one_of(st.sampled_from(METRICS), st.sampled_from(["r-done", "waits", "waste", "2026-03"]), TEXTS),
    query=st.lists(st.tuples(st.sampled_from(NAMES), TEXTS), max_size=3),
    own=st.booleans(),
    accept=ACCEPTS,
)
def test_any_question_gets_an_answer_or_a_problem(
    route: ApiRoute,
    name: str,
    query: list[tuple[str, str]],
    own: bool,  # noqa: FBT001
    accept: str,
    client: TestClient,
) -> None:
    known = {parameter.name for parameter in route.parameters}
    path = route.path
    if route.path_parameter:
        named = quote(name.replace("/", "").strip(".") or "x", safe="", errors="replace")
        path = path.replace(f"{{{route.path_parameter}}}", named)
    asked: list[tuple[str, str | int | float | bool | None]] = [
        (key, text) for key, text in query if not own or key in known
    ]
    reply = client.get(path, params=asked, headers={"Accept": accept})
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["detail"]


@given(
    body=st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"", b"{}", b"[]", b"null", b"[" * 5000, b'{"workload": 7}', b'{"at": "x"}',
        b'{"step": 1e400}']),
    ),
    kind=st.sampled_from(["application/json", "text/plain", ""]),
)  # fmt: skip
def test_any_body_told_as_a_checkpoint_is_refused_with_words(
    body: bytes, kind: str, client: TestClient
) -> None:
    reply = client.post(PATH, content=body, headers={"Content-Type": kind})
    assert 400 <= reply.status_code < 500 or reply.status_code == 503, reply.text
    assert reply.json()["detail"]
