"""What stages derived, and what came from elsewhere, after a rebuild, a restore, a forgetting and a drop."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl

from collector.intake import Intake
from collector.journal import Journal, JournaledIntake, JournalFirst
from collector.translator import find
from domain.policy import Policy
from domain.tenant import Rule, Tenancy
from domain.window import FixedClock, parse_instant
from service.books import books_of
from service.keeping import Keeper
from service.recovery import journal_folder, open_store
from service.settings import Settings
from service.settings_file import load_settings
from store import adoption, proposals, retention
from store.embedded import Store
from store.gpu_samples import Read
from store.positions import Place
from store.proposals import Move
from tests.quota_site import site as quota_week
from tests.service.test_activity import COLUMNS, T0, sample
from tests.service.test_kinds import at, made, over, pod

JOURNALED, OTHER = "north", "south"
NOW = at(59)
# The numbers of facts and cuts are other ones after a rebuild.
_NUMBERS = {"seq", "lives_seq", "activity_seq"}
_TEXTS = """
select columns.table_name, columns.column_name
from duckdb_columns() as columns
where columns.data_type = 'VARCHAR' and columns.table_name in (select table_name from duckdb_tables())
"""
# Accounts that were open at an instant, as they had begun.
OPENED = """
select entity, start_ms, held, entitled, opening_debt from share_span
where start_ms < $at and until_ms >= $at
order by all
"""
# What the stages derive, and what `store.carrying` carries fact by fact.
MADE_ANEW = {
    "activity_cut", "activity_holding", "activity_span", "attempt", "checkpoint_told", "counted", "denial",
    "demand_step", "dimensions_seen", "eviction", "gpu_hour", "held_day", "holding", "kueue_terms", "member",
    "member_wait", "node_device", "node_price", "node_span", "own_failure_wait", "pod_device", "pool_span",
    "queue_flavor", "queue_span", "quota_use", "reservation", "run", "share_span", "span", "team_share_span",
    "unswept", "waste_account", "waste_piece", "watermark", "workload", "workload_copy", "workload_cut",
    "workload_shape",
}  # fmt: skip
CARRIED = {"transition", "description", "event_sighting", "object_state", "source_mark"}
DIRK = {"labels": {"user": "dirk"}}
SEEN = [
    made("v1", "Node", "n1", 0, metadata={"labels": {"nvidia.com/gpu.product": "A100"}}, status={
        "capacity": {"nvidia.com/gpu": 8}, "allocatable": {"nvidia.com/gpu": 8},
        "conditions": [{"type": "Ready", "status": "True"}],
    }),
    over(pod("first", 1, bound=2, metadata=DIRK), 20, code=1),
    pod("second", 1, bound=25, gpus=4),
]  # fmt: skip


def settings_in(folder: Path) -> Settings:
    users = [{"from_label": "user"}]
    return load_settings(overrides={"store.data_dir": folder / "data", "tenancy.users": users})


def take_in(store: Store, cluster: str, settings: Settings) -> None:
    """The facts of a cluster, and of the journaled one its journal too."""
    journal = Journal(journal_folder(settings, cluster), most_bytes=1 << 30) if cluster == JOURNALED else None
    sink = store if journal is None else JournalFirst(store, journal)
    intake: Intake | JournaledIntake = Intake(cluster, sink, store.known(cluster))
    if journal is not None:
        intake = JournaledIntake(intake, journal)
    for read in SEEN:
        translator = find("", read["kind"])
        assert translator is not None
        intake.see(translator, "ADDED", read, parse_instant(at(40)))
    intake.flush()
    readings = [
        sample(parse_instant(at(minute)) - T0, level, pod=name, namespace="t", device=f"GPU-{name}")
        for name, minutes, level in (("first", range(2, 20), 0.9), ("second", range(25, 40), 0.01))
        for minute in minutes
    ]
    read_until = Read(until_ms=parse_instant(at(40)), seen_ms=parse_instant(at(40)))
    frame = pl.DataFrame(readings, schema=COLUMNS)
    store.append_samples(cluster, "exporter", frame, read_until, set_aside={"a line without a value": 2})
    week = quota_week()
    week.proposer.refresh("c", parse_instant("2026-03-09T01:00:00Z"))
    with store.transaction() as connection:
        for table in ("quota_week", "proposal", "proposal_audit"):
            rows = [row | {"cluster": cluster} for row in week.store.rows(f"select * from {table}")]  # noqa: S608
            assert rows, table
            connection.from_arrow(pl.DataFrame(rows, infer_schema_length=None).to_arrow()).insert_into(table)
    week.store.close()
    (proposal, *_) = store.rows("select * from proposal where cluster = $cluster", {"cluster": cluster})
    told = Move(
        proposal_id=str(proposal["proposal_id"]), at_ms=parse_instant(at(50)),
        from_state=str(proposal["state"]), to_state="rejected", who="dirk", note="",
    )  # fmt: skip
    assert proposals.move(store, cluster, told)


def refresh(store: Store, policy: Policy | None = None, now: str = NOW) -> None:
    tenancy = Tenancy(users=(Rule(from_label="user"),))
    clock = FixedClock(parse_instant(now))
    books_of(store, tenancy=tenancy, policy=policy or Policy(), clock=clock).refresh()


def filled(settings: Settings) -> Store:
    store = open_store(settings)
    for cluster in (JOURNALED, OTHER):
        take_in(store, cluster, settings)
    refresh(store)
    return store


def tables_with(store: Store, column: str) -> list[str]:
    sql = (
        "select table_name from duckdb_columns() where column_name = $column"
        " and table_name in (select table_name from duckdb_tables()) order by table_name"
    )
    return [str(row["table_name"]) for row in store.rows(sql, {"column": column})]


def contents(
    store: Store, cluster: str, without: Sequence[str] = (), *, numbers: bool = False
) -> dict[str, list[str]]:
    """All rows of a cluster by table, less the numbers in them."""
    left_out = set() if numbers else _NUMBERS
    return {
        table: sorted(
            str({name: value for name, value in row.items() if name not in left_out})
            for row in store.rows(f"select * from {table} where cluster = $c", {"c": cluster})  # noqa: S608
        )
        for table in tables_with(store, "cluster")
        if table not in without
    }


def test_after_a_rebuild_all_stages_say_what_they_said(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = filled(settings)
    before = contents(store, JOURNALED)
    other = contents(store, OTHER, numbers=True)
    derived = ("gpu_hour", "waste_piece", "demand_step", "share_span", "proposal", "gpu_sample", "set_aside")
    assert all(before[table] for table in derived)
    Keeper(settings, store).rebuild()
    assert contents(store, OTHER, numbers=True) == other
    assert store.rows("select * from workload where cluster = $c", {"c": JOURNALED}) == []
    refresh(store)
    assert contents(store, JOURNALED) == before
    assert contents(store, OTHER, numbers=True) == other
    store.close()


def test_after_a_restore_the_stages_go_on_from_what_the_backup_says(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = open_store(settings)
    take_in(store, JOURNALED, settings)
    keeper = Keeper(settings, store)
    # A backup that is older than the first refresh, and one that is younger.
    for name, is_refreshed in (("early", False), ("late", True)):
        if is_refreshed:
            refresh(store)
        keeper.backup(tmp_path / f"{name}.duckdb")
    expected = contents(store, JOURNALED)
    for name in ("early", "late"):
        keeper.restore(tmp_path / f"{name}.duckdb")
        refresh(store)
        assert contents(store, JOURNALED) == expected
    store.close()


def test_a_forgotten_name_stands_in_no_table_and_no_report(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = filled(settings)
    settings.reports_dir.mkdir()
    for name, text in (
        ("waste-2026-W09.md", "| dirk | 3 |"),
        ("waste-2026-W09.csv", "x"),
        ("waste-2026-W10.md", "y"),
    ):
        (settings.reports_dir / name).write_text(text, encoding="utf-8")
    assert store.rows("select distinct user_name from workload where user_name != ''") == [
        {"user_name": "dirk"}
    ]
    keeper = Keeper(settings, store)
    assert "1 weekly reports were removed" in keeper.forget("dirk")
    refresh(store)
    for row in store.rows(_TEXTS):
        table, column = row["table_name"], row["column_name"]
        found = store.rows(f"select 1 from {table} where contains({column}, 'dirk')")  # noqa: S608
        assert found == [], (table, column)
    instead = keeper.forgotten.add("dirk")
    assert {row["who"] for row in store.rows("select who from proposal_audit")} == {"gpuledger", instead}
    assert [path.name for path in settings.reports_dir.iterdir()] == ["waste-2026-W10.md"]
    keeper.rebuild()
    refresh(store)
    names = store.rows("select distinct user_name from workload where user_name != ''")
    assert names == [{"user_name": instead}]
    store.close()


def test_what_is_dropped_is_gone_from_all_stages_and_changes_no_other_figure(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = filled(settings)
    closed_ms = parse_instant(at(22))
    asked: dict[str, Any] = {"at": closed_ms}
    before = {
        "opened": store.rows(OPENED, asked),
        "pieces": store.rows(
            "select * exclude (cluster) from waste_piece where workload_uid = 'second' order by all"
        ),
    }
    # 'first' ended at 9:20 in both clusters.
    assert retention.drop_before(store, [JOURNALED, OTHER], closed_ms) == 2
    for policy in (Policy(), Policy(debt_half_life=timedelta(days=1), idle_below=0.02)):
        refresh(store, policy)
        for table in tables_with(store, "workload_uid"):
            rows = store.rows(f"select 1 from {table} where workload_uid = 'first'")  # noqa: S608
            assert (table, len(rows)) == (table, 2 if table == "activity_cut" else 0)
    # Its pod is over and still there: it must not be taken for a new one.
    there = store.rows("select gone_ms from object_state where name = 'first'")
    assert there == [{"gone_ms": None}, {"gone_ms": None}]
    # Other thresholds and another half-life make anew what is open, and leave what was closed.
    assert store.rows(OPENED, asked) == before["opened"]
    assert store.rows("select 1 from share_span where until_ms < $at", asked) == []
    refresh(store)
    now = store.rows("select * exclude (cluster) from waste_piece where workload_uid = 'second' order by all")
    assert now == before["pieces"]
    assert store.rows("select 1 from gpu_hour where workload_uid = '' and device = 'GPU-first'") == []
    store.close()


WAITS = Place(queue="nlp", namespace="t", name="a", ahead=3, ahead_in_local_queue=1)
LEFT = WAITS._replace(ahead=None, ahead_in_local_queue=None)


def test_what_still_waits_keeps_its_position_however_old_it_is() -> None:
    store = Store.open(None)
    store.keep_positions("c", [WAITS], seen_ms=1_000, error="")
    retention.drop_before(store, ["c"], 9_000)
    assert store.positions("c") == [WAITS]
    store.close()


def test_a_position_that_was_left_does_not_come_back_when_what_is_old_is_dropped() -> None:
    store = Store.open(None)
    store.keep_positions("c", [WAITS], seen_ms=1_000, error="")
    store.keep_positions("c", [LEFT], seen_ms=2_000, error="")
    retention.drop_before(store, ["c"], 9_000)
    assert store.positions("c") == []
    store.close()


def test_samples_of_the_hour_before_are_kept_for_the_first_hour_that_is_open() -> None:
    store = Store.open(None)
    close_ms = T0 + 10 * 3_600_000
    instants = [close_ms - 3_600_001, close_ms - 3_600_000, close_ms]
    rows = [sample(at_ms - T0, 0.5) for at_ms in instants]
    read = Read(until_ms=close_ms, seen_ms=close_ms)
    store.append_samples("c", "exporter", pl.DataFrame(rows, schema=COLUMNS), read)
    retention.drop_before(store, ["c"], close_ms)
    kept = store.rows("select at_ms from gpu_sample order by at_ms")
    assert [row["at_ms"] for row in kept] == instants[1:]
    store.close()


def test_what_was_closed_stays_closed_when_more_is_kept_from_now_on() -> None:
    store = Store.open(None)
    for before_ms in (9_000, 5_000):
        retention.drop_before(store, ["c"], before_ms)
    assert retention.closed_until(store, "c") == 9_000
    store.close()


def test_a_rebuild_takes_over_the_positions_in_queues(tmp_path: Path) -> None:
    earlier = Store.open(tmp_path / "earlier.duckdb")
    earlier.keep_positions("c", [WAITS], seen_ms=1_000, error="")
    marks = earlier.position_marks()
    earlier.close()
    rebuilt = Store.open(None)
    adoption.adopt(rebuilt, tmp_path / "earlier.duckdb", ["c"])
    assert (rebuilt.positions("c"), rebuilt.position_marks()) == ([WAITS], marks)
    rebuilt.close()


def test_of_every_table_it_is_known_what_a_rebuild_does_with_it(tmp_path: Path) -> None:
    earlier = Store.open(tmp_path / "earlier.duckdb")
    names = earlier.rows("select table_name from duckdb_tables() where table_name <> 'schema_migration'")
    tables = [str(row["table_name"]) for row in names]
    with earlier.transaction() as connection:
        for table in tables:
            values = ", ".join(_value(column.name, str(column.type)) for column in earlier.schema(table))
            connection.execute(f"insert into {table} values ({values})")  # noqa: S608
    earlier.close()
    rebuilt = Store.open(None)
    adoption.adopt(rebuilt, tmp_path / "earlier.duckdb", ["c"])
    kept = {table for table in tables if rebuilt.rows(f"select 1 from {table} limit 1")}  # noqa: S608
    # A new table stands here, or is taken over.
    assert set(tables) - kept == MADE_ANEW | CARRIED
    rebuilt.close()


def _value(column: str, kind: str) -> str:
    """Something that such a column takes."""
    if column == "cluster":
        return "'c'"
    return "false" if kind == "bool" else "[]" if kind.startswith("list") else "'1'"


def test_proposals_outlive_what_they_rest_on(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = filled(settings)
    tables = ("proposal", "proposal_audit", "quota_week")
    before = {table: contents(store, OTHER)[table] for table in tables}
    retention.drop_before(store, [OTHER], parse_instant(at(59)))
    assert {table: contents(store, OTHER)[table] for table in tables} == before
    store.close()
