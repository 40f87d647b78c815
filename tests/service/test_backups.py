"""What backup and restore are given: whatever it is, they say so, and the store stays as it was."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from domain.errors import StoreError, StoreHeldError
from service.backups import check_target
from service.cli import run
from service.keeping import Keeper
from service.recovery import open_store
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store
from tests.store.facts_made_up import one_pod

# Three headers before the blocks, as DuckDB lays its files out.
_HEADERS, _BLOCK = 3 * 4096, 262_144
UIDS = "select uid from object_state order by uid"


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


def test_the_store_itself_and_a_copy_of_restore_are_no_backups(settings: Settings, store: Store) -> None:
    with pytest.raises(StoreError, match="that is the store itself"):
        Keeper(settings, store).restore(settings.store_file)
    left = settings.store_file.with_name("restored.duckdb")
    left.write_bytes(b"of somebody")
    with pytest.raises(StoreError, match="restore writes its own copy there"):
        Keeper(settings, store).restore(left)
    assert left.read_bytes() == b"of somebody"
    left.unlink()


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


def test_a_backup_goes_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "books.duckdb").write_bytes(b"")
    for target, says in (
        (tmp_path, "that is a folder; name a file in it"),
        (tmp_path / "books.duckdb", "there is such a file; name another one"),
        (tmp_path / ("x" * 300), "choose a folder that can be written"),
    ):
        with pytest.raises(StoreError, match=says):
            check_target(target)
    check_target(tmp_path / "other.duckdb")


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
