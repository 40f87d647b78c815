"""Files of jobs that are garbled, cut off, or ahead of the clock: each says so, and none spoils the rest."""

import gzip
import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from collector.imports.mapping import mapping_of
from collector.imports.records import NO_END
from collector.imports.row import OF_THE_FUTURE, Aside, JobRow
from collector.imports.swf import Log
from domain.errors import RecordingError
from service.cli import run
from service.clocks import EndOfData
from service.imported_file import CUT_OFF
from service.job_imports import import_jobs, sacct_source, swf_source, table_source
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector.test_recording import pods, record
from tests.service.test_job_imports import COLUMNS, NOW_MS, at, line, take, write


@pytest.mark.parametrize("what", ["Submit", "Start", "End"])
def test_a_row_of_the_future_is_set_aside_and_now_stays_where_the_data_ends(
    what: str, tmp_path: Path
) -> None:
    store = Store.open(None)
    rubbish = line(JobID="2").split("|")
    rubbish[COLUMNS.index(what)] = "2026-03-03T00:01:01"
    if what == "Submit":
        rubbish[COLUMNS.index("State")] = "PENDING"
        rubbish[COLUMNS.index("End")] = "Unknown"
    if what == "Start":
        rubbish[COLUMNS.index("State")], rubbish[COLUMNS.index("End")] = "RUNNING", "Unknown"
    summary = take(store, write(tmp_path / "jobs.txt", line(), "|".join(rubbish)))
    assert (summary.jobs, summary.aside) == (1, {OF_THE_FUTURE: 1})
    [counted] = store.set_aside_counts()
    assert (counted["because"], counted["count"]) == (OF_THE_FUTURE, 1)
    assert EndOfData(store).now_ms() == at("10:10:01")


@pytest.mark.parametrize("whole", ["text", "json"])
def test_a_file_with_a_mark_of_its_encoding_is_read(whole: str, tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.txt", line())
    if whole == "json":
        path.write_text(json.dumps({"jobs": [{"job_id": 1, "time": {"submission": 1}, "state": {}}]}))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    reads = list(sacct_source(path, zone=ZoneInfo("UTC"), fields=None).reads)
    assert len(reads) == 1
    assert isinstance(reads[0], JobRow if whole == "text" else Aside)


def test_a_file_that_is_cut_off_says_so_and_does_not_end_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = write(tmp_path / "jobs.txt", *(line(JobID=str(number)) for number in range(300)))
    whole = gzip.compress(plain.read_bytes())
    packed = tmp_path / "jobs.txt.gz"
    command = ["import", "sacct", str(packed), "--data-dir", str(tmp_path / "data")]
    packed.write_bytes(whole[:12])
    assert run(command) == 3
    assert "jobs.txt.gz is cut off or broken" in capsys.readouterr().err
    packed.write_bytes(whole[:-200])
    assert run(command) == 3
    out, err = capsys.readouterr()
    assert "the books agree with what could be read of the file" in out
    assert "jobs.txt.gz is cut off or broken at byte" in err
    assert "All that comes before was taken in" in err


def test_a_last_line_of_sacct_without_its_end_is_not_believed(tmp_path: Path) -> None:
    # Of 16 GPUs one is left, and the line has all its columns.
    path = write(tmp_path / "jobs.txt", line(), line(JobID="2", AllocTRES="gres/gpu=16"))
    text = path.read_text()
    path.write_text(text.removesuffix("6\n"))
    store = Store.open(None)
    for _ in range(2):
        summary = take(store, path)
        assert (summary.lines, summary.jobs, summary.aside) == (2, 1, {CUT_OFF: 1})
        assert f"at byte {len(text) - 2:,}, after 2 lines: its last line has no end" in summary.cut
    path.write_text(text)
    whole = take(store, path)
    assert (whole.lines, whole.jobs, whole.cut) == (2, 2, "")
    assert store.rows("select sum(micro_gpus)::bigint as held from holding") == [{"held": 18_000_000}]
    assert [one.count for one in store.set_aside_of("hpc")] == [1]


def test_a_log_whose_last_line_has_no_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; UnixStartTime: 1\n" + "1 0 0 60 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n" * 2)
    path.write_text(path.read_text()[:-1])
    source = swf_source(path, Log())
    assert len(list(source.reads)) == 1
    assert "its last line has no end" in source.broken()


def test_a_recording_that_is_cut_off_does_not_end_well_and_again_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "north"
    folder.mkdir()
    record(folder, "pods", pods(300))
    watch = folder / "pods.watch.ndjson.gz"
    whole = watch.read_bytes()
    watch.write_bytes(whole[: len(whole) // 2])
    data = ["--data-dir", str(tmp_path / "data")]
    told = []
    for _ in range(2):
        assert run(["import", "k8s", str(folder), *data]) == 3
        out, err = capsys.readouterr()
        told.append(set_aside(tmp_path / "data"))
        assert f"set aside {told[0][0][1]}: pods: pods.watch.ndjson.gz is cut off or broken" in out
        assert (
            f"{folder}: pods.watch.ndjson.gz is cut off or broken at byte {len(whole) // 2:,}, after" in err
        )
        assert "All that comes before was taken in" in err
    assert told[0] == told[1]


def set_aside(folder: Path) -> list[tuple[str, int]]:
    store = Store.open(load_settings(overrides={"store.data_dir": folder}).store_file)
    rows = [(one.because, one.count) for one in store.set_aside_of("north")]
    store.close()
    return rows


MAPPED = {"id": "job", "submit": "sub", "start": "start", "end": "end"}


@pytest.mark.parametrize(("gpus_are_read", "lines"), [(True, 1), (False, 2)])
def test_the_last_line_of_a_csv_needs_no_end_unless_its_last_field_is_read(
    lines: int, tmp_path: Path, *, gpus_are_read: bool
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,sub,start,end,gpus\na,0,60,120,16\nb,0,60,120,1")
    mapping = mapping_of({"columns": MAPPED | ({"gpus": "gpus"} if gpus_are_read else {})}, name="map")
    store = Store.open(None)
    summary = import_jobs(
        table_source(path, mapping), store, cluster=None, now_ms=NOW_MS, refresh=lambda _: 0
    )
    assert (summary.job_lines, summary.is_cut) == (lines, gpus_are_read)
    assert summary.aside == ({NO_END: 1} if gpus_are_read else {})
    told = f"jobs.csv, line 3: {NO_END}" if gpus_are_read else ""
    assert summary.cut == told


@pytest.mark.parametrize("start", ["0", "17724420000", "9" * 5000, "soon"])
def test_a_log_whose_start_is_no_instant_says_what_stands_there(start: str, tmp_path: Path) -> None:
    job = "1 0 0 60 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1"
    (tmp_path / "log.swf").write_text(f"; UnixStartTime: {start}\n{job}\n")
    says = rf"UnixStartTime '{start}' in its header; expected seconds since 1970"
    with pytest.raises(RecordingError, match=says):
        list(swf_source(tmp_path / "log.swf", Log()).reads)


def test_work_is_not_imported_under_the_name_of_a_cluster_that_is_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, data = tmp_path / "gpuledger.yaml", ["--data-dir", str(tmp_path / "data")]
    settings.write_text("clusters: [{name: prod, kubeconfig: /none}]")
    (tmp_path / "map.yaml").write_text("columns: {id: job, submit: s, start: t, cluster: where}")
    table = tmp_path / "jobs.csv"
    table.write_text("job,s,t,where\na,0,60,east\nb,0,60,prod\n")
    (tmp_path / "prod").mkdir()
    plain = write(tmp_path / "prod.txt", line())
    of_table = ["import", "table", str(table), "--mapping", str(tmp_path / "map.yaml")]
    for command in (
        ["import", "sacct", str(plain), "--cluster", "prod"],
        of_table,
        ["import", "k8s", str(tmp_path / "prod")],
    ):
        assert run([*command, *data, "--config", str(settings)]) == 2
        told = capsys.readouterr().err
        assert "cluster prod is watched" in told
        assert "expected another name for what is imported, for example --cluster prod-imported" in told
    store = Store.open(tmp_path / "data/gpuledger.duckdb")
    # Not a row was kept, of the other cluster neither.
    assert store.clusters() == []
    store.close()
    assert run([*of_table, "--cluster", "other", *data, "--config", str(settings)]) == 0
