"""Who closes a month and who sees what of it: finance all lines and no workloads, a researcher own lines."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.app import Api, create_app
from api.auth import HeaderAuth
from api.scope import Scope, scoped
from api.viewer import Role
from domain.policy import Policy
from domain.window import FixedClock
from service.answers import Answers
from service.cli import run
from store import statements as kept
from store.embedded import Store
from tests.service.closing_world import NOBODY, as_before, site
from tests.service.test_chargeback import AGREED, hours

NEXT = 61 * 24
CLOSE, OCTOBER = "/api/v1/chargeback/2026-10/close", "/api/v1/chargeback/2026-10"
ROLES = {"cfo": Role.FINANCE, "ops": Role.OPERATOR, "root": Role.ADMIN}
AUTH = HeaderAuth(
    secret="s",  # noqa: S106 (of this page)
    roles=ROLES,
    team_groups={"redteam": ("red",)},
    token="program",  # noqa: S106 (of this page)
)


@pytest.fixture(scope="module")
def kept_site() -> Iterator[Store]:
    store = site()
    yield store
    store.close()


def client(store: Store, scope: Scope = scoped) -> TestClient:
    answers = Answers(store, NOBODY, Policy(), FixedClock(hours(NEXT)), agreement=AGREED)
    return TestClient(create_app(Api(answers=answers, auth=AUTH, metrics_text=lambda: b"", scope=scope)))


def as_(group: str) -> dict[str, str]:
    return {"x-gpuledger-proxy-secret": "s", "x-forwarded-user": f"a-{group}", "x-forwarded-groups": group}


def test_finance_and_admin_close_and_nobody_else(kept_site: Store) -> None:
    as_before(kept_site)
    http, reason = client(kept_site), {"reason": "made up"}
    for who in (as_("redteam"), as_("ops"), {"authorization": "Bearer program"}):
        assert http.post(CLOSE, headers=who, json=reason).status_code == 403
    assert http.post(CLOSE, json=reason).status_code == 401
    # A page of another site cannot send this type unasked.
    assert http.post(CLOSE, headers=as_("cfo"), content="{}").status_code == 400
    assert http.post(CLOSE, headers=as_("cfo"), json={"reasons": "x"}).status_code == 400
    refused = http.post(CLOSE, headers=as_("cfo"), json={})
    assert (refused.status_code, "coverage" in refused.json()["detail"]) == (409, True)
    assert kept.closed_months(kept_site) == []
    done = http.post(CLOSE, headers=as_("cfo"), json=reason)
    assert (done.status_code, done.json()["closed_by"]) == (201, "a-cfo")
    again = http.post(CLOSE, headers=as_("root"), json=reason)
    assert (again.status_code, done.json()["sha256"] in again.json()["detail"]) == (409, True)
    assert http.get(OCTOBER, headers=as_("cfo")).json()["closed"]["sha256"] == done.json()["sha256"]


def foreign(http: TestClient) -> list[str]:
    """What a researcher of team red is told that is not red's."""
    seen = http.get(OCTOBER, headers=as_("redteam")).json()
    teams = {row["team"] for row in seen["rows"]} - {"red"}
    whole = [name for name in ("books", "from_unassigned_gpu_hours") if seen[name] is not None]
    listed = http.get("/api/v1/workloads", headers=as_("redteam")).json()["rows"]
    return [
        *sorted(teams),
        *whole,
        *sorted({row["team"] for row in listed} - {"red"}),
        *(each["name"] for each in seen["checks"]),
    ]


def workloads_told(http: TestClient) -> list[str]:
    """What the role finance is told of single workloads."""
    told = [f"/api/v1/workloads/{uid}" for uid in ("r0", "b0")]
    found = [path for path in told if http.get(path, headers=as_("cfo")).status_code != 404]
    return found + [row["uid"] for row in http.get("/api/v1/workloads", headers=as_("cfo")).json()["rows"]]


def test_finance_sees_every_line_and_no_workload_and_a_researcher_the_own_teams(kept_site: Store) -> None:
    as_before(kept_site)
    http = client(kept_site)
    seen = http.get(OCTOBER, headers=as_("cfo")).json()
    assert {row["team"] for row in seen["rows"]} == {"red", "blue", "__idle__"}
    assert seen["books"]["difference_gpu_hours"] == 0
    assert (workloads_told(http), foreign(http)) == ([], [])
    own = http.get(OCTOBER, headers=as_("redteam")).json()
    assert own["total"]["held_gpu_hours"] == 20
    assert http.get(f"{OCTOBER}?team=blue", headers=as_("redteam")).status_code == 403


def test_without_the_scope_the_same_checks_find_what_must_not_be_seen(kept_site: Store) -> None:
    as_before(kept_site)
    unfiltered: Scope = lambda answers, _: answers  # noqa: E731 (the filter switched off)
    http = client(kept_site, unfiltered)
    assert {"blue", "__idle__", "books"} <= set(foreign(http))
    assert {"/api/v1/workloads/r0", "b1"} <= set(workloads_told(http))


def test_a_month_is_closed_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kept_site: Store
) -> None:
    as_before(kept_site)
    (tmp_path / "data").mkdir()
    kept_site.copy_to(tmp_path / "data" / "gpuledger.duckdb")
    settings = tmp_path / "gpuledger.yaml"
    settings.write_text("money: {prices: [{valid_from: 2026-01-01, list: 2.50}]}\n")
    monkeypatch.setitem(os.environ, "GPULEDGER_CONFIG", str(settings))
    monkeypatch.setattr("service.clocks.clock_of", lambda *_: FixedClock(hours(NEXT)))

    def said(*words: str, code: int = 0) -> tuple[str, str]:
        assert run(["chargeback", *words, "--data-dir", str(tmp_path / "data")]) == code
        printed = capsys.readouterr()
        return printed.out, printed.err

    _, err = said("close", "--month", "2026-10", code=3)
    assert "coverage: at least 99 % of the month was observed" in err
    out, err = said("close", "--month", "2026-10", "--reason", "made up")
    sha256 = out.split()[-1]
    assert out == f"2026-10 is closed: sha256 {sha256}\n"
    assert "holds   capacity = held + idle + unavailable - overlap, micro-GPU-ms" in err
    assert "forced  at least 99 % of the month was observed" in err
    _, err = said("close", "--month", "2026-10", "--reason", "made up", code=3)
    assert f"with sha256 {sha256}" in err
    shown: dict[str, Any] = json.loads(said("show", "2026-10", "-o", "json")[0])
    assert (shown["closed"]["sha256"], shown["closed"]["reason"]) == (sha256, "made up")
    assert said("close", "--month", "October", code=2)[1].startswith("gpuledger: month 'October'")


def test_a_running_serve_is_ordered_to_close(tmp_path: Path) -> None:
    from service.close_orders import CLOSE as ORDER
    from service.close_orders import CloseOrders
    from service.orders import give, take

    store = site()
    answers = Answers(store, NOBODY, Policy(), FixedClock(hours(NEXT)), agreement=AGREED)
    handlers: dict[str, Callable[[str], str]] = dict(CloseOrders(answers.closer).handlers())
    stop = threading.Event()

    def serve() -> None:
        while not stop.wait(0.01):
            take(tmp_path, handlers)

    thread = threading.Thread(target=serve)
    thread.start()
    asked = json.dumps({"month": "2026-10", "who": "fin", "reason": "made up"})
    told = json.loads(give(tmp_path, ORDER, asked, seconds=60))
    stop.set()
    thread.join()
    assert told["sha256"] == kept.closed_months(store)[0].sha256
    store.close()
