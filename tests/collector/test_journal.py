"""A journal gives an intake again what it was given, and so the same facts."""

import errno
import gzip
import os
import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collector.decoding import ObjectList, read_object
from collector.intake import Intake
from collector.journal import Identified, Journal, JournaledIntake, JournalFirst, journal_files
from collector.journal_reading import course_of
from collector.kube.watch import split_line
from collector.recording import Part, readings
from collector.replay import replay
from collector.translator import Translator, find
from domain.facts import Known
from store.embedded import Store
from tests.fakes import MemorySink
from tests.shared import shared

FACTS = (
    "select * from transition order by seq",
    "select * from description order by seq",
    "select * from event_sighting order by seq",
    "select * from set_aside order by all",
    "select * from object_state order by all",
    "select * from source_mark order by all",
)
FLUSHES_EACH = 300
CAP_BYTES = 150_000


def record(name: str, store: Store | MemorySink, folder: Path, *, most_bytes: int, starts: int = 1) -> None:
    """Read a recording through a journal, with restarts in between."""
    pieces = list(readings(shared(f"data/recorded/{name}")))
    for part in range(starts):
        journal = Journal(folder, most_bytes=most_bytes)
        sink = JournalFirst(store, journal)
        intake = JournaledIntake(Intake(name, sink, sink.known(name), flush_rows=500), journal)
        begin, end = (len(pieces) * edge // starts for edge in (part, part + 1))
        for number, piece in enumerate(pieces[begin:end]):
            give(intake, piece.stream.translator, piece.part, piece.data, piece.observed_ms)
            if number % FLUSHES_EACH == 0:
                intake.flush()
        intake.troubled(pieces[0].stream.translator, "retry: no answer", pieces[end - 1].observed_ms)
        intake.flush()


def give(intake: JournaledIntake, translator: Translator, part: Part, data: bytes, at_ms: int) -> None:
    if part is Part.LIST:
        listed = read_object(data, ObjectList)
        version = listed.metadata.resource_version or ""
        intake.relisted(translator, listed.items or (), version, at_ms)
    elif part is Part.LINE:
        event_type, payload = split_line(data)
        intake.see(translator, event_type, payload, at_ms)


def rows_of(store: Store) -> list[list[dict[str, object]]]:
    return [store.rows(select) for select in FACTS]


@pytest.mark.recordings
@pytest.mark.parametrize("name", ["native", "kueue", "volcano"])
def test_a_journal_gives_the_rows_of_all_fact_tables_again(name: str, tmp_path: Path) -> None:
    first, second = Store.open(None), Store.open(None)
    record(name, first, tmp_path, most_bytes=1 << 30, starts=3)
    assert len(journal_files(tmp_path)) == 3
    summary = replay(tmp_path, name, second)
    assert summary.not_read == {}
    assert rows_of(second) == rows_of(first)


@pytest.mark.recordings
def test_what_a_store_holds_already_is_left_out(tmp_path: Path) -> None:
    store = Store.open(None)
    record("native", store, tmp_path, most_bytes=1 << 30)
    before = rows_of(store)
    marks = store.known("native").marks
    replay(tmp_path, "native", store, after_ms={kind: mark.seen_ms for kind, mark in marks.items()})
    assert rows_of(store)[:3] == before[:3]


@pytest.mark.recordings
def test_a_journal_is_no_larger_than_it_may_be_and_what_is_left_of_it_is_read(tmp_path: Path) -> None:
    record("native", MemorySink(), tmp_path, most_bytes=CAP_BYTES)
    files = journal_files(tmp_path)
    assert sum(path.stat().st_size for path in files) <= CAP_BYTES
    assert len(files) > 1
    assert files[0].name != "00000001.ndjson.gz"
    summary = replay(tmp_path, "native", MemorySink())
    assert (summary.not_read, summary.damages) == ({}, [])
    assert summary.rows > 0


def test_what_is_no_utf8_is_journaled_as_it_came(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=1 << 20, rewrite=str.upper)
    taken = Intake("city", MemorySink(), Known())
    intake = JournaledIntake(taken, journal)
    namespaces = find("", "Namespace")
    assert namespaces is not None
    intake.see(namespaces, "ADDED", b'{"metadata":{"uid":"\xff\xfe"}}', 1)
    journal.commit()
    (file,) = journal_files(tmp_path)
    assert b"\xff\xfe" in gzip.decompress(file.read_bytes())
    # It waits to be told as set aside.
    assert len(taken) == 1


def test_a_journal_that_cannot_be_written_says_which(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", most_bytes=1 << 20)
    (tmp_path / "journal").rmdir()
    journal.note(Identified(uid="x"))
    with pytest.raises(OSError, match=r"the journal cannot be written: .*/journal/00000001"):
        journal.commit()


def test_many_starts_do_not_make_a_journal_larger_than_it_may_be(tmp_path: Path) -> None:
    for number in range(20):
        journal = Journal(tmp_path, most_bytes=10_000)
        journal.note(Identified(uid=random.Random(number).randbytes(1000).hex()))
        journal.commit()
    sizes = [path.stat().st_size for path in journal_files(tmp_path)]
    assert 5_000 < sum(sizes) <= 10_000


def test_the_end_of_a_trouble_comes_again_too(tmp_path: Path) -> None:
    translator = find("", "Namespace")
    assert translator is not None
    journal = Journal(tmp_path, most_bytes=1 << 20)
    sink = JournalFirst(MemorySink(), journal)
    intake = JournaledIntake(Intake("c", sink, sink.known("c")), journal)
    intake.relisted(translator, [], "7", 1000)
    intake.troubled(translator, "retry: no answer", 2000)
    # One that was noted before what was seen last tells nothing of now.
    intake.accepted(translator, 999)
    intake.flush()
    assert sink.known("c").marks[translator.kind].last_error
    intake.accepted(translator, 3000)
    intake.flush()
    again = MemorySink()
    replay(tmp_path, "c", again)
    mark = again.marks[translator.kind]
    assert (mark.last_error, mark.seen_ms, mark.restarts) == ("", 1000, 1)


def test_that_a_kind_is_served_no_more_comes_again_too(tmp_path: Path) -> None:
    namespaces = find("", "Namespace")
    assert namespaces is not None
    journal, memory = Journal(tmp_path, most_bytes=1 << 20), MemorySink()
    intake = JournaledIntake(Intake("c", JournalFirst(memory, journal), Known()), journal)
    intake.relisted(namespaces, [{"metadata": {"uid": "n0", "name": "n0"}}], "7", 1000)
    intake.removed(namespaces, 2000)
    intake.flush()
    again = MemorySink()
    replay(tmp_path, "c", again)
    assert again.objects["n0"].gone_ms == 2000
    assert (again.objects, again.transitions, again.marks) == (
        memory.objects,
        memory.transitions,
        memory.marks,
    )


def test_what_is_missing_in_a_journal_is_told_with_its_time(tmp_path: Path) -> None:
    namespaces = find("", "Namespace")
    assert namespaces is not None
    for number in range(4):
        journal = Journal(tmp_path, most_bytes=1 << 20)
        intake = JournaledIntake(Intake("c", JournalFirst(MemorySink(), journal), Known()), journal)
        intake.see(namespaces, "ADDED", {"metadata": {"uid": f"n{number}"}}, number)
        intake.flush()
    first, second, third, _ = journal_files(tmp_path)
    second.unlink()
    third.unlink()
    again = MemorySink()
    (missing,) = replay(tmp_path, "c", again).damages
    assert (missing.because, missing.by_kill) == ("00000002.ndjson.gz to 00000003.ndjson.gz missing", False)
    assert (missing.after_ms, missing.before_ms) == (0, 3)
    assert set(again.objects) == {"n0", "n3"}
    # An end that is missing is told as well as a broken one.
    first.write_bytes(first.read_bytes()[:-20])
    cut, _ = course_of(tmp_path).damages
    assert (cut.by_kill, cut.after_ms, cut.before_ms) == (True, None, 3)
    first.write_bytes(b"?" * 50)
    broken, _ = course_of(tmp_path).damages
    assert broken.because.startswith("00000001.ndjson.gz is cut off or broken")
    assert not broken.by_kill


def test_of_a_block_whose_checksum_is_wrong_nothing_is_taken_for_true(tmp_path: Path) -> None:
    namespaces = find("", "Namespace")
    assert namespaces is not None
    journal = Journal(tmp_path, most_bytes=1 << 20)
    intake = JournaledIntake(Intake("c", JournalFirst(MemorySink(), journal), Known()), journal)
    for number in range(2):
        intake.see(namespaces, "ADDED", {"metadata": {"uid": f"n{number}"}}, number)
        intake.flush()
    (file,) = journal_files(tmp_path)
    whole = file.read_bytes()
    second = whole.rindex(b"\x1f\x8b\x08")
    # It unpacks, to another name than was written.
    other = gzip.compress(gzip.decompress(whole[second:]).replace(b"n1", b"n7"), mtime=0)
    file.write_bytes(whole[:second] + other[:-8] + whole[-8:])
    again = MemorySink()
    (damage,) = replay(tmp_path, "c", again).damages
    assert set(again.objects) == {"n0"}
    assert not damage.by_kill


def test_a_block_that_was_cut_off_takes_nothing_else_with_it(tmp_path: Path) -> None:
    translator = find("", "Namespace")
    assert translator is not None
    journal, memory = Journal(tmp_path, most_bytes=1 << 20), MemorySink()
    sink = JournalFirst(memory, journal)
    intake = JournaledIntake(Intake("c", sink, sink.known("c")), journal)
    for number in range(3):
        metadata = {"uid": f"n{number}", "name": f"n{number}", "resourceVersion": str(number + 1)}
        stamped = metadata | {"creationTimestamp": "2026-05-04T08:00:00Z"}
        intake.see(translator, "ADDED", {"metadata": stamped}, 1000 + number)
        intake.flush()
    (file,) = journal_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    again = MemorySink()
    summary = replay(tmp_path, "c", again)
    assert set(again.objects) == {"n0", "n1"}
    assert [because.partition(" is ")[2][:10] for because in summary.not_read] == ["cut off or"]


@contextmanager
def longest_file(most_bytes: int) -> Iterator[None]:
    """No file grows beyond so many bytes meanwhile: a write fails in its middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_block_that_was_written_in_part_leaves_nothing_behind(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=1 << 20)
    journal.note(Identified(uid="first"))
    journal.commit()
    (file,) = journal_files(tmp_path)
    size = file.stat().st_size
    # Some 1.2 KB that cannot be packed.
    journal.note(Identified(uid=random.Random(7).randbytes(1_000).hex()))
    with (
        longest_file(size + 900),
        pytest.raises(OSError, match="the journal cannot be written: File too large"),
    ):
        journal.commit()
    assert file.stat().st_size == size
    journal.commit()
    journal.note(Identified(uid="last"))
    journal.commit()
    assert gzip.decompress(file.read_bytes()).endswith(b'{"type":"identified","uid":"last"}\n')


def test_a_journal_that_cannot_be_written_keeps_what_waits(tmp_path: Path) -> None:
    translator = find("", "Namespace")
    assert translator is not None
    journal = Journal(tmp_path / "journal", most_bytes=1 << 20)
    memory = MemorySink()
    intake = JournaledIntake(Intake("c", memory, Known()), journal)
    intake.see(translator, "ADDED", {"metadata": {"uid": "n0", "name": "n0"}}, 1000)
    (tmp_path / "journal").rename(tmp_path / "away")
    with pytest.raises(OSError, match="No such file"):
        journal.commit()
    (tmp_path / "away").rename(tmp_path / "journal")
    journal.commit()
    (file,) = journal_files(tmp_path / "journal")
    assert gzip.decompress(file.read_bytes()).count(b"\n") == 2


def test_what_others_put_beside_a_journal_is_neither_read_nor_dropped(tmp_path: Path) -> None:
    names = ("kept.ndjson.gz", "1.ndjson.gz", "00000000.ndjson.gz", "00000001 (copy).ndjson.gz")
    for name in names:
        (tmp_path / name).write_bytes(gzip.compress(b'{"type":"identified","uid":"foreign"}\n'))
    for number in range(8):
        journal = Journal(tmp_path, most_bytes=4_000)
        journal.note(Identified(uid=random.Random(number).randbytes(1000).hex()))
        journal.commit()
    files = journal_files(tmp_path)
    assert not {path.name for path in files} & set(names)
    assert files[0].name > "00000001.ndjson.gz"
    assert all((tmp_path / name).exists() for name in names)
    assert course_of(tmp_path).entries == 2 * len(files)


def test_where_a_piece_of_a_block_cannot_be_cut_off_the_next_block_goes_into_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, most_bytes=1 << 20)
    journal.note(Identified(uid="first"))
    journal.commit()
    (file,) = journal_files(tmp_path)
    journal.note(Identified(uid=random.Random(7).randbytes(1_000).hex()))

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "truncate", fail)
    with (
        longest_file(file.stat().st_size + 900),
        pytest.raises(OSError, match="the journal cannot be written: File too large"),
    ):
        journal.commit()
    journal.commit()
    journal.note(Identified(uid="last"))
    journal.commit()
    assert len(journal_files(tmp_path)) == 2
    course = course_of(tmp_path)
    assert (course.entries, [damage.by_kill for damage in course.damages]) == (4, [True])


def test_a_new_file_has_its_name_on_the_disk_before_its_block_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def note(handle: int) -> None:
        told.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    monkeypatch.setattr(os, "fsync", note)
    journal = Journal(tmp_path / "journal" / "north", most_bytes=1 << 20)
    journal.commit()
    file, folder = tmp_path / "journal" / "north" / "00000001.ndjson.gz", tmp_path / "journal"
    assert set(told) == {str(path) for path in (file, file.parent, folder)}
    told.clear()
    journal.note(Identified(uid="x"))
    journal.commit()
    assert told == [str(file)]
