"""
Cases drawn from public bug reports: waits, attempts, evictions.

The adapters rename keys and values, parse times, convert units and round; what they ask for is
computed by the collector, the store and the lifecycle. A case that does not say so asks one GPU.
"""

from store.embedded import Store
from tests.cases.replay import (
    AFTER,
    CREATED,
    Json,
    case,
    check,
    episodes,
    event,
    lines,
    queued_for,
    replay,
    seconds,
    told,
    value,
    written,
)


def watched(name: str) -> Store:
    readings = []
    for line in lines(name):
        read = {"apiVersion": "v1", "metadata": {}} | line["object"]
        read["spec"] = queued_for("1") | read.get("spec", {})
        readings.append((line["type"], read, line["observed_at"]))
    return replay(readings)


def test_w01_an_evicted_and_requeued_workload_has_two_waits() -> None:
    asked, expected = case("W01-evicted-then-requeued")
    now, store = asked["data"]["now"], watched("W01-evicted-then-requeued")
    life = told(store, "11111111-0000-4000-8000-000000000001", now)
    answer = {
        "first_wait_s": life["queue_wait_seconds"],
        "wait_episodes_s": episodes(store, now),
        "total_queue_s": life["queue_wait_seconds"] + life["requeue_wait_seconds"],
        "backoff_s": seconds(store, "backoff", now),
        "running_s": seconds(store, "running", now),
    }
    check(answer, expected)


def test_w01_the_second_wait_is_the_requeue_wait_of_the_figures() -> None:
    store = watched("W01-evicted-then-requeued")
    found = value(store, "requeue_wait_seconds", AFTER, quantile="0.5", estimator="started")
    assert found == 2400


def test_w02_the_time_behind_a_gate_of_the_owner_is_no_wait() -> None:
    _, expected = case("W02-scheduling-gate-time")
    store = watched("W02-scheduling-gate-time")
    answer = {
        "gated_s": seconds(store, "held"),
        "schedulable_wait_s": value(store, "queue_wait_seconds", AFTER, quantile="0.5", estimator="started"),
        "user_wait_s": value(store, "time_to_placement_seconds", AFTER, quantile="0.5", estimator="started"),
    }
    check(answer, expected)


def test_w03_a_suspended_and_resumed_job_has_two_waits() -> None:
    _, expected = case("W03-job-suspended-and-resumed")
    store = watched("W03-job-suspended-and-resumed")
    answer = {
        "first_wait_s": told(store, "j-1")["queue_wait_seconds"],
        "wait_episodes_s": episodes(store),
        "run_s": seconds(store, "running"),
    }
    check(answer, expected)


def test_w04_pods_made_anew_are_attempts_of_one_job() -> None:
    _, expected = case("W04-pods-recreated-by-controller")
    store = watched("W04-pods-recreated-by-controller")
    answer = {
        "job_first_wait_s": told(store, "j-9")["queue_wait_seconds"],
        "attempt_waits_s": episodes(store),
        "samples_in_job_wait_percentile": value(store, "first_placed_workloads", AFTER),
    }
    check(answer, expected)


def test_e04_a_missing_scheduled_event_does_not_make_a_wait_endless() -> None:
    asked, expected = case("E04-scheduled-event-missing")
    events = [
        event(f"e{number}", one["regarding_uid"], one["reason"], one["time"])
        for number, one in enumerate(asked["data"]["events"])
    ]
    store = replay([("ADDED", read, AFTER) for read in [*asked["data"]["pods"], *events]])
    uids = [pod["metadata"]["uid"] for pod in asked["data"]["pods"]]
    sources = store.rows("select pod_uid, bound_source from holding")
    answer = {
        "wait_s": {uid: told(store, uid)["queue_wait_seconds"] for uid in uids},
        "source": {row["pod_uid"]: row["bound_source"] for row in sources},
    }
    check(answer, expected)


def as_object(line: Json) -> Json:
    """A line of E05 as the API writes it: one new condition, an Event, or a pod's deletion."""
    if line["kind"] == "Event":
        return event(line["uid"], line["regarding_uid"], line["reason"], line["t"], line["message"])
    if line["kind"] == "Pod":
        return written(
            "Pod", line["uid"], metadata={"annotations": {"kueue.x-k8s.io/workload": line["workload"]}}
        )
    condition = line["condition"] | {"lastTransitionTime": line["t"]}
    return written("Workload", line["uid"], status={"conditions": [condition]}, spec=queued_for(1))


def test_e05_one_preemption_with_many_signals_is_one() -> None:
    name, uids = "E05-one-preemption-many-signals", ("w-low", "w-high", "w-other")
    made = [("ADDED", written("Workload", uid, spec=queued_for(1)), CREATED) for uid in uids]
    read = [(line.get("type", "MODIFIED"), as_object(line), line["t"]) for line in lines(name)]
    store = replay([*made, *read])
    lives = {uid: told(store, uid) for uid in uids}
    [victim] = store.rows("select preemptor_uid from eviction where preempted")
    answer = {
        "preemptions": value(store, "preemptions_total", AFTER),
        "evictions_other": value(store, "evictions_total", AFTER),
        "by_victim": {uid: life["preemptions"] for uid, life in lives.items() if life["preemptions"]},
        "preemptor_of_w_low": victim["preemptor_uid"],
    }
    check(answer, case(name)[1])
