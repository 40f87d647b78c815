"""What the operator does with the books, while they are served and without."""

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests

from api.answers import SourceState
from collector.intake import Intake
from collector.journal import journal_files
from collector.journal_reading import course_of
from collector.recording import import_recording
from collector.translator import find
from collector.unpacking import CarefulFile
from domain.errors import StoreError, UnreachableError, UsageError
from domain.policy import Policy
from service import orders, sources
from service.cli import run
from service.keeping import Keeper, forgotten_names
from service.recovery import journal_folder, open_store
from service.refresh import Refresher
from service.runtime import Runtime
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store
from tests.build import busy_morning
from tests.collector_live.running import ASKS_EVERY_SECONDS, PODS, START_MS, pod, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig
from tests.shared import shared
from tests.store.facts_made_up import described, one_pod

FACTS = (
    "select * from transition order by seq",
    "select * from description order by seq",
    "select * from object_state order by all",
)
ENDED = "select workload_uid, ended_ms from workload where ended_ms is not null"
TABLES = ("workload", "span", "attempt", "holding", "run", "member")


def settings_in(folder: Path, **overrides: Any) -> Settings:
    return load_settings(overrides={"store.data_dir": folder / "data", "server.port": 0} | overrides)


def facts(store: Store) -> list[list[dict[str, object]]]:
    return [store.rows(select) for select in FACTS]


def test_a_backup_has_all_and_can_be_put_back(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    busy_morning().write(store)
    store.append(one_pod("u1", 1))
    before = facts(store)
    keeper = Keeper(settings, store)
    keeper.backup(tmp_path / "books.duckdb")
    with pytest.raises(StoreError, match="there is such a file"):
        keeper.backup(tmp_path / "books.duckdb")
    store.append(one_pod("later", 1))
    left = facts(store)
    told = keeper.restore(tmp_path / "books.duckdb")
    assert facts(store) == before
    # What was there before is kept, whole, where the answer says.
    aside = Store.open(Path(told.rpartition("what was there before is ")[2]))
    assert facts(aside) == left
    aside.close()
    # It takes facts again, numbered on from the last one.
    store.append(one_pod("later", 1))
    assert store.rows("select seq from description order by seq") == [{"seq": 2}, {"seq": 4}]
    store.close()


def test_what_is_no_backup_leaves_the_books_as_they_are(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    store.append(one_pod("u1", 1))
    before = facts(store)
    (tmp_path / "noise").write_bytes(b"no store" * 1000)
    with pytest.raises(StoreError):
        Keeper(settings, store).restore(tmp_path / "noise")
    assert facts(store) == before
    store.close()


@pytest.mark.long
def test_a_served_store_is_backed_up_restored_and_rebuilt(tmp_path: Path) -> None:
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        cluster.apply(PODS, pod("u1", node="n1"))
        settings = settings_in(
            tmp_path,
            **{
                "keeping.journal_size": "10MB",
                "schedule.measure_every_seconds": 1,
                "clusters": [{"name": "north", "kubeconfig": str(kubeconfig(tmp_path, cluster.url))}],
            },
        )
        with Runtime(settings) as runtime:

            def seen() -> list[str]:
                rows = requests.get(f"{runtime.url}/api/v1/workloads", timeout=60).json()["rows"]
                return sorted(row["uid"] for row in rows)

            def order(name: str, argument: str = "") -> str:
                return orders.give(settings.orders_dir, name, argument, seconds=60)

            until(lambda: seen() == ["u1"], pause=ASKS_EVERY_SECONDS)
            order("backup", str(tmp_path / "books.duckdb"))
            cluster.apply(PODS, pod("u2"))
            until(lambda: seen() == ["u1", "u2"], pause=ASKS_EVERY_SECONDS)
            assert "is in place" in order("restore", str(tmp_path / "books.duckdb"))
            # What happened since is read from the cluster again.
            until(lambda: seen() == ["u1", "u2"], pause=ASKS_EVERY_SECONDS)
            assert "entries were read again" in order("rebuild")
            until(lambda: seen() == ["u1", "u2"], pause=ASKS_EVERY_SECONDS)
            cluster.apply(PODS, pod("u3"))
            until(lambda: seen() == ["u1", "u2", "u3"], pause=ASKS_EVERY_SECONDS)
            with pytest.raises(StoreError, match="there is no such file"):
                order("restore", str(tmp_path / "missing"))
            assert requests.get(f"{runtime.url}/readyz", timeout=60).status_code == 200


def test_an_order_without_an_answer_is_taken_back(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="gave no answer"):
        orders.give(tmp_path, "backup", "", seconds=0.0)
    assert list(tmp_path.iterdir()) == []


def test_an_order_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    refused: list[StoreError] = []

    def ask() -> None:
        try:
            orders.give(tmp_path, "dance", "", seconds=60)
        except StoreError as error:
            refused.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: orders.take(tmp_path, {}) == 1)
    asking.join(60)
    assert "'dance'" in str(refused[0])


def test_an_order_that_meets_a_fault_is_answered_and_not_taken_again(tmp_path: Path) -> None:
    taken: list[str] = []

    def fail(argument: str) -> str:
        taken.append(argument)
        raise EOFError(argument)

    def ask() -> None:
        with pytest.raises(StoreError, match="EOFError: once"):
            orders.give(tmp_path, "fail", "once", seconds=60)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: orders.take(tmp_path, {"fail": fail}) == 1)
    asking.join(60)
    assert orders.take(tmp_path, {"fail": fail}) == 0
    assert (taken, list(tmp_path.iterdir())) == (["once"], [])


def test_a_person_who_is_forgotten_stays_so(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **{"tenancy.users": [{"from_label": "user"}]})
    store = open_store(settings)
    body = b'{"labels":{"user":"dirk","project":"dirk"},"note":"\\"user\\":\\"dirk\\""}'
    batch = one_pod("u1", 1)
    batch.descriptions[:] = [described("u1", 1, body)]
    store.append(batch)
    folder = journal_folder(settings, "city")
    folder.mkdir(parents=True)
    with gzip.open(folder / "00000001.ndjson.gz", "wb") as file:
        file.write(b'{"type":"seen","object":{"metadata":{"labels":{"user":"dirk"}}}}\n')
        applied = json.dumps(json.dumps({"labels": {"user": "dirk"}}, separators=(",", ":")))
        file.write(f'{{"type":"seen","object":{{"annotations":{{"last-applied":{applied}}}}}}}\n'.encode())
    whole = (folder / "00000001.ndjson.gz").read_bytes()
    # What a kill in the middle of a block leaves.
    (folder / "00000001.ndjson.gz").write_bytes(whole + gzip.compress(b'{"user":"dirk"}\n' * 99)[:-20])
    keeper = Keeper(settings, store)
    keeper.backup()
    told = keeper.forget("dirk")
    (described_now,) = store.rows("select body from description")
    instead = keeper.forgotten.add("dirk")
    written = body.decode().replace('"user":"dirk"', f'"user":"{instead}"')
    assert described_now["body"] == written.replace('\\"user\\":\\"dirk\\"', f'\\"user\\":\\"{instead}\\"')
    assert f"dirk is {instead} now; 1 descriptions were changed" in told
    (file_of_journal,) = journal_files(folder)
    kept = gzip.decompress(file_of_journal.read_bytes())
    assert kept.count(instead.encode()) >= 2
    assert b"dirk" not in kept
    (backup,) = (settings.store.data_dir / "backups").iterdir()
    assert b'"user":"dirk"' not in backup.read_bytes()
    # The cluster tells the name again, to another process.
    again = Keeper(settings, store).forgotten.without(batch)
    assert again.descriptions[0].body == str(described_now["body"]).encode()
    store.close()
    assert b'"user":"dirk"' not in settings.store_file.read_bytes()


def test_a_name_that_was_forgotten_stays_so_in_an_older_backup(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **{"tenancy.users": [{"from_label": "user"}]})
    store = open_store(settings)
    batch = one_pod("u1", 1)
    batch.descriptions[:] = [described("u1", 1, b'{"labels":{"user":"d\\"irk"}}')]
    store.append(batch)
    keeper = Keeper(settings, store)
    keeper.backup(tmp_path / "older.duckdb")
    keeper.forget('d"irk')
    assert "1 names that were forgotten since" in keeper.restore(tmp_path / "older.duckdb")
    (described_now,) = store.rows("select body from description")
    instead = keeper.forgotten.add('d"irk')
    assert described_now["body"] == f'{{"labels":{{"user":"{instead}"}}}}'
    store.close()


def test_what_still_holds_a_forgotten_name_in_the_journal_is_told(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **{"tenancy.users": [{"from_label": "user"}]})
    store = open_store(settings)
    folder = journal_folder(settings, "city")
    folder.mkdir(parents=True)
    with gzip.open(folder / "00000001.ndjson.gz", "wb") as file:
        file.write(b'{"type":"seen","object":{"metadata":{"name":"run-of-dirk"}}}\n')
    assert "1 entries of the journal hold it within something else" in Keeper(settings, store).forget("dirk")
    store.close()


def test_an_exchange_that_is_cut_short_leaves_the_store_in_its_place(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    store.append(one_pod("u1", 1))
    before = facts(store)
    with pytest.raises(FileNotFoundError):
        Keeper(settings, store)._exchange(tmp_path / "vanished")
    assert facts(store) == before
    store.close()


def test_a_copy_leaves_the_room_that_is_reserved(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **{"keeping.min_free": "900000GB"})
    store = open_store(settings)
    with pytest.raises(StoreError, match=r"are reserved \(keeping\.min_free\)"):
        Keeper(settings, store).backup()
    assert list((settings.store.data_dir / "backups").iterdir()) == []
    store.close()


def test_a_cluster_that_is_read_no_more_is_retired(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    intake = Intake("old", store, store.known("old"))
    pods, nodes = find("", "Pod"), find("", "Node")
    assert pods is not None
    assert nodes is not None
    body = {"apiVersion": "v1", "kind": "Pod"} | pod("u1", node="n1")
    intake.relisted(pods, [msgspec.Raw(json.dumps(body).encode())], "10", START_MS)
    intake.troubled(nodes, "retry: no answer", START_MS)
    intake.flush()
    refresher = Refresher(store=store)
    refresher.refresh()
    assert store.rows(ENDED) == []
    told = Keeper(settings, store).retire("old")
    assert "old has ended with its last reading" in told
    refresher.refresh()
    assert store.rows(ENDED) == [{"workload_uid": "u1", "ended_ms": START_MS + 1}]
    (state,) = {sources.state_of(mark, START_MS + 10**9, policy=Policy()) for mark in store.marks()}
    assert state is SourceState.NOT_INSTALLED
    with pytest.raises(UsageError, match=r"expected one that was read \(old\)"):
        Keeper(settings, store).retire("older")
    store.close()


def test_a_cluster_that_was_never_reached_is_forgotten_when_it_leaves_the_settings(tmp_path: Path) -> None:
    store = open_store(settings_in(tmp_path))
    nodes = find("", "Node")
    assert nodes is not None
    for cluster, seen_ms in (("read", START_MS), ("wrong", 0), ("new", 0)):
        intake = Intake(cluster, store, store.known(cluster))
        if seen_ms:
            intake.relisted(nodes, [], "10", seen_ms)
        else:
            intake.troubled(nodes, "retry: no answer", START_MS)
        intake.flush()
    store.forget_unread(["new"])
    assert [mark["cluster"] for mark in store.marks()] == ["new", "read"]
    store.close()


def test_a_person_is_forgotten_also_where_a_block_of_the_journal_was_cut_off(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **{"tenancy.users": [{"from_label": "user"}]})
    store = open_store(settings)
    folder = journal_folder(settings, "city")
    folder.mkdir(parents=True)
    block = gzip.compress(b'{"type":"seen","object":{"metadata":{"labels":{"user":"dirk"}}}}\n')
    # As a process leaves it that was killed while it wrote; the next one began another file.
    (folder / "00000001.ndjson.gz").write_bytes(block + block[:-20])
    (folder / "00000002.ndjson.gz").write_bytes(block)
    Keeper(settings, store).forget("dirk")
    assert len(journal_files(folder)) == 2
    for path in journal_files(folder):
        lines = list(CarefulFile(path))
        assert lines
        assert not any(b"dirk" in line for line in lines)
    # It is still said that something is missing.
    assert [damage.by_kill for damage in course_of(folder).damages] == [True]
    store.close()


def test_a_name_is_known_however_it_is_written_and_in_each_label_that_names_users(tmp_path: Path) -> None:
    rules = [{"from_label": "user"}, {"from_namespace_label": "owner"}]
    settings = settings_in(tmp_path, **{"tenancy.users": rules})
    settings.store.data_dir.mkdir(parents=True)
    forgotten = forgotten_names(settings)
    assert forgotten.labels == ("owner", "user")
    instead = forgotten.add('dïrk "d"')
    for written in (r'"user":"dïrk \"d\""', r'"owner":"d\u00efrk \u0022d\""'):
        assert forgotten.clean(f"{{{written}}}").partition(":")[2] == f'"{instead}"}}'
    assert forgotten.clean('{"user":"dirk","team":"dïrk"}') == '{"user":"dirk","team":"dïrk"}'


def test_nobody_is_forgotten_where_no_label_names_users(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    with pytest.raises(StoreError, match=r"tenancy\.users"):
        Keeper(settings, store).forget("dirk")
    store.close()


@pytest.mark.recordings
def test_what_ended_long_ago_is_dropped_and_the_rest_stays(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **{"keeping.retention": "1h"})
    store = open_store(settings)
    import_recording(shared("data/recorded/native"), "native", store)
    Refresher(store=store).refresh()
    ends = {str(row["workload_uid"]): int(str(row["ended_ms"])) for row in store.rows(ENDED)}
    middle_ms = sorted(ends.values())[len(ends) // 2]
    old = {uid for uid, ended_ms in ends.items() if ended_ms < middle_ms}
    kept = {table: of_others(store, table, old) for table in TABLES}
    assert Keeper(settings, store).drop_old(middle_ms + 3_600_000) == len(old)
    assert {table: of_others(store, table, set()) for table in TABLES} == kept
    assert {str(row["uid"]) for row in store.rows("select uid from transition")} & old == set()
    # What is left can be cut anew, and what comes again is not taken for news.
    before = facts(store)
    import_recording(shared("data/recorded/native"), "native", store)
    Refresher(store=store).refresh()
    assert {table: of_others(store, table, old) for table in TABLES} == kept
    assert before[0] == [row for row in facts(store)[0] if row in before[0]]
    store.close()


def of_others(store: Store, table: str, uids: set[str]) -> list[str]:
    """Rows of other workloads than these."""
    rows = store.rows(f"select * from {table}")  # noqa: S608 - names from above
    return sorted(str(row) for row in rows if row["workload_uid"] not in uids)


def test_the_commands_act_on_a_store_that_nobody_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    store.append(one_pod("u1", 1))
    store.close()
    folder = ["--data-dir", str(settings.store.data_dir)]
    assert run(["backup", str(tmp_path / "books.duckdb"), *folder]) == 0
    assert run(["restore", str(tmp_path / "books.duckdb"), *folder]) == 0
    assert "is in place" in capsys.readouterr().out
    assert run(["rebuild", *folder]) == 3
    assert "keeping.journal_size" in capsys.readouterr().err
