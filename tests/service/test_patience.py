"""A full disk pauses the reading, and it goes on by itself: nothing acknowledged is lost or doubled."""

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from collector.intake import Intake
from domain.errors import StoreBrokenError, StoreError
from domain.facts import Batch, ObjectKind
from domain.observed import Stretch
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.alarms import Alarms
from service.answers import Answers
from service.patience import DISK, JOURNAL, STORE, PatientSink, Room
from store.embedded import Store
from tests.collector_live.running import until
from tests.store.facts_made_up import CLUSTER, one_pod
from tests.store.full_disk import PODS_EACH, SmallDisk, pods, small_disk  # noqa: F401 - a fixture


class Disk:
    """Says how much is free."""

    def __init__(self, free: int) -> None:
        self.free = free

    def free_bytes(self, _folder: Path) -> int:
        return self.free


def test_a_disk_that_is_nearly_full_pauses_and_alarms_and_goes_on_by_itself(tmp_path: Path) -> None:
    store, alarms, disk = Store.open(tmp_path / "s.duckdb"), Alarms(), Disk(50)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(0), alarms=alarms)
    room = Room(tmp_path, 100, disk.free_bytes)
    sink = PatientSink(store, room=room, alarms=alarms, stop=threading.Event(), pause_seconds=0.01)
    appending = threading.Thread(target=sink.append, args=(one_pod("u1", 1),))
    appending.start()
    until(lambda: DISK in alarms.sounding())
    assert "reading pauses until there is more" in answers.readiness()
    disk.free = 105  # more than the limit, and not yet so much more that it would not come back at once
    appending.join(0.1)
    assert appending.is_alive()
    disk.free = 120
    appending.join(60)
    assert not appending.is_alive()
    assert (alarms.sounding(), answers.readiness()) == ({}, "")
    assert store.known(CLUSTER).marks[ObjectKind.POD].resource_version == "1"
    store.close()


def test_what_one_cluster_suffers_is_not_ended_by_another(tmp_path: Path) -> None:
    alarms, stop, mended = Alarms(), threading.Event(), threading.Event()
    store = Store.open(tmp_path / "s.duckdb")

    def journal() -> None:
        if not mended.is_set():
            raise OSError(13, "Permission denied")

    room = Room(tmp_path, 0)
    bad = PatientSink(store, room=room, alarms=alarms, stop=stop, before=journal, pause_seconds=0.01)
    good = PatientSink(store, room=room, alarms=alarms, stop=stop)
    writing = threading.Thread(target=bad.append, args=(replace(one_pod("u1", 1), cluster="south"),))
    writing.start()
    name = f"{JOURNAL}/south"
    until(lambda: name in alarms.sounding())
    good.append(one_pod("u2", 1))
    assert alarms.sounding()[name].startswith("cluster south: [Errno 13] Permission denied")
    assert "Permission denied" in alarms.why_not_ready()
    mended.set()
    writing.join(60)
    assert alarms.sounding() == {}
    store.close()


def test_a_store_that_breaks_for_one_cluster_has_an_alarm_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, alarms, stop = Store.open(tmp_path / "s.duckdb"), Alarms(), threading.Event()
    sink = PatientSink(store, room=Room(tmp_path, 0), alarms=alarms, stop=stop, pause_seconds=0.01)
    appends = store.append

    def broken(_batch: Batch) -> int:
        message = "the file is damaged"
        raise StoreBrokenError(message)

    monkeypatch.setattr(store, "append", broken)
    writing = threading.Thread(target=sink.append, args=(one_pod("u1", 1),))
    writing.start()
    until(lambda: f"{STORE}/{CLUSTER}" in alarms.sounding())
    monkeypatch.setattr(store, "append", appends)
    writing.join(60)
    assert alarms.sounding() == {}
    assert set(store.known(CLUSTER).objects) == {"u1"}
    store.close()


def test_whoever_looks_ends_no_pause_that_another_waits_in(tmp_path: Path) -> None:
    alarms, disk = Alarms(), Disk(50)
    room = Room(tmp_path, 100, disk.free_bytes)
    assert room.lacking(alarms)
    disk.free = 105
    # Those who wait need more than that, and so does whoever looks for the first time.
    assert room.lacking(alarms)
    assert DISK in alarms.sounding()
    disk.free = 120
    assert (room.lacking(alarms), alarms.sounding()) == ("", {})
    disk.free = 105
    assert room.lacking(alarms) == ""


def test_that_a_kind_was_seen_is_kept_though_nothing_happened(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s.duckdb")
    sink = PatientSink(store, room=Room(tmp_path, 0), alarms=Alarms(), stop=threading.Event())
    seen = Batch(cluster=CLUSTER, sights={ObjectKind.POD: [Stretch(start_ms=5, end_ms=9)]})
    assert sink.append(seen) == 0
    [kept] = store.stretches(start_ms=0, as_of_ms=10)
    assert (kept["kind"], kept["start_ms"], kept["end_ms"]) == ("Pod", 5, 9)
    store.close()


def test_whoever_stops_does_not_wait_for_room(tmp_path: Path) -> None:
    store, stop = Store.open(tmp_path / "s.duckdb"), threading.Event()
    sink = PatientSink(
        store, room=Room(tmp_path, 100, Disk(0).free_bytes), alarms=Alarms(), stop=stop, pause_seconds=60
    )
    stop.set()
    with pytest.raises(StoreError, match="it will be read again"):
        sink.append(one_pod("u1", 1))
    store.close()


def _goes_on(alarms: Alarms, acknowledged: list[int], so_far: int) -> bool:
    return not alarms.sounding() and len(acknowledged) > so_far


@pytest.mark.slow
def test_a_disk_that_was_full_for_a_while_lost_nothing(small_disk: SmallDisk) -> None:  # noqa: F811
    store, alarms = Store.open(small_disk.folder / "s.duckdb"), Alarms()
    # Nothing is reserved, so that it is the writing that fails, in the middle of something.
    sink = PatientSink(
        store,
        room=Room(small_disk.folder, 0),
        alarms=alarms,
        stop=threading.Event(),
        pause_seconds=0.02,
    )
    acknowledged: list[int] = []
    enough = threading.Event()

    def write() -> None:
        intake = Intake(CLUSTER, sink, sink.known(CLUSTER))
        number = 0
        while not enough.is_set():
            pods(intake, number)
            intake.flush()
            acknowledged.append(number)
            number += 1

    writing = threading.Thread(target=write)
    writing.start()
    for _ in range(3):
        small_disk.fill()
        until(lambda: bool(alarms.sounding()) or not writing.is_alive())
        so_far = len(acknowledged)
        small_disk.free()
        until(partial(_goes_on, alarms, acknowledged, so_far))
    enough.set()
    writing.join(60)
    assert not writing.is_alive()
    found = store.rows(
        "select count(*)::bigint as rows, count(distinct uid)::bigint as uids from description"
    )
    assert found == [{"rows": len(acknowledged) * PODS_EACH, "uids": len(acknowledged) * PODS_EACH}]
    store.close()
    again = Store.open(small_disk.folder / "s.duckdb")
    assert again.rows("select count(*)::bigint as rows from description") == [{"rows": found[0]["rows"]}]
    again.close()
