"""Work without GPUs is told where it is asked for, and refused where a metric knows none."""

from starlette.testclient import TestClient


def jobs(client: TestClient, **params: str) -> dict[str, float]:
    answer = client.get("/api/v1/metrics/xdmod_running_jobs", params={"by": "population", **params})
    assert answer.status_code == 200, answer.text
    return {row["labels"].get("population", ""): row["value"] for row in answer.json()["rows"]}


def test_a_population_may_be_asked_for(client: TestClient) -> None:
    # All jobs of these books ask GPUs.
    told = jobs(client, window="24h")
    assert told.keys() == {"gpu"}
    assert jobs(client, window="24h", population="gpu,cpu") == told
    assert jobs(client, window="24h", population="cpu") == {"": None}
    assert jobs(client, window="24h", by="") == {"": told["gpu"]}


def test_hours_are_told_of_one_resource(client: TestClient) -> None:
    url = "/api/v1/metrics/xdmod_used_hours"
    rows = client.get(url, params={"window": "24h", "by": "", "resource": "gpu"}).json()["rows"]
    assert [row["labels"] for row in rows] == [{"resource": "gpu"}]
    both = client.get(url, params={"window": "24h", "by": ""}).json()["rows"]
    assert [row["labels"]["resource"] for row in both] == ["cpu", "gpu", "node", "wall"]
    assert [row for row in both if row["labels"]["resource"] == "gpu"] == rows


def test_a_metric_of_gpu_work_only_refuses_the_question(client: TestClient) -> None:
    answer = client.get("/api/v1/metrics/queue_depth_workloads", params={"population": "cpu"})
    assert answer.status_code == 400
    assert "filter population: expected one of cluster, queue" in answer.json()["detail"]
