"""Cases drawn from public bug reports: what a scrape shows of a queue that empties or is deleted."""

from prometheus_client.parser import text_string_to_metric_families

from alerts.exporter import Exporter
from analytics.metrics import REGISTRY
from domain.window import format_instant
from tests.cases.replay import Feed, Json, answers, case, queued_for, written

START_MS = 1_800_000_000_000
METRIC = REGISTRY["starvation_index_seconds"]


def instant_of(second: int) -> str:
    return format_instant(START_MS + second * 1000)


def objects_of(step: Json) -> dict[str, Json]:
    """The queues of a step, and a Workload for each wait, by uid: what waits on has the same one."""
    queues = {queue: written("ClusterQueue", queue, created=instant_of(-86_400)) for queue in step["queues"]}
    waits = [(queue, step["t"] - wait) for queue, found in step["queues"].items() for wait in found]
    return queues | {
        f"{queue}@{since}": written("Workload", f"{queue}@{since}", created=instant_of(since),
                                    spec=queued_for(1) | {"queueName": queue})
        for queue, since in waits
    }  # fmt: skip


def scrape(exporter: Exporter, feed: Feed, second: int) -> dict[str, float]:
    """What Prometheus reads of the metric after it was measured at that second."""
    as_of_ms = START_MS + second * 1000
    exporter.publish(answers(feed.settled()).measure(METRIC, as_of_ms), as_of_ms)
    families = {family.name: family for family in text_string_to_metric_families(exporter.text().decode())}
    return {sample.labels["queue"]: sample.value for sample in families[f"gpuledger_{METRIC.name}"].samples}


def test_a04_an_empty_queue_reports_0_and_a_deleted_one_nothing() -> None:
    given, expected = case("A04-oldest-wait-of-an-empty-queue")
    exporter, feed = Exporter({METRIC.name: METRIC}), Feed()
    there: dict[str, Json] = {}
    scrapes = {}
    for step in given["data"]["steps"]:
        now = objects_of(step)
        for uid in there.keys() - now.keys():
            feed.see("DELETED", there[uid], instant_of(step["t"] - 1))
        for uid in now.keys() - there.keys():
            feed.see("ADDED", now[uid], instant_of(step["t"] - 1))
        there = now
        scrapes[str(step["t"])] = scrape(exporter, feed, step["t"])
    assert {"scrapes": scrapes} == expected
