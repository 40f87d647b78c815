"""`chargeback` and `quota` on a small store: what they print, where, and with which code they end."""

import io
import json
import os
from pathlib import Path

import polars as pl
import pytest

from domain.window import FixedClock
from service.cli import run
from service.runtime import Runtime
from service.settings_file import load_settings
from store.embedded import Store
from tests.json_patch import applied
from tests.quota_site import NOW, Week, queue, site

AS_OF = ("--as-of", "2026-03-09T01:00:00Z")
MONTH = ("--month", "2026-03", *AS_OF)


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a week of red and blue, and its proposals; prices in the settings."""
    folder = tmp_path / "data"
    week = site(store=Store.open(folder / "gpuledger.duckdb"), read_until_ms=NOW - 1000)
    _propose(week)
    week.store.close()
    settings = tmp_path / "gpuledger.yaml"
    prices = "[{valid_from: 2026-01-01, list: 2.50, contracted: 2.00}]"
    settings.write_text(f"money: {{currency: EUR, prices: {prices}, cost_centres: {{red: CC-7}}}}\n")
    monkeypatch.setitem(os.environ, "GPULEDGER_CONFIG", str(settings))
    return folder


def _propose(week: Week) -> None:
    assert week.proposer.refresh("c", NOW) == 2


def said(capsys: pytest.CaptureFixture[str], data_dir: Path, *words: str, code: int = 0) -> tuple[str, str]:
    assert run([*words, "--data-dir", str(data_dir)]) == code
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_a_month_is_shown_by_team_with_its_books(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, data_dir, "chargeback", "show", *MONTH)
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:2] == ["TEAM", "COST-CENTRE"]
    # Red held 1,000 GPU-hours at 2.50 and 2.00; three tenths of them were lost. Its quota of 40 stands in the
    # books of the last hour only.
    money = ["2500.00", "2000.00", "0.00"]
    assert lines[3] == ["red", "CC-7", "1000", "1000", "700", "300", *money, "0", "0", "40"]
    assert "effective cost, EUR: held 4000.00 + idle 26880.00 = 30880.00; billed 0.00" in err
    assert "GPU-hours of quota: lent 0 = borrowed 0 - 0 from no holder's quota" in err
    # A node of eighty GPUs for eight days and an hour of March.
    assert lines[-1][:5] == ["total", "-", "15440", "2000", "1700"]
    assert "GPU-hours: capacity 15440 = held 2000 + idle 13440 + unavailable 0 - overlap 0" in err
    assert "its days until 2026-03-09T01:00:00.000Z, showback\n" in err
    # Of the second month the first second was not observed.
    _, err = said(capsys, data_dir, "chargeback", "show", "2026-02")
    assert "2026-02 in UTC, over, showback\nnot complete: 99.9 % of the window was observed\n" in err


@pytest.mark.parametrize("form", ["wide", "json", "csv", "markdown", "parquet"])
def test_a_month_is_written_in_each_format(
    form: str, data_dir: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = ["chargeback", "show", *MONTH, "--by", "team", "-o", form, "--data-dir", str(data_dir)]
    assert run(words) == 0
    out = capsysbinary.readouterr().out
    match form:
        case "json":
            assert json.loads(out)["total"]["list_cost"] == "38600.00"
        case "csv":
            assert pl.read_csv(io.BytesIO(out))["list_cost"].to_list() == [33600.0, 2500.0, 2500.0]
        case "parquet":
            frame = pl.read_parquet(io.BytesIO(out))
            assert [str(cost) for cost in frame["list_cost"]] == ["33600.00", "2500.00", "2500.00"]
        case "markdown":
            assert out.startswith(b"| team |")
        case _:
            assert b"CONTRACTED-COST EUR" in out


def test_a_wrong_month_or_format_says_what_to_do(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = said(capsys, data_dir, "chargeback", "show", "--month", "March", code=2)
    assert "month 'March': expected year and month, for example 2026-10, or current" in err
    _, err = said(capsys, data_dir, "chargeback", "show", "", code=2)
    assert "month ''" in err
    _, err = said(capsys, data_dir, "chargeback", "show", "2026-03", "--month", "2026-02", code=2)
    assert "2026-03 --month 2026-02: expected one month" in err
    _, err = said(capsys, data_dir, "chargeback", "show", "2027-01", code=2)
    assert (
        "month '2027-01' has not begun: in UTC it begins at 2027-01-01T00:00:00.000Z, and it is 2026-" in err
    )
    assert "ask for current or an earlier month" in err
    _, err = said(capsys, data_dir, "chargeback", "show", "-o", "xlsx", code=2)
    assert "-o xlsx" in err


def test_a_month_without_a_line_says_why(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, data_dir, "chargeback", "show", "2026-01")
    assert out == ""
    assert err == (
        "nothing of 2026-01 was observed: clusters were first read at 2026-02-01T00:00:01.000Z; ask for that"
        " month or a later one\n"
    )
    out, err = said(capsys, data_dir, "chargeback", "show", "2026-03", "--team", "rad")
    assert (out, err) == ("", "no line of 2026-03 has team rad: ask without filters to see which there are\n")
    assert said(capsys, data_dir, "chargeback", "show", "2026-03")[0].startswith("TEAM")


def open_ids(capsys: pytest.CaptureFixture[str], data_dir: Path) -> dict[str, str]:
    out, _ = said(capsys, data_dir, "quota", "list", "-o", "json", *AS_OF)
    return {row["holder"]: row["id"] for row in json.loads(out)["rows"]}


def test_proposals_are_listed_and_shown(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, data_dir, "quota", "list", *AS_OF)
    assert [line.split()[3:7] for line in out.splitlines()[1:]] == [
        ["blue", "gift", "40", "44"],
        ["red", "cut", "40", "36"],
    ]
    assert "2 proposals" in err
    ids = open_ids(capsys, data_dir)
    out, _ = said(capsys, data_dir, "quota", "show", ids["red"], *AS_OF)
    for expected in (
        "40 -> 36 GPUs (cut)",
        "hell-ratio         0.3",
        "EVIDENCE of week 2026-W10, 2026-03-02 00:00:00 to 2026-03-09 00:00:00 UTC",
        "gpu-hours owed when the week ended   0",
        "PATCH   kubectl patch clusterqueues",
        "INVERSE",
    ):
        assert expected in out
    out, _ = said(capsys, data_dir, "quota", "show", ids["blue"], *AS_OF)
    assert f"4 GPUs from {ids['red']}" in out


def test_patches_are_exported_as_files_that_fit_the_object(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, folder = open_ids(capsys, data_dir), tmp_path / "patches"
    out, _ = said(capsys, data_dir, "quota", "export", "--all", "-o", str(folder), *AS_OF)
    assert len(out.splitlines()) == 4
    red = queue("red", "40")
    after = applied(json.loads((folder / f"{ids['red']}.patch.json").read_text()), red)
    assert after == queue("red", "36")
    assert applied(json.loads((folder / f"{ids['red']}.inverse.json").read_text()), after) == red
    _, err = said(capsys, data_dir, "quota", "export", "-o", str(folder), code=2)
    assert "name one proposal, or give --all" in err


def test_a_rejected_proposal_is_listed_only_when_asked_for(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = open_ids(capsys, data_dir)
    out, _ = said(capsys, data_dir, "quota", "reject", ids["red"], "--note", "ours")
    assert out == f"{ids['red']} is rejected\n"
    assert set(open_ids(capsys, data_dir)) == {"blue"}
    out, _ = said(capsys, data_dir, "quota", "list", "--all", *AS_OF)
    assert "rejected" in out
    _, err = said(capsys, data_dir, "quota", "reject", ids["red"], code=2)
    assert "only an open one" in err


def test_a_week_may_be_proposed_anew(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = open_ids(capsys, data_dir)
    out, _ = said(capsys, data_dir, "quota", "propose", "--week", "2026-W10")
    assert out.startswith("c, week 2026-W10: 2 proposals q-")
    after = open_ids(capsys, data_dir)
    assert set(after) == {"red", "blue"}
    assert not set(after.values()) & set(before.values())
    out, _ = said(capsys, data_dir, "quota", "list", "--all", *AS_OF)
    assert out.count("superseded") == 2
    _, err = said(capsys, data_dir, "quota", "propose", "--week", "week ten", code=2)
    assert "expected an ISO week" in err


def test_a_running_serve_is_asked_and_does_what_is_ordered(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Where somebody decided, a serve that finds no lives behind these books leaves proposals alone.
    said(capsys, data_dir, "quota", "reject", open_ids(capsys, data_dir)["blue"])
    asked = (["quota", "list", *AS_OF], ["quota", "list", "-o", "json", *AS_OF])
    before = [said(capsys, data_dir, *words) for words in asked]
    ids = open_ids(capsys, data_dir)
    file = Path(os.environ["GPULEDGER_CONFIG"])
    settings = load_settings(file, overrides={"store.data_dir": data_dir, "server.port": 0})
    with Runtime(settings, clock=FixedClock(NOW)):
        assert [said(capsys, data_dir, *words) for words in asked] == before
        out, _ = said(capsys, data_dir, "quota", "show", ids["red"], *AS_OF)
        assert "PATCH   kubectl" in out
        out, _ = said(capsys, data_dir, "chargeback", "show", *MONTH, "--by", "team,model")
        assert out.startswith("TEAM")
        _, err = said(capsys, data_dir, "quota", "show", "q-none", code=2)
        assert "there is none" in err
        _, err = said(capsys, data_dir, "quota", "reject", "q-none", code=2)
        assert "proposal 'q-none': there is none" in err
        out, _ = said(capsys, data_dir, "quota", "reject", ids["red"], "--note", "ours")
        assert out == f"{ids['red']} is rejected\n"
        _, err = said(capsys, data_dir, "quota", "reject", ids["red"], code=2)
        assert "only an open one" in err
        out, _ = said(capsys, data_dir, "quota", "show", ids["red"], *AS_OF)
        assert "rejected" in out
        assert "ours" in out
        out, _ = said(capsys, data_dir, "quota", "propose", "--week", "2026-W10")
        assert out.startswith("c, week 2026-W10: ")
        _, err = said(capsys, data_dir, "quota", "propose", "--week", "week ten", code=2)
        assert "expected an ISO week" in err
