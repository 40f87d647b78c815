"""`gpuledger alerts`: what fires and what fired, with the numbers, from the store of a stopped service."""

import csv
import json
from pathlib import Path

import pytest

from domain.window import format_instant
from service.cli import run
from tests.service.test_alerting import MINUTE, RED, START, site


def at(minute: int) -> str:
    return format_instant(START + minute * MINUTE)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    with site(tmp_path / "gpuledger.duckdb") as here:
        for minute, wait in enumerate([400, 460, 900, 0, 0, 0, 0, 0, 0]):
            here.measured(minute, {RED: float(wait), ("blue", "batch"): 4000.0, ("green", "batch"): 0.0})
        here.measured(9, {RED: 0.0, ("blue", "batch"): 4100.0, ("green", "batch"): 3700.0})
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], data_dir: Path, *more: str) -> tuple[list[str], str]:
    asked = ["alerts", "--data-dir", str(data_dir), "--as-of", at(9), *more]
    assert run(asked) == 0
    printed = capsys.readouterr()
    return printed.out.splitlines(), printed.err


def test_what_fires_stands_first_then_what_is_pending_then_what_has_resolved(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, remarks = told(capsys, data_dir)
    assert lines[0].split() == [
        "STATE",
        "ALERT",
        "SEVERITY",
        "OF",
        "VALUE",
        "THRESHOLD",
        "FIRES-SINCE",
        "RESOLVED",
    ]
    assert [line.split()[0] for line in lines[1:]] == ["firing", "pending", "resolved"]
    assert "queue=blue, service_class=batch" in lines[1]
    assert "1 h 8 m" in lines[1]
    # How bad it was, not the 460 s at which it began to fire.
    assert "15 m" in lines[3]
    assert "7 m" not in lines[3]
    assert f"1 firing, 1 pending, 1 resolved as of {at(9)}" in remarks


def test_it_says_what_that_rests_on_and_answers_in_other_formats(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide, _ = told(capsys, data_dir, "-o", "wide", "--queue", "red")
    assert "starvation_index_seconds" in wide[1]
    assert "15 m" in wide[1]  # the worst of it
    rows, _ = told(capsys, data_dir, "-o", "csv", "--window", "30s")
    assert [row["state"] for row in csv.DictReader(rows)] == ["firing", "pending"]
    document = json.loads("\n".join(told(capsys, data_dir, "-o", "json", "--queue", "red")[0]))
    [row] = document["rows"]
    assert (row["state"], row["value"], row["worst_value"], row["threshold"]) == ("resolved", 460, 900, 300)


def test_what_another_one_tells_is_listed_as_inhibited_by_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with site(tmp_path / "gpuledger.duckdb") as here:
        for minute in range(10):
            here.measured(minute, {RED: 400.0}, seen=min(minute, 1))
    lines, _ = told(capsys, tmp_path, "-o", "wide", "--queue", "red")
    assert lines[1].startswith("firing (no data)")
    assert "GpuledgerSourceStale" in lines[1]
    with site(tmp_path / "gpuledger.duckdb", at_minute=10) as here:
        here.measured(10, {RED: 400.0})
    assert run(["alerts", "--data-dir", str(tmp_path), "--as-of", at(10), "--queue", "red"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("firing (inhibited)")


def test_what_fired_at_an_earlier_instant_is_told_as_it_was(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["alerts", "--data-dir", str(data_dir), "--as-of", at(5)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["firing", "firing"]


def test_where_nobody_evaluated_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with site(tmp_path / "gpuledger.duckdb"):
        pass
    assert run(["alerts", "--data-dir", str(tmp_path)]) == 0
    assert "no alert was evaluated yet" in capsys.readouterr().err
