"""What backup and restore are given: whatever it is, they say so, and the store stays as it was."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from typing_extensions import override

from domain.errors import StoreError, StoreHeldError
from service.backups import check_target, keep_aside, replace_broken
from service.cli import run
from service.keeping import Keeper
from service.recovery import journal_folder, open_store
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store
from tests.store.facts_made_up import one_pod

# Three headers before the blocks, as DuckDB lays its files out.
_HEADERS, _BLOCK = 3 * 4096, 262_144
UIDS = "select uid from object_state order by uid"
# What copies beside the store are called.
BESIDE = ("restored", "rebuilt", "earlier", "without")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_below(tmp_path_factory.mktemp("house"))


def settings_below(folder: Path) -> Settings:
    return load_settings(overrides={"store.data_dir": folder / "data"})


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    """Nobody changes it, so that tests may come in any order."""
    store = open_store(settings)
    store.append(one_pod("here", 1))
    yield store
    store.close()


@pytest.fixture(scope="module")
def good(settings: Settings, store: Store) -> Path:
    file = settings.store.data_dir.parent / "good.duckdb"
    Keeper(settings, store).backup(file)
    return file


def foreign(file: Path) -> None:
    with duckdb.connect(file) as connection:
        connection.execute("create table sales as select 1 as amount")


def without_tables(file: Path) -> None:
    duckdb.connect(file).close()


def of_a_later_version(file: Path) -> None:
    with duckdb.connect(file) as connection:
        connection.execute("insert into schema_migration values (9999, '9999_later.sql', 'x', 1)")


def with_another_ledger(file: Path) -> None:
    file.unlink()
    with duckdb.connect(file) as connection:
        connection.execute("create table schema_migration as select 1 as version")


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def damaged(file: Path) -> None:
    """A block of data is another one: nobody notices before it is read."""
    with duckdb.connect(file, read_only=True) as connection:
        of_data = "select max(block_id) from pragma_storage_info('description') where persistent"
        [(block,)] = connection.execute(of_data).fetchall()
    with file.open("r+b") as written:
        written.seek(_HEADERS + block * _BLOCK + _BLOCK // 2)
        written.write(b"\xff\x00\xff" * 50)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def missing(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (foreign, "no store of gpuledger: it is a database with the tables sales"),
        (without_tables, "no schema was ever applied"),
        (of_a_later_version, "written by a newer gpuledger"),
        (with_another_ledger, "its ledger of migrations cannot be read"),
        (cut, "Could not read enough bytes"),
        (damaged, "checksum"),
        (empty, "not a valid DuckDB database"),
        (folder, "that is a folder; name the file in it"),
        (pipe, "that is no plain file"),
        (missing, "there is no such file"),
    ],
)
def test_what_cannot_take_the_stores_place_is_refused_and_leaves_nothing(
    spoil: Callable[[Path], None], says: str, good: Path, settings: Settings, store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "given.duckdb"
    if spoil in {foreign, without_tables}:
        spoil(file)
    else:
        shutil.copyfile(good, file)
        spoil(file)
    before = sorted(path.name for path in settings.store.data_dir.rglob("*"))
    with pytest.raises(StoreError, match=says) as refused:
        Keeper(settings, store).restore(file)
    assert str(file) in str(refused.value)
    assert "restored" not in str(refused.value)
    assert sorted(path.name for path in settings.store.data_dir.rglob("*")) == before
    assert [row["uid"] for row in store.rows(UIDS)] == ["here"]


def test_the_store_itself_and_a_copy_of_restore_are_no_backups(
    good: Path, settings: Settings, store: Store
) -> None:
    with pytest.raises(StoreError, match="that is the store itself"):
        Keeper(settings, store).restore(settings.store_file)
    # As a restore leaves it that is killed; the next one takes it away, unless it is given just that.
    left = settings.store_file.with_name(".restored-0123abcd.duckdb")
    shutil.copyfile(good, left)
    with pytest.raises(StoreError, match="that is a copy that a restore left there"):
        Keeper(settings, store).restore(left)
    assert left.read_bytes() == good.read_bytes()
    left.unlink()


def test_what_somebody_put_beside_the_store_stays_whatever_its_name(good: Path, tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    store = open_store(settings)
    store.append(one_pod("here", 1))
    journal_folder(settings, "north").mkdir(parents=True)
    names = [f"{name}.duckdb{log}" for name in BESIDE for log in ("", ".wal")]
    for name in names:
        settings.store_file.with_name(name).write_bytes(b"of somebody")
    left = settings.store_file.with_name(".rebuilt-0123abcd.duckdb")
    left.write_bytes(b"of a killed process")
    keeper = Keeper(settings, store)
    keeper.rebuild()
    keeper.restore(good)
    keeper._leave_nothing_in_free_blocks()
    for name in names:
        assert settings.store_file.with_name(name).read_bytes() == b"of somebody", name
    assert not left.exists()
    store.close()


def test_without_room_nothing_is_copied(good: Path, settings: Settings, store: Store, tmp_path: Path) -> None:
    narrow = load_settings(overrides={"store.data_dir": settings.store.data_dir, "keeping.min_free": "900TB"})
    before = sorted(path.name for path in settings.store.data_dir.rglob("*"))
    keeper, says = Keeper(narrow, store), r"900,000,000 MB are reserved \(keeping.min_free\)"
    with pytest.raises(StoreError, match=says):
        keeper.restore(good)
    with pytest.raises(StoreError, match=says):
        keeper.backup(tmp_path / "books.duckdb")
    assert sorted(path.name for path in settings.store.data_dir.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


def test_a_backup_goes_where_nothing_is(settings: Settings, store: Store, tmp_path: Path) -> None:
    (tmp_path / "books.duckdb").write_bytes(b"")
    for target, says in (
        (tmp_path, "that is a folder; name a file in it"),
        (tmp_path / "books.duckdb", "there is such a file; name another one"),
        (tmp_path / ("x" * 300), "choose a folder that can be written"),
    ):
        with pytest.raises(StoreError, match=says):
            check_target(target)
    check_target(tmp_path / "other.duckdb")
    # It is written under another name first, and a log beside it would be taken for its own.
    for suffix in (".wal", ".new", ".new.wal"):
        there = tmp_path / f"other.duckdb{suffix}"
        there.write_bytes(b"of somebody")
        with pytest.raises(StoreError, match=f"there is {there}, which would be .*; move it away"):
            Keeper(settings, store).backup(tmp_path / "other.duckdb")
        assert there.read_bytes() == b"of somebody"
        there.unlink()
    Keeper(settings, store).backup(tmp_path / "other.duckdb")


@pytest.mark.parametrize("links", [True, False])
def test_what_was_kept_aside_is_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    kept, other = tmp_path / "kept", tmp_path / "other"
    kept.write_bytes(b"earlier")
    other.write_bytes(b"later")
    with pytest.raises(FileExistsError):
        keep_aside(other, kept)
    assert (kept.read_bytes(), other.read_bytes()) == (b"earlier", b"later")
    keep_aside(other, tmp_path / "free")
    assert (tmp_path / "free").read_bytes() == other.read_bytes() == b"later"


def refuse_links(*_: object) -> None:
    """As a file system that has none."""
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_a_store_whose_exchange_fails_is_open_again(settings: Settings, store: Store) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        store.reopen(fail)
    assert [row["uid"] for row in store.rows(UIDS)] == ["here"]
    assert settings.store_file.exists()


def test_a_log_beside_a_store_that_was_kept_aside_is_restored_with_it(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    store = open_store(settings)
    store.append(one_pod("here", 1))
    # What was committed since the last fold is in the log only, as after a kill.
    store.fold()
    store.append(one_pod("later", 1))
    aside = tmp_path / "aside.duckdb"
    for suffix in ("", ".wal"):
        shutil.copyfile(f"{settings.store_file}{suffix}", f"{aside}{suffix}")
    store.append(one_pod("latest", 1))
    Keeper(settings, store).restore(aside)
    assert [row["uid"] for row in store.rows(UIDS)] == ["here", "later"]
    store.close()


def test_where_no_store_is_none_is_made_but_by_a_backup_that_is_put_back(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "elsewhere"
    given = ["--data-dir", str(folder)]
    for order in (["backup", str(tmp_path / "copy")], ["forget", "ada"], ["retire", "north"]):
        assert run([*order, *given]) == StoreError.exit_code
        assert f"{order[0]}: there is no store" in capsys.readouterr().err
    assert run(["restore", str(tmp_path / "missing"), *given]) == StoreError.exit_code
    assert not (folder / "gpuledger.duckdb").exists()
    assert run(["restore", str(good), *given]) == 0
    assert capsys.readouterr().out == f"{good} is in place\n"
    assert [path.name for path in folder.iterdir()] == ["gpuledger.duckdb"]


def test_a_store_that_is_held_is_not_replaced(
    good: Path, settings: Settings, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = settings.store.data_dir
    before = sorted(path.name for path in folder.rglob("*"))
    assert run(["restore", str(good), "--data-dir", str(folder)]) == StoreHeldError.exit_code
    assert "is open in this process already" in capsys.readouterr().err
    assert sorted(path.name for path in folder.rglob("*")) == before
    assert {"uid": "here"} in store.rows(UIDS)


def test_a_store_that_cannot_be_opened_is_replaced_by_a_backup(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    broken = data / "gpuledger.duckdb"
    shutil.copyfile(good, broken)
    of_a_later_version(broken)
    noise = tmp_path / "noise"
    noise.write_bytes(b"x" * 5000)
    assert run(["restore", str(noise), "--data-dir", str(data)]) == StoreError.exit_code
    assert [path.name for path in data.iterdir()] == ["gpuledger.duckdb"]
    assert run(["restore", str(good), "--data-dir", str(data)]) == 0
    out = capsys.readouterr().out
    assert "is in place; what was there before could not be opened" in out
    assert "written by a newer gpuledger" in out
    [kept] = (data / "aside").glob("*/gpuledger.duckdb")
    assert kept.exists()
    store = Store.open(broken)
    assert [row["uid"] for row in store.rows(UIDS)] == ["here"]
    store.close()


REPLACE = Path.replace


def replace_and_die(path: Path, further: Path) -> None:
    """As a process that is killed after the exchange; nothing of ours catches it."""
    REPLACE(path, further)
    raise KeyboardInterrupt


def test_a_restore_that_is_killed_never_leaves_a_log_beside_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_below(tmp_path)
    store = open_store(settings)
    store.append(one_pod("here", 1))
    store.fold()
    store.append(one_pod("later", 1))
    # A raw copy: of the same lineage as the store, and as often folded once its own log is.
    kept = tmp_path / "kept.duckdb"
    for suffix in ("", ".wal"):
        shutil.copyfile(f"{settings.store_file}{suffix}", f"{kept}{suffix}")
    store.append(one_pod("latest", 1))
    store.fold()
    store.append(one_pod("last", 1))
    killed = settings_below(tmp_path / "killed")
    killed.store.data_dir.mkdir(parents=True)
    for suffix in ("", ".wal"):
        shutil.copyfile(f"{settings.store_file}{suffix}", f"{killed.store_file}{suffix}")
    store.close()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace_and_die)
        with pytest.raises(KeyboardInterrupt):
            replace_broken(kept, killed, tmp_path / "aside")
    store = open_store(killed)
    assert [row["uid"] for row in store.rows(UIDS)] == ["here", "later"]
    store.close()
    aside = Store.open(tmp_path / "aside" / "gpuledger.duckdb")
    assert [row["uid"] for row in aside.rows(UIDS)] == ["here", "last", "later", "latest"]
    aside.close()


class Unfolded(Store):
    """A store whose log is not folded: readers forbid it, or the disk is full."""

    @override
    def fold(self) -> None:
        with self.transaction() as connection:
            connection.execute("pragma disable_checkpoint_on_shutdown")


def test_a_store_whose_log_cannot_be_folded_is_not_exchanged(good: Path, tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    store = Unfolded.open(settings.store_file)
    store.append(one_pod("mine", 1))
    with pytest.raises(StoreError, match="its log could not be folded into it; make room on its disk"):
        Keeper(settings, store).restore(good)
    assert [row["uid"] for row in store.rows(UIDS)] == ["mine"]
    assert not list(settings.store.data_dir.glob(".restored-*"))
    store.close()


def test_what_is_put_in_place_is_on_the_disk_before_and_after(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_below(tmp_path)
    store = open_store(settings)
    store.append(one_pod("here", 1))
    told: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note(handle: int) -> None:
        told.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    def exchange(path: Path, further: Path) -> Path:
        told.append("exchanged")
        return replace(path, further)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(Path, "replace", exchange)
    target = tmp_path / "books.duckdb"
    Keeper(settings, store).backup(target)
    parent = str(tmp_path)
    assert told == [f"{target}.new", parent, "exchanged", str(target), parent]
    told.clear()
    Keeper(settings, store).restore(good)
    store.close()
    data = str(settings.store.data_dir)
    copied, first, _, aside, before, file, after = told
    assert ".restored-" in copied
    assert "/aside/" in f"{aside}/"
    assert [first, before, file, after] == [data, "exchanged", str(settings.store_file), data]
