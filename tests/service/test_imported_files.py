"""Files of jobs that are garbled, cut off, or ahead of the clock: each says so, and none spoils the rest."""

import gzip
import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from collector.imports.row import OF_THE_FUTURE, Aside, JobRow
from collector.imports.swf import Log
from domain.errors import RecordingError
from service.cli import run
from service.clocks import EndOfData
from service.job_imports import sacct_source, swf_source
from store.embedded import Store
from tests.service.test_job_imports import COLUMNS, at, line, take, write


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
    assert "jobs.txt.gz: cut off or broken, and read as far as it goes" in err


def test_a_log_whose_start_is_no_instant_says_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text("; UnixStartTime: 0\n1 0 0 60 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n")
    with pytest.raises(RecordingError, match=r"UnixStartTime '0' in its header; expected seconds since 1970"):
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
