"""The door to DuckDB: open a file, ask, and write in one transaction."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final
from weakref import WeakValueDictionary

import duckdb
import polars as pl
import pyarrow as pa

from domain.errors import StoreBrokenError, StoreError, StoreHeldError
from domain.window import Clock, SystemClock
from store.gate import Gate
from store.kept import Kept
from store.limits import memory_limit as usual_memory_limit
from store.migrate import migrate

_HOLDER: Final = re.compile(r"\(PID (\d+)\)")
_DISK: Final = re.compile(r"Could not (write|sync|truncate|read|open)")
_READS: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_CLOCK: Final = SystemClock()
# Of so many texts it is remembered which parameters they name: it takes up to a millisecond to parse one.
_TEXTS: Final = 1024
# Trouble with the file or with memory, not with what was asked. A fatal one ends the handle.
_BROKEN: Final = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException)
# Within a process DuckDB would share the file, and two stores would number facts twice.
_OPEN: Final[WeakValueDictionary[Path, "Engine"]] = WeakValueDictionary()


class Engine:
    """
    One open database: any number of threads read, one at a time writes.

    Each read gets a cursor of its own and sees the last commit; the connection that the cursors
    come from never runs a query, because an open result would block it.

    Args:
        connect: gives the connection, and another one each time the file is opened again.
        path: of the file; None is memory.
    """

    def __init__(self, connect: Callable[[], duckdb.DuckDBPyConnection], path: Path | None) -> None:
        self.name = _name(path)
        self.path = path
        self._connect = connect
        self._write_lock = RLock()
        self._gate = Gate()
        self._schemas: dict[str, pa.Schema] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._kept: Kept[Sequence[Mapping[str, object]]] = Kept()
        self._kept_frames: Kept[pl.DataFrame] = Kept()
        self._lives_version = 0
        self._use(connect())

    @classmethod
    def connect(
        cls,
        path: Path | None,
        *,
        memory_limit: str | None,
        threads: int | None,
        spill: Path | None,
        clock: Clock = _CLOCK,
        existing: bool = False,
    ) -> duckdb.DuckDBPyConnection:
        """
        A connection to the file, made if it is missing, at the newest schema; None is memory.

        One that must be `existing` is a store already.

        Raises:
            StoreHeldError: the file is open already, here or elsewhere.
            StoreError: it is no store of this version.
        """
        if path is not None and path.resolve() in _OPEN:
            message = f"store {path} is open in this process already: use that one, or close it first"
            raise StoreHeldError(message)
        if memory_limit is None and path is not None:
            memory_limit = usual_memory_limit()
        settings = {
            "memory_limit": memory_limit,
            "threads": threads,
            "temp_directory": None if spill is None else str(spill),
        }
        config: dict[str, str | bool | int | float | list[str]] = {
            key: value for key, value in settings.items() if value is not None
        }
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            connection = duckdb.connect(":memory:" if path is None else path, config=config)
        except (duckdb.Error, OSError) as cause:
            broken = "Could not set lock" not in str(cause)
            error = StoreBrokenError if broken else StoreHeldError
            raise error(_why_not(path, str(cause))) from cause
        try:
            # date_trunc and the printing of instants follow this setting; cursors inherit it.
            connection.execute("set global TimeZone = 'UTC'")
            migrate(connection, now_ms=clock.now_ms(), name=_name(path), existing=existing)
        except BaseException:
            connection.close()
            raise
        return connection

    def rows(self, sql: str, params: Mapping[str, object] | None = None) -> list[dict[str, object]]:
        """
        The answer of one query, a dict per row. Of `params` those are used that the text names.

        Raises:
            StoreError: the text is not one query, or DuckDB refuses it.
        """
        with self._reading() as cursor:
            cursor.execute(sql, self._used(cursor, sql, params))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def kept_rows(
        self, sql: str, params: Mapping[str, int | str | tuple[int, ...] | None] | None = None
    ) -> Sequence[Mapping[str, object]]:
        """
        As `rows`, but read once between two commits: for what is asked again and again of unchanged books.

        The rows are everybody's, so nobody may change them.
        """
        question = (sql, tuple(sorted((params or {}).items())))
        return self._kept.answer(question, lambda: self.rows(sql, params))

    def frame(self, sql: str, params: Mapping[str, object] | None = None) -> pl.DataFrame:
        """The answer of one query as a frame; as `rows` otherwise."""
        with self._reading() as cursor:
            frame: pl.DataFrame = cursor.sql(sql, params=self._used(cursor, sql, params)).pl()
            return frame

    def kept_frame(self, sql: str, params: Mapping[str, int | str | None] | None = None) -> pl.DataFrame:
        """As `frame`, but read once between two commits."""
        question = (sql, tuple(sorted((params or {}).items())))
        return self._kept_frames.answer(question, lambda: self.frame(sql, params))

    @property
    def lives_version(self) -> int:
        """
        Another number as soon as lives may have changed: what `store.lives` writes.

        Whoever keeps what follows from them reads it before he reads them.
        """
        return self._lives_version

    @contextmanager
    def transaction(self, *, changes_lives: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
        """
        The one writing connection, in a transaction: all of it is kept, or nothing.

        Args:
            changes_lives: False where surely nothing of them is written.

        Raises:
            StoreError: DuckDB refuses a statement or the commit; nothing was written.
        """
        with self._write_lock, self._told():
            self._writer.begin()
            try:
                yield self._writer
                self._writer.commit()
            except BaseException:
                # After some errors DuckDB has ended the transaction by itself.
                with suppress(duckdb.Error):
                    self._writer.rollback()
                raise
            finally:
                self._forget_kept()
                self._lives_version += changes_lives

    def schema(self, table: str) -> pa.Schema:
        """Columns of one of our tables, in order, as Arrow types."""
        if table not in self._schemas:
            with self._reading() as cursor:
                self._schemas[table] = cursor.table(table).limit(0).to_arrow_table().schema
        return self._schemas[table]

    def close(self) -> None:
        """Fold the log into the file and let go of it. Closing twice does nothing."""
        with self._write_lock:
            # A reader in another thread forbids the checkpoint; the log keeps what was committed.
            with suppress(duckdb.Error):
                self._writer.execute("checkpoint")
            self._let_go()

    def reopen(self, exchange: Callable[[], None] = lambda: None) -> None:
        """
        Let go of the file and open it again, for example after the disk was full.

        Readers and writers wait meanwhile. What is kept in memory only would be lost.

        Args:
            exchange: called in between; may put another file in its place. If it fails, the file that
                is there then is opened all the same.

        Raises:
            StoreError: it cannot be opened; asking it again tries so again.
        """
        with self._write_lock, self._gate.closed():
            self._let_go()
            try:
                exchange()
            finally:
                self._use(self._connect())

    def read_all(self) -> None:
        """
        Read each row of each table: DuckDB notices a damaged block only when it is read.

        Raises:
            StoreError: something cannot be read.
        """
        for table in self.rows("select table_name as name from duckdb_tables() where not internal"):
            # A name from the catalogue, and no answer: what is read is checked on its way.
            self.rows(f'select bit_xor(hash(given)) as fingerprint from "{table["name"]}" as given')  # noqa: S608

    def copy_to(self, target: Path) -> None:
        """
        Write a copy of all that is committed now to a new file; reading and writing go on.

        Raises:
            StoreError: the file exists, or it cannot be written.
        """
        quoted = str(target).replace("'", "''")
        with self._reading() as cursor:
            (source,) = cursor.execute("select current_database()").fetchone() or ("",)
            cursor.execute(f"attach '{quoted}' as copied")
            try:
                cursor.execute(f'copy from database "{source}" to copied')
            finally:
                cursor.execute("detach copied")

    @contextmanager
    def attached(self, attach: str, detach: str) -> Iterator[None]:
        """With another file at hand for the writer, from one statement to the other."""
        with self._write_lock, self._told():
            self._writer.execute(attach)
            try:
                yield
            finally:
                self._writer.execute(detach)

    def fold(self) -> None:
        """Fold the log into the file; a reader in another thread may forbid it, and it is done later."""
        with self._write_lock, suppress(duckdb.TransactionException), self._told():
            self._writer.execute("checkpoint")

    def _use(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._forget_kept()
        self._lives_version += 1
        self._connection = connection
        self._writer = connection.cursor()
        if self.path is not None:
            _OPEN[self.path.resolve()] = self

    def _forget_kept(self) -> None:
        self._kept.forget()
        self._kept_frames.forget()

    def _let_go(self) -> None:
        with suppress(duckdb.Error):
            self._writer.close()
        with suppress(duckdb.Error):
            self._connection.close()
        for path in [path for path, engine in _OPEN.items() if engine is self]:
            del _OPEN[path]

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._gate.passing(), self._told(), self._connection.cursor() as cursor:
            yield cursor

    def _used(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, object] | None
    ) -> dict[str, object]:
        """The parameters that the text names, for DuckDB refuses any other; the text must only read."""
        named = self._named.get(sql)
        if named is None:
            named = _named(cursor, sql)
            # The product's own texts are some hundred; those of people are without end.
            if len(self._named) >= _TEXTS:
                self._named.clear()
            self._named[sql] = named
        return {name: value for name, value in (params or {}).items() if name in named}

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except duckdb.ConnectionException as cause:
            message = f"store {self.name} is closed: open it again"
            raise StoreError(message) from cause
        except duckdb.Error as cause:
            message = f"store {self.name}: {cause}"
            raise (StoreBrokenError if _is_broken(cause) else StoreError)(message) from cause


def _named(cursor: duckdb.DuckDBPyConnection, sql: str) -> frozenset[str]:
    """The parameters that a text names, which must be one query that only reads."""
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type not in _READS:
        message = f"expected one query that only reads, got: {sql[:200]}"
        raise StoreError(message)
    return frozenset(statements[0].named_parameters)


def _is_broken(cause: duckdb.Error) -> bool:
    # A commit that finds the disk full is called a transaction's error.
    return isinstance(cause, _BROKEN) or _DISK.search(str(cause)) is not None


def _name(path: Path | None) -> str:
    return "in memory" if path is None else str(path)


def _why_not(path: Path | None, told: str) -> str:
    if "Permission denied" in told:
        # To read it takes DuckDB as much as to write: it folds the log into the file.
        return (
            f"store {_name(path)} cannot be opened: {told}; expected a file, its .wal beside it and a folder"
            " that this user may write: run this as the user of the running service, or give them to this"
            " one (chown)"
        )
    if "Could not set lock" not in told:
        return f"store {_name(path)} cannot be opened: {told}"
    holder = _HOLDER.search(told)
    who = f"process {holder[1]}" if holder else "another process"
    return (
        f"store {_name(path)} is held by {who}, and DuckDB lets only one process open a file, even to read: "
        "ask the API of the running gpuledger serve, or stop it"
    )
