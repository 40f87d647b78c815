"""
Cases drawn from public bug reports: waits, attempts, evictions.

The adapters rename keys and values, parse times, convert units and round; what they ask for is
computed by the collector, the store and the lifecycle.
"""

from itertools import groupby
from typing import Any

from analytics.history import Catalog, WorkloadFacts
from analytics.lifecycle import live
from domain.facts import EventSighting
from domain.window import parse_instant
from domain.workload import State
from store.embedded import Store
from tests.cases.replay import Json, case, lines, replay, seconds
from tests.lives import condition, kueue, pod

WAITING = {"queued", "checking", "placing"}
AFTER = "2026-05-05T00:00:00Z"


def check(answer: Json, expected: Json) -> None:
    """Every key asked for is equal; none has a value that is known to be wrong."""
    for key, wrong in expected.pop("must_not", {}).items():
        assert answer[key] not in wrong
    assert answer == expected


def watched(name: str) -> Store:
    return replay(
        [(line["type"], {"metadata": {}} | line["object"], line["observed_at"]) for line in lines(name)]
    )


def episodes(spans: list[tuple[str, bool, float]]) -> list[float]:
    """Lengths of the waiting episodes: waiting states that follow each other are one."""
    grouped = groupby(spans, key=lambda span: (span[0] in WAITING, span[1]))
    return [sum(span[2] for span in group) for (waits, _), group in grouped if waits]


def total(spans: list[tuple[str, bool, float]], state: State) -> float:
    return sum(span[2] for span in spans if span[0] == state)


def test_w01_an_evicted_and_requeued_workload_has_two_waits() -> None:
    asked, expected = case("W01-evicted-then-requeued")
    spans = seconds(watched("W01-evicted-then-requeued"), asked["data"]["now"])
    answer = {
        "first_wait_s": sum(span[2] for span in spans if span[1]),
        "wait_episodes_s": episodes(spans),
        "total_queue_s": sum(episodes(spans)),
        "backoff_s": total(spans, State.BACKOFF),
        "running_s": total(spans, State.RUNNING),
    }
    check(answer, expected)


def test_w02_the_time_behind_a_gate_of_the_owner_is_no_wait() -> None:
    _, expected = case("W02-scheduling-gate-time")
    spans = seconds(watched("W02-scheduling-gate-time"), AFTER)
    gated, waited = total(spans, State.HELD), sum(span[2] for span in spans if span[1])
    check({"gated_s": gated, "schedulable_wait_s": waited, "user_wait_s": gated + waited}, expected)


def test_w03_a_suspended_and_resumed_job_has_two_waits() -> None:
    _, expected = case("W03-job-suspended-and-resumed")
    spans = seconds(watched("W03-job-suspended-and-resumed"), AFTER)
    first = sum(span[2] for span in spans if span[1])
    answer = {"first_wait_s": first, "wait_episodes_s": episodes(spans), "run_s": total(spans, State.RUNNING)}
    check(answer, expected)


def test_w04_pods_made_anew_are_attempts_of_one_job() -> None:
    _, expected = case("W04-pods-recreated-by-controller")
    store = replay(
        [(line["type"], {"apiVersion": "v1"} | line["object"], line["observed_at"])
         for line in lines("W04-pods-recreated-by-controller")]
    )  # fmt: skip
    spans = seconds(store, AFTER)
    answer = {
        "job_first_wait_s": sum(span[2] for span in spans if span[1]),
        "attempt_waits_s": episodes(spans),
        "samples_in_job_wait_percentile": len(store.rows("select workload_uid from gpu_workload")),
    }
    check(answer, expected)


def test_e04_a_missing_scheduled_event_does_not_make_a_wait_endless() -> None:
    asked, expected = case("E04-scheduled-event-missing")
    readings = [("ADDED", pod_object, AFTER) for pod_object in asked["data"]["pods"]]
    for number, event in enumerate(asked["data"]["events"]):
        readings.append(("ADDED", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"uid": f"e{number}", "namespace": "team-red"},
            "involvedObject": {"kind": "Pod", "uid": event["regarding_uid"]}, "reason": event["reason"],
            "firstTimestamp": event["time"], "lastTimestamp": event["time"], "count": 1,
        }, AFTER))  # fmt: skip
    rows = replay(readings).rows(
        "select pod_uid, (bound_ms - submitted_ms) / 1000 as wait, bound_source"
        " from holding inner join workload using (workload_uid)"
    )
    answer = {
        "wait_s": {row["pod_uid"]: row["wait"] for row in rows},
        "source": {row["pod_uid"]: row["bound_source"] for row in rows},
    }
    check(answer, expected)


def e05_facts(uid: str, found: list[Json]) -> WorkloadFacts:
    """The facts about one workload of the case."""
    names = {"type": "subject", "status": "state", "reason": "reason"}
    conditions = [
        condition(uid, parse_instant(line["t"]) / 1000, **{names[k]: v for k, v in line["condition"].items()})
        for line in found if line["kind"] == "Workload" and line["uid"] == uid
    ]  # fmt: skip
    pods = [
        pod(line["uid"], 0, gone_s=parse_instant(line["t"]) / 1000) for line in found if line["kind"] == "Pod"
    ]
    events = tuple(
        sighting(line) for line in found if line["kind"] == "Event" and line["regarding_uid"] == uid
    )
    return WorkloadFacts(
        uid=uid,
        queueing=(kueue(0, *conditions, uid=uid),),
        jobs=(),
        pods=tuple(pods),
        catalog=Catalog(),
        events=events,
    )


def sighting(line: Json) -> EventSighting:
    at_ms = parse_instant(line["t"])
    rest: dict[str, Any] = dict.fromkeys(
        ("resource_version", "event_type", "component", "regarding_kind", "regarding_namespace",
         "regarding_name", "related_uid"), ""
    )  # fmt: skip
    return EventSighting(
        uid=line["uid"], regarding_uid=line["regarding_uid"], reason=line["reason"], note=line["message"],
        first_ms=at_ms, last_ms=at_ms, observed_ms=at_ms, count=1, **rest,
    )  # fmt: skip


def test_e05_one_preemption_with_many_signals_is_one() -> None:
    _, expected = case("E05-one-preemption-many-signals")
    found = lines("E05-one-preemption-many-signals")
    lives = {uid: live(e05_facts(uid, found)) for uid in ("w-low", "w-high", "w-other")}
    preempted = {uid: [e for e in life.evictions if e.preempted] for uid, life in lives.items()}
    answer = {
        "preemptions": sum(map(len, preempted.values())),
        "evictions_other": sum(not e.preempted for life in lives.values() for e in life.evictions),
        "by_victim": {uid: len(evictions) for uid, evictions in preempted.items() if evictions},
        "preemptor_of_w_low": preempted["w-low"][0].preemptor_uid,
    }
    check(answer, expected)
