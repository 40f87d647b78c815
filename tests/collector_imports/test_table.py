"""What is read of a site's own table of jobs, by its mapping."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.imports.mapping import mapping_of
from collector.imports.records import BROKEN, NO_STAMP, RAGGED
from collector.imports.row import NO_SUBMISSION, Aside, Ending, JobRow, Read
from collector.imports.table import NO_GPUS, NO_ID, NO_STATE, read_csv, read_parquet
from domain.errors import RecordingError, SettingsError
from domain.window import parse_instant, to_ms

COLUMNS = {"id": "job", "submit": "sub", "wait": "wait", "run": "run", "gpus": "gpus", "share": "share"}
MAPPING = {"columns": COLUMNS, "time": {"unit": "ms", "length": "m"}}
HEADER = "job,sub,wait,run,gpus,share"


def read(*lines: str, **mapping: Any) -> list[Read]:
    written = mapping_of(MAPPING | mapping, name="map.yaml")
    return list(read_csv([line.encode() for line in lines], written, name="jobs.csv"))


def one(line: str, header: str = HEADER, **mapping: Any) -> JobRow:
    [found] = read(header, line, **mapping)
    assert isinstance(found, JobRow), found
    return found


def test_stamps_and_lengths_have_units_of_their_own() -> None:
    row = one("a,1000000,2,3,1,")
    assert (row.submit_ms, row.start_ms, row.end_ms, row.told_seconds) == (
        1_000_000,
        1_000_000 + 120_000,
        1_000_000 + 300_000,
        180.0,
    )


def test_a_share_is_a_part_of_one_gpu_and_means_nothing_beside_several() -> None:
    assert one("a,1000,0,1,1,250").gpus == {"kai.scheduler/micro-gpu": 250_000}
    assert one("a,1000,0,1,4,250").gpus == {"nvidia.com/gpu": 4}
    assert one("a,1000,0,1,1,25", share_of=100).gpus == {"kai.scheduler/micro-gpu": 250_000}


def test_minus_one_is_what_a_table_does_not_know() -> None:
    row = one("a,1000,-1,1,1,")
    assert (row.start_ms, row.end_ms, row.told_seconds) == (None, None, None)
    assert one("a,1000,-1,1,1,", starts_when_submitted=True).start_ms == 1_000
    [found] = read(HEADER, "a,-1,0,1,1,")
    assert isinstance(found, Aside)
    assert found.because == NO_SUBMISSION


@pytest.mark.parametrize(
    ("stamps", "lengths", "utc", "may_be_later"),
    [
        # The clocks of Berlin are set back from 3 to 2 o'clock, when it is 1 o'clock by UTC.
        ("02:50 02:10 03:30", ",", "00:50 01:10 02:30", False),
        ("01:30 02:50 02:20", ",", "23:30 00:50 01:20", False),
        ("01:30 02:10 02:40", ",", "23:30 00:10 00:40", True),
        ("01:30 02:10 02:40", ",30", "23:30 00:10 00:40", True),
        ("01:30 02:10 02:40", ",90", "23:30 00:10 01:40", False),
        ("01:30 02:10 02:40", "100,30", "23:30 01:10 01:40", False),
        ("02:10 02:20 03:00", "70,", "00:10 01:20 02:00", False),
        ("02:10 02:20 03:00", "-1,100", "00:10 00:20 02:00", False),
        ("01:10 01:20 04:00", ",", "23:10 23:20 03:00", False),
    ],
)
def test_in_an_hour_that_is_there_twice_order_and_lengths_tell_which_was_meant(
    stamps: str, lengths: str, utc: str, *, may_be_later: bool
) -> None:
    columns = COLUMNS | {"start": "start", "end": "end", "eligible": "sub"}
    written = ",".join(f"2026-10-25T{stamp}" for stamp in stamps.split())
    [row] = read(
        "job,gpus,share,sub,start,end,wait,run", f"a,1,,{written},{lengths}",
        columns=columns, time={"zone": "Europe/Berlin", "length": "m"},
    )  # fmt: skip
    assert isinstance(row, JobRow), row
    meant = [f"2026-10-{24 if stamp >= '22' else 25}T{stamp}:00Z" for stamp in utc.split()]
    assert [row.submit_ms, row.start_ms, row.end_ms] == [parse_instant(each) for each in meant]
    assert row.eligible_ms == row.submit_ms
    assert row.may_be_later is may_be_later


def test_without_a_column_of_states_a_job_with_an_end_ended_somehow() -> None:
    assert one("a,1000,0,1,1,").ending is Ending.UNKNOWN
    assert one("a,1000,0,,1,").ending is Ending.OPEN


@pytest.mark.parametrize(
    ("word", "states", "ending"),
    [
        ("completed", {}, Ending.SUCCEEDED),  # Slurm's words, where none are explained
        ("ok", {"ok": "succeeded"}, Ending.SUCCEEDED),
        ("killed", {"ok": "succeeded", "killed": "preempted"}, Ending.PREEMPTED),
    ],
)
def test_words_end_as_the_mapping_says(word: str, states: dict[str, str], ending: Ending) -> None:
    columns = {"columns": COLUMNS | {"state": "state"}, "states": states}
    assert one(f"a,1000,0,1,1,,{word}", f"{HEADER},state", **columns).ending is ending


def test_a_line_that_cannot_be_read_is_set_aside_by_cause_and_the_next_one_is_read() -> None:
    columns = {"columns": COLUMNS | {"state": "state"}, "states": {"ok": "succeeded"}}
    found = read(
        f"{HEADER},state",
        "a,1000,0,1,1,,huh",
        "a,soon,0,1,1,,ok",
        "a,1000,0,-1,1,,ok",
        "a,1000,0,1,many,,ok",
        ",1000,0,1,1,,ok",
        "a,1000,0,1",
        "a,1000,0,1,1,,ok",
        **columns,
    )
    told = [each.because if isinstance(each, Aside) else type(each) for each in found]
    assert told == [
        NO_STATE,
        NO_STAMP,
        NO_STAMP,
        NO_GPUS,
        NO_ID,
        RAGGED,
        JobRow,
    ]


@pytest.mark.parametrize(
    ("broken", "because"),
    [
        ('b,"1000,0,1,1,', BROKEN),  # a quote that is never closed
        ('b,1000,0,1,1,"', BROKEN),
        ('b,"1000"0,0,1,1', BROKEN),
    ],
)
def test_a_line_with_a_stray_quote_costs_itself_and_not_those_after_it(broken: str, because: str) -> None:
    sound = [f"{number},1000,0,1,1," for number in range(3)]
    found = read(HEADER, *sound, broken, *sound, '"d",1000,0,1,1,', broken, *sound)
    asides = [(each.line, each.because, each.sample) for each in found if isinstance(each, Aside)]
    assert asides == [(5, because, broken), (10, because, broken)]
    assert sum(isinstance(each, JobRow) for each in found) == 10


def test_records_between_two_stray_quotes_are_not_swallowed() -> None:
    columns = {"columns": COLUMNS | {"name": "name"}}
    sound = [f"{number},1000,0,1,1,,n" for number in range(3)]
    found = read(f"{HEADER},name", 'a,1000,0,1,1,,"n', *sound, 'b,1000,0,1,1,,n"', *sound, **columns)
    assert [each.job for each in found if isinstance(each, JobRow)] == ["0", "1", "2", "b", "0", "1", "2"]
    assert [(each.line, each.because) for each in found if isinstance(each, Aside)] == [(2, BROKEN)]


def test_a_field_may_go_over_lines_and_blanks_may_stand_beside_quotes() -> None:
    columns = {"columns": COLUMNS | {"name": "name"}}
    found = read(f"{HEADER},name", 'a,1000,0,1,1,,"two', 'lines"', 'b,1000,0,1,"1" ,,"x"', **columns)
    assert [(each.line, each.name) for each in found if isinstance(each, JobRow)] == [
        (2, "two\nlines"),
        (4, "x"),
    ]


def test_a_table_whose_lines_end_as_on_old_macs_says_so() -> None:
    with pytest.raises(RecordingError, match="the first line is no CSV"):
        read(f"{HEADER}\ra,1000,0,1,1,\rb,1000,0,1,1,")


NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "odd",
    [
        pa.array([[1], None]),
        pa.array([{"a": 1}, None]),
        pa.array([time(1), None]),
        pa.array([timedelta(1), None]),
        pa.array([NINE, None]),
        pa.array([True, None]),
        pa.array([b"\xff", None]),
        pa.array([float("nan"), None]),
        pa.array([2**64 - 1, None], pa.uint64()),
        pa.array(["x", None]).dictionary_encode(),
        pa.array([Decimal("9" * 30), None], pa.decimal256(60, 3)),
    ],
    ids=lambda odd: str(odd.type),
)
def test_whatever_type_a_column_has_each_row_is_one_of_a_job_or_set_aside(
    odd: pa.Array, tmp_path: Path
) -> None:
    things = [*COLUMNS, "state", "name", "cpus", "nodes", "start", "end", "eligible"]
    mapping = mapping_of({"columns": {thing: thing for thing in things}}, name="map.yaml")
    for thing in things:
        sound = {"submit": [60, 60], "gpus": [1, 1]} | {thing: odd}
        table = {each: sound.get(each, pa.nulls(2)) for each in things}
        pq.write_table(pa.table(table), tmp_path / "jobs.parquet")
        assert len(list(read_parquet(tmp_path / "jobs.parquet", mapping))) == 2


def test_a_damaged_parquet_file_says_so_and_ends_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "jobs.parquet"
    columns = {"job": ["damaged"], "sub": [1], "wait": [1], "run": [1], "gpus": [1], "share": [1]}
    pq.write_table(pa.table(columns), file, compression="none", use_dictionary=False)
    file.write_bytes(file.read_bytes().replace(b"damaged", b"damag\xff\xff"))
    with pytest.raises(RecordingError, match=r"jobs\.parquet: cannot be read as Parquet"):
        list(read_parquet(file, mapping_of(MAPPING, name="map.yaml")))


def test_zones_without_a_name_texts_of_bytes_and_lengths_of_a_clock_are_read(tmp_path: Path) -> None:
    instants = pa.array([NINE], pa.timestamp("us", tz="+05:30"))
    table = {"job": [b"a"], "sub": instants, "wait": [time(0, 1, 30)], "run": [Decimal("2.0")], "gpus": [1.0]}
    pq.write_table(pa.table(table), tmp_path / "jobs.parquet")
    columns = {thing: column for thing, column in COLUMNS.items() if thing != "share"}
    mapping = mapping_of({"columns": columns}, name="map.yaml")
    [row] = read_parquet(tmp_path / "jobs.parquet", mapping)
    assert isinstance(row, JobRow)
    nine_ms = to_ms(NINE)
    assert (row.job, row.submit_ms, row.start_ms) == ("a", nine_ms, nine_ms + 90_000)
    assert (row.end_ms, row.gpus) == (nine_ms + 92_000, {"nvidia.com/gpu": 1})


def test_a_mapping_that_makes_no_sense_is_refused_with_what_is_there() -> None:
    with pytest.raises(RecordingError, match=r"no column waits \(mapped to wait\).*did you mean wait\?"):
        read(HEADER, "a,1000,0,1,1,", columns=COLUMNS | {"wait": "waits"})
    with pytest.raises(SettingsError, match="neither start nor wait"):
        read(HEADER, columns={"submit": "sub"})
    for share_of in (0, -1, float("nan"), float("inf")):
        with pytest.raises(SettingsError, match="expected how many make a GPU"):
            read(HEADER, share_of=share_of)
    for delimiter in ("", "||", '"', "\n"):
        with pytest.raises(SettingsError, match="expected one character, such as ; or"):
            read(HEADER, delimiter=delimiter)


def test_a_nul_in_a_field_stands_for_nothing() -> None:
    assert [
        row.job for row in read(HEADER, "a\0b,1000,0,1,1,", "c,1000,0,1,1,") if isinstance(row, JobRow)
    ] == [
        "ab",
        "c",
    ]


@pytest.mark.parametrize(("last", "counts"), [("share", False), ("comment", True)])
def test_a_last_line_without_an_end_counts_where_its_last_field_is_not_read(
    last: str, *, counts: bool
) -> None:
    columns = COLUMNS if last == "share" else {name: of for name, of in COLUMNS.items() if name != "share"}
    written = mapping_of(MAPPING | {"columns": columns}, name="map.yaml")
    lines = [f"job,sub,wait,run,gpus,{last}".encode(), b"a,1000,0,1,1,25"]
    [found] = read_csv(lines, written, name="jobs.csv", is_open=lambda: True)
    assert isinstance(found, JobRow) is counts
