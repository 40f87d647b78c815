"""The measurement tick: alive while nothing moves, and each question asked once."""

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from starlette.testclient import TestClient
from typing_extensions import override

from alerts.exporter import Exporter
from analytics.metrics import REGISTRY
from api.app import Api, create_app
from api.auth import NoAuth
from domain.errors import StoreError
from domain.metric import Measurement, Metric, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from service.measure import Measurer
from service.reading import read_once
from tests.build import at, filled


@dataclass
class MovingClock:
    """A clock that a test moves."""

    at_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms


@dataclass(frozen=True, kw_only=True)
class Few(Answers):
    """Answers of a few metrics only."""

    only: Mapping[str, Metric]

    @override
    def registry(self) -> Mapping[str, Metric]:
        return self.only


@dataclass
class Reads:
    """Counts the questions; answers with no rows."""

    asked: list[tuple[str, dict[str, int]]] = field(default_factory=list)

    def __call__(self, sql: str, parameters: Mapping[str, int]) -> list[dict[str, object]]:
        self.asked.append((sql, dict(parameters)))
        return []


def value_of(name: str, text: str) -> float:
    return next(
        float(line.split()[-1]) for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))
    )


def test_a_clock_that_stands_still_does_not_look_like_a_service_that_does() -> None:
    store = filled()
    machine = MovingClock(1_000)
    exporter = Exporter(REGISTRY, machine)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(120)))
    measurer = Measurer(answers=answers, refresh=lambda: 0, publish=exporter.publish)
    counts = []
    for now_ms in (1_000, 3_600_000):
        machine.at_ms = now_ms
        counts.append(measurer.tick())
        text = exporter.text().decode()
        assert value_of("gpuledger_measured_timestamp_seconds", text) == now_ms / 1000
        assert value_of("gpuledger_as_of_timestamp_seconds", text) == at(120) / 1000
    assert counts[0] == counts[1] > 0
    store.close()


def test_a_refresh_that_fails_is_not_taken_for_a_sign_of_life() -> None:
    def fail() -> int:
        raise OSError

    store = filled()
    machine = MovingClock(1_000)
    exporter = Exporter(REGISTRY, machine)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(120)))
    Measurer(answers=answers, refresh=lambda: 0, publish=exporter.publish).tick()
    machine.at_ms = 3_600_000
    with pytest.raises(OSError):  # noqa: PT011 (raised just above)
        Measurer(answers=answers, refresh=fail, publish=exporter.publish).tick()
    assert value_of("gpuledger_measured_timestamp_seconds", exporter.text().decode()) == 1.0
    store.close()


def test_a_question_is_asked_of_the_store_once() -> None:
    reads = Reads()
    read = read_once(reads)
    for as_of_ms in (1, 1, 2):
        assert read("select 1", {"as_of_ms": as_of_ms, "window_start_ms": 0}) == []
    assert read("select 1", {"window_start_ms": 0, "as_of_ms": 2}) == []
    assert [parameters["as_of_ms"] for _, parameters in reads.asked] == [1, 2]


def test_a_tick_measures_what_each_exported_metric_says_by_itself() -> None:
    store = filled()
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(120)))
    told: list[Measurement] = []
    Measurer(answers=answers, refresh=lambda: 0, publish=lambda measured, _: told.extend(measured)).tick()
    exported = [metric for metric in REGISTRY.values() if metric.exported]
    assert len(exported) < len(REGISTRY)
    alone = [m for metric in exported for m in answers.measure(metric, at(120))]
    assert sorted(map(repr, told)) == sorted(map(repr, alone))
    store.close()


def test_what_is_dear_is_measured_once_an_hour_and_shown_meanwhile() -> None:
    slow = [metric.name for metric in REGISTRY.values() if metric.every]
    assert slow == ["buying_days"]
    store = filled()
    clock = MovingClock()
    registry = {name: REGISTRY[name] for name in (*slow, "held_gpus")}
    answers = Few(store, Tenancy(), Policy(), clock, only=registry)
    shown: list[list[Measurement]] = []
    measurer = Measurer(
        answers=answers, refresh=lambda: 0, publish=lambda measured, _: shown.append([*measured])
    )
    instants = {}
    for minute in (120, 121, 179, 180, 100):
        clock.at_ms = at(minute)
        measurer.tick()
        by_name = {one.metric: one.as_of_ms for one in shown[-1]}
        assert by_name["held_gpus"] == clock.at_ms
        instants[minute] = by_name["buying_days"]
    # Set back, the clock is believed.
    expected = {120: 120, 121: 120, 179: 120, 180: 180, 100: 100}
    assert instants == {minute: at(then) for minute, then in expected.items()}
    # What was said is kept as of when it was said, once.
    said = store.history("buying_days", start_ms=0, end_ms=at(999))
    assert [one.as_of_ms for one in said] == [at(minute) for minute in (100, 120, 180)]
    store.close()


def test_a_metric_that_fails_sounds_an_alarm_until_it_is_measured_again() -> None:
    def fail(rows: object, ask: object) -> list[Sample]:
        message = "no such column"
        raise StoreError(message)

    store, clock = filled(), MovingClock(at(120))
    held = REGISTRY["held_gpus"]
    registry = {"held_gpus": replace(held, compute=fail)}
    answers = Few(store, Tenancy(), Policy(), clock, only=registry)
    shown: list[Measurement] = []
    measurer = Measurer(
        answers=answers, refresh=lambda: 0, publish=lambda measured, _: shown.extend(measured)
    )
    measurer.tick()
    assert shown == []
    assert list(answers.alarms.sounding()) == ["metric_failed"]
    assert "held_gpus" in answers.alarms.sounding()["metric_failed"]
    registry["held_gpus"] = held
    clock.at_ms = at(121)
    measurer.tick()
    assert {one.metric for one in shown} == {"held_gpus"}
    assert answers.alarms.sounding() == {}
    store.close()


def test_a_tick_collects_no_garbage_and_leaves_the_collector_as_it_was() -> None:
    collecting: list[bool] = []

    def published(*_: object) -> None:
        collecting.append(gc.isenabled())
        message = "the disk is full"
        raise StoreError(message)

    store = filled()
    answers = Few(store, Tenancy(), Policy(), FixedClock(at(120)), only={"held_gpus": REGISTRY["held_gpus"]})
    measurer = Measurer(answers=answers, refresh=lambda: 1, publish=published)
    assert gc.isenabled()
    with pytest.raises(StoreError):
        measurer.tick()
    assert (collecting, gc.isenabled()) == ([False], True)
    store.close()


def test_metrics_of_nodes_quotas_teams_and_pools_are_read_by_a_query_for_each_family() -> None:
    of = {
        "node": "capacity free cordoned unhealthy overcommitted unpartitioned",
        "quota": "quota lent borrowed over_quota",
        "team": "entitled demanded received",
        "pool": "pool_capacity capacity_without_quota from_unassigned",
    }
    queries = {
        family: {REGISTRY[f"{name}_gpus"].sql for name in names.split()} for family, names in of.items()
    }
    assert {family: len(asked) for family, asked in queries.items()} == dict.fromkeys(of, 1)
    assert REGISTRY["goodput_ratio"].sql == REGISTRY["capacity_held_ratio"].sql


def test_a_scrape_is_answered_from_what_was_measured_though_the_store_is_closed() -> None:
    store = filled()
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(120)))
    exporter = Exporter(REGISTRY)
    Measurer(answers=answers, refresh=lambda: 0, publish=exporter.publish).tick()
    app = create_app(Api(answers=answers, auth=NoAuth(), metrics_text=exporter.text))
    client = TestClient(app, base_url="http://127.0.0.1")
    store.close()
    scraped = client.get("/metrics")
    assert scraped.status_code == 200
    assert value_of("gpuledger_as_of_timestamp_seconds", scraped.text) == at(120) / 1000
    assert "gpuledger_queue_depth_workloads{" in scraped.text
    # What asks the store cannot be answered now.
    assert client.get("/api/v1/metrics/queue_depth_workloads").status_code >= 500
