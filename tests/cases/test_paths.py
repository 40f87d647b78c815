"""Short ways from objects to lives that no case takes, each through the collector and the store."""

from tests.cases.replay import Feed, asking, queued_for, replay, told, truths, written

OF_JOB = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]}
LATER = "2026-05-04T06:00:10Z"


def at(minute: int) -> str:
    return f"2026-05-04T07:{minute:02d}:00Z"


def test_a_suspended_job_whose_pod_still_runs_is_draining() -> None:
    running = {"running": {"startedAt": at(1)}}
    status = {
        "phase": "Running",
        "conditions": truths({"PodScheduled": "True"}, at(1)),
        "containerStatuses": [{"name": "main", "state": running}],
    }
    pod = written(
        "Pod", "p", created=at(0), metadata=OF_JOB, spec={"nodeName": "n", **asking(1)}, status=status
    )
    store = replay(
        [
            ("ADDED", written("Job", "j", created=at(0), spec={"suspend": False, **queued_for(1)}), at(0)),
            ("ADDED", pod, at(1)),
            ("MODIFIED", written("Job", "j", created=at(0), spec={"suspend": True, **queued_for(1)}), at(5)),
            ("DELETED", pod, at(6)),
        ]
    )
    spans = [(span["state"], span["start_at"][11:16]) for span in told(store, "j")["spans"]]
    assert spans[-3:] == [("running", "07:01"), ("draining", "07:05"), ("held", "07:06")]


def test_a_workload_that_is_deleted_has_ended() -> None:
    workload = written("Workload", "w", created=at(0), spec=queued_for(1))
    store = replay([("ADDED", workload, at(0)), ("DELETED", workload, at(7))])
    life = told(store, "w")
    assert (life["state"], life["ended_at"][11:16], life["outcome"]) == ("ended", "07:07", "cancelled")


def test_a_workload_made_after_its_job_was_submitted_with_the_job() -> None:
    workload = written("Workload", "w", created=LATER, metadata=OF_JOB, spec=queued_for(1))
    store = replay([("ADDED", written("Job", "j", spec=queued_for(1)), LATER), ("ADDED", workload, LATER)])
    assert told(store, "w")["submitted_at"] == "2026-05-04T06:00:00.000Z"


def test_a_workload_that_comes_after_its_job_was_cut_takes_it_over() -> None:
    feed = Feed()
    feed.see("ADDED", written("Job", "j", spec=queued_for(1)), at(0))
    feed.see("ADDED", written("Pod", "p", metadata=OF_JOB, spec=asking(1)), at(0))
    assert feed.settled().rows("select workload_uid from workload") == [{"workload_uid": "j"}]
    feed.see("ADDED", written("Workload", "w", created=at(1), metadata=OF_JOB, spec=queued_for(1)), at(1))
    store = feed.settled()
    assert store.rows("select workload_uid from workload") == [{"workload_uid": "w"}]
    members = store.rows("select workload_uid, object_uid from member order by object_uid")
    assert [(row["workload_uid"], row["object_uid"]) for row in members] == [
        ("w", "j"),
        ("w", "p"),
        ("w", "w"),
    ]


def test_a_deleted_queue_has_an_end() -> None:
    queue = written("ClusterQueue", "red", created=at(0))
    store = replay([("ADDED", queue, at(0)), ("DELETED", queue, at(7))])
    [row] = store.rows("select end_ms - start_ms as lived_ms from live_queue")
    assert row["lived_ms"] == 7 * 60_000
