"""Why a workload waits, over HTTP: its shape, and what a viewer of one team is told."""

from typing import Any

from starlette.testclient import TestClient

from api.schemas import SCHEMAS
from api.why import folded
from tests.api.conftest import HEADER_AUTH, Connect, as_member
from tests.api.test_answers_over_http import check

MINE, THEIRS, JOB = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2, 3))
SAID = (
    f"Preempted to accommodate a workload (UID: {THEIRS}, JobUID: {JOB}) due to Fair Sharing within the "
    "cohort; preemptor path: /all/blue-queue; preemptee path: /all/red-queue"
)


def answer() -> dict[str, Any]:
    finding = {
        "reason": "GPU_SHORTAGE", "sentence": SAID, "since": None, "source": "message", "remedy": "Wait.",
        "text": SAID, "evidence": {"preemptor": THEIRS, "asked": 8, "ahead_in_other_queues": 2},
        "blockers": [{"kind": "workload", "name": uid, "node": "n1", "devices": 4} for uid in (MINE, THEIRS)]
        + [{"kind": "node", "name": "n2", "node": "", "devices": None}],
    }  # fmt: skip
    usual: dict[str, Any] = {
        "amount": 4.0,
        "nodes": ["n1"],
        "since": "2026-03-02T09:00:00.000Z",
        "ends_at": "2026-03-02T12:00:00.000Z",
    }
    holders = [
        {"uid": uid, **dict.fromkeys(("namespace", "team", "user"), team), "name": f"{team}-job", **usual}
        for uid, team in ((MINE, "red"), (THEIRS, "blue"))
    ]
    return {
        "uid": "w", "team": "red", "verdict": SAID, "primary": finding, "further": [finding],
        "holders": holders,
        "other_holders": {"workloads": 1, "amount": 2.0, "first_ends_at": "2026-03-02T13:00:00.000Z"},
        "named": [{"uid": MINE, "team": "red"}, {"uid": THEIRS, "team": "blue"}],
    }  # fmt: skip


def test_a_member_is_told_of_others_in_sums_only() -> None:
    told = folded(answer(), lambda team: team == "red")
    text = str(told)
    assert [name for name in (THEIRS, JOB, "blue") if name in text] == []
    assert [one["uid"] for one in told["holders"]] == [MINE]
    assert told["other_holders"] == {
        "workloads": 2, "amount": 6.0, "first_ends_at": "2026-03-02T12:00:00.000Z"
    }  # fmt: skip
    assert [one["name"] for one in told["primary"]["blockers"]] == [MINE, "n2"]
    assert told["primary"]["evidence"] == {"preemptor": "others", "asked": 8}
    assert "preemptee path: /all/red-queue" in told["primary"]["text"]


def test_who_sees_all_teams_is_told_all() -> None:
    told = folded(answer(), lambda _: True)
    assert told["holders"] == answer()["holders"]
    assert told["primary"]["blockers"] == answer()["primary"]["blockers"]
    assert THEIRS in told["verdict"]


def test_one_that_waits_has_a_reason_of_the_declared_shape(client: TestClient) -> None:
    told = client.get("/api/v1/workloads/r-wait/why").json()
    check(told, SCHEMAS["WorkloadWhy"], at="why")
    assert (told["waits"], told["in_state_seconds"]) == (True, 90 * 60)
    assert told["primary"]["reason"] == "UNKNOWN"
    earlier = client.get("/api/v1/workloads/r-wait/why", params={"as_of": "2026-03-02T09:20:00Z"})
    assert earlier.status_code == 404
    over = client.get("/api/v1/workloads/r-done/why").json()
    assert (over["waits"], over["verdict"], over["primary"]) == (False, "It is over.", None)


def test_foreign_work_looks_like_none_and_own_is_found_by_its_name(connect: Connect) -> None:
    red = connect(as_member("red-people"), auth=HEADER_AUTH)
    assert red.get("/api/v1/workloads/r-wait/why").status_code == 200
    assert red.get("/api/v1/workloads/b-wait/why").status_code == 404

    def listed(**params: str) -> list[str]:
        return [row["uid"] for row in red.get("/api/v1/workloads", params=params).json()["rows"]]

    assert listed(name="r-wait") == ["r-wait"]
    assert listed(name="r-wait", namespace="blue") == listed(name="b-wait") == []
    assert set(listed(namespace="red")) == {"r-done", "r-wait"}
