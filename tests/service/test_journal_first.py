"""A batch is in the journal before it is in the store, and in the store once, whatever fails in between."""

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typing_extensions import override

from collector.intake import Intake
from collector.journal import Journal, JournaledIntake, JournalFirst
from collector.replay import replay
from collector.sink import FactSink
from domain.errors import StoreBrokenError
from domain.facts import Batch, Known
from service.alarms import Alarms
from service.patience import PatientSink, Room
from store.embedded import Store
from tests.collector.objects import EVENT, POD, at, metadata, pod
from tests.fakes import MemorySink

CLUSTER = "north"
COUNTS = """
select
    (select count(*) from transition)::bigint as transitions,
    (select count(*) from description)::bigint as descriptions,
    (select count(*) from event_sighting)::bigint as events
"""


class Killed(BaseException):
    """The process is no more."""


class Dying(MemorySink):
    """A sink in which nothing is kept any more: whoever writes to it is killed."""

    @override
    def append(self, batch: Batch) -> int:
        raise Killed(batch.cluster)


class Failing(Store):
    """A store whose next commit fails, before anything is written or after all of it."""

    fails = ""

    @override
    def append(self, batch: Batch) -> int:
        fails, self.fails = self.fails, ""
        if fails == "before":
            message = "the disk is full"
            raise StoreBrokenError(message)
        appended = super().append(batch)
        if fails == "after":
            message = "the commit was written, and its answer lost"
            raise StoreBrokenError(message)
        return appended


def patient(store: Store, folder: Path, before: Callable[[], None] = lambda: None) -> PatientSink:
    return PatientSink(
        store, room=Room(folder, 0), alarms=Alarms(), stop=threading.Event(), before=before, pause_seconds=0.0
    )


def read(intake: Intake | JournaledIntake, version: int) -> None:
    """A pod that describes itself anew, and an Event."""
    told = pod("p", version)
    told["metadata"]["labels"] = {"version": str(version)}
    intake.see(POD, "MODIFIED", msgspec.json.encode(told), at(version))
    event = {"metadata": metadata("e", version, namespace="t"), "reason": "Failed"}
    intake.see(EVENT, "MODIFIED", msgspec.json.encode(event), at(version))
    intake.flush()


def test_whoever_is_killed_as_a_batch_is_committed_has_it_in_the_journal(tmp_path: Path) -> None:
    def first(journal: Journal) -> FactSink:
        return JournalFirst(Dying(), journal)

    def patiently(journal: Journal) -> FactSink:
        store = Store.open(None)
        store.append = Dying().append  # type: ignore[method-assign]
        return patient(store, tmp_path, journal.commit)

    for sink_of in (first, patiently):
        folder = tmp_path / sink_of.__name__
        journal = Journal(folder, most_bytes=1 << 20)
        with pytest.raises(Killed):
            read(JournaledIntake(Intake(CLUSTER, sink_of(journal), Known()), journal), 1)
        kept = MemorySink()
        replay(folder, CLUSTER, kept)
        assert set(kept.objects) == {"p", "e"}, sink_of


def test_a_batch_whose_commit_fails_is_kept_once(tmp_path: Path) -> None:
    store = Failing.open(tmp_path / "s.duckdb")
    journal = Journal(tmp_path / "journal", most_bytes=1 << 20)
    sink = patient(store, tmp_path, journal.commit)
    intake = JournaledIntake(Intake(CLUSTER, sink, sink.known(CLUSTER)), journal)
    for version, fails in enumerate(("", "before", "after", "before", ""), start=1):
        store.fails = fails
        read(intake, version)
        assert store.rows(COUNTS) == [
            {"transitions": 1, "descriptions": version, "events": version},
        ], fails
    # As often as it was tried, it is in the journal once.
    again = MemorySink()
    replay(tmp_path / "journal", CLUSTER, again)
    assert (len(again.transitions), len(again.descriptions), len(again.events)) == (1, 5, 5)
    store.close()
