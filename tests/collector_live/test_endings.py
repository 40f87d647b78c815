"""Endings of lists and watches that are easily mistaken for something else."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest
from kubernetes.client import Configuration

from collector.intake import Intake
from collector.kube import watch
from collector.kube.client import Connection
from collector.kube.refusal import retry_after_seconds
from collector.kube.watch import KindReader
from collector.kube.watch_steps import Action, Answered, Outcome, Pace, Place, next_place, wait_seconds
from collector.shared_intake import SharedIntake
from collector.translator import find
from domain.facts import Known, Moment, ObjectKind
from tests.collector_live.running import (
    NODES,
    PODS,
    QUICK,
    WORKLOADS,
    HandClock,
    node,
    pod,
    reading,
    until,
    workload,
)
from tests.fake_cluster import FakeCluster
from tests.fake_etcd import Body, Canned, status_body
from tests.fakes import MemorySink


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.serve(PODS)
        yield running


@pytest.mark.parametrize(
    "body",
    [
        status_body(500, "InternalError"),
        {"kind": "PodList", "metadata": {}, "items": []},
        {"metadata": {"resourceVersion": "999"}, "kind": "Pod"},
        {},
    ],
)
def test_what_is_no_list_ends_nothing(cluster: FakeCluster, body: Body) -> None:
    cluster.apply(PODS, pod("u1"))
    with reading(cluster) as live:
        until(lambda: live.live() == {"u1"})
        until(lambda: cluster.open_watches(PODS) > 0)
        live.clock.at_ms += 1000
        cluster.answer_next_with(PODS, Canned(200, body, {}, watch=False))
        cluster.send_error(PODS, 410, "Expired")
        until(lambda: len(cluster.asked(PODS, watch=False)) >= 3)
        until(lambda: live.mark().seen_ms == live.clock.at_ms)
        assert live.live() == {"u1"}
    assert [one for one in live.sink.transitions if one.moment is Moment.GONE] == []


def test_a_page_of_another_version_starts_the_list_anew(cluster: FakeCluster) -> None:
    cluster.page_limit = 2
    for number in range(3):
        cluster.apply(PODS, pod(f"u{number}"))
    other = {"kind": "PodList", "metadata": {"resourceVersion": "777"}, "items": []}
    with reading(cluster) as live:
        until(lambda: live.live() == {"u0", "u1", "u2"})
        until(lambda: cluster.open_watches(PODS) > 0)
        live.clock.at_ms += 1000
        first = cluster.listing_now(PODS, limit=2)
        cluster.answer_next_with(PODS, Canned(200, first, {}, watch=False))
        cluster.answer_next_with(PODS, Canned(200, other, {}, watch=False))
        cluster.send_error(PODS, 410, "Expired")
        until(lambda: live.mark().seen_ms == live.clock.at_ms)
    assert [one for one in live.sink.transitions if one.moment is Moment.GONE] == []


def test_a_crd_that_is_taken_away_is_not_called_forbidden(cluster: FakeCluster) -> None:
    """A restricted account gets 403 for it, not 404."""
    cluster.serve(WORKLOADS)
    cluster.apply(WORKLOADS, workload("w1"))
    with reading(cluster, pace=replace(QUICK, probe_seconds=600)) as live:
        until(lambda: live.live() == {"w1"})
        until(lambda: cluster.open_watches(WORKLOADS) > 0)
        cluster.hide(WORKLOADS)
        cluster.close_watches(WORKLOADS)
        until(lambda: live.has_mark(ObjectKind.WORKLOAD, "not_installed: "))


def test_a_kind_without_bookmarks_learns_of_a_restored_cluster_from_the_others(cluster: FakeCluster) -> None:
    cluster.serve(NODES)
    cluster.apply(PODS, pod("u1"))
    cluster.apply(NODES, node("n1"))
    backup = cluster.backup()
    with reading(cluster) as live:
        until(lambda: live.live() == {"u1", "n1"})
        for _ in range(9):
            cluster.apply(PODS, pod("u2"))
            cluster.apply(NODES, node("n2"))
        until(lambda: live.live() == {"u1", "n1", "u2", "n2"})
        until(lambda: live.mark(ObjectKind.NODE).resource_version == "120")
        live.clock.at_ms += 1000
        opened = {path: cluster.opened(path) for path in (NODES, PODS)}
        cluster.restore(backup)
        # Nodes watch on from a version of the future, and are told nothing. What ends may still be open.
        until(lambda: all(cluster.opened(path) > before for path, before in opened.items()))
        cluster.bookmark(PODS)
        until(lambda: live.mark().epoch == 1)
        cluster.close_watches(NODES)
        until(lambda: live.mark(ObjectKind.NODE).epoch == 1)
        until(lambda: live.live() == {"u1", "n1"})


def test_a_server_that_we_are_ahead_of_is_listed_anew(cluster: FakeCluster) -> None:
    ahead = status_body(504, "Timeout") | {
        "details": {"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1}
    }
    pace = replace(QUICK, longest_wish_seconds=0.01)
    with reading(cluster, pace=pace) as live:
        until(lambda: cluster.open_watches(PODS) > 0)
        cluster.answer_next_with(PODS, Canned(504, ahead, {}, watch=True))
        cluster.close_watches(PODS)
        until(lambda: len(cluster.asked(PODS, watch=False)) == 2)
        until(lambda: live.has_mark(ObjectKind.POD, ""))


def test_a_trouble_ends_with_the_next_watch_even_where_nothing_happens_and_nothing_more_counts_as_seen(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LIVED_SECONDS", 600.0)
    with reading(cluster) as live:
        until(lambda: cluster.open_watches(PODS) > 0)
        until(lambda: live.has_mark(ObjectKind.POD, ""))
        listed_ms = live.mark().seen_ms
        live.clock.at_ms += 60_000
        cluster.answer_next_with(PODS, Canned(401, status_body(401, "Unauthorized"), {}, watch=True))
        cluster.close_watches(PODS)
        until(lambda: live.has_mark(ObjectKind.POD, "retry: watch /api/v1/pods: the API server answered 401"))
        until(lambda: cluster.opened(PODS) == 2)
        # A watch lives when it is open for a while: until then an error may still come.
        assert live.mark().last_error
        monkeypatch.setattr(watch, "_LIVED_SECONDS", 0.05)
        until(lambda: live.has_mark(ObjectKind.POD, ""))
        assert live.mark().seen_ms == listed_ms
        # It went on from where it was.
        assert len(cluster.asked(PODS, watch=False)) == 1


def test_an_event_from_before_the_list_leads_to_a_new_list(cluster: FakeCluster) -> None:
    """Of an object that was gone before the list nothing else would tell the end."""
    with reading(cluster) as live:
        until(lambda: cluster.open_watches(PODS) > 0)
        cluster.send_line(PODS, b'{"type":"ADDED","object":{"metadata":{"uid":"old","resourceVersion":"7"}}}')
        until(lambda: len(cluster.asked(PODS, watch=False)) == 2)
    assert "old" not in live.sink.objects


def test_a_watch_that_gets_bookmarks_no_more_is_given_up(cluster: FakeCluster) -> None:
    # Long enough that the first watch is closed by us, and not given up while this thread stands.
    with reading(cluster, pace=replace(QUICK, bookmark_seconds=1.5)) as live:
        until(lambda: cluster.open_watches(PODS) > 0)
        cluster.bookmark(PODS)
        until(lambda: live.has_mark(ObjectKind.POD, ""))
        cluster.close_watches(PODS)
        until(lambda: cluster.opened(PODS) >= 3)
        # The next one had none, so its silence is believed.
        asked = len(cluster.asked(PODS, watch=True))
        cluster.apply(PODS, pod("u1"))
        until(lambda: live.live() == {"u1"})
    assert asked == 3


@contextmanager
def pods_of(cluster: FakeCluster, stop: threading.Event) -> Iterator[KindReader]:
    """Who reads pods, and nobody else."""
    translator, connection = find("", "Pod"), Connection(Configuration(host=cluster.url))
    assert translator is not None
    yield KindReader(
        translator,
        connection=connection,
        intake=SharedIntake(Intake("c", MemorySink(), Known(), live=True)),
        clock=HandClock(),
        stop=stop,
        pace=QUICK,
    )
    connection.close()


def test_a_watch_that_ends_while_somebody_looks_whether_it_lives_ends_nothing_else(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()

    def now_seconds() -> float:
        if threading.current_thread() is threading.main_thread():
            stop.set()
            cluster.close_watches(PODS)
            thread.join()
        return time.monotonic()

    with pods_of(cluster, stop) as reader:
        thread = threading.Thread(target=reader.run, daemon=True)
        # The watch after a trouble is looked at.
        cluster.answer_next_with(PODS, Canned(503, status_body(503, "ServiceUnavailable"), {}, watch=True))
        thread.start()
        until(lambda: cluster.open_watches(PODS) > 0)
        monkeypatch.setattr(watch, "monotonic", now_seconds)
        while thread.is_alive():
            reader.settle()


def test_a_quiet_watch_that_lasted_before_it_was_cut_slows_nothing_down(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands between us may cut what is silent for a minute, again and again."""
    monkeypatch.setattr(watch, "monotonic", itertools.count(0.0, 60.0).__next__)
    place, waits = Place(action=Action.WATCH, version="v1", resource_version="100"), []

    def cut() -> None:
        until(lambda: cluster.open_watches(PODS) > 0)
        cluster.cut_watches(PODS)

    with pods_of(cluster, threading.Event()) as reader:
        for _ in range(4):
            until(lambda: cluster.open_watches(PODS) == 0)
            cutting = threading.Thread(target=cut)
            cutting.start()
            answered = reader.watch(place)
            cutting.join()
            assert answered.outcome is Outcome.BROKEN
            place = next_place(place, answered)
            waits.append(wait_seconds(place, answered, Pace(), draw=0.0))
    assert waits == [0.8] * 4


def test_a_kind_whose_quiet_watches_are_all_cut_counts_as_followed_up_to_the_beginning_of_the_last(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LIVED_SECONDS", 0.0)
    with reading(cluster) as live:
        until(lambda: cluster.open_watches(PODS) > 0)
        until(lambda: live.has_mark(ObjectKind.POD, ""))
        listed_ms = live.mark().seen_ms
        live.clock.at_ms += 60_000
        cluster.cut_watches(PODS)
        until(lambda: cluster.opened(PODS) == 2)
        live.clock.at_ms += 60_000
        cluster.cut_watches(PODS)
        # The second was opened after a minute, and would have told of what was before that.
        until(lambda: live.mark().seen_ms == listed_ms + 60_000)
        assert len(cluster.asked(PODS, watch=False)) == 1


@pytest.mark.parametrize("end", [b'{"type":"ERROR","object":{"code":410}}\n', b"{\n"])
def test_a_watch_that_says_something_and_loses_its_place_for_ever_slows_down(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.setattr(watch, "monotonic", lambda: 0.0)
    cluster.apply(PODS, pod("u1"))
    line = msgspec.json.encode({"type": "ADDED", "object": cluster.held(PODS, "u1")}) + b"\n"
    place, waits = Place(action=Action.WATCH, version="v1", resource_version="100"), []
    with pods_of(cluster, threading.Event()) as reader:
        for _ in range(4):
            cluster.answer_next_with(PODS, Canned(200, msgspec.Raw(line + end), {}, watch=True))
            answered = reader.watch(place)
            assert (answered.outcome, reader._at) == (Outcome.LOST, "101")
            place = next_place(place, answered)
            waits.append(wait_seconds(place, answered, Pace(), draw=0.0))
            place = next_place(place, Answered(outcome=Outcome.LISTED, resource_version="100"))
    assert waits == [0.8, 1.6, 3.2, 6.4]


@pytest.mark.parametrize("wish", ["soon", "-1", "1.5", "Mon, 04 May 2026 09:00:00 GMT"])
def test_a_wish_that_nobody_can_read_is_none(wish: str) -> None:
    assert retry_after_seconds({"retry-after": wish}) == 0.0
