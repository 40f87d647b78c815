"""Cases drawn from public bug reports: what a scrape shows of a queue that empties or is deleted."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from alerts.exporter import Exporter
from analytics.evaluate import evaluate, exported_asks, parameters
from analytics.metrics import REGISTRY
from domain.metric import Measurement
from domain.policy import Policy
from store.embedded import Store
from tests.cases.replay import Json, case
from tests.golden.cases import store_of

START_MS = 1_800_000_000_000
METRIC = REGISTRY["starvation_index_seconds"]


def a04_rows(data: Json) -> dict[str, list[dict[str, Any]]]:
    """A job waits from its submission, and a queue lives, until the last step that shows it."""
    seen: dict[tuple[str, int], int] = {}
    queues: dict[str, int] = {}
    for step in data["steps"]:
        for queue, waits in step["queues"].items():
            queues[queue] = START_MS + step["t"] * 1000
            seen |= {(queue, START_MS + (step["t"] - wait) * 1000): queues[queue] for wait in waits}
    jobs = [{"workload_uid": str(place), "queue": queue} for place, (queue, _) in enumerate(seen)]
    waiting = [
        {"workload_uid": str(place), "state": "queued", "start_ms": start, "end_ms": last}
        for place, ((_, start), last) in enumerate(seen.items())
    ]
    live = [{"queue": queue, "start_ms": 0, "end_ms": last} for queue, last in queues.items()]
    return {"workload": jobs, "span": waiting, "queue_span": live}


def scrape(exporter: Exporter, store: Store, second: int) -> dict[str, float]:
    """What Prometheus reads of the metric after it was measured at that second."""
    as_of_ms = START_MS + second * 1000
    (ask,) = exported_asks(METRIC, as_of_ms, Policy())
    samples = evaluate(METRIC, store.rows(METRIC.sql, parameters(METRIC, ask)), ask)
    exporter.publish(
        [Measurement(metric=METRIC.name, as_of_ms=as_of_ms, sample=each) for each in samples], as_of_ms
    )
    families = {family.name: family for family in text_string_to_metric_families(exporter.text().decode())}
    return {sample.labels["queue"]: sample.value for sample in families[f"gpuledger_{METRIC.name}"].samples}


def test_a04_an_empty_queue_reports_0_and_a_deleted_one_nothing() -> None:
    given, expected = case("A04-oldest-wait-of-an-empty-queue")
    exporter = Exporter({METRIC.name: METRIC})
    with store_of(a04_rows(given["data"])) as store:
        steps = given["data"]["steps"]
        assert {"scrapes": {str(step["t"]): scrape(exporter, store, step["t"]) for step in steps}} == expected
