"""What is read of a site's own table of jobs, by its mapping."""

from typing import Any

import pytest

from collector.imports.mapping import mapping_of
from collector.imports.records import NO_STAMP, RAGGED
from collector.imports.row import NO_SUBMISSION, Aside, Ending, JobRow, Read
from collector.imports.table import NO_GPUS, NO_ID, NO_STATE, read_csv
from domain.errors import RecordingError, SettingsError

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


def test_a_mapping_that_makes_no_sense_is_refused_with_what_is_there() -> None:
    with pytest.raises(RecordingError, match=r"no column waits \(mapped to wait\).*did you mean wait\?"):
        read(HEADER, "a,1000,0,1,1,", columns=COLUMNS | {"wait": "waits"})
    with pytest.raises(SettingsError, match="neither start nor wait"):
        read(HEADER, columns={"submit": "sub"})
    with pytest.raises(SettingsError, match="expected how many make a GPU"):
        read(HEADER, share_of=0)
