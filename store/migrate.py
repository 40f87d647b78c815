"""Bring a database to the newest schema: each numbered file of `schema/` is applied once."""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

import duckdb

from domain.errors import StoreError

_LEDGER = """
create table if not exists schema_migration (
    number bigint primary key,
    name varchar not null,
    sha256 varchar not null,
    applied_at_ms bigint not null
)
"""


_TABLES = "select table_name from duckdb_tables() where not internal order by table_name"
_APPLIED = "select number, name, sha256 from schema_migration order by number"
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered file; it is never edited once a release has applied it."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        """The fingerprint by which an edit is noticed."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations(folder: Traversable | None = None) -> list[Migration]:
    """The files `<number>_<what>.sql` of the folder, by number; by default those of the product."""
    where = files("store") / "schema" if folder is None else folder
    found = [file for file in where.iterdir() if file.name.endswith(".sql")]
    return sorted(
        (
            Migration(number=int(file.name.split("_")[0]), name=file.name, text=file.read_text("utf-8"))
            for file in found
        ),
        key=lambda migration: migration.number,
    )


def migrate(
    connection: duckdb.DuckDBPyConnection,
    *,
    now_ms: int,
    name: str,
    wanted: list[Migration] | None = None,
    existing: bool = False,
) -> int:
    """
    Apply what is missing, each file in its own transaction with its line in the ledger.

    Args:
        connection: to the database; it has no open transaction.
        now_ms: what the ledger says of when.
        name: how to call the database in an error.
        wanted: all migrations that this version knows; by default those of the product.
        existing: whether some must have been applied already.

    Returns:
        How many were applied.

    Raises:
        StoreError: an applied file was changed since, the database is of a newer version, or it is no
            store of gpuledger but of something else.
    """
    known = {migration.number: migration for migration in (migrations() if wanted is None else wanted)}
    applied = _applied(connection, name)
    if existing and not applied:
        message = f"store {name} is no store of gpuledger: no schema was ever applied to it"
        raise StoreError(message)
    connection.execute(_LEDGER)
    for number, file, sha256 in applied:
        _check(known.get(number), file, sha256, name)
    missing = [known[number] for number in sorted(known.keys() - {number for number, _, _ in applied})]
    for migration in missing:
        _apply(connection, migration, now_ms, name)
    if missing:
        # Changes of the schema do not stay in the log: several releases could not replay them.
        connection.execute("checkpoint")
    return len(missing)


def _applied(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[int, str, str]]:
    """Number, name and fingerprint of each file that was applied; none to a new database."""
    tables = [str(table) for (table,) in connection.execute(_TABLES).fetchall()]
    if not tables:
        return []
    try:
        return connection.execute(_APPLIED).fetchall()
    except duckdb.CatalogException as cause:
        shown = ", ".join(tables[:_SHOWN]) + (" and others" if len(tables) > _SHOWN else "")
        message = (
            f"store {name} is no store of gpuledger: it is a database with the tables {shown}; name the file "
            "or the folder that gpuledger wrote"
        )
        raise StoreError(message) from cause
    except duckdb.Error as cause:
        message = f"store {name} is no store of gpuledger: its ledger of migrations cannot be read ({cause})"
        raise StoreError(message) from cause


def _check(migration: Migration | None, file: str, sha256: str, name: str) -> None:
    if migration is None:
        message = (
            f"store {name} has migration {file}, which this version does not know: it was written by a "
            "newer gpuledger; install that version, or restore a backup from before the upgrade"
        )
        raise StoreError(message)
    if migration.sha256 != sha256:
        message = (
            f"store {name}: migration {file} was changed after it had been applied: put the file back as "
            "it was, and write the change as a new numbered file"
        )
        raise StoreError(message)


def _apply(connection: duckdb.DuckDBPyConnection, migration: Migration, now_ms: int, name: str) -> None:
    line = [migration.number, migration.name, migration.sha256, now_ms]
    connection.begin()
    try:
        connection.execute(migration.text)
        connection.execute("insert into schema_migration values (?, ?, ?, ?)", line)
        connection.commit()
    except duckdb.Error as cause:
        connection.rollback()
        message = f"store {name}: migration {migration.name} failed and was undone: {cause}"
        raise StoreError(message) from cause
