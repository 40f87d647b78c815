"""List and watch of a live cluster, over real HTTP, with everything that goes wrong."""

import gc
import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from collector.kube.client import LineStream
from domain.errors import StoreError
from domain.facts import Batch, Known, Moment, ObjectKind
from tests.collector_live.running import (
    NODES,
    PODS,
    QUICK,
    WORKLOADS,
    HandClock,
    Reading,
    node,
    pod,
    reading,
    until,
    workload,
)
from tests.fake_cluster import FakeCluster
from tests.fakes import MemorySink


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.serve(PODS)
        yield running


def wait_for_watch(cluster: FakeCluster, path: str = PODS) -> None:
    until(lambda: cluster.open_watches(path) > 0)


def wait_for_opened(cluster: FakeCluster, watches: int) -> None:
    until(lambda: cluster.opened(PODS) >= watches)


def wait_for_live(live: Reading, *uids: str) -> None:
    until(lambda: live.live() == set(uids))


def test_objects_of_the_list_and_of_the_watch_become_facts(cluster: FakeCluster) -> None:
    cluster.apply(PODS, pod("u1"))
    with reading(cluster) as live:
        wait_for_live(live, "u1")
        cluster.apply(PODS, pod("u2"))
        cluster.apply(PODS, pod("u1", node="n1"))
        wait_for_live(live, "u1", "u2")
        until(lambda: len(live.of("u1", Moment.BOUND)) == 1)
        at_ms = live.clock.move_to("2026-05-04T09:30:00Z")
        cluster.delete(PODS, "u1")
        wait_for_live(live, "u2")
    (gone,) = live.of("u1", Moment.GONE)
    assert (gone.at_ms, gone.earliest_ms) == (at_ms, None)
    mark = live.mark()
    assert (mark.resource_version, mark.epoch, mark.cluster_uid, mark.last_error) == (
        "104",
        0,
        "cluster-1",
        "",
    )


@pytest.mark.parametrize("form", ["http", "first line", "line of an open watch"])
def test_a_delete_hidden_by_a_410_has_the_bounds_of_the_gap(cluster: FakeCluster, form: str) -> None:
    cluster.gone_as_http = form == "http"
    cluster.apply(PODS, pod("u1"))
    cluster.apply(PODS, pod("u2"))
    with reading(cluster) as live:
        wait_for_live(live, "u1", "u2")
        wait_for_watch(cluster)
        known_good_ms = live.clock.move_to("2026-05-04T10:05:00Z")
        bookmark = cluster.bookmark(PODS)
        until(lambda: live.mark().seen_ms == known_good_ms)
        assert live.mark().resource_version == bookmark
        cluster.silence(PODS)
        cluster.delete(PODS, "u2")
        cluster.apply(PODS, pod("u3"))
        cluster.compact()
        relisted_ms = live.clock.move_to("2026-05-04T10:20:00Z")
        if form == "line of an open watch":
            cluster.send_error(PODS, 410, "Expired")
        else:
            cluster.close_watches(PODS)
        wait_for_live(live, "u1", "u3")
    (gone,) = live.of("u2", Moment.GONE)
    assert (gone.earliest_ms, gone.at_ms) == (known_good_ms, relisted_ms)
    assert live.mark().restarts >= 1


def test_what_a_reconnected_watch_repeats_is_dropped(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        wait_for_watch(cluster)
        cluster.apply(PODS, pod("u1"))
        cluster.apply(PODS, pod("u2"))
        newest = cluster.apply(PODS, pod("u1", node="n1"))
        until(lambda: len(live.of("u1", Moment.BOUND)) == 1)
        cluster.replay_on_reconnect(PODS)
        cluster.close_watches(PODS)
        until(lambda: len(cluster.asked(PODS, watch=True)) == 2)
        cluster.apply(PODS, pod("u2", node="n1"))
        until(lambda: len(live.of("u2", Moment.BOUND)) == 1)
        cluster.close_watches(PODS)
        until(lambda: len(cluster.asked(PODS, watch=True)) >= 3)
    assert [len(live.of(uid, Moment.CREATED)) for uid in ("u1", "u2")] == [1, 1]
    assert [len(live.of(uid, Moment.BOUND)) for uid in ("u1", "u2")] == [1, 1]
    keys = [one.key for one in live.sink.transitions]
    assert len(keys) == len(set(keys))
    first, second, third = (query["resourceVersion"] for query in cluster.asked(PODS, watch=True)[:3])
    assert (first, second) == ("100", newest)
    assert int(third) == int(newest) + 1


def test_an_old_event_does_not_take_the_position_back(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        wait_for_watch(cluster)
        cluster.apply(PODS, pod("u1"))
        old = json.dumps({"type": "ADDED", "object": cluster.held(PODS, "u1")}).encode()
        newest = cluster.apply(PODS, pod("u2"))
        wait_for_live(live, "u1", "u2")
        cluster.send_line(PODS, old)
        cluster.close_watches(PODS)
        until(lambda: len(cluster.asked(PODS, watch=True)) == 2)
    assert cluster.asked(PODS, watch=True)[1]["resourceVersion"] == newest


def test_a_watch_cut_in_the_middle_of_a_line_goes_on_where_it_was(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        wait_for_watch(cluster)
        newest = cluster.apply(PODS, pod("u1"))
        wait_for_live(live, "u1")
        cluster.cut_watches(PODS)
        until(lambda: len(cluster.asked(PODS, watch=True)) == 2)
        cluster.apply(PODS, pod("u2"))
        wait_for_live(live, "u1", "u2")
    assert cluster.asked(PODS, watch=True)[1]["resourceVersion"] == newest
    assert len(cluster.asked(PODS, watch=False)) == 1


def test_a_line_that_is_no_event_leads_to_a_new_list(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        wait_for_watch(cluster)
        cluster.send_line(PODS, b'{"type":"MODIF')
        until(lambda: len(cluster.asked(PODS, watch=False)) == 2)
        cluster.apply(PODS, pod("u1"))
        wait_for_live(live, "u1")


def test_a_forbidden_kind_says_so_and_the_others_are_read(cluster: FakeCluster) -> None:
    cluster.serve(NODES)
    cluster.apply(PODS, pod("u1"))
    cluster.apply(NODES, node("n1"))
    cluster.forbid(NODES)
    with reading(cluster) as live:
        wait_for_live(live, "u1")
        until(lambda: live.has_mark(ObjectKind.NODE, "no_permission: "))
        assert live.mark(ObjectKind.NODE).seen_ms == 0
        assert live.mark(ObjectKind.POD).last_error == ""
        cluster.forbid(NODES, forbidden=False)
        wait_for_live(live, "u1", "n1")
        until(lambda: live.has_mark(ObjectKind.NODE, ""))


def test_a_crd_installed_later_is_found_and_one_taken_away_is_noticed(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        until(lambda: live.has_mark(ObjectKind.WORKLOAD, "not_installed: "))
        cluster.serve(WORKLOADS)
        cluster.apply(WORKLOADS, workload("w1"))
        wait_for_live(live, "w1")
        until(lambda: live.has_mark(ObjectKind.WORKLOAD, ""))
        cluster.remove(WORKLOADS)
        until(lambda: live.has_mark(ObjectKind.WORKLOAD, "not_installed: "))
        # That nothing is listed any more does not tell that it ended.
        assert live.live() == {"w1"}


def test_an_expired_continue_token_starts_the_list_anew_and_deletes_nothing(cluster: FakeCluster) -> None:
    cluster.page_limit = 2
    uids = [f"u{number}" for number in range(5)]
    for uid in uids:
        cluster.apply(PODS, pod(uid))
    with reading(cluster) as live:
        wait_for_live(live, *uids)
        wait_for_watch(cluster)
        cluster.expired_tokens = 1
        listed_ms = live.clock.move_to("2026-05-04T10:00:00Z")
        cluster.send_error(PODS, 410, "Gone")
        until(lambda: live.mark().seen_ms == listed_ms)
    assert live.live() == set(uids)
    assert not [one for one in live.sink.transitions if one.moment is Moment.GONE]
    lists = cluster.asked(PODS, watch=False)
    assert [("continue" in query) for query in lists] == [False, True, True, False, True, False, True, True]
    assert not any("resourceVersion" in query for query in lists)


def test_a_list_too_slow_for_its_tokens_is_asked_for_in_one_piece(cluster: FakeCluster) -> None:
    cluster.page_limit = 2
    cluster.expired_tokens = 100
    uids = [f"u{number}" for number in range(5)]
    for uid in uids:
        cluster.apply(PODS, pod(uid))
    with reading(cluster) as live:
        wait_for_live(live, *uids)
    assert "limit" not in cluster.asked(PODS, watch=False)[-1]


def test_a_busy_server_is_asked_again_and_its_wish_is_honoured(cluster: FakeCluster) -> None:
    cluster.apply(PODS, pod("u1"))
    cluster.answer_next(PODS, 503, "ServiceUnavailable")
    cluster.answer_next(PODS, 429, "TooManyRequests", Retry_After="1")
    with reading(cluster) as live:
        wait_for_live(live, "u1")
        until(lambda: live.has_mark(ObjectKind.POD, ""))
    # Told for a second: whoever looked for it then might come too late.
    told = "retry: list /api/v1/pods: the API server answered 429"
    assert [error for error in live.sink.troubles if error.startswith(told)]


def test_a_connection_that_fell_silent_is_given_up(cluster: FakeCluster) -> None:
    pace = replace(QUICK, watch_seconds=1, silence_seconds=0.1)
    with reading(cluster, pace=pace) as live:
        wait_for_watch(cluster)
        cluster.silence(PODS)
        cluster.apply(PODS, pod("u1"))
        until(lambda: live.has_mark(ObjectKind.POD, "retry: "))
        assert "silent" in live.mark().last_error
        cluster.silence(PODS, silent=False)
        wait_for_live(live, "u1")


def _line_streams() -> list[LineStream]:
    return [one for one in gc.get_objects() if isinstance(one, LineStream)]


def test_a_watch_that_ended_is_let_go(cluster: FakeCluster) -> None:
    # Those of other tests stay what they are, as long as these are held.
    others = {id(one): one for one in _line_streams()}
    with reading(cluster):
        for number in range(4):
            wait_for_opened(cluster, number + 1)
            cluster.apply(PODS, pod(f"u{number}"))
            cluster.close_watches(PODS)
        wait_for_opened(cluster, 5)
        # Pods are all that is served: one watch is open, and an answer may be read beside it.
        until(lambda: len([one for one in _line_streams() if id(one) not in others]) <= 2)


def test_stopping_does_not_wait_for_silent_watches(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        wait_for_watch(cluster)
        cluster.silence(PODS)
        live.stop.set()
        live.thread.join(30)  # a silent watch is given up after minutes
        assert not live.thread.is_alive()


@pytest.mark.parametrize("noticed_by", ["bookmark", "410"])
def test_a_restored_cluster_opens_a_new_epoch(cluster: FakeCluster, noticed_by: str) -> None:
    cluster.apply(PODS, pod("u1"))
    backup = cluster.backup()
    with reading(cluster) as live:
        wait_for_watch(cluster)
        for _ in range(9):
            cluster.apply(PODS, pod("u2"))
        wait_for_live(live, "u1", "u2")
        until(lambda: live.mark().resource_version == "110")
        live.clock.move_to("2026-05-04T10:00:00Z")
        cluster.restore(backup)
        wait_for_opened(cluster, 2)
        if noticed_by == "bookmark":
            cluster.bookmark(PODS)
        else:
            cluster.send_error(PODS, 410, "Expired")
        wait_for_live(live, "u1")
        assert (live.mark().epoch, live.mark().resource_version) == (1, "101")
        cluster.apply(PODS, pod("u1", node="n1"))
        until(lambda: len(live.of("u1", Moment.BOUND)) == 1)
        assert live.mark().epoch == 1


def test_another_cluster_under_the_same_name_opens_a_new_epoch(cluster: FakeCluster) -> None:
    memory, clock = MemorySink(), HandClock()
    cluster.apply(PODS, pod("u1"))
    with reading(cluster, memory=memory, clock=clock) as live:
        wait_for_live(live, "u1")
    clock.move_to("2026-05-04T11:00:00Z")
    with FakeCluster(cluster_uid="cluster-2") as other:
        other.serve(PODS)
        for _ in range(9):
            other.apply(PODS, pod("u2"))
        with reading(other, memory=memory, clock=clock) as live:
            wait_for_live(live, "u2")
    assert (live.mark().epoch, live.mark().cluster_uid) == (1, "cluster-2")


def test_reading_again_after_a_restart_adds_nothing(cluster: FakeCluster) -> None:
    memory, clock = MemorySink(), HandClock()
    cluster.apply(PODS, pod("u1", node="n1"))
    with reading(cluster, memory=memory, clock=clock) as live:
        wait_for_live(live, "u1")
    rows = (len(memory.transitions), len(memory.descriptions))
    clock.move_to("2026-05-04T11:00:00Z")
    with reading(cluster, memory=memory, clock=clock) as live:
        until(lambda: live.mark().seen_ms == clock.at_ms)
    assert (len(memory.transitions), len(memory.descriptions)) == rows
    assert live.mark().epoch == 0


def test_a_store_that_refuses_a_batch_ends_the_reading(cluster: FakeCluster) -> None:
    class FullSink:
        def known(self, cluster: str) -> Known:  # noqa: ARG002 - it knows nothing of any
            return Known()

        def append(self, batch: Batch) -> int:  # noqa: ARG002 - it refuses whatever it is
            message = "the disk is full"
            raise StoreError(message)

    cluster.apply(PODS, pod("u1"))
    with reading(cluster, sink=FullSink()) as live:
        until(lambda: not live.thread.is_alive())
    assert [str(error) for error in live.errors] == ["the disk is full"]


def test_a_server_that_starts_later_is_found() -> None:
    with FakeCluster() as cluster:
        cluster.serve(PODS, "/api/v1/namespaces/kube-system")
        cluster.forbid("/api/v1/namespaces/kube-system")
        cluster.apply(PODS, pod("u1"))
        with reading(cluster) as live:
            wait_for_live(live, "u1")


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_or_doubled_whatever_goes_wrong(cluster: FakeCluster, seed: int) -> None:
    chance = random.Random(seed)
    cluster.page_limit = 3
    cluster.gone_as_http = chance.random() < 0.5
    troubles = (
        lambda: cluster.close_watches(PODS),
        lambda: cluster.cut_watches(PODS),
        lambda: cluster.send_error(PODS, 500, "InternalError"),
        lambda: cluster.send_error(PODS, 410, "Expired"),
        lambda: cluster.send_line(PODS, b"{"),
        lambda: cluster.answer_next(PODS, 503, "ServiceUnavailable"),
        lambda: cluster.answer_next(PODS, 410, "Expired"),
        lambda: cluster.replay_on_reconnect(PODS),
        cluster.compact,
    )
    alive: set[str] = set()
    with reading(cluster) as live:
        for step in range(80):
            live.clock.at_ms += 1000
            if alive and chance.random() < 0.2:
                uid = chance.choice(sorted(alive))
                alive.discard(uid)
                cluster.delete(PODS, uid)
            elif alive and chance.random() < 0.4:
                cluster.apply(PODS, pod(chance.choice(sorted(alive)), node="n1"))
            else:
                alive.add(f"u{step}")
                cluster.apply(PODS, pod(f"u{step}"))
            if chance.random() < 0.3:
                chance.choice(troubles)()
        until(lambda: live.live() == alive)
        bound = {uid for uid in alive if cluster.held(PODS, uid)["spec"]["nodeName"]}
        until(lambda: all(live.of(uid, Moment.BOUND) for uid in bound))
    keys = [one.key for one in live.sink.transitions]
    assert len(keys) == len(set(keys))
    gone = [one.uid for one in live.sink.transitions if one.moment is Moment.GONE]
    assert sorted(gone) == sorted(set(live.sink.objects) - alive)
