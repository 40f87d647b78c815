"""Kueue's own order of its queues: kept with its age, beside ours, and told when it is not to be had."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes.client import Configuration

from api.answers import ListQuestion, Record, SourceState
from collector.intake import Intake
from collector.kube.client import Connection
from collector.translator import TRANSLATORS
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service import features, positions
from service.answers import Answers
from service.books import books_of
from service.pending import listing
from service.positions import Positions
from store.embedded import Store
from tests.collector.objects import Object, at, stamp
from tests.collector_live.running import HandClock
from tests.fake_cluster import FakeCluster

KIND = {kind.kind: kind for kind in TRANSLATORS}


def workload(uid: str, priority: int, seconds: int, *, namespace: str = "team") -> Object:
    """A Workload of one GPU that waits in the queue `nlp`."""
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "metadata": {
            "uid": uid,
            "name": f"job-{uid}",
            "namespace": namespace,
            "resourceVersion": "5",
            "creationTimestamp": stamp(seconds),
        },
        "spec": {"queueName": "main", "priority": priority, "active": True, "podSets": [pod_set]},
    }


def told(uid: str, ahead: int, *, namespace: str = "team") -> dict[str, Any]:
    return {
        "metadata": {"name": f"job-{uid}", "namespace": namespace, "creationTimestamp": stamp(0)},
        "priority": 0,
        "localQueueName": "main",
        "positionInClusterQueue": ahead,
        "positionInLocalQueue": ahead,
    }


def local_queue(namespace: str) -> Object:
    """The queue `main` of a namespace, which leads to the ClusterQueue `nlp`."""
    return {
        "metadata": {
            "uid": f"lq-{namespace}", "name": "main", "namespace": namespace, "resourceVersion": "1",
            "creationTimestamp": stamp(0)
        },
        "spec": {"clusterQueue": "nlp"},
    }  # fmt: skip


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.open(None)
    intake = Intake("north", store, store.known("north"))
    queue = {"metadata": {"uid": "cq", "name": "nlp", "resourceVersion": "1", "creationTimestamp": stamp(0)}}
    intake.see(KIND["ClusterQueue"], "ADDED", queue, at(1))  # type: ignore[index]
    intake.see(KIND["LocalQueue"], "ADDED", local_queue("team"), at(1))  # type: ignore[index]
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


def add_another_team(store: Store) -> None:
    """A second namespace whose LocalQueue leads to the same ClusterQueue, with a workload that waits."""
    intake = Intake("north", store, store.known("north"))
    intake.see(KIND["LocalQueue"], "ADDED", local_queue("other"), at(46))  # type: ignore[index]
    intake.see(KIND["Workload"], "ADDED", workload("theirs", 1, 35, namespace="other"), at(46))  # type: ignore[index]
    intake.flush()
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=FixedClock(at(60))).refresh()


def test_where_only_local_queues_may_be_asked_for_they_tell_of_the_cluster_queue_too(store: Store) -> None:
    add_another_team(store)
    with FakeCluster() as cluster:
        cluster.pending, cluster.pending_status = {}, 403
        cluster.pending_locally = {
            "team/main": [told("urgent", 0), told("early", 2)],
            "other/main": [told("theirs", 1, namespace="other")],
        }
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, HandClock(at(100)))
        asking.poll()
        asking.close()
    assert {uid: place_of(store, uid, 130)["ahead"] for uid in ("urgent", "theirs", "early")} == {
        "urgent": 0,
        "theirs": 1,
        "early": 2,
    }
    assert (source(store, 130)["state"], source(store, 130)["last_error"]) == (SourceState.READ, "")


def test_a_namespace_that_may_not_be_asked_for_is_named_and_the_others_are_told(store: Store) -> None:
    add_another_team(store)
    with FakeCluster() as cluster:
        cluster.pending, cluster.pending_status = {}, 403
        cluster.pending_locally = {"team/main": [told("early", 2)]}
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, HandClock(at(100)))
        asking.poll()
        asking.close()
    assert place_of(store, "early", 130)["ahead"] == 2
    theirs = place_of(store, "theirs", 130)
    assert (theirs["ahead"], theirs["ahead_by_our_order"]) == (None, 1)
    assert theirs["because"].startswith("no_permission: ")
    assert theirs["because"].endswith("not told of other/main")
    assert "localqueues/pendingworkloads in the namespaces" in source(store, 130)["remedy"]


def test_a_local_queue_that_leads_nowhere_needs_no_right_of_its_own(store: Store) -> None:
    intake = Intake("north", store, store.known("north"))
    astray = local_queue("astray")
    astray["spec"] = {"clusterQueue": "gone"}
    intake.see(KIND["LocalQueue"], "ADDED", astray, at(46))  # type: ignore[index]
    intake.flush()
    with FakeCluster() as cluster:
        cluster.pending = {"nlp": [told("early", 0)]}
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, HandClock(at(100)))
        asking.poll()
        asking.close()
    assert place_of(store, "early", 130)["ahead"] == 0
    assert source(store, 130)["last_error"] == ""


def test_where_cluster_queues_may_not_even_be_read_their_local_queues_tell() -> None:
    store = Store.open(None)
    intake = Intake("north", store, store.known("north"))
    intake.see(KIND["LocalQueue"], "ADDED", local_queue("team"), at(1))  # type: ignore[index]
    intake.see(KIND["Workload"], "ADDED", workload("early", 0, 10), at(45))  # type: ignore[index]
    intake.flush()
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=FixedClock(at(60))).refresh()
    with FakeCluster() as cluster:
        cluster.pending = {}
        cluster.pending_locally = {"team/main": [told("early", 3)]}
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, HandClock(at(100)))
        asking.poll()
        asking.close()
    place = place_of(store, "early", 130)
    store.close()
    # Three come before it whom we cannot see.
    assert (place["ahead"], place["ahead_by_our_order"]) == (3, 0)


def test_the_list_of_who_waits_goes_queue_by_queue_in_kueues_order_and_says_our_own(store: Store) -> None:
    add_another_team(store)
    with FakeCluster() as cluster:
        cluster.pending = {"nlp": [told("early", 0), told("urgent", 1), told("theirs", 2, namespace="other")]}
        asking = Positions("north", Connection(Configuration(host=cluster.url)), store, HandClock(at(100)))
        asking.poll()
        asking.close()
    listed = listing(store, ListQuestion(), at(130))
    assert [(row["uid"], row["ahead"], row["ahead_by_our_order"]) for row in listed.rows] == [
        ("early", 0, 2),
        ("urgent", 1, 0),
        ("theirs", 2, 1),
        ("late", None, 3),
    ]
    assert {(row["queue"], row["age_seconds"], row["requested_gpus"]) for row in listed.rows} == {
        ("nlp", 30.0, 1.0)
    }
    # A place in the list is the place that the workload itself tells.
    for row in listed.rows:
        assert place_of(store, row["uid"], 130).items() <= row.items()
    page = listing(store, ListQuestion(page=2, page_size=3), at(130))
    assert ([row["uid"] for row in page.rows], page.total) == (["late"], 4)
    # Before anybody was asked there is our order only.
    assert [row["uid"] for row in listing(store, ListQuestion(), at(99)).rows] == [
        "urgent", "theirs", "early", "late",
    ]  # fmt: skip
