"""Open cases that the collector alone decides: E01, E02, E03, F04, G05. An adapter only renames."""

from decimal import Decimal

from collector.kube.requests import effective_gpu_requests
from collector.raw import Container, ContainerResources, PodSpec
from domain.errors import QuantityError
from domain.metric import Row
from domain.quantity import Quota, parse_quantity
from domain.window import format_instant
from tests.cases.replay import AFTER, Feed, Json, asking, case, check, instant, lines, told, value

PHASES = {"placing": "Pending", "starting": "Running"}


def as_pod(read: Json) -> Json:
    """The case's pod as the API writes one: `gpus` is a container's request."""
    spec = {"nodeName": read["spec"]["nodeName"], **asking(read["spec"]["gpus"])}
    return read | {"metadata": {"creationTimestamp": "2026-05-04T09:00:00Z"} | read["metadata"], "spec": spec}


def ended(feed: Feed, row: Row) -> Json:
    """A holding that has ended, with the GPU-hours that the product tells of at either end."""
    low, high = int(str(row["released_earliest_ms"])), int(str(row["released_ms"]))
    told_at = [told(feed.store, str(row["pod_uid"]), format_instant(at_ms)) for at_ms in (low, high)]
    return {
        "uid": row["pod_uid"],
        "end_latest": instant(high),
        "end_earliest": instant(low),
        "end_estimated": low < high,
        "gpu_hours_low": round(told_at[0]["gpu_seconds"] / 3600, 3),
        "gpu_hours_high": round(told_at[1]["gpu_seconds"] / 3600, 3),
    }


def test_e01_410_gone_hides_a_delete() -> None:
    name, feed = "E01-410-gone-hides-a-delete", Feed()
    for line in lines(name):
        if line["op"] == "LIST":
            feed.listed("Pod", [as_pod(item) for item in line["items"]], line["resourceVersion"], line["at"])
        else:
            feed.see(line["event"]["type"], line["event"]["object"], line["at"], kind="Pod")
    held = feed.settled().rows("select * from holding order by pod_uid")
    live = [row["pod_uid"] for row in held if row["released_ms"] is None]
    closed = [ended(feed, row) for row in held if row["released_ms"] is not None]
    allocated = value(feed.store, "held_gpus", AFTER)
    check({"live_uids": live, "allocated_gpus": allocated, "closed": closed}, case(name)[1])


def test_e02_replay_after_reconnect() -> None:
    name, feed = "E02-replay-after-reconnect", Feed()
    for second, line in enumerate(lines(name)):
        if "object" in line:
            feed.see(line["type"], as_pod(line["object"]), f"2026-05-04T10:00:0{second}Z", kind="Pod")
    facts = "select moment, count(*) as n from transition group by moment"
    happened = {row["moment"]: row["n"] for row in feed.settled().rows(facts)}
    answer = {
        "submissions": happened["created"],
        "starts": happened["bound"],
        "state": {uid: PHASES[told(feed.store, uid)["state"]] for uid in ("u1", "u2")},
        "rows_stored": feed.intake.readings,
    }
    check(answer, case(name)[1])


def test_e03_event_series_and_null_times() -> None:
    name, feed = "E03-event-series-and-null-times", Feed()
    for line in lines(name):
        feed.see(line["type"], line["object"], "2026-05-04T09:00:00Z")
    feed.settled()
    seen = feed.store.events_of("c", regarding=["pod-1"])
    newest = {one.uid: one.count for one in sorted(seen, key=lambda one: one.last_ms)}
    answer = {
        "occurrences": sum(newest.values()),
        "first_seen": instant(min(one.first_ms for one in seen)),
        "last_seen": instant(max(one.last_ms for one in seen)),
    }
    check(answer, case(name)[1])


def test_f04_quantity_strings() -> None:
    given, expected = case("F04-quantity-strings")
    values = {text: plain(parse_quantity(text)) for text in given["data"]["quantities"]}
    kinds = [quota_kind(odd.get("nominalQuota")) for odd in given["data"]["odd"]]
    assert {"values": values, "absent_kinds": kinds} == expected


def test_g05_init_and_sidecar_requests() -> None:
    given, expected = case("G05-init-and-sidecar-requests")
    answer = {
        one["name"]: effective_gpu_requests(
            PodSpec(
                containers=containers(one["containers"]), init_containers=containers(one["initContainers"])
            )
        )["nvidia.com/gpu"]
        for one in given["data"]["pods"]
    }
    assert answer == expected["effective_gpus"]


def containers(written: list[Json]) -> list[Container]:
    """The case's containers: `gpu` is a request, null when there is none."""
    return [
        Container(
            name=one["name"],
            restart_policy=one.get("restartPolicy"),
            resources=ContainerResources(requests={"nvidia.com/gpu": one["gpu"]} if one["gpu"] else None),
        )
        for one in written
    ]


def quota_kind(written: str | None) -> str:
    try:
        return Quota.of(written).kind
    except QuantityError:
        return "error"


def plain(value: Decimal) -> str:
    """An exact decimal without exponent and without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
