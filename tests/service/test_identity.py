"""One cluster under two names: it is read under one of them, and somebody says which two they are."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from domain.errors import ProductError
from domain.policy import Policy
from service import gaps, sources
from service.alarms import Alarms
from service.cli import doctor_clusters
from service.cli.finding import Verdict
from service.collecting import Collectors
from service.identity import Identities, names_by_uid
from service.keeping import Keeper, forgotten_names
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import PODS, pod, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig

ALARM = "one_cluster_twice/"


def settings_of(folder: Path, *named: tuple[str, str]) -> Settings:
    """Clusters of these names at these addresses."""
    clusters = []
    for name, url in named:
        (folder / name).mkdir(exist_ok=True)
        clusters.append({"name": name, "kubeconfig": str(kubeconfig(folder / name, url))})
    given = {"store.data_dir": folder / "data", "keeping.min_free": "1MB", "clusters": clusters}
    return load_settings(overrides=given)


@contextmanager
def read(settings: Settings, store: Store) -> Iterator[Alarms]:
    """The clusters of the settings are read; gives the alarms."""
    alarms, failures = Alarms(), list[ProductError]()
    collectors = Collectors(
        settings, store, alarms=alarms, forgotten=forgotten_names(settings), failed=failures.append
    )
    collectors.start()
    try:
        yield alarms
    finally:
        collectors.stop()
    assert failures == []


def live(store: Store) -> list[str]:
    """The names under which the pod is there, as far as is known."""
    found = store.rows("select cluster from object_state where kind = 'Pod' and gone_ms is null order by 1")
    return [str(row["cluster"]) for row in found]


def gap_texts(store: Store) -> list[tuple[str, str, str]]:
    rows = gaps.rows(store, 1, policy=Policy())
    return [
        (row["cluster"], row["last_error"], row["remedy"]) for row in rows if row["source"] == "two names"
    ]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.serve(PODS)
        running.apply(PODS, pod("u1"))
        yield running


def test_a_second_name_of_a_cluster_is_not_read_and_both_are_named(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, ("north", cluster.url), ("south", cluster.url))
    store = Store.open(settings.store_file)
    with read(settings, store) as alarms:
        until(lambda: live(store) == ["north"] and ALARM + "south" in alarms.sounding())
        until(lambda: any(mark["cluster"] == "south" for mark in store.marks()))
        told = alarms.sounding()
        # The other clusters are read: the service is ready.
        assert alarms.why_not_ready() == ""
    assert list(told) == [ALARM + "south"]
    assert "south is the same cluster as north" in told[ALARM + "south"]
    assert "take south or north out of clusters in the settings" in told[ALARM + "south"]
    assert live(store) == ["north"]
    marks = [mark for mark in store.marks() if mark["cluster"] == "south"]
    assert {"the same cluster as north" in str(mark["last_error"]) for mark in marks} == {True}
    # It lacks nothing that a figure would rest on.
    rows = sources.rows(marks, [], 1, policy=Policy())
    assert {row["state"] for row in rows} == {"not_installed"}
    [finding] = doctor_clusters.second_names(settings.clusters)
    assert finding.verdict is Verdict.WRONG
    assert finding.text.startswith("cluster south is the same cluster as north")
    assert "gpuledger retire" in finding.remedy
    store.close()


def test_a_cluster_that_was_renamed_is_read_on_and_its_earlier_name_is_to_be_retired(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, ("old", cluster.url))
    store = Store.open(settings.store_file)
    with read(settings, store) as alarms:
        until(lambda: live(store) == ["old"])
        assert (alarms.sounding(), gap_texts(store)) == ({}, [])
    settings = settings_of(tmp_path, ("new", cluster.url))
    with read(settings, store) as alarms:
        until(lambda: live(store) == ["new", "old"])
        assert "new is the same cluster as old" in alarms.sounding()[ALARM + "new"]
        assert "give `gpuledger retire old`" in alarms.sounding()[ALARM + "new"]
    [(name, text, remedy)] = gap_texts(store)
    assert name == "old"
    assert text.startswith("old is the same cluster as new")
    assert remedy.startswith("give `gpuledger retire old`")
    Keeper(settings, store).retire("old")
    assert gap_texts(store) == []
    with read(settings, store) as alarms:
        until(lambda: live(store) == ["new"])
        asked = len(cluster.requests)
        until(lambda: PODS in {path for path, _ in cluster.requests[asked:]})
        assert alarms.sounding() == {}
    store.close()


def test_an_account_that_may_not_see_who_a_cluster_is_reads_it(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.granted = {("", "pods")}
    settings = settings_of(tmp_path, ("north", cluster.url), ("south", cluster.url))
    store = Store.open(settings.store_file)
    with read(settings, store) as alarms:
        until(lambda: live(store) == ["north", "south"])
        assert alarms.sounding() == {}
    assert gap_texts(store) == []
    assert list(doctor_clusters.second_names(settings.clusters)) == []
    store.close()


def test_the_name_that_was_read_before_goes_first_then_the_order_of_the_settings() -> None:
    names = Identities(["a", "b", "c"], {"one": ["b"]}, grace_seconds=0)
    assert names.meet("c", "one") == ""  # the others say nothing
    assert names.meet("b", "one") == "c"  # and come too late
    assert names.meet("a", "two") == ""
    # It turns out to be another cluster: its name is free.
    assert names.meet("c", "three") == ""
    assert names.meet("b", "one") == ""
    assert names.meet("a", "one") == "b"
    assert [names.meet(name, "") for name in "abc"] == ["", "", ""]


def test_a_name_waits_for_those_that_go_before_it() -> None:
    names = Identities(["a", "b"], {}, grace_seconds=60)
    told: list[str] = []
    second = threading.Thread(target=lambda: told.append(names.meet("b", "one")))
    second.start()
    assert names.meet("a", "one") == ""
    second.join(60)
    assert told == ["a"]


def test_a_name_that_is_retired_is_none_and_the_one_read_last_comes_first() -> None:
    def mark(name: str, seen_ms: int, last_error: str = "") -> dict[str, object]:
        return {"cluster": name, "cluster_uid": "u", "seen_ms": seen_ms, "last_error": last_error}

    retired = mark("gone", 9, "not_installed: the cluster was retired")
    assert names_by_uid([mark("a", 3), mark("b", 5), mark("never", 0), retired]) == {"u": ["b", "a"]}
    assert names_by_uid([retired]) == {}
    # One that was read again is none that was retired, whatever a kind says that is read no more.
    assert names_by_uid([retired, mark("gone", 12)]) == {"u": ["gone"]}
