"""The files of a month: each read back by somebody else's reader, to the cent; none of them acts."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import openpyxl
import polars as pl
import pytest

from analytics.chargeback.statement import COSTS
from analytics.wastage.causes import Cause
from api.exports.comma_separated import comma_separated
from api.exports.detail import detail
from api.exports.formats import EXPORT_FORMATS, export_format, file_name
from api.exports.parquet import parquet
from api.exports.sheets import SHEETS, head
from api.exports.table import Column, Kind, Row, Table
from api.exports.workbook import Sheet, workbook
from domain.errors import UsageError
from tests.api.exports.made_up import HOUR, closed_october, october

AT = datetime(2026, 11, 1, tzinfo=UTC)
FOCUS = dict(zip(COSTS, ("ListCost", "ContractedCost", "EffectiveCost", "BilledCost"), strict=True))
# By hand: 24 + 0.67 + 22 + 4 + 2 - 2 + 0 - 6 + 100.01 - 1.50.
EFFECTIVE = Decimal("143.18")


def written(form: str, **changes: Any) -> bytes:
    return b"".join(EXPORT_FORMATS[form].write(closed_october(**changes)))


def csv_rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))


def sheet(content: bytes, name: str) -> list[list[Any]]:
    """The cells of a sheet: of the formulas their text, of nothing None."""
    return [[cell.value for cell in row] for row in openpyxl.load_workbook(io.BytesIO(content))[name].rows]


def sheet_table(content: bytes, name: str, *, begins: str) -> list[dict[str, Any]]:
    cells = sheet(content, name)
    first = next(place for place, row in enumerate(cells) if row[0] == begins)
    return [dict(zip(cells[first], row, strict=True)) for row in cells[first + 1 :]]


def cents(value: float | None) -> Decimal:
    return Decimal(0) if value is None else Decimal(str(value))


def test_all_formats_come_to_the_same_cent_and_the_same_time() -> None:
    statement = closed_october()
    lines = csv_rows(written("csv"))
    frame = pl.read_parquet(io.BytesIO(written("parquet")))
    excel = sheet_table(written("xlsx"), "detail", begins="month")
    focus = csv_rows(written("focus"))
    assert len(lines) == len(frame) == len(excel) == len(focus) == len(statement.lines)
    for name in COSTS:
        total = sum(getattr(line.row, name) for line in statement.lines)
        assert sum(Decimal(line[name]) for line in lines) == total
        assert frame[name].sum() == total
        assert sum(cents(line[name]) for line in excel) == total
        assert sum(Decimal(line[FOCUS[name]]) for line in focus) == total
    time = sum(line.row.micro_gpu_ms for line in statement.lines)
    assert sum(int(line["micro_gpu_ms"]) for line in lines) == time
    assert frame["micro_gpu_ms"].sum() == time
    assert "micro_gpu_ms" not in excel[0]
    assert sum(line["gpu_hours"] for line in excel) == pytest.approx(time / HOUR, abs=1e-8)
    assert sum(int(line["x_MicroGpuMs"]) for line in focus) == time
    assert sum(Decimal(line["effective_cost"]) for line in lines) == EFFECTIVE


def test_csv_and_parquet_have_the_same_values_in_every_cell() -> None:
    # An apostrophe stands in the CSV before what could be a formula, and nowhere else.
    lines = csv_rows(written("csv"))
    for line, row in zip(
        lines, pl.read_parquet(io.BytesIO(written("parquet"))).iter_rows(named=True), strict=True
    ):
        assert list(line) == list(row)
        for name, value in row.items():
            expected = "" if value is None else str(value)
            if isinstance(value, Decimal):
                assert Decimal(line[name]) == value, name
            else:
                assert line[name].removeprefix("'") == expected, name


def test_parquet_has_decimals_and_dates() -> None:
    schema = pl.read_parquet(io.BytesIO(written("parquet"))).schema
    assert schema["effective_cost"] == pl.Decimal(38, 2)
    assert schema["gpu_hours"] == pl.Decimal(38, 9)
    assert schema["micro_gpu_ms"] == pl.Decimal(38, 0)
    assert schema["day"] == pl.Date
    instants = Table(columns=[Column(name="at", kind=Kind.INSTANT)], rows=[(1_500,), (None,)])
    assert pl.read_parquet(io.BytesIO(b"".join(parquet(instants))))["at"].to_list() == [
        datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), None,
    ]  # fmt: skip


def test_duckdb_reads_the_parquet_and_the_csv(tmp_path: Any) -> None:
    for form in ("parquet", "csv"):
        (tmp_path / f"m.{form}").write_bytes(written(form))
    with duckdb.connect() as connection:
        for form in ("parquet", "csv"):
            read = connection.read_csv if form == "csv" else connection.read_parquet
            told = read(str(tmp_path / f"m.{form}")).aggregate(
                "sum(effective_cost)::decimal(38, 2), count(*)"
            )
            assert told.fetchall() == [(EFFECTIVE, 12)]


def test_csv_is_rfc_4180() -> None:
    told = Table(
        columns=[Column(name="a"), Column(name="at", kind=Kind.INSTANT), Column(name="is", kind=Kind.FLAG)],
        rows=[('say "no",\nor go', 0, True), (None, None, None), ("-", 1, False)],
    )
    assert b"".join(comma_separated(told)) == (
        b'a,at,is\r\n"say ""no"",\nor go",1970-01-01T00:00:00.000Z,true\r\n,,\r\n'
        b"'-,1970-01-01T00:00:00.001Z,false\r\n"
    )


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff20"])
def test_a_name_that_is_a_formula_is_inert_in_csv_and_xlsx(begin: str) -> None:
    name = f"{begin}HYPERLINK(1)"
    table = Table(
        columns=[Column(name="user"), Column(name="cost", kind=Kind.DECIMAL, digits=2)],
        rows=[(name, Decimal("-1.50"))],
    )
    ((user, cost),) = list(csv.reader(io.StringIO(b"".join(comma_separated(table)).decode(), newline="")))[1:]
    assert (user, cost) == (f"'{name}", "-1.50")
    book = openpyxl.load_workbook(io.BytesIO(workbook([Sheet(name="s", table=table)], created=AT)))
    cell, number = book["s"]["A2"], book["s"]["B2"]
    # s: a text, n: a number; f would be a formula. Begun to be edited, the text stays one.
    assert (cell.data_type, cell.quotePrefix, number.data_type, number.value) == ("s", True, "n", -1.5)
    assert cell.value.endswith("HYPERLINK(1)")


def test_no_sheet_has_a_formula() -> None:
    book = openpyxl.load_workbook(io.BytesIO(written("xlsx")))
    assert {cell.data_type for each in book for row in each.rows for cell in row} <= {"s", "n", "d", "b"}
    assert any("=finance" in str(cell.value) for row in book["summary"].rows for cell in row)


def test_the_workbook_has_its_sheets_and_totals_that_equal_the_statement() -> None:
    content = written("xlsx")
    assert set(SHEETS) <= set(openpyxl.load_workbook(io.BytesIO(content)).sheetnames)
    teams = {row["team"]: row for row in sheet_table(content, "summary", begins="team")}
    assert list(teams)[-1] == "total"
    assert cents(teams["total"]["effective_cost"]) == EFFECTIVE
    # 24 + 4 + 0 - 6 + 100.01 - 1.50, of which corrections -6.
    assert cents(teams["nlp"]["effective_cost"]) == Decimal("120.51")
    assert (teams["nlp"]["of_it_corrections"], teams["nlp"]["cost_centre"]) == (-6, "CC-7")
    # Held 12 and 1, less 3 of September; of it useful 9, less 1 that was lost, less those 3.
    assert (teams["nlp"]["held_gpu_hours"], teams["nlp"]["useful_gpu_hours"]) == (10, 5)
    kinds = sheet_table(content, "from lines to invoice", begins="lines")
    assert (
        cents(kinds[-1]["billed_cost"]) == sum(cents(row["billed_cost"]) for row in kinds[:-1]) == EFFECTIVE
    )
    (price,) = sheet_table(content, "price book", begins="reference")
    assert (price["gpu_model"], price["list"], price["effective"]) == ("H100", 2.5, 2)
    assert (price["pool"], price["mig_profile"]) == ("spare-*", "1g.10gb")
    assert price["note"] == "what was bought"
    assert sheet_table(content, "reconciliation", begins="check")[0]["holds"] is True
    assert ("version of price_book", "abc") in [tuple(row) for row in sheet(content, "method")]
    assert sheet_table(content, "detail", begins="month")[0]["day"].date() == date(2026, 10, 1)


def test_an_amount_that_a_double_would_lose_is_written_as_text() -> None:
    amounts = (Decimal("9999999999999.99"), Decimal("10000000000000.01"))
    table = Table(
        columns=[Column(name="cost", kind=Kind.DECIMAL, digits=2)], rows=[(each,) for each in amounts]
    )
    _, (kept,), (text,) = sheet(workbook([Sheet(name="s", table=table)], created=AT), "s")
    assert (Decimal(repr(kept)), text) == (amounts[0], "10000000000000.01")


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_a_closed_month_is_the_same_bytes_each_time(form: str) -> None:
    assert written(form) == written(form)
    if form == "xlsx":
        made = openpyxl.load_workbook(io.BytesIO(written(form))).properties.created
        assert made == datetime(2026, 11, 1, 0, 0)  # noqa: DTZ001 (as of which the month was told, in UTC)


def test_what_is_not_known_is_empty_and_not_zero() -> None:
    unpriced = csv_rows(written("csv", no_money_because="no prices", no_causes_because="no cause"))
    assert {line[name] for line in unpriced for name in (*COSTS, "currency", "useful_gpu_hours")} == {""}
    assert {line["prices"] for line in unpriced} == {""}
    assert unpriced[0]["gpu_hours"] == "12.000000000"
    lines = {(line["cluster"], line["team"], line["kind"]): line for line in csv_rows(written("csv"))}
    # It ran, and nobody saw whether it did anything; of the next nobody knows a cause at all.
    seen, none = lines["north", "'@vision", "held"], lines["south", "nlp", "held"]
    assert (seen["useful_gpu_hours"], seen["unknown_gpu_hours"]) == ("", "0.333333333")
    assert (none["useful_gpu_hours"], none["idle_gpu_hours"]) == ("", "")
    assert none["unattributed_gpu_hours"] == "1.000000000"
    teams = {row["team"]: row for row in sheet_table(written("xlsx"), "summary", begins="team")}
    assert (teams["@vision"]["useful_gpu_hours"], teams["@vision"]["not_useful_gpu_hours"]) == (None, 0)


def counted(seen: list[int], rows: int) -> Iterator[Row]:
    for number in range(rows):
        seen[0] = number
        yield (f"team {number}", Decimal(number))


@pytest.mark.parametrize(("write", "at_most"), [(comma_separated, 5_000), (parquet, 20_000)])
def test_a_file_is_begun_before_its_last_row_is_known(write: Any, at_most: int) -> None:
    seen = [0]
    columns = [Column(name="team"), Column(name="cost", kind=Kind.DECIMAL, digits=2)]
    pieces = iter(write(Table(columns=columns, rows=counted(seen, 2 * at_most))))
    assert next(pieces)
    assert seen[0] < at_most


def test_a_statement_of_no_line_has_its_head() -> None:
    assert written("csv", lines=()).startswith(b"month,day,kind,")
    assert pl.read_parquet(io.BytesIO(written("parquet", lines=()))).height == 0
    assert cents(sheet_table(written("xlsx", lines=()), "summary", begins="team")[-1]["billed_cost"]) == 0


def test_the_head_tells_whether_a_month_is_open_or_closed_and_by_whom() -> None:
    assert "Closed at 2026-11-03T09:00:00.000Z by =finance; SHA-256 5f5f" in " ".join(head(closed_october()))
    assert "Open, as of 2026-11-01T00:00:00.000Z: figures may still change" in head(october())
    assert head(october())[0].startswith("2026-10 of Europe/Berlin: 2026-09-30T22:00:00.000Z to ")
    assert "GPU-hours only: no prices" in head(october(no_money_because="no prices"))
    assert "Not complete: 50 % of the window was observed" in head(october(coverage=0.5))


def test_a_file_is_named_after_its_month_and_version() -> None:
    assert (
        file_name(october(), export_format("focus", named="--format")) == "chargeback-2026-10-open.focus.csv"
    )
    assert (
        file_name(closed_october(), export_format("xlsx", named="")) == "chargeback-2026-10-5f5f5f5f5f5f.xlsx"
    )
    with pytest.raises(UsageError, match="--format 'parkuet': did you mean 'parquet'"):
        export_format("parkuet", named="--format")


def test_columns_of_the_detail_say_what_they_are() -> None:
    table = detail(october())
    assert [column.name for column in table.columns if not column.about] == []
    assert {f"{cause}_gpu_hours" for cause in Cause} <= {column.name for column in table.columns}
    assert HOUR == 10**6 * 3_600_000


@pytest.mark.long
@pytest.mark.timeout(300)
def test_many_rows_are_written_within_little_memory() -> None:
    import tracemalloc

    columns = [Column(name="team"), Column(name="cost", kind=Kind.DECIMAL, digits=2)]
    for write in (comma_separated, parquet):
        tracemalloc.start()
        size = sum(map(len, write(Table(columns=columns, rows=counted([0], 300_000)))))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size > 1_000_000
        # As a list they would take 70 MB.
        assert peak < 48 * 1024**2
