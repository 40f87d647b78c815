"""The schema: numbered files, each applied once."""

from pathlib import Path

import duckdb
import pytest

from domain.errors import StoreError
from domain.window import FixedClock
from store.embedded import Store
from store.migrate import Migration, migrate, migrations

ONE = Migration(number=1, name="0001_one.sql", text="create table one (a bigint)")
TWO = Migration(
    number=2, name="0002_two.sql", text="create table two (a bigint); create table three (a bigint)"
)
WRONG = Migration(
    number=2, name="0002_two.sql", text="create table two (a bigint); create tabel three (a bigint)"
)


def tables(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {str(row[0]) for row in connection.execute("select table_name from duckdb_tables()").fetchall()}


def test_our_migrations_are_numbered_from_one_without_a_hole() -> None:
    found = migrations()
    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
    assert len(found) >= 4


def test_a_migration_is_applied_once_and_recorded() -> None:
    with duckdb.connect() as connection:
        assert migrate(connection, now_ms=7, name="x", wanted=[ONE]) == 1
        assert migrate(connection, now_ms=8, name="x", wanted=[ONE]) == 0
        ledger = connection.execute(
            "select number, name, sha256, applied_at_ms from schema_migration"
        ).fetchall()
    assert ledger == [(1, "0001_one.sql", ONE.sha256, 7)]


def test_an_older_store_gets_only_what_it_lacks() -> None:
    with duckdb.connect() as connection:
        migrate(connection, now_ms=7, name="x", wanted=[ONE])
        assert migrate(connection, now_ms=8, name="x", wanted=[ONE, TWO]) == 1
        assert tables(connection) == {"schema_migration", "one", "two", "three"}


def test_a_migration_that_was_changed_after_it_was_applied_is_refused() -> None:
    changed = Migration(number=1, name=ONE.name, text="create table one (a bigint, b bigint)")
    with duckdb.connect() as connection:
        migrate(connection, now_ms=7, name="x.duckdb", wanted=[ONE])
        with pytest.raises(StoreError, match=r"x\.duckdb: migration 0001_one\.sql was changed"):
            migrate(connection, now_ms=8, name="x.duckdb", wanted=[changed])


def test_a_store_of_a_newer_version_is_refused_and_says_so() -> None:
    with duckdb.connect() as connection:
        migrate(connection, now_ms=7, name="x", wanted=[ONE, TWO])
        with pytest.raises(
            StoreError, match=r"0002_two\.sql, which this version does not know.* newer gpuledger"
        ):
            migrate(connection, now_ms=8, name="x", wanted=[ONE])


def test_a_migration_that_fails_half_way_leaves_nothing() -> None:
    with duckdb.connect() as connection:
        with pytest.raises(StoreError, match=r"0002_two\.sql failed and was undone"):
            migrate(connection, now_ms=7, name="x", wanted=[ONE, WRONG])
        assert tables(connection) == {"schema_migration", "one"}
        assert migrate(connection, now_ms=8, name="x", wanted=[ONE, TWO]) == 1


def test_opening_a_store_dates_its_migrations_by_the_clock_it_is_given(tmp_path: Path) -> None:
    for at_ms in (1000, 2000):
        store = Store.open(tmp_path / "deep" / "store.duckdb", clock=FixedClock(at_ms))
        assert store.rows("select distinct applied_at_ms as at_ms from schema_migration") == [{"at_ms": 1000}]
        store.close()
