"""An account that may only read: what it may is read, what it may not is told and tried again."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from collector.kube.watch_steps import Outcome
from collector.translator import TRANSLATORS, Translator
from domain.facts import Moment, ObjectKind
from tests.collector_live.account import add, path_of, serve_all
from tests.collector_live.running import QUICK, Reading, reading, until
from tests.fake_cluster import FakeCluster
from tests.fake_etcd import Canned, status_body

JOB_SETS = next(kind for kind in TRANSLATORS if kind.kind is ObjectKind.JOB_SET)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        serve_all(cluster)
        yield cluster


def troubles(live: Reading) -> dict[str, str]:
    """The word of each trouble that is told now."""
    marks = dict(live.sink.marks)
    return {kind: mark.last_error.partition(":")[0] for kind, mark in marks.items() if mark.last_error}


def _forbid_for_a_while(cluster: FakeCluster, live: Reading, forbidden: Translator, number: int) -> None:
    right = (forbidden.group, forbidden.resource)
    assert cluster.granted is not None
    with cluster.changed:
        cluster.granted.discard(right)
    cluster.close_watches(path_of(forbidden))
    until(lambda: troubles(live) == {forbidden.kind: Outcome.NO_PERMISSION})
    uids = {kind.kind: add(cluster, kind, number) for kind in TRANSLATORS}
    unread = uids.pop(forbidden.kind)
    until(lambda: live.live() >= set(uids.values()))
    assert unread not in live.live()
    # What it told before is not taken for gone.
    assert any(uid.startswith(f"{forbidden.kind}-") for uid in live.live())
    with cluster.changed:
        cluster.granted.add(right)
    until(lambda: unread in live.live())


def test_all_kinds_are_read_with_get_list_and_watch_and_nothing_else_is_asked_for(
    cluster: FakeCluster,
) -> None:
    uids = {f"{kind.kind}-0" for kind in TRANSLATORS}
    with reading(cluster) as live:
        until(lambda: live.live() >= uids)
        until(lambda: all(cluster.open_watches(path_of(kind)) for kind in TRANSLATORS))
        assert troubles(live) == {}
    assert cluster.denied == set()


def test_each_kind_may_be_forbidden_in_turn_and_the_others_are_read_on(cluster: FakeCluster) -> None:
    with reading(cluster) as live:
        for number, forbidden in enumerate(TRANSLATORS, start=1):
            until(lambda: not troubles(live) and all(map(cluster.open_watches, map(path_of, TRANSLATORS))))
            _forbid_for_a_while(cluster, live, forbidden, number)
    assert len(cluster.denied) == len(TRANSLATORS)
    assert {denied.partition(" ")[0] for denied in cluster.denied} == {"GET"}


@pytest.mark.parametrize("watch", [False, True])
def test_what_a_server_that_starts_forbids_for_a_moment_is_read_on_at_once(
    cluster: FakeCluster, *, watch: bool
) -> None:
    path = path_of(JOB_SETS)
    refused = Canned(403, status_body(403, "Forbidden"), {}, watch=watch)
    with reading(cluster, pace=replace(QUICK, probe_seconds=600)) as live:
        until(lambda: cluster.open_watches(path) == 1)
        cluster.answer_next_with(path, refused)
        if watch:
            cluster.close_watches(path)
        else:
            cluster.send_error(path, 410, "Expired")
        until(lambda: any("answered 403" in because for because in list(live.sink.troubles)))
        add(cluster, JOB_SETS, 1)
        until(lambda: "JobSet-1" in live.live())


def test_a_kind_that_is_taken_away_is_not_there_rather_than_forbidden_and_is_found_again(
    cluster: FakeCluster,
) -> None:
    path = path_of(JOB_SETS)
    with reading(cluster) as live:
        until(lambda: cluster.open_watches(path) == 1)
        cluster.hide(path)
        cluster.close_watches(path)
        until(lambda: troubles(live) == {ObjectKind.JOB_SET: Outcome.NOT_INSTALLED})
        assert live.mark(ObjectKind.JOB_SET).last_error == (
            "not_installed: the cluster does not serve jobsets.jobset.x-k8s.io in v1alpha2"
        )
        with cluster.changed:
            resource = cluster.resource(path)
            assert resource is not None
            resource.hidden = resource.forbidden = False
        until(lambda: troubles(live) == {})


def test_what_was_of_a_kind_that_is_taken_away_is_gone_with_it(cluster: FakeCluster) -> None:
    path = path_of(JOB_SETS)
    with reading(cluster) as live:
        all_there = {f"{kind.kind}-0" for kind in TRANSLATORS}
        until(lambda: live.live() >= all_there and cluster.open_watches(path) == 1)
        known_good_ms = live.mark(ObjectKind.JOB_SET).seen_ms
        removed_ms = live.clock.move_to("2026-05-04T09:30:00Z")
        cluster.hide(path)
        cluster.close_watches(path)
        until(lambda: "JobSet-0" not in live.live())
        (gone,) = live.of("JobSet-0", Moment.GONE)
        assert (gone.earliest_ms, gone.at_ms) == (known_good_ms, removed_ms)
        assert live.live() >= all_there - {"JobSet-0"}
        with cluster.changed:
            resource = cluster.resource(path)
            assert resource is not None
            resource.hidden = resource.forbidden = False
        until(lambda: "JobSet-0" in live.live())


def test_a_kind_of_which_only_another_version_is_served_keeps_its_objects(cluster: FakeCluster) -> None:
    path = path_of(JOB_SETS)
    newer = path.replace("v1alpha2", "v9")
    with reading(cluster) as live:
        until(lambda: cluster.open_watches(path) == 1)
        cluster.serve(newer)
        cluster.hide(path)
        cluster.close_watches(path)
        until(lambda: troubles(live) == {ObjectKind.JOB_SET: Outcome.NOT_INSTALLED})
        probes = partial(cluster.requests.count, (newer.rpartition("/")[0], {}))
        asked = probes()
        until(lambda: probes() >= asked + 3)
        assert "JobSet-0" in live.live()


def test_a_server_in_trouble_is_neither_forbidden_nor_without_the_kind(cluster: FakeCluster) -> None:
    path = path_of(JOB_SETS)
    with reading(cluster) as live:
        until(lambda: cluster.open_watches(path) == 1)
        with cluster.changed:
            for _ in range(200):
                cluster.answer_next(path, 503, "ServiceUnavailable")
        cluster.close_watches(path)
        until(lambda: any("answered 503" in mark.last_error for mark in list(live.sink.marks.values())))
        assert troubles(live) == {ObjectKind.JOB_SET: "retry"}
        with cluster.changed:
            resource = cluster.resource(path)
            assert resource is not None
            resource.canned.clear()
        until(lambda: cluster.open_watches(path) == 1)
