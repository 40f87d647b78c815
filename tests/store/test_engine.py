"""Opening, asking, writing: what every part relies on."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from domain.errors import StoreError
from store.embedded import Store

HOLD = """
import sys
from pathlib import Path
from store.embedded import Store
store = Store.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
"""


def test_a_second_process_is_told_who_holds_the_file_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreError) as refused:
            Store.open(path)
        holder.communicate(b"\n")
    assert str(refused.value) == (
        f"store {path} is held by process {holder.pid}, and DuckDB lets only one process open a file, "
        "even to read: ask the API of the running gpuledger serve, or stop it"
    )
    Store.open(path).close()


def test_one_file_is_one_store_within_a_process_too(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    first = Store.open(path)
    with pytest.raises(StoreError, match="is open in this process already"):
        Store.open(tmp_path / "." / "store.duckdb")
    first.close()
    Store.open(path).close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello " * 1000)
    with pytest.raises(StoreError, match=r"notes\.txt cannot be opened: .*not a valid DuckDB database"):
        Store.open(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_file_of_another_user_is_told_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    Store.open(path).close()
    path.chmod(0o600)
    nobody = 65534
    os.seteuid(nobody)
    try:
        with pytest.raises(StoreError, match=r"Permission denied.*; expected a file.*chown"):
            Store.open(path)
    finally:
        os.seteuid(0)


def test_a_wrong_memory_limit_is_an_error_at_start() -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(None, memory_limit="much")


def test_limits_are_taken_over(tmp_path: Path) -> None:
    store = Store.open(None, memory_limit="512MiB", threads=1, spill=tmp_path / "spill")
    [row] = store.rows(
        "select current_setting('threads') as threads, current_setting('memory_limit') as memory,"
        " current_setting('temp_directory') as spill"
    )
    assert row == {"threads": 1, "memory": "512.0 MiB", "spill": str(tmp_path / "spill")}
    store.close()


def test_every_cursor_is_in_utc(store: Store) -> None:
    assert store.rows("select current_setting('TimeZone') as zone") == [{"zone": "UTC"}]
    # 2026-10-31T23:59:59Z, a day later in Berlin
    [row] = store.rows("select date_trunc('month', to_timestamp(1793491199))::varchar as month")
    assert row == {"month": "2026-10-01 00:00:00+00"}


def test_parameters_that_the_text_does_not_name_are_left_out(store: Store) -> None:
    params = {"start_ms": 5, "as_of_ms": 9}
    text = "select $as_of_ms as at_ms, '$start_ms' as text -- not $start_ms either"
    assert store.rows(text, params) == [{"at_ms": 9, "text": "$start_ms"}]
    assert store.frame(text, params).equals(
        pl.DataFrame({"at_ms": [9], "text": ["$start_ms"]}, schema={"at_ms": pl.Int32, "text": pl.String})
    )


def test_a_parameter_that_is_missing_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="as_of_ms"):
        store.rows("select $as_of_ms as at_ms")


@pytest.mark.parametrize(
    "text", ["delete from span", "select 1; select 2", "", "copy (select 1) to 'x.csv'", "checkpoint"]
)
def test_a_question_cannot_write(store: Store, text: str) -> None:
    for ask in (store.rows, store.frame):
        with pytest.raises(StoreError, match="expected one query that only reads"):
            ask(text)


def test_text_that_is_no_sql_is_a_store_error(store: Store) -> None:
    with pytest.raises(StoreError, match="syntax error"):
        store.rows("selekt 1")


def test_a_transaction_is_undone_when_its_body_fails(store: Store) -> None:
    def write_half() -> None:
        with store.transaction() as connection:
            connection.execute("insert into queue_span values ('c', 'q', 'ClusterQueue', 1, null)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert store.rows("select queue from queue_span") == []


def test_readers_see_only_what_is_committed(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("insert into queue_span values ('c', 'q', 'ClusterQueue', 1, null)")
        assert store.rows("select queue from queue_span") == []
    assert store.rows("select queue from queue_span") == [{"queue": "q"}]


def test_a_question_that_fails_does_not_undo_what_is_being_written(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("insert into queue_span values ('c', 'q', 'ClusterQueue', 1, null)")
        with pytest.raises(StoreError, match="Conversion"):
            store.rows("select cast(state as integer) from (values ('queued')) as span (state)")
    assert store.rows("select queue from queue_span") == [{"queue": "q"}]


def test_a_question_is_answered_while_another_thread_writes(store: Store) -> None:
    with store.transaction() as connection:
        rows = connection.execute("select unnest(range(100000)) as number")  # an open result of the writer
        found: list[object] = []
        asking = threading.Thread(target=lambda: found.extend(store.rows("select queue from queue_span")))
        connection.execute("insert into queue_span values ('c', 'q', 'ClusterQueue', 1, null)")
        asking.start()
        asking.join(timeout=60)
        assert not asking.is_alive()
        assert found == []
        assert rows is connection


def test_threads_read_while_one_writes(store: Store) -> None:
    torn: list[object] = []

    def read() -> None:
        for _ in range(50):
            [row] = store.rows("select count(*) as n from queue_span")
            if row["n"] not in range(0, 401, 2):
                torn.append(row)

    def write(name: str) -> None:
        for _ in range(50):
            with store.transaction() as connection:
                for _ in range(2):
                    connection.execute(
                        "insert into queue_span values ('c', $q, 'ClusterQueue', 1, null)", {"q": name}
                    )

    threads = [threading.Thread(target=read) for _ in range(4)]
    threads += [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torn == []
    assert store.rows("select count(*) as n from queue_span") == [{"n": 400}]


def test_a_closed_store_says_that_it_is_closed() -> None:
    store = Store.open(None)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="store in memory is closed: open it again"):
        store.rows("select 1")
    with pytest.raises(StoreError, match="is closed"), store.transaction():
        pass


def test_closing_folds_the_log_into_the_file(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.duckdb")
    with store.transaction() as connection:
        connection.execute("insert into queue_span values ('c', 'q', 'ClusterQueue', 1, null)")
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["store.duckdb"]
