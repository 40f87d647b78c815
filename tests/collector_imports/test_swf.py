"""What is read of a log in the Standard Workload Format, line by line."""

import pytest

from collector.imports.row import NO_SUBMISSION, Aside, Ending, JobRow, Part, Read
from collector.imports.swf import NO_NUMBERS, NO_RUN, NO_WAIT, Log, read_swf
from domain.errors import RecordingError

# Job, submission, wait, run, processors, ... asked processors, ..., status, user, group, application, queue.
USUAL = {1: 7, 2: 100, 3: 20, 4: 60, 5: 4, 8: 8, 11: 1, 12: 3, 13: 5, 14: 2, 15: 6}
HEADER = [b"; Version: 2.2", b"; UnixStartTime: 1000000000", b"; UnixStartTime: 5"]
START_MS = 1_000_000_000_000


def line(**changes: float) -> bytes:
    written = {f"f{place}": -1.0 for place in range(1, 19)}
    written |= {f"f{place}": value for place, value in USUAL.items()} | changes
    return " ".join(f"{value:g}" for value in written.values()).encode()


def read(*lines: bytes, log: Log | None = None, header: list[bytes] = HEADER) -> list[Read]:
    return list(read_swf([*header, *lines], log or Log(), name="log.swf"))


def one(log: Log | None = None, /, **changes: float) -> JobRow:
    [found] = read(line(**changes), log=log)
    assert isinstance(found, JobRow), found
    return found


def test_a_line_says_who_when_and_how_many_from_the_first_second_of_the_log() -> None:
    row = one()
    assert (row.submit_ms, row.start_ms, row.end_ms) == (
        START_MS + 100_000,
        START_MS + 120_000,
        START_MS + 180_000,
    )
    assert (row.job, row.line, row.ending, row.word, row.told_seconds) == (
        "7",
        4,
        Ending.SUCCEEDED,
        "completed",
        60,
    )
    assert (row.user, row.team, row.name, row.queue) == ("user3", "group5", "application2", "queue6")
    assert row.gpus == {"nvidia.com/gpu": 4}


def test_processors_that_were_asked_for_count_where_nobody_knows_how_many_it_had() -> None:
    assert one(f5=-1).gpus == {"nvidia.com/gpu": 8}
    assert one(f5=0).gpus == {"nvidia.com/gpu": 8}
    assert one(f5=-1, f8=-1).gpus == {}
    assert one(Log(gpus_per_processor=0.5), f5=3).gpus == {"kai.scheduler/micro-gpu": 1_500_000}


@pytest.mark.parametrize(
    ("status", "run", "started", "ending"),
    [
        (0, 60, True, Ending.FAILED),
        (5, 60, True, Ending.CANCELLED),
        (5, 0, False, Ending.CANCELLED),
        (5, -1, False, Ending.CANCELLED),
        (1, 0, True, Ending.SUCCEEDED),
        (-1, 60, True, Ending.UNKNOWN),
    ],
)
def test_a_job_that_was_cancelled_and_did_not_run_never_started(
    status: int, run: int, ending: Ending, *, started: bool
) -> None:
    row = one(f11=status, f4=run)
    assert (row.ending, row.start_ms is not None, row.told_seconds is not None) == (ending, started, started)


def test_a_line_that_does_not_tell_enough_is_set_aside_by_cause() -> None:
    found = read(line(f2=-1), line(f3=-1), line(f4=-1), b"1 2 3", b"1 nan " + b"1 " * 16)
    assert [each.because for each in found if isinstance(each, Aside)] == [
        NO_SUBMISSION,
        NO_WAIT,
        NO_RUN,
        NO_NUMBERS,
        NO_NUMBERS,
    ]


def test_a_log_without_waits_may_be_read_as_one_of_jobs_that_began_at_once() -> None:
    row = one(Log(starts_when_submitted=True), f3=-1)
    assert row.start_ms == row.submit_ms


def test_the_stays_of_a_job_that_was_checkpointed_are_parts_of_its_own_line() -> None:
    assert [type(each) for each in read(line(), line(f11=2), line(f11=3), line(f11=4))] == [
        JobRow,
        Part,
        Part,
        Part,
    ]


def test_the_beginning_of_a_log_is_told_by_its_header_by_its_stamps_or_by_whoever_reads_it() -> None:
    [given] = read(line(), log=Log(started_ms=5_000))
    [since_epoch] = read(line(f2=1_100_000_000), header=[])
    assert [each.submit_ms for each in (given, since_epoch) if isinstance(each, JobRow)] == [
        105_000,
        1_100_000_000_000,
    ]
    with pytest.raises(RecordingError, match=r"no UnixStartTime in its header \(found no header\)"):
        read(line(), header=[])
