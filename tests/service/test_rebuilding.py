"""A rebuild loses nothing that the books held: not what a journal never saw, nor what is damaged in it."""

import gzip
import random
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.checkpoints import ANNOTATION
from collector.intake import Intake
from collector.journal import Journal, JournaledIntake, JournalFirst, Seen, journal_files
from domain.errors import StoreError
from service.keeping import Keeper
from service.rebuilding import Rebuilt, rebuild
from service.recovery import journal_folder, open_store
from store.embedded import Store
from tests.collector.objects import EVENT, POD, at, metadata, pod
from tests.service.test_keeping import settings_in

CLUSTER = "north"
FACTS = (
    "select * exclude (seq) from transition order by all",
    "select * exclude (seq) from description order by all",
    "select * exclude (seq) from event_sighting order by all",
    "select * from set_aside order by all",
    "select * from object_state order by all",
    "select * from source_mark order by all",
    "select * from observed_stretch order by all",
)
Read = Callable[[Intake | JournaledIntake], None]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty store: to copy it is cheaper than to make one."""
    path = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    Store.open(path).close()
    return path


class World:
    """A store with a journal beside it, which is rebuilt into another store."""

    def __init__(self, folder: Path, empty: Path) -> None:
        self.journal = folder / "journal"
        self._folder = folder
        self._empty = empty
        self.store = self._made("old.duckdb")

    def _made(self, name: str) -> Store:
        return Store.open(Path(shutil.copy(self._empty, self._folder / name)))

    def intake(self, *, journaled: bool = True, marks: bool = True) -> Intake | JournaledIntake:
        """As a process begins; `marks`: it notes where the reading stood."""
        known = self.store.known(CLUSTER)
        if not journaled:
            return Intake(CLUSTER, self.store, known)
        noted = known.marks if marks else None
        # Files of a few blocks, so that one can be missing in the middle.
        journal = Journal(self.journal, most_bytes=1 << 24, file_bytes=1_500, marks=noted)
        return JournaledIntake(Intake(CLUSTER, JournalFirst(self.store, journal), known), journal)

    def read(self, *events: tuple[str, dict[str, Any], float], journaled: bool = True) -> None:
        """Read pods in one run of a process, with a commit after each."""
        intake = self.intake(journaled=journaled)
        for event, read, seconds in events:
            intake.see(POD, event, msgspec.json.encode(read), at(seconds))
            intake.flush()

    def facts(self) -> list[list[dict[str, object]]]:
        return [self.store.rows(select) for select in FACTS]

    def rebuild(self) -> Rebuilt:
        """Go on with a rebuilt store instead of the store."""
        earlier = self.store
        earlier.close()
        assert earlier.path is not None
        self.store = self._made(f"re{earlier.path.name}")
        return rebuild(self.store, earlier.path, [(CLUSTER, self.journal)], ())


@pytest.fixture
def world(tmp_path: Path, empty: Path) -> World:
    return World(tmp_path, empty)


def test_what_was_read_before_there_was_a_journal_is_carried(world: World) -> None:
    world.read(("ADDED", pod("early", 1), 1), ("DELETED", pod("early", 2), 10), journaled=False)
    world.read(("ADDED", pod("late", 5), 20))
    before = world.facts()
    rebuilt = world.rebuild()
    assert world.facts() == before
    # Created, described, gone.
    assert (rebuilt.entries, rebuilt.carried) == (3, 3)
    assert "3 facts that no journal tells were taken over as they were" in rebuilt.words()
    world.store.close()


def test_what_was_read_while_the_journal_was_off_is_carried_to_where_it_stood(world: World) -> None:
    world.read(("ADDED", pod("a", 1), 1), ("ADDED", pod("b", 2), 2))
    phases = [pod("a", 3, status={"phase": "Running"}), pod("a", 4, status={"phase": "Succeeded"})]
    event = {"metadata": metadata("e", 3, namespace="t"), "reason": "Failed"}
    for kind, journaled, seconds in (("ADDED", True, 2.5), ("DELETED", False, 2.8)):
        intake = world.intake(journaled=journaled)
        # That an Event is gone is no fact, and known all the same.
        intake.see(EVENT, kind, msgspec.json.encode(event), at(seconds))
        intake.flush()
    world.read(("MODIFIED", phases[0], 3), ("DELETED", pod("b", 5), 4), journaled=False)
    world.read(("MODIFIED", phases[1], 6))
    before = world.facts()
    order = "select uid, moment, subject, state, observed_ms from transition order by seq"
    arrived = world.store.rows(order)
    world.rebuild()
    assert world.facts() == before
    assert world.store.rows(order) == arrived
    # Once more, of what was rebuilt.
    world.rebuild()
    assert world.facts() == before
    world.store.close()


def test_a_list_after_a_time_without_a_journal_ends_what_was_met_then(world: World) -> None:
    world.read(("ADDED", pod("a", 1), 1))
    world.read(("ADDED", pod("met", 2), 3), ("ADDED", pod("stays", 3), 5), journaled=False)
    intake = world.intake()
    intake.relisted(POD, [msgspec.Raw(msgspec.json.encode(pod("stays", 3)))], "9", at(60))
    intake.flush()
    before = world.facts()
    world.rebuild()
    assert world.facts() == before
    ended = world.store.rows("select uid, earliest_ms from transition where moment = 'gone' order by uid")
    assert ended == [{"uid": "a", "earliest_ms": at(5)}, {"uid": "met", "earliest_ms": at(5)}]
    world.store.close()


def test_where_reading_stood_after_a_time_without_a_journal_is_known_without_any_fact(world: World) -> None:
    world.read(("ADDED", pod("a", 1), 1))
    for journaled, seconds, pods in ((False, 50, [pod("a", 1)]), (True, 60, [])):
        intake = world.intake(journaled=journaled)
        intake.relisted(POD, [msgspec.Raw(msgspec.json.encode(one)) for one in pods], "9", at(seconds))
        intake.flush()
    before = world.facts()
    assert world.rebuild().carried == 0
    assert world.facts() == before
    ended = world.store.rows("select earliest_ms from transition where moment = 'gone'")
    assert ended == [{"earliest_ms": at(50)}]
    world.store.close()


def test_of_a_millisecond_beside_a_damage_nothing_is_lost(world: World) -> None:
    for uid, version, seconds in (("a", 1, 1), ("b", 2, 1), ("c", 3, 2), ("d", 4, 2)):
        world.read(("ADDED", pod(uid, version), seconds))
    before = world.facts()
    _, second, third, _ = journal_files(world.journal)
    second.unlink()
    third.unlink()
    world.rebuild()
    assert world.facts() == before
    world.store.close()


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_file_that_ends_where_a_block_does_may_have_lost_what_came_next(
    world: World, *, goes_on: bool
) -> None:
    fill = {"note": random.Random(1).randbytes(800).hex()}
    events = [("a", 1, 1.0), ("b", 2, 2.0), ("c", 3, 2.0), ("b", 4, 9.0)]
    intake = world.intake()
    for uid, version, seconds in events:
        told = pod(uid, version, status={"phase": "Running" if version > 2 else "Pending"})
        told["metadata"]["annotations"] = fill
        if uid == "b" and version == 4 and not goes_on:
            intake = world.intake()
        intake.see(POD, "ADDED", msgspec.json.encode(told), at(seconds))
        intake.flush()
    before = world.facts()
    for path in journal_files(world.journal):
        data = path.read_bytes()
        if len(ends := ends_of_blocks(data)) > 1:
            path.write_bytes(data[: ends[-2]])
    world.rebuild()
    assert world.facts() == before
    world.store.close()


def test_entries_that_nobody_reads_are_counted_by_the_reason(world: World) -> None:
    world.read(("ADDED", pod("a", 1), 1))
    journal = Journal(world.journal, most_bytes=1 << 24)
    for _ in range(2):
        given = Seen(at=at(2), group="acme.io", kind="Rocket", event="ADDED", object=msgspec.Raw(b"{}"))
        journal.note(given)
    journal.commit()
    (_, file) = journal_files(world.journal)
    file.write_bytes(file.read_bytes() + gzip.compress(b'{"type":"sung"}\n'))
    rebuilt = world.rebuild()
    assert "; 2 entries were not read (kind Rocket of group 'acme.io': there is no" in rebuilt.words()
    assert "; 1 entries were not read (Invalid value 'sung'" in rebuilt.words()
    world.store.close()


def test_a_damage_in_the_middle_is_told_with_its_file_and_time_and_costs_nothing(world: World) -> None:
    for number in range(7):
        world.read(("ADDED", pod(f"p{number}", number + 1), number))
    before = world.facts()
    _, second, _, _, fifth, _, last = journal_files(world.journal)
    data = bytearray(second.read_bytes())
    data[12] ^= 0xFF
    second.write_bytes(data)
    fifth.unlink()
    # As a kill leaves it: of that nothing is told.
    last.write_bytes(last.read_bytes() + last.read_bytes()[:12])
    rebuilt = world.rebuild()
    assert world.facts() == before
    assert rebuilt.carried > 0
    broken, missing = rebuilt.damages
    assert broken.startswith("journal of north: 00000002.ndjson.gz is cut off or broken: ")
    assert broken.endswith("nothing after 2026-03-02T09:00:00.000Z and before 2026-03-02T09:00:02.000Z")
    assert missing.startswith("journal of north: 00000005.ndjson.gz missing: ")
    assert missing.endswith("nothing after 2026-03-02T09:00:03.000Z and before 2026-03-02T09:00:05.000Z")
    world.store.close()


def test_a_journal_whose_first_files_were_dropped_is_no_obstacle(world: World) -> None:
    world.read(("ADDED", pod("a", 1), 1))
    world.read(("ADDED", pod("b", 2), 2), ("DELETED", pod("b", 3), 3), ("DELETED", pod("a", 4), 5))
    before = world.facts()
    journal_files(world.journal)[0].unlink()
    rebuilt = world.rebuild()
    assert world.facts() == before
    assert (rebuilt.carried, rebuilt.damages) == (2, [])
    world.store.close()


def test_a_rebuild_that_would_lose_facts_leaves_the_books_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    journal = Journal(journal_folder(settings, CLUSTER), most_bytes=1 << 20)
    intake = JournaledIntake(Intake(CLUSTER, JournalFirst(store, journal), store.known(CLUSTER)), journal)
    intake.see(POD, "ADDED", pod("a", 1), at(1))
    intake.see(POD, "DELETED", pod("a", 2), at(2))
    intake.see(EVENT, "ADDED", {"metadata": metadata("e", 3, namespace="t"), "reason": "Failed"}, at(3))
    intake.accepted(POD, at(4))
    intake.flush()
    before = [store.rows(select) for select in FACTS]
    monkeypatch.setattr(Intake, "_take", lambda *_, **__: None)
    with pytest.raises(StoreError, match="the books are as they were") as refused:
        Keeper(settings, store).rebuild()
    counts = "north: Event of 1 objects, north: Pod created of 1 objects, north: Pod description of 1 objects"
    assert f"({counts}, north: Pod gone of 1 objects)" in str(refused.value)
    assert [store.rows(select) for select in FACTS] == before
    assert not list(settings.store.data_dir.glob("rebuilt*"))
    monkeypatch.undo()
    assert "6 entries were read again; what" in Keeper(settings, store).rebuild()
    assert [store.rows(select) for select in FACTS] == before
    store.close()


def test_checkpoints_stay_told_when_no_setting_names_their_annotation_any_more(world: World) -> None:
    told = pod("a", 1)
    told["metadata"]["annotations"] = {ANNOTATION: "2026-03-02T09:00:10Z"}
    world.read(("ADDED", told, 20))
    before = world.facts()
    assert "checkpoint" in {row["moment"] for row in before[0]}
    rebuilt = world.rebuild()
    assert world.facts() == before
    assert rebuilt.carried == 1
    world.store.close()


# ------------------------------------------------------------ at random


class Story:
    """What a cluster does at random, and what becomes of the journal."""

    def __init__(self, world: World, seed: int) -> None:
        self.random = random.Random(seed)
        self._world = world
        self._ms = 0
        self._version = 10
        self._live: dict[str, dict[str, Any]] = {}

    def run(self) -> None:
        """Some runs of a process, with and without a journal; then damage to it."""
        for _ in range(self.random.randint(3, 6)):
            # A process does not begin within the millisecond in which another one ends.
            self._ms += 1
            journaled = self.random.random() < 0.65
            intake = self._world.intake(journaled=journaled, marks=self.random.random() < 0.7)
            for _ in range(self.random.randint(3, 20)):
                self.random.choice((self._add, self._add, self._change, self._delete, self._list, self._event,
                                    self._noise, self._again))(intake)  # fmt: skip
                if self.random.random() < 0.3:
                    intake.flush()
            intake.flush()
        for _ in range(self.random.choice((0, 1, 2))):
            if files := journal_files(self._world.journal):
                self._damage(self.random.choice(files))

    def _now(self) -> int:
        self._ms += self.random.choice((1, 5, 700, 40_000, 400_000))
        return at(0) + self._ms

    def _say(self, intake: Intake | JournaledIntake, event: str, uid: str, phase: str) -> None:
        self._version += 1
        told = pod(uid, self._version, status={"phase": phase})
        told["metadata"]["labels"] = {"stage": str(self._version // 3)}
        self._live[uid] = told
        intake.see(POD, event, msgspec.json.encode(told), self._now())

    def _add(self, intake: Intake | JournaledIntake) -> None:
        self._say(intake, "ADDED", f"p{self._version}", "Pending")

    def _change(self, intake: Intake | JournaledIntake) -> None:
        if self._live:
            uid = self.random.choice(sorted(self._live))
            self._say(intake, "MODIFIED", uid, self.random.choice(("Running", "Succeeded")))

    def _delete(self, intake: Intake | JournaledIntake) -> None:
        if self._live:
            uid = self.random.choice(sorted(self._live))
            self._say(intake, "DELETED", uid, "Running")
            del self._live[uid]

    def _list(self, intake: Intake | JournaledIntake) -> None:
        self._live = {uid: told for uid, told in self._live.items() if self.random.random() < 0.8}
        self._version += 1
        items = [msgspec.Raw(msgspec.json.encode(told)) for told in self._live.values()]
        intake.relisted(POD, items, str(self._version), self._now())

    def _event(self, intake: Intake | JournaledIntake) -> None:
        self._version += 1
        told = {
            "metadata": metadata(f"e{self._version % 4}", self._version, namespace="t"),
            "reason": "Failed",
        }
        intake.see(EVENT, "MODIFIED", msgspec.json.encode(told), self._now())
        if self.random.random() < 0.2:
            intake.removed(EVENT, self._now())

    def _noise(self, intake: Intake | JournaledIntake) -> None:
        intake.see(POD, "ADDED", b'{"metadata":{"uid":3}}', self._now())
        intake.troubled(POD, self.random.choice(("", "retry: no answer")), self._now())

    def _again(self, intake: Intake | JournaledIntake) -> None:
        for told in list(self._live.values())[-3:]:
            intake.see(POD, "MODIFIED", msgspec.json.encode(told), self._now())

    def _damage(self, path: Path) -> None:
        data = bytearray(path.read_bytes())
        kind = self.random.choice(("missing", "first", "broken", "cut off", "without its end"))
        if kind == "missing":
            path.unlink()
        elif kind == "first":
            journal_files(self._world.journal)[0].unlink()
        elif kind == "broken" and data:
            data[self.random.randrange(len(data))] ^= 0xFF
            path.write_bytes(data)
        elif kind == "without its end":
            path.write_bytes(data[: self.random.choice([0, *ends_of_blocks(data)])])
        else:
            path.write_bytes(data[: self.random.randrange(len(data) + 1)])


def ends_of_blocks(data: bytes | bytearray) -> list[int]:
    """Where a file may end without a sign that something is missing."""
    ends, rest = [], bytes(data)
    while rest:
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        with suppress(zlib.error):
            member.decompress(rest)
        if not member.eof:
            break
        rest = member.unused_data
        ends.append(len(data) - len(rest))
    return ends


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 200), marks=pytest.mark.long)])
def test_whatever_the_journal_missed_or_lost_the_books_are_equal(
    tmp_path: Path, empty: Path, seeds: range
) -> None:
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, empty)
        Story(world, seed).run()
        before = world.facts()
        world.rebuild()
        assert world.facts() == before, seed
        world.store.close()
        shutil.rmtree(folder)
