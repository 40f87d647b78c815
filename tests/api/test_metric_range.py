"""A metric over a range of instants, asked over HTTP."""

import pytest
from starlette.testclient import TestClient


def test_a_range_tells_each_instant_with_its_coverage(client: TestClient) -> None:
    path = "/api/v1/metrics/queue_depth_workloads"
    asked = {"by": "queue", "start": "2026-03-02T07:00:00Z", "end": "2026-03-02T10:30:00Z", "step": "1h"}
    told = client.get(f"{path}/range", params=asked).json()
    assert {key: told[key] for key in told if key not in {"rows", "hints"}} == {
        "metric": "queue_depth_workloads",
        "unit": "workloads",
        "start": "2026-03-02T07:00:00.000Z",
        "end": "2026-03-02T10:00:00.000Z",
        "step": "1h",
        "window": None,
    }
    rows = list(told["rows"])
    for hour in range(7, 11):
        at = f"2026-03-02T{hour:02}:00:00.000Z"
        alone = client.get(path, params={"by": "queue", "as_of": at}).json()
        for row in alone["rows"]:
            assert rows.pop(0) == {"as_of": at, "coverage": alone["coverage"], **row}
    assert not rows
    assert any(row["undefined_because"] for row in told["rows"])
    assert any(row["value"] for row in told["rows"])
    table = client.get(f"{path}/range", params=asked, headers={"Accept": "text/csv"}).text.splitlines()
    assert table[0] == ("metric,unit,window,as_of,coverage,value,lower_bound,few,undefined_because,queue")
    assert len(table) == 1 + len(told["rows"])


@pytest.mark.parametrize(
    ("asked", "because"),
    [
        ({}, "a range needs start and step"),
        ({"start": "2026-03-02T07:00:00Z", "step": "1ms"}, "take a longer step"),
        ({"start": "2026-03-03T07:00:00Z", "step": "1h"}, "expected a start that is not after the end"),
    ],
)
def test_a_range_that_cannot_be_told_is_refused(
    client: TestClient, asked: dict[str, str], because: str
) -> None:
    reply = client.get("/api/v1/metrics/queue_depth_gpus/range", params=asked)
    assert reply.status_code == 400
    assert because in reply.json()["detail"]
