"""Kueue's own order of its queues: kept with its age, beside ours, and told when it is not to be had."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes.client import Configuration

from api.answers import Record, SourceState
from collector.intake import Intake
from collector.kube.client import Connection
from collector.translator import TRANSLATORS
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service import features, positions
from service.answers import Answers
from service.books import books_of
from service.positions import Positions
from store.embedded import Store
from tests.collector.objects import Object, at, stamp
from tests.collector_live.running import HandClock
from tests.fake_cluster import FakeCluster

KIND = {kind.kind: kind for kind in TRANSLATORS}


def workload(uid: str, priority: int, seconds: int) -> Object:
    """A Workload of one GPU that waits in the queue `nlp`."""
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "metadata": {
            "uid": uid,
            "name": f"job-{uid}",
            "namespace": "team",
            "resourceVersion": "5",
            "creationTimestamp": stamp(seconds),
        },
        "spec": {"queueName": "main", "priority": priority, "active": True, "podSets": [pod_set]},
    }


def told(uid: str, ahead: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"job-{uid}", "namespace": "team", "creationTimestamp": stamp(0)},
        "priority": 0,
        "localQueueName": "main",
        "positionInClusterQueue": ahead,
        "positionInLocalQueue": ahead,
    }


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.open(None)
    intake = Intake("north", store, store.known("north"))
    queue = {"metadata": {"uid": "cq", "name": "nlp", "resourceVersion": "1", "creationTimestamp": stamp(0)}}
    local = {
        "metadata": {
            "uid": "lq", "name": "main", "namespace": "team", "resourceVersion": "1",
            "creationTimestamp": stamp(0)
        },
        "spec": {"clusterQueue": "nlp"},
    }  # fmt: skip
    intake.see(KIND["ClusterQueue"], "ADDED", queue, at(1))  # type: ignore[index]
    intake.see(KIND["LocalQueue"], "ADDED", local, at(1))  # type: ignore[index]
    for uid, priority, seconds in (("late", 0, 30), ("early", 0, 10), ("urgent", 9, 40)):
        intake.see(KIND["Workload"], "ADDED", workload(uid, priority, seconds), at(45))  # type: ignore[index]
    intake.flush()
    clock = FixedClock(at(60))
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).refresh()
    yield store
    store.close()


def place_of(store: Store, uid: str, seconds: float) -> Record:
    found = Answers(store, Tenancy(), Policy(), FixedClock(at(seconds))).workload(uid)
    assert found is not None
    place: Record = found["queue_position"]
    return place


def source(store: Store, seconds: float) -> Record:
    rows = Answers(store, Tenancy(), Policy(), FixedClock(at(seconds))).sources().rows
    [row] = [row for row in rows if row["kind"] == features.QUEUE_POSITIONS]
    return row


def test_kueues_order_is_shown_with_its_age_beside_ours_and_kept_when_it_changes(store: Store) -> None:
    clock = HandClock(at(100))
    with FakeCluster() as cluster:
        cluster.pending = {"nlp": [told("early", 0), told("urgent", 1), told("late", 2)]}
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, clock)
        asking.poll()
        assert {uid: place_of(store, uid, 130) for uid in ("early", "urgent", "late")} == {
            uid: {
                "ahead": ahead,
                "ahead_in_local_queue": ahead,
                "told_at": "2026-03-02T09:01:40.000Z",
                "age_seconds": 30.0,
                "because": "",
                "ahead_by_our_order": ours,
            }
            for uid, ahead, ours in (("early", 0, 1), ("urgent", 1, 0), ("late", 2, 2))
        }
        clock.at_ms = at(140)
        cluster.pending["nlp"] = [told("urgent", 0), told("late", 1)]
        asking.poll()
        assert (place_of(store, "urgent", 150)["ahead"], place_of(store, "urgent", 139)["ahead"]) == (0, 1)
        early = place_of(store, "early", 150)
        assert (early["ahead"], early["because"].partition(":")[0]) == (None, "Kueue did not list it")
        before = store.rows("select count(*) as rows from queue_position")
        clock.at_ms = at(170)
        asking.poll()
        # What did not change is not kept again; only its age is.
        assert store.rows("select count(*) as rows from queue_position") == before
        assert place_of(store, "urgent", 170)["age_seconds"] == 0.0
        asking.close()
    assert source(store, 170)["state"] == SourceState.READ


def test_what_does_not_wait_has_no_position(store: Store) -> None:
    rows = {"cluster": "north", "uid": "late", "queue": "nlp"}
    assert positions.of_workload(store, rows | {"state": "queued"}, at(130)) is not None
    assert positions.of_workload(store, rows | {"state": "running"}, at(130)) is None
    assert positions.of_workload(store, rows | {"state": "queued", "queue": ""}, at(130)) is None


def test_where_it_is_refused_or_not_there_that_is_said_and_our_order_remains(store: Store) -> None:
    clock = HandClock(at(100))
    with FakeCluster() as cluster:
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, clock)
        asking.poll()
        place = place_of(store, "late", 130)
        assert (place["ahead"], place["told_at"], place["ahead_by_our_order"]) == (None, None, 2)
        assert place["because"].startswith("not_installed: the cluster does not serve clusterqueues/pending")
        assert (source(store, 130)["state"], source(store, 130)["missing"]) == (SourceState.NOT_INSTALLED, "")
        cluster.pending, cluster.pending_status = {"nlp": [told("late", 0)]}, 403
        asking.poll()
        assert place_of(store, "late", 130)["because"].startswith("no_permission: ")
        refused = source(store, 130)
        assert refused["state"] == SourceState.NOT_PERMITTED
        assert refused["missing"].startswith("Kueue's own order of its queues is unknown")
        assert "grant get of clusterqueues/pendingworkloads" in refused["remedy"]
        cluster.pending_status = 200
        asking.poll()
        assert (place_of(store, "late", 130)["ahead"], place_of(store, "late", 130)["because"]) == (0, "")
        cluster.pending_status = 503
        asking.poll()
        # The leader changes: what was told last is shown with its age, and why it is not newer.
        place = place_of(store, "late", 130)
        assert (place["ahead"], place["age_seconds"]) == (0, 30.0)
        assert "answered 503" in place["because"]
        asking.close()
