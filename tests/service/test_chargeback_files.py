"""`chargeback show` and `export` on a small store: the state of a month and its files, here and over HTTP."""

import csv
import io
import os
from decimal import Decimal
from pathlib import Path

import openpyxl
import polars as pl
import pytest

from domain.window import FixedClock
from service.cli import run
from service.runtime import Runtime
from service.settings_file import load_settings
from tests.quota_site import NOW
from tests.service.test_money_commands import AS_OF, data_dir, said

__all__ = ["data_dir"]
FEBRUARY = ("--month", "2026-02")
MARCH = ("--month", "2026-03", *AS_OF)
# Of test_money_commands: 4,000 held and 26,880 idle.
TOTAL = Decimal("30880.00")


def effective(content: bytes) -> Decimal:
    lines = csv.DictReader(io.StringIO(content.decode(), newline=""))
    return sum((Decimal(line["effective_cost"]) for line in lines), Decimal(0))


def test_each_format_is_written_to_a_file_with_the_same_total(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in ("csv", "parquet", "xlsx", "focus.csv"):
        file = tmp_path / f"march.{suffix}"
        out, err = said(capsys, data_dir, "chargeback", "export", *MARCH, "-O", str(file))
        assert out == ""
        assert err == f"{file}: chargeback-2026-03-open.{suffix}, {file.stat().st_size:,} bytes\n"
    assert effective((tmp_path / "march.csv").read_bytes()) == TOTAL
    assert pl.read_parquet(tmp_path / "march.parquet")["effective_cost"].sum() == TOTAL
    focus = csv.DictReader(io.StringIO((tmp_path / "march.focus.csv").read_text(), newline=""))
    assert sum(Decimal(line["EffectiveCost"]) for line in focus) == TOTAL
    summary = openpyxl.load_workbook(tmp_path / "march.xlsx")["summary"]
    head = next(row for row in summary.iter_rows(values_only=True) if row[0] == "team")
    *_, last = summary.iter_rows(values_only=True)
    assert dict(zip(head, last, strict=True))["effective_cost"] == float(TOTAL)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_without_a_file_csv_goes_to_stdout_and_filters_count(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = said(capsys, data_dir, "chargeback", "export", *MARCH, "--team", "red")
    lines = list(csv.DictReader(io.StringIO(out, newline="")))
    assert {line["team"] for line in lines} == {"red"}
    assert {line["cost_centre"] for line in lines} == {"CC-7"}
    assert effective(out.encode()) == Decimal("2000.00")
    assert err.startswith("stdout: chargeback-2026-03-open.csv, ")


def test_what_cannot_be_exported_says_what_to_do(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, says in (
        (["--format", "exel"], "--format 'exel': expected one of csv, parquet, xlsx, focus"),
        (["-O", "march.ods"], "--format 'ods': expected one of csv"),
        (["--month", ""], "month ''"),
        (["--month", "2027-01"], "has not begun"),
    ):
        _, err = said(capsys, data_dir, "chargeback", "export", *words, code=2)
        assert says in err
    _, err = said(capsys, data_dir, "chargeback", "export", *MARCH, "-O", str(tmp_path / "no/x.csv"), code=3)
    assert "cannot be written (No such file or directory); name a file in a folder that exists" in err


@pytest.mark.long
def test_a_closed_month_tells_its_fingerprint_and_is_exported_from_serve_as_from_the_store(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = said(capsys, data_dir, "chargeback", "show", *FEBRUARY)
    assert err.startswith("2026-02: open\n")
    said(capsys, data_dir, "chargeback", "close", *FEBRUARY)
    _, err = said(capsys, data_dir, "chargeback", "show", *FEBRUARY)
    state, *_ = err.splitlines()
    assert state.startswith("2026-02: closed 2026-03-09T01:00:00.000Z by ")
    sha256 = state.rpartition("sha256 ")[2]
    assert len(sha256) == 64

    def written(name: str) -> bytes:
        file = tmp_path / name
        _, err = said(capsys, data_dir, "chargeback", "export", *FEBRUARY, "-O", str(file))
        assert f"chargeback-2026-02-{sha256[:12]}." in err
        return file.read_bytes()

    names = ("a.csv", "a.parquet", "a.xlsx", "a.focus.csv")
    before = [written(name) for name in names]
    assert sha256.encode() in before[0]
    assert [written(name) for name in names] == before
    file = Path(os.environ["GPULEDGER_CONFIG"])
    settings = load_settings(file, overrides={"store.data_dir": data_dir, "server.port": 0})
    with Runtime(settings, clock=FixedClock(NOW)):
        assert [written(name) for name in names] == before
        _, err = said(capsys, data_dir, "chargeback", "export", "--month", "2027-01", code=2)
        assert "has not begun" in err
    _, err = said(capsys, data_dir, "chargeback", "show", "--month", "2026-03", *AS_OF)
    assert err.startswith("2026-03: open, and still running\n")
    assert run(["chargeback", "export", "--help"]) == 0
