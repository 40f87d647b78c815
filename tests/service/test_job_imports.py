"""Imports of tables of jobs through the store: lives, updates, reconciliation, and the commands."""

import gzip
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from collector.imports.keeping import CONTRADICTS
from domain.errors import RecordingError, SettingsError, UsageError
from domain.tenant import Rule, Tenancy
from domain.window import parse_instant
from service import job_imports
from service.cli import run
from service.imported_file import CUT_OFF, OTHER_CLUSTER
from service.job_imports import Summary, import_jobs, mapping_file, sacct_source
from service.refresh import Refresher
from store.embedded import Store

COLUMNS = (
    "JobID", "User", "Account", "Partition", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "State",
    "NodeList", "ReqTRES", "AllocTRES",
)  # fmt: skip
ROW = {
    "JobID": "1", "User": "ada", "Account": "nlp", "Partition": "gpu", "Submit": "09:00:00",
    "Eligible": "09:00:00", "Start": "09:10:00", "End": "10:10:00", "ElapsedRaw": "", "State": "COMPLETED",
    "NodeList": "g01", "ReqTRES": "gres/gpu=2", "AllocTRES": "gres/gpu=2,gres/gpu:a100=2",
}  # fmt: skip
TABLES = ("workload", "span", "attempt", "holding", "run", "eviction", "member_wait")
PENDING = {"State": "PENDING", "Start": "", "End": "", "NodeList": "None assigned", "AllocTRES": ""}
RUNNING = {"State": "RUNNING", "End": ""}
NOW_MS = parse_instant("2026-03-03T00:00:00Z")


def at(clock: str) -> int:
    return parse_instant(f"2026-03-02T{clock}Z")


def line(**changes: str) -> str:
    row = {**ROW, **changes}
    for name in ("Submit", "Eligible", "Start", "End"):
        row[name] = f"2026-03-02T{row[name]}" if row[name] else "Unknown"
    return "|".join(row[name] for name in COLUMNS)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["|".join(COLUMNS), *lines]) + "\n")
    return path


def refresher_of(store: Store) -> Refresher:
    return Refresher(store=store, tenancy=Tenancy(users=(Rule(from_label="user"),)))


def take(
    store: Store, path: Path, cluster: str | None = "hpc", refresher: Refresher | None = None
) -> Summary:
    refresher = refresher or refresher_of(store)
    source = sacct_source(path, zone=ZoneInfo("UTC"), fields=None)
    return import_jobs(source, store, cluster=cluster, now_ms=NOW_MS, refresh=refresher.refresh_cluster)


def books(store: Store) -> dict[str, list[dict[str, object]]]:
    return {name: store.rows(f"select * from {name} order by all") for name in TABLES}  # noqa: S608 (names from here)


def spans(store: Store) -> list[tuple[Any, ...]]:
    rows = store.rows("select state, start_ms, end_ms, first_wait from span order by start_ms")
    return [tuple(row.values()) for row in rows]


def test_a_job_waits_runs_and_ends_with_its_gpus_team_and_user(tmp_path: Path) -> None:
    store = Store.open(None)
    summary = take(store, write(tmp_path / "jobs.txt", line()))
    assert (summary.lines, summary.jobs, summary.closes) == (1, 1, True)
    assert spans(store) == [
        ("queued", at("09:00:00"), at("09:10:00"), True),
        ("running", at("09:10:00"), at("10:10:00"), False),
        ("ended", at("10:10:00"), None, False),
    ]
    [workload] = store.rows("select * from workload")
    told = ("team", "user_name", "queue", "kind", "name", "gpu_model", "requested_micro_gpus", "outcome")
    assert [workload[name] for name in told] == [
        "nlp", "ada", "gpu", "ImportedJob", "1", "a100", 2_000_000, "succeeded",
    ]  # fmt: skip


def test_a_preempted_job_that_is_requeued_has_two_attempts_and_waits_again(tmp_path: Path) -> None:
    # Slurm submits it anew in the second in which it was thrown out.
    store = Store.open(None)
    first = line(State="PREEMPTED", End="09:40:00")
    second = line(Submit="09:40:00", Eligible="09:40:00", Start="10:00:00", End="11:00:00")
    assert take(store, write(tmp_path / "jobs.txt", first, second)).closes
    attempts = store.rows("select number, start_ms, end_ms, outcome from attempt order by number")
    assert [tuple(row.values()) for row in attempts] == [
        (1, at("09:10:00"), at("09:40:00"), "preempted"),
        (2, at("10:00:00"), at("11:00:00"), "succeeded"),
    ]
    assert spans(store) == [
        ("queued", at("09:00:00"), at("09:10:00"), True),
        ("running", at("09:10:00"), at("09:40:00"), False),
        ("queued", at("09:40:00"), at("10:00:00"), False),
        ("running", at("10:00:00"), at("11:00:00"), False),
        ("ended", at("11:00:00"), None, False),
    ]
    [eviction] = store.rows("select preempted, mechanism, attempt, detail from eviction")
    assert tuple(eviction.values()) == (True, "batch_scheduler", 1, "PREEMPTED")
    assert store.rows("select * from member_wait") == []
    [workload] = store.rows("select outcome, requested_micro_gpus from workload")
    assert tuple(workload.values()) == ("succeeded", 2_000_000)


OUTCOMES = {
    "PREEMPTED": "preempted",
    "NODE_FAIL": "infra_failed",
    "TIMEOUT": "failed",
    "OUT_OF_MEMORY": "failed",
    "CANCELLED by 7": "cancelled",
    "REQUEUED": "evicted",
}


def test_a_job_that_ends_in_a_state_and_is_not_requeued_is_over(tmp_path: Path) -> None:
    store = Store.open(None)
    lines = [line(JobID=str(number), State=state) for number, state in enumerate(OUTCOMES)]
    assert take(store, write(tmp_path / "jobs.txt", *lines)).closes
    rows = store.rows("select outcome, ended_ms from workload order by name")
    assert [tuple(row.values()) for row in rows] == [
        (outcome, at("10:10:00")) for outcome in OUTCOMES.values()
    ]


def test_time_before_a_job_is_eligible_is_its_owners_and_no_wait(tmp_path: Path) -> None:
    store = Store.open(None)
    take(
        store,
        write(tmp_path / "jobs.txt", line(Eligible="09:05:00"), line(JobID="2", Eligible="", **PENDING)),
    )
    rows = store.rows(
        "select workload_uid, state, start_ms, end_ms from span where state <> 'ended' order by all"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("job/1", "held", at("09:00:00"), at("09:05:00")),
        ("job/1", "queued", at("09:05:00"), at("09:10:00")),
        ("job/1", "running", at("09:10:00"), at("10:10:00")),
        ("job/2", "held", at("09:00:00"), None),
    ]


def test_a_job_cancelled_in_the_second_of_its_submission_is_over(tmp_path: Path) -> None:
    store = Store.open(None)
    never = line(State="CANCELLED", Start="09:00:00", End="09:00:00", NodeList="None assigned")
    assert take(store, write(tmp_path / "jobs.txt", never)).closes
    [workload] = store.rows("select outcome, first_placed_ms, ended_ms from workload")
    assert tuple(workload.values()) == ("cancelled", None, at("09:00:00"))


FATES = (
    line(**PENDING),
    line(**{**PENDING, "Eligible": ""}),
    line(**RUNNING),
    line(),
    line(JobID="2", State="NODE_FAIL", End="09:30:00"),
    line(JobID="2", Submit="09:30:00", Eligible="09:30:00", **PENDING),
    line(JobID="2", Submit="09:30:00", Eligible="09:31:00", Start="09:45:00", State="FAILED"),
    line(JobID="3", **PENDING),
)


def reads_of(
    order: list[str], files: int, folder: Path, *, one_process: bool = True
) -> dict[str, list[dict[str, object]]]:
    store = Store.open(None)
    lasting = refresher_of(store) if one_process else None
    each = -(-len(order) // files)
    for number in range(files):
        lines = order[number * each : (number + 1) * each]
        take(store, write(folder / f"{number}.txt", *lines), refresher=lasting)
    return books(store)


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    return reads_of(list(FATES), 1, tmp_path_factory.mktemp("order"))


# A store for each order costs half a second: a few seeds here, many in `make long`.
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 60))])
def test_rows_and_exports_in_any_order_make_the_same_books(
    seed: int, in_order: dict[str, list[dict[str, object]]], tmp_path: Path
) -> None:
    shuffled = Random(seed)
    order = shuffled.sample(FATES, len(FATES))
    # A process that goes on has forgotten the objects of jobs that were cut, and reads them again.
    files, one_process = shuffled.randint(1, 4), seed % 2 == 0
    assert reads_of(order, files, tmp_path, one_process=one_process) == in_order


def test_a_later_export_brings_jobs_up_to_date_and_again_changes_nothing(tmp_path: Path) -> None:
    store = Store.open(None)
    early = write(tmp_path / "early.txt", line(**RUNNING))
    late = write(tmp_path / "late.txt", line(), "broken")
    assert take(store, early).clusters["hpc"].new == 1
    assert [take(store, late).clusters["hpc"].updated for _ in range(2)] == [1, 0]
    state = books(store), store.rows("select * from transition order by seq"), store.set_aside_counts()
    assert take(store, early).clusters["hpc"].known == 1
    take(store, late)
    assert state == (
        books(store),
        store.rows("select * from transition order by seq"),
        store.set_aside_counts(),
    )
    assert [row["count"] for row in store.set_aside_counts()] == [1]


def test_a_row_that_tells_its_size_completes_one_that_was_taken_in_without(tmp_path: Path) -> None:
    store = Store.open(None)
    without = write(tmp_path / "old.txt", line())
    sized = write(tmp_path / "new.txt", line(AllocTRES="cpu=8,node=2,gres/gpu=2,gres/gpu:a100=2"))
    take(store, without)
    size = "select milli_cpus, nodes from holding"
    assert store.rows(size) == [{"milli_cpus": None, "nodes": None}]
    assert take(store, sized).clusters["hpc"].updated == 1
    before = books(store)
    assert store.rows(size) == [{"milli_cpus": 8000, "nodes": 2}]
    # What the older export says less is no news.
    assert take(store, without).clusters["hpc"].known == 1
    assert take(store, sized).clusters["hpc"].facts == 0
    assert books(store) == before


def test_each_stay_of_a_requeued_job_is_booked_from_its_own_submission(tmp_path: Path) -> None:
    store = Store.open(None)
    thrown_out = line(State="REQUEUED", End="09:30:00")
    again = line(Submit="09:45:00", Eligible="09:45:00", Start="10:00:00")
    take(store, write(tmp_path / "jobs.txt", thrown_out, again))
    stays = store.rows("select submitted_ms, start_ms, end_ms from booked_stay order by number")
    assert [tuple(stay.values()) for stay in stays] == [
        (at("09:00:00"), at("09:10:00"), at("09:30:00")),
        (at("09:45:00"), at("10:00:00"), at("10:10:00")),
    ]


def test_a_row_that_contradicts_a_known_one_is_set_aside(tmp_path: Path) -> None:
    store = Store.open(None)
    take(store, write(tmp_path / "a.txt", line()))
    summary = take(store, write(tmp_path / "b.txt", line(End="12:00:00"), line(JobID="2")))
    assert (summary.lines, summary.job_lines, summary.aside) == (2, 1, {CONTRADICTS: 1})
    [row] = store.set_aside_counts()
    assert (row["source"], row["because"], row["count"]) == ("b.txt", CONTRADICTS, 1)


def test_clusters_of_a_file_are_kept_apart_unless_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    head = "|".join(["Cluster", *COLUMNS])
    path.write_text("\n".join([head, f"east|{line()}", f"west|{line()}", ""]))
    store = Store.open(None)
    assert set(take(store, path, None).clusters) == {"east", "west"}
    assert take(Store.open(None), path, "mine").aside == {OTHER_CLUSTER: 1}


def test_suspended_time_is_a_difference_that_is_explained(tmp_path: Path) -> None:
    # An hour from start to end, of which Slurm counts half as run.
    summary = take(Store.open(None), write(tmp_path / "jobs.txt", line(ElapsedRaw="1800")))
    closing = summary.clusters["hpc"].closing
    assert closing is not None
    [total] = closing.lines
    assert (total.file_hours, total.books_hours, closing.suspended_hours) == (1.0, 2.0, 1.0)
    assert closing.closes


def test_books_that_lack_a_job_do_not_agree(tmp_path: Path) -> None:
    store = Store.open(None)
    path = write(tmp_path / "jobs.txt", line(), line(JobID="2"))
    source = sacct_source(path, zone=ZoneInfo("UTC"), fields=None)
    summary = import_jobs(source, store, cluster="hpc", now_ms=NOW_MS, refresh=lambda _cluster: 0)
    assert not summary.closes
    closing = summary.clusters["hpc"].closing
    assert closing is not None
    assert (closing.unexplained_stays, closing.lines[0].books_stays) == (2, 0)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_file_is_read_and_one_that_is_cut_off_as_far_as_it_goes(
    suffix: str, tmp_path: Path
) -> None:
    plain = write(tmp_path / "jobs.txt", *(line(JobID=str(number)) for number in range(3000)))
    packed = tmp_path / f"jobs.txt{suffix}"
    data = plain.read_bytes()
    packed.write_bytes(
        gzip.compress(data) if suffix == ".gz" else pa.compress(data, codec="zstd", asbytes=True)
    )
    source = sacct_source(packed, zone=ZoneInfo("UTC"), fields=None)
    assert sum(1 for _ in source.reads) == 3000
    # Of zstd nothing of the last block can be read.
    packed.write_bytes(packed.read_bytes()[:-900])
    summary = import_jobs(
        sacct_source(packed, zone=ZoneInfo("UTC"), fields=None),
        Store.open(None),
        cluster="hpc",
        now_ms=NOW_MS,
        refresh=lambda _cluster: 0,
    )
    assert summary.aside == {CUT_OFF: 1}
    assert 1000 < summary.lines == summary.job_lines + 1 < 3000
    # The header is a line of the file too.
    size = packed.stat().st_size
    assert (
        f"{packed.name} is cut off or broken at byte {size:,}, after {summary.lines:,} lines" in summary.cut
    )


def test_a_file_larger_than_a_part_is_committed_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "jobs.txt", *(line(JobID=str(number)) for number in range(25)), line(JobID="3"))
    monkeypatch.setattr(job_imports, "PART_ROWS", 10)
    monkeypatch.setattr(job_imports, "REFRESH_ROWS", 10)
    store = Store.open(None)
    summary = take(store, path)
    assert (summary.jobs, summary.clusters["hpc"].new, summary.clusters["hpc"].known) == (26, 25, 1)
    assert len(store.rows("select * from workload")) == 25
    assert summary.closes


MAP = "columns: {id: job, submit: submitted, start: started, end: ended, gpus: gpus, team: team}\n"


def test_the_commands_take_in_a_table_and_print_both_totals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "map.yaml").write_text(MAP)
    table = tmp_path / "jobs.csv"
    table.write_text(
        "job,submitted,started,ended,gpus,team\na,0,60,3660,1.5,red\nb,0,,,1,red\nc,x,1,2,1,red\n"
    )
    command = ["import", "table", str(table), "--mapping", str(tmp_path / "map.yaml")]
    command += ["--data-dir", str(tmp_path / "data")]
    for _ in range(2):
        assert run(command) == 0
    out, err = capsys.readouterr()
    assert "jobs.csv: 3 records; 2 tell of 2 stays of jobs, 0 are parts of them, 1 were set aside" in out
    assert "set aside 1: a stamp or length that is none" in out
    assert "jobs: the books agree with the file" in out
    assert "1.5000            1.5000" in out
    assert "jobs: 0 stays new, 0 brought up to date, 2 known; 0 facts" in out
    assert "reading jobs.csv ..." in err


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("columns: {submit: s}", "neither start nor wait"),
        ("columns: {submit: s, start: t, gpu: g}", "unknown field `gpu`"),
        ("colums: {}", "unknown field `colums`"),
        ("columns: {submit: s, start: t}\ntime: {zone: Mars/Base}", "zone 'Mars/Base'"),
        ("columns: {submit: s, start: t}\nstates: {OK: fine}", "fine"),
        ("[1", "not YAML"),
    ],
)
def test_a_mapping_that_makes_no_sense_says_what_was_expected(
    written: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(written)
    with pytest.raises((SettingsError, UsageError), match=told):
        mapping_file(path)


def test_a_table_without_a_mapped_column_names_those_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "map.yaml").write_text(MAP)
    (tmp_path / "jobs.csv").write_text("job;submitted;start;ended;gpus;team\n")
    command = ["import", "table", str(tmp_path / "jobs.csv"), "--mapping", str(tmp_path / "map.yaml")]
    assert run([*command, "--data-dir", str(tmp_path / "data")]) == RecordingError.exit_code
    err = capsys.readouterr().err
    assert "no column started (mapped to start)" in err
    assert "found job, submitted, start, ended, gpus, team; did you mean start?" in err
