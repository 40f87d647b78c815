"""The machine's clock is set back, while a cluster is read or between two readings: no delete is missed."""

from collections.abc import Iterator

import pytest

from domain.facts import Moment
from domain.window import parse_instant
from tests.collector_live.running import PODS, HandClock, pod, reading, until
from tests.fake_cluster import FakeCluster
from tests.fakes import MemorySink


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.serve(PODS)
        yield running


@pytest.mark.parametrize(
    ("set_back_to", "earliest", "at"),
    [
        # A little: the stamps stay in order. Far: they were wrong, and what was seen before them is left.
        ("2026-05-04T10:04:30Z", "2026-05-04T10:05:00Z", "2026-05-04T10:05:00.001Z"),
        ("2026-05-04T09:55:00Z", "2026-05-04T09:00:00Z", "2026-05-04T09:55:00Z"),
    ],
)
def test_a_clock_that_is_set_back_hides_no_delete(
    cluster: FakeCluster, set_back_to: str, earliest: str, at: str
) -> None:
    cluster.apply(PODS, pod("u1"))
    with reading(cluster) as live:
        until(lambda: live.live() == {"u1"})
        until(lambda: cluster.open_watches(PODS) > 0)
        known_good_ms = live.clock.move_to("2026-05-04T10:05:00Z")
        cluster.bookmark(PODS)
        until(lambda: live.mark().seen_ms == known_good_ms)
        live.clock.move_to(set_back_to)
        cluster.silence(PODS)
        cluster.delete(PODS, "u1")
        cluster.send_error(PODS, 410, "Expired")
        until(lambda: live.live() == set())
        until(lambda: live.mark().seen_ms == parse_instant(at))
    (gone,) = live.of("u1", Moment.GONE)
    assert (gone.earliest_ms, gone.at_ms) == (parse_instant(earliest), parse_instant(at))


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_delete_is_found_though_the_clock_was_ahead_before_the_restart(
    cluster: FakeCluster, *, is_restored: bool
) -> None:
    cluster.apply(PODS, pod("stays"))
    backup = cluster.backup()
    cluster.apply(PODS, pod("goes", node="n1"))
    memory, clock = MemorySink(), HandClock(parse_instant("2026-05-04T12:00:00Z"))
    with reading(cluster, memory=memory, clock=clock) as live:
        until(lambda: live.live() == {"stays", "goes"})
    if is_restored:
        cluster.restore(backup)
    else:
        cluster.delete(PODS, "goes")
    now_ms = clock.move_to("2026-05-04T09:00:00Z")
    with reading(cluster, memory=memory, clock=clock) as live:
        until(lambda: live.live() == {"stays"})
        until(lambda: live.mark().seen_ms == now_ms)
    (gone,) = live.of("goes", Moment.GONE)
    # It was bound at 08:01 by the cluster's own clock, and no sight of ours is to be believed.
    assert (gone.earliest_ms, gone.at_ms) == (parse_instant("2026-05-04T08:01:00Z"), now_ms)
    assert live.mark().epoch == is_restored
