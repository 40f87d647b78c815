"""What the command says of a file of jobs beside its totals."""

from pathlib import Path

import pytest

from service.cli import run
from tests.service.test_job_imports import COLUMNS, line


def test_the_command_counts_stamps_that_may_be_an_hour_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (line(JobID=str(job)) for job in (1, 2))
    text = "\n".join(["|".join(COLUMNS), *rows]) + "\n"
    text = text.replace("2026-03-02T09", "2025-10-26T02").replace("2026-03-02T10", "2025-10-26T03")
    (path := tmp_path / "jobs.txt").write_text(text)
    told = "2 stays have stamps in an hour that the clock shows twice"
    for zone, is_told in (("Europe/Berlin", True), ("UTC", False)):
        run(["import", "sacct", str(path), "--zone", zone, "--data-dir", str(tmp_path / zone)])
        assert (told in capsys.readouterr().out) is is_told


def test_a_file_without_stays_is_not_said_to_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "jobs.json").write_text('{"jobs": [], "errors": []}')
    run(["import", "sacct", str(path), "--data-dir", str(tmp_path)])
    out = capsys.readouterr().out
    assert "there is nothing that the books could agree with" in out
    assert "books agree" not in out
