"""Open cases that the collector alone decides: E01, E02, E03, F04, G05. An adapter only renames."""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from collector.intake import Intake
from collector.kube.requests import effective_gpu_requests
from collector.raw import Container, ContainerResources, PodSpec
from collector.translator import find
from domain.errors import QuantityError
from domain.facts import Moment
from domain.quantity import Quota, parse_quantity
from domain.window import from_ms, parse_instant
from tests.cases.replay import case, lines
from tests.fakes import MemorySink

Json = dict[str, Any]
CREATED = "2026-05-04T09:00:00Z"


def as_pod(written: Json) -> Json:
    """The case's pod as the API writes one: `gpus` is a container's request."""
    spec = {"nodeName": written["spec"]["nodeName"], "containers": [{"resources": {"requests": {}}}]}
    spec["containers"][0]["resources"]["requests"] = {"nvidia.com/gpu": written["spec"]["gpus"]}
    return {**written, "metadata": {"creationTimestamp": CREATED, **written["metadata"]}, "spec": spec}


def hours(start_ms: int, end_ms: int) -> Decimal:
    return Decimal(end_ms - start_ms) / 3_600_000


def taken_in(read: list[tuple[str, str, Json]], kind: str) -> tuple[MemorySink, Intake]:
    """What comes of (watch event or LIST, observed at, object or list)."""
    sink, translator = MemorySink(), find("", kind)
    assert translator is not None
    intake = Intake("c", sink, sink.known("c"))
    for what, observed_at, payload in read:
        if what == "LIST":
            items = [as_pod(item) for item in payload["items"]]
            intake.relisted(translator, items, payload["resourceVersion"], parse_instant(observed_at))
        else:
            intake.see(translator, what, payload, parse_instant(observed_at))
    intake.flush()
    return sink, intake


def gpus(sink: MemorySink, uid: str) -> int:
    body = next(json.loads(said.body) for said in reversed(sink.descriptions) if said.uid == uid)
    return int(body["gpu_requests"]["nvidia.com/gpu"])


def test_e01_410_gone_hides_a_delete() -> None:
    name = "E01-410-gone-hides-a-delete"
    read = [
        (line["op"] if line["op"] == "LIST" else line["event"]["type"], line["at"],
         line if line["op"] == "LIST" else line["event"]["object"])
        for line in lines(name)
    ]  # fmt: skip
    sink, _ = taken_in(read, "Pod")
    live = sorted(state.uid for state in sink.objects.values() if state.gone_ms is None)
    first_ms = parse_instant(read[0][1])
    closed = [
        {
            "uid": one.uid,
            "end_latest": instant(one.at_ms),
            "end_earliest": instant(one.earliest_ms or 0),
            "end_estimated": one.earliest_ms is not None,
            "gpu_hours_low": round(float(hours(first_ms, one.earliest_ms or 0) * gpus(sink, one.uid)), 3),
            "gpu_hours_high": round(float(hours(first_ms, one.at_ms) * gpus(sink, one.uid)), 3),
        }
        for one in sink.transitions
        if one.moment is Moment.GONE
    ]
    allocated = sum(gpus(sink, uid) for uid in live)
    assert {"live_uids": live, "allocated_gpus": allocated, "closed": closed} == case(name)[1]


def test_e02_replay_after_reconnect() -> None:
    name = "E02-replay-after-reconnect"
    read = [(line["type"], CREATED, as_pod(line["object"])) for line in lines(name) if "object" in line]
    sink, intake = taken_in(read, "Pod")
    happened = Counter(one.moment for one in sink.transitions)
    running = {one.uid: "Running" for one in sink.transitions if one.moment is Moment.BOUND}
    answer = {
        "submissions": happened[Moment.CREATED],
        "starts": happened[Moment.BOUND],
        "state": dict.fromkeys(sink.objects, "Pending") | running,
        "rows_stored": intake.readings,
    }
    expected = case(name)[1]
    expected.pop("must_not")
    assert answer == expected


def test_e03_event_series_and_null_times() -> None:
    name = "E03-event-series-and-null-times"
    sink, _ = taken_in([(line["type"], CREATED, line["object"]) for line in lines(name)], "Event")
    newest = {one.uid: one.count for one in sink.events if one.regarding_uid == "pod-1"}
    answer = {
        "occurrences": sum(newest.values()),
        "first_seen": instant(min(one.first_ms for one in sink.events)),
        "last_seen": instant(max(one.last_ms for one in sink.events)),
    }
    expected = case(name)[1]
    expected.pop("must_not")
    assert answer == expected


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


def instant(at_ms: int) -> str:
    return from_ms(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ")
