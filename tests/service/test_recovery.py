"""A log that cannot be replayed is kept aside, and the store is made anew from what there is."""

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from collector.intake import Intake
from collector.journal import Journal, JournaledIntake, journal_files
from collector.translator import find
from domain.errors import StoreBrokenError
from domain.metric import Measurement, Sample
from domain.window import parse_instant
from service.alarms import Alarms
from service.keeping import Keeper
from service.patience import PatientSink, Room
from service.recovery import journal_folder, journals, open_store, remade
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store
from tests.store.facts_made_up import one_pod

SEEN_MS = parse_instant("2026-05-04T09:00:00Z")
EACH = 50
FACTS = """
select cluster, uid, moment, at_ms from transition
union all
select cluster, uid, body, from_ms from description
order by all
"""


def write(
    store: Store, settings: Settings, batches: range, *, journaled: bool, at_once: bool = False
) -> None:
    """Let new namespaces be read, a batch of them at a time; `at_once`: all within one millisecond."""
    translator = find("", "Namespace")
    assert translator is not None
    journal = Journal(journal_folder(settings, "north/1"), most_bytes=1 << 30)
    sink = PatientSink(
        store,
        room=Room(settings.store.data_dir, 0),
        alarms=Alarms(),
        stop=threading.Event(),
        before=journal.commit if journaled else lambda: None,
    )
    intake = JournaledIntake(Intake("north/1", sink, sink.known("north/1")), journal)
    for batch in batches:
        for number in range(batch * EACH + 1, (batch + 1) * EACH + 1):
            metadata = {
                "uid": f"n{number}",
                "name": f"n{number}",
                "resourceVersion": str(number),
                "creationTimestamp": "2026-05-04T08:00:00Z",
            }
            intake.see(translator, "ADDED", {"metadata": metadata}, SEEN_MS + (0 if at_once else number))
        intake.flush()


def settings_in(folder: Path) -> Settings:
    return load_settings(overrides={"store.data_dir": folder})


def killed(tmp_path: Path, *, journaled: bool, backup: bool = False, at_once: bool = False) -> Settings:
    """A data folder as a killed process leaves it, with ten batches: five folded, five in the log."""
    settings = settings_in(tmp_path / "alive")
    store = open_store(settings)
    write(store, settings, range(5), journaled=journaled, at_once=at_once)
    store.fold()
    if backup:
        Keeper(settings, store).backup()
    write(store, settings, range(5, 10), journaled=journaled, at_once=at_once)
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    store.close()
    return settings_in(tmp_path / "killed")


def spoil_log(settings: Settings) -> Path:
    """Change bytes in the middle of the log, as a broken disk or a fault of the engine would."""
    wal = settings.store_file.with_name(settings.store_file.name + ".wal")
    data = bytearray(wal.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(byte ^ 0xFF for byte in data[middle : middle + 64])
    wal.write_bytes(data)
    return wal


def rows(store: Store) -> tuple[int, int]:
    """Rows of descriptions, and different ones of them."""
    (row,) = store.rows(
        "select count(*)::bigint as rows, count(distinct uid)::bigint as uids from description"
    )
    return int(str(row["rows"])), int(str(row["uids"]))


def test_the_journal_of_a_cluster_of_any_name_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    names = ["..", ".", "a.b", "north/1", "north%2F1"]
    for name in names:
        journal_folder(settings, name).mkdir(parents=True)
    assert {folder.parent for folder in (tmp_path / "journal").iterdir()} == {tmp_path / "journal"}
    assert sorted(name for name, _ in journals(settings)) == sorted(names)


def test_a_log_in_order_is_simply_replayed(tmp_path: Path) -> None:
    settings = killed(tmp_path, journaled=False)
    store = open_store(settings)
    assert rows(store) == (10 * EACH, 10 * EACH)
    assert not (settings.store.data_dir / "aside").exists()
    store.close()


def test_what_the_log_held_comes_from_the_journal(tmp_path: Path) -> None:
    settings = killed(tmp_path, journaled=True)
    spoiled = spoil_log(settings).read_bytes()
    with pytest.raises(StoreBrokenError):
        Store.open(settings.store_file)
    store = open_store(settings)
    assert rows(store) == (10 * EACH, 10 * EACH)
    (aside,) = (settings.store.data_dir / "aside").iterdir()
    assert (aside / "gpuledger.duckdb.wal").read_bytes() == spoiled
    store.close()


def test_what_came_within_the_millisecond_in_which_the_file_was_folded_is_not_left_out(
    tmp_path: Path,
) -> None:
    settings = killed(tmp_path, journaled=True, at_once=True)
    spoil_log(settings)
    store = open_store(settings)
    assert rows(store) == (10 * EACH, 10 * EACH)
    store.close()


def test_where_the_journal_is_damaged_too_it_is_said_of_which_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = killed(tmp_path, journaled=True)
    spoil_log(settings)
    first, second = journal_files(journal_folder(settings, "north/1"))
    first.write_bytes(b"?" * 100)
    second.write_bytes(second.read_bytes()[:-20])
    store = open_store(settings)
    # The last block was cut off, as by a kill: of what it was to tell nothing was acknowledged.
    assert rows(store) == (9 * EACH, 9 * EACH)
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"][1:]
    assert told.startswith("journal of north/1: 00000001.ndjson.gz is cut off or broken: ")
    assert told.endswith("it tells nothing before 2026-05-04T09:00:00.251Z")
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warned[-1].startswith(
        "journal of north/1: 00000002.ndjson.gz is cut off or broken: its last block"
    )
    assert warned[-1].endswith("it tells nothing after 2026-05-04T09:00:00.450Z")
    store.close()


def test_a_cluster_that_was_retired_stays_so_in_a_rebuild_and_when_the_log_is_lost(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "alive")
    store = open_store(settings)
    write(store, settings, range(1), journaled=True)
    store.fold()
    keeper = Keeper(settings, store)
    keeper.retire("north/1")
    living = "select uid from object_state where gone_ms is null"
    kept = [FACTS, "select * from object_state order by all", "select * from source_mark order by all"]
    before = [store.rows(sql) for sql in kept]
    assert store.rows(living) == []
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")
    # The journal tells it, so that nothing is to be carried.
    assert f"{EACH + 6} entries were read again; what was there" in keeper.rebuild()
    assert [store.rows(sql) for sql in kept] == before
    store.close()
    again = settings_in(tmp_path / "killed")
    spoil_log(again)
    store = open_store(again)
    assert [store.rows(sql) for sql in kept] == before
    store.close()


def test_without_a_journal_what_was_folded_is_there(tmp_path: Path) -> None:
    settings = killed(tmp_path, journaled=False)
    spoil_log(settings)
    store = open_store(settings)
    assert rows(store) == (5 * EACH, 5 * EACH)
    store.close()


def test_whenever_a_recovery_is_killed_the_next_one_goes_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt = killed(tmp_path, journaled=True)
    spoil_log(spoilt)
    steps = 0
    for number in range(50):
        folder = tmp_path / str(number)
        shutil.copytree(spoilt.store.data_dir, folder)
        settings = settings_in(folder)
        with monkeypatch.context() as patched:
            died = kill_before(patched, number)
            with suppress(KeyboardInterrupt):
                open_store(settings).close()
        store = open_store(settings)
        assert rows(store) == (10 * EACH, 10 * EACH), number
        assert not list(folder.glob(".rec*"))
        store.close()
        if not died:
            break
        steps += 1
    # Both are kept aside, the file takes its place, the log goes, and the mark.
    assert steps > 4


def kill_before(patched: pytest.MonkeyPatch, number: int) -> list[bool]:
    """Let a process die before so many changes of names; gives something as soon as it did."""
    died: list[bool] = []
    passed = count()

    def dying(act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            if next(passed) >= number:
                died.append(True)
                raise KeyboardInterrupt
            return act(*given, **named)

        return step

    for owner, name in ((os, "link"), (Path, "replace"), (Path, "unlink"), (Path, "touch")):
        patched.setattr(owner, name, dying(getattr(owner, name)))
    return died


@pytest.mark.parametrize("backup", [True, False])
def test_with_a_broken_file_too_it_begins_from_a_backup_or_from_nothing(
    tmp_path: Path, *, backup: bool
) -> None:
    settings = killed(tmp_path, journaled=True, backup=backup)
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / settings.store_file.name).write_bytes(b"broken" * 1000)
    store = remade(settings, aside)
    assert rows(store) == (10 * EACH, 10 * EACH)
    store.close()


def test_a_file_that_is_no_store_is_not_taken_for_a_broken_log(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    settings.store_file.write_bytes(b"something else" * 1000)
    with pytest.raises(StoreBrokenError):
        open_store(settings)
    assert settings.store_file.read_bytes().startswith(b"something else")


def test_a_rebuild_takes_over_what_no_journal_holds(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    store.append(one_pod("imported", 1))
    said = Measurement(metric="m", as_of_ms=1, sample=Sample(labels={}, value=1.0))
    store.publish([said])
    write(store, settings, range(2), journaled=True)
    before = store.rows(FACTS)
    keeper = Keeper(settings, store)
    assert f"{2 * EACH + 3} entries were read again" in keeper.rebuild()
    assert store.rows(FACTS) == before
    assert store.history("m", start_ms=0, end_ms=2) == [said]
    # A correction of a translator would show here. What was dropped of the journal is taken over too.
    (file,) = journal_files(journal_folder(settings, "north/1"))
    file.rename(file.with_name("00000002.ndjson.gz"))
    keeper.rebuild()
    assert store.rows(FACTS) == before
    file.with_name("00000002.ndjson.gz").unlink()
    # Each namespace was created, described itself, and is there.
    told = keeper.rebuild()
    assert "0 entries were read again; 200 facts that no journal tells were taken over as they were" in told
    assert store.rows(FACTS) == before
    store.close()
