"""Endings of lists and watches that are easily mistaken for something else."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from collector.kube import watch
from collector.kube.refusal import retry_after_seconds
from domain.facts import Moment, ObjectKind
from tests.collector_live.running import NODES, PODS, QUICK, WORKLOADS, node, pod, reading, until, workload
from tests.fake_cluster import FakeCluster
from tests.fake_etcd import Body, Canned, status_body


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


@pytest.mark.parametrize("wish", ["soon", "-1", "1.5", "Mon, 04 May 2026 09:00:00 GMT"])
def test_a_wish_that_nobody_can_read_is_none(wish: str) -> None:
    assert retry_after_seconds({"retry-after": wish}) == 0.0
