"""What is read of sacct's text, and what is set aside."""

from zoneinfo import ZoneInfo

import pytest

from collector.imports.row import (
    ENDS_EARLY,
    NO_END,
    NO_START,
    NO_SUBMISSION,
    Aside,
    Ending,
    JobRow,
    Part,
    Read,
)
from collector.imports.sacct import NO_STAMP, TOO_FEW, TOO_MANY, read_sacct
from collector.imports.slurm_row import NO_GPUS, NO_JOB, NO_STATE, RAN_LONGER, RAN_SHORTER
from domain.errors import RecordingError
from domain.window import parse_instant

COLUMNS = (
    "JobID", "Cluster", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End",
    "ElapsedRaw", "State", "ExitCode", "NNodes", "NodeList", "ReqTRES", "AllocTRES", "JobName",
)  # fmt: skip
ROW = {
    "JobID": "100", "Cluster": "hpc", "User": "ada", "Account": "nlp", "Partition": "gpu", "QOS": "normal",
    "Submit": "2026-03-02T09:00:00", "Eligible": "2026-03-02T09:00:00", "Start": "2026-03-02T09:10:00",
    "End": "2026-03-02T10:10:00", "ElapsedRaw": "3600", "State": "COMPLETED", "ExitCode": "0:0",
    "NNodes": "1", "NodeList": "g01", "ReqTRES": "cpu=8,gres/gpu=4,node=1",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,node=1", "JobName": "train",
}  # fmt: skip
UTC = ZoneInfo("UTC")


def text(*rows: dict[str, str], columns: tuple[str, ...] = COLUMNS, delimiter: str = "|") -> list[bytes]:
    lines = [columns, *(tuple({**ROW, **row}[name] for name in columns) for row in rows)]
    return [delimiter.join(line).encode() for line in lines]


def read(lines: list[bytes], *, zone: ZoneInfo = UTC, fields: str | None = None) -> list[Read]:
    return list(read_sacct(lines, name="jobs.txt", zone=zone, fields=fields))


def one(**changes: str) -> JobRow:
    [found] = read(text(changes))
    assert isinstance(found, JobRow), found
    return found


def aside(**changes: str) -> str:
    [found] = read(text(changes))
    assert isinstance(found, Aside), found
    assert found.line == 2
    return found.because


def at(stamp: str) -> int:
    return parse_instant(f"2026-03-02T{stamp}Z")


def test_a_record_says_who_when_and_how_many_gpus_of_which_model() -> None:
    assert one() == JobRow(
        line=2, job="100", submit_ms=at("09:00:00"), eligible_ms=at("09:00:00"), start_ms=at("09:10:00"),
        end_ms=at("10:10:00"), ending=Ending.SUCCEEDED, word="COMPLETED", name="train", team="nlp",
        user="ada", queue="gpu", priority_class="normal", node="g01", gpus={"nvidia.com/gpu": 4},
        gpu_model="a100", milli_cpus=8000, nodes=1,
        exit_code=0, told_seconds=3600.0, cluster="hpc",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ("PREEMPTED", Ending.PREEMPTED),
        ("NODE_FAIL", Ending.NODE_FAILED),
        ("TIMEOUT", Ending.FAILED),
        ("OUT_OF_MEMORY", Ending.FAILED),
        ("OUT_OF_ME+", Ending.FAILED),
        ("CANCELLED by 1001", Ending.CANCELLED),
        ("CANCELLED+", Ending.CANCELLED),
        ("REQUEUED", Ending.REQUEUED),
        ("F", Ending.FAILED),
    ],
)
def test_each_of_slurms_words_is_an_ending(state: str, ending: Ending) -> None:
    assert one(State=state).ending is ending


def test_who_cancelled_a_job_is_kept() -> None:
    row = one(State="CANCELLED by 1001")
    assert (row.word, row.detail) == ("CANCELLED", "by 1001")


def test_a_job_that_waits_asks_for_what_it_requested_and_has_no_start() -> None:
    row = one(State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned", AllocTRES="")
    assert (row.start_ms, row.end_ms, row.ending, row.gpus) == (
        None,
        None,
        Ending.OPEN,
        {"nvidia.com/gpu": 4},
    )


def test_a_job_that_runs_has_no_end() -> None:
    row = one(State="RUNNING", End="Unknown")
    assert (row.start_ms, row.end_ms, row.ending) == (at("09:10:00"), None, Ending.OPEN)


def test_a_job_cancelled_while_it_waited_never_started() -> None:
    # Slurm then gives the cancellation as Start as well.
    row = one(State="CANCELLED by 5", Start="2026-03-02T10:10:00", NodeList="None assigned")
    assert (row.start_ms, row.end_ms, row.told_seconds) == (None, at("10:10:00"), None)


@pytest.mark.parametrize(
    ("end", "elapsed", "suspended", "because"),
    [
        ("2026-03-02T10:10:00", "3661", "", RAN_LONGER),
        ("2026-03-02T10:10:00", "3660", "", ""),
        ("2026-11-21T10:10:00", "3600", "", RAN_SHORTER),
        ("2026-03-09T10:10:00", "3600", "", ""),
        ("2026-11-21T10:10:00", "3600", "264-00:00:00", ""),
        ("2026-03-02T10:10:00", "1800", "00:30:00", ""),
        ("2026-03-02T10:10:00", "1800", "00:28:59", RAN_SHORTER),
    ],
)
def test_a_length_that_contradicts_the_stamps_is_set_aside_unless_a_suspension_explains_it(
    end: str, elapsed: str, suspended: str, because: str
) -> None:
    columns = (*COLUMNS, "Suspended")
    [found] = read(text({"End": end, "ElapsedRaw": elapsed, "Suspended": suspended}, columns=columns))
    assert (found.because if isinstance(found, Aside) else "") == because


def test_a_job_cancelled_in_the_second_of_its_start_had_begun_where_it_names_a_node() -> None:
    start = ROW["Start"]
    for nodes, began in (("g01", True), ("", False), ("None assigned", False)):
        row = one(State="CANCELLED by 7", End=start, NodeList=nodes, ElapsedRaw="0")
        assert (row.start_ms is not None) is began, nodes


@pytest.mark.parametrize(("code", "told"), [("0:0", 0), ("1:0", 1), ("0:9", 137), ("2:15", 2), ("", None)])
def test_a_signal_ends_a_job_with_the_code_that_a_shell_gives_it(code: str, told: int | None) -> None:
    assert one(ExitCode=code).exit_code == told


def test_a_job_that_was_put_back_and_waits_asks_for_what_it_requested() -> None:
    waiting = {"State": "PENDING", "Start": "Unknown", "End": "Unknown"}
    assert one(**waiting, AllocTRES="gres/gpu=1").gpus == {"nvidia.com/gpu": 4}


def test_steps_are_parts_of_their_job() -> None:
    found = read(text({}, {"JobID": "100.batch"}, {"JobID": "100.extern"}, {"JobID": "100.0"}))
    assert [type(each) for each in found] == [JobRow, Part, Part, Part]


def test_the_tasks_of_an_array_that_wait_are_a_job_each_and_one_line() -> None:
    found = read(text({"JobID": "7_[1-3,8%2]", "State": "PENDING", "Start": "Unknown", "End": "Unknown"}))
    rows = [row for row in found if isinstance(row, JobRow)]
    assert [row.job for row in rows] == ["7_1", "7_2", "7_3", "7_8"]
    assert sum(row.lines for row in rows) == 1
    assert all(row.gpus == {"nvidia.com/gpu": 4} for row in rows)


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("cpu=1,gres/gpu=2", {"nvidia.com/gpu": 2}),
        ("gres/gpu:a100=2,gres/gpu:v100=1", {"nvidia.com/gpu": 3}),
        ("gres/gpumem=80G,gres/gpuutil=97,cpu=4", {}),
        ("gres/shard=3", {"nvidia.com/gpu.shared": 3}),  # of unknown size, and not none
    ],
)
def test_gpus_are_counted_once_and_shares_are_not_gpus(tres: str, gpus: dict[str, int]) -> None:
    assert one(AllocTRES=tres).gpus == gpus


def test_older_lists_of_generic_resources_are_per_node() -> None:
    columns = (*(name for name in COLUMNS if "TRES" not in name), "AllocGRES")
    row = {**ROW, "AllocGRES": "gpu:v100:4(S:0-1)", "NNodes": "2"}
    lines = ["|".join(columns).encode(), "|".join(row[name] for name in columns).encode()]
    [found] = read(lines)
    assert isinstance(found, JobRow)
    assert (found.gpus, found.gpu_model) == ({"nvidia.com/gpu": 8}, "v100")


def test_what_cannot_be_true_is_set_aside_by_cause() -> None:
    assert aside(Submit="Unknown") == NO_SUBMISSION
    assert aside(Start="Unknown") == NO_START
    assert aside(End="Unknown") == NO_END
    assert aside(End="2026-03-02T09:05:00") == ENDS_EARLY
    assert aside(State="WONDERFUL") == aside(State="RE+") == NO_STATE
    assert aside(JobID="12345678+") == aside(JobID="7_[1-3,...]") == NO_JOB
    assert aside(AllocTRES="gres/gpu=many") == NO_GPUS
    assert aside(Submit="yesterday") == NO_STAMP


def test_a_delimiter_in_a_jobs_name_is_a_part_of_the_name() -> None:
    assert one(JobName="a|b|c").name == "a|b|c"


def test_a_delimiter_elsewhere_is_set_aside() -> None:
    columns = ("JobID", "State", "Submit", "Start", "End", "AllocTRES")
    lines = [*text({"AllocTRES": "cpu=1|x"}, columns=columns), b"100|COMPLETED"]
    assert [each.because for each in read(lines) if isinstance(each, Aside)] == [TOO_MANY, TOO_FEW]


def test_parsable_ends_each_line_with_the_delimiter_and_files_may_be_joined() -> None:
    lines = [line + b"|" for line in text({}, {"JobID": "101"})]
    assert [row.job for row in read(lines + lines) if isinstance(row, JobRow)] == ["100", "101"] * 2


def test_stamps_are_in_the_zone_that_is_told() -> None:
    lines = text({})
    berlin, utc = (read(lines, zone=ZoneInfo(name))[0] for name in ("Europe/Berlin", "UTC"))
    assert isinstance(berlin, JobRow)
    assert isinstance(utc, JobRow)
    assert utc.submit_ms - berlin.submit_ms == 3_600_000


def test_the_hour_that_the_clock_shows_twice_is_told_apart_by_the_length() -> None:
    # On 2026-10-25 Berlin's clock went from 03:00 back to 02:00.
    stamps = {
        "Submit": "2026-10-25T01:00:00",
        "Eligible": "2026-10-25T01:00:00",
        "Start": "2026-10-25T02:50:00",
    }
    for length, minutes in (("600", 10), ("4200", 70)):
        stay = {**stamps, "End": "2026-10-25T03:00:00", "ElapsedRaw": length}
        [row] = read(text(stay), zone=ZoneInfo("Europe/Berlin"))
        assert isinstance(row, JobRow)
        assert row.start_ms is not None
        assert row.end_ms is not None
        assert row.end_ms - row.start_ms == minutes * 60_000


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "suspended", "started"),
    [
        ("02:31:00", "03:31:00", "3540", "00:01:00", "01:31:00"),
        ("02:31:00", "03:31:00", "7140", "00:01:00", "00:31:00"),
        # Slurm rounds each stamp by itself: the nearest counts.
        ("02:31:00", "03:31:00", "3601", "", "01:31:00"),
        # Both are as possible: the earlier one.
        ("02:10:00", "02:40:00", "1800", "", "00:10:00"),
    ],
)
def test_in_the_hour_shown_twice_a_suspension_counts_and_the_nearest_length_tells(
    start: str, end: str, elapsed: str, suspended: str, started: str
) -> None:
    day = "2026-10-25T"
    stay = {"Submit": f"{day}01:00:00", "Eligible": f"{day}01:00:00", "Start": day + start, "End": day + end}
    lines = text({**stay, "ElapsedRaw": elapsed, "Suspended": suspended}, columns=(*COLUMNS, "Suspended"))
    [row] = read(lines, zone=ZoneInfo("Europe/Berlin"))
    assert isinstance(row, JobRow), row
    assert row.start_ms == parse_instant(f"{day}{started}Z")


@pytest.mark.parametrize(
    ("day", "submit", "start", "end", "elapsed", "may_be_later"),
    [
        ("2026-10-25T", "02:30:00", "02:31:00", "03:31:00", "3600", True),
        # It started in the first of the two hours, so that it was submitted there.
        ("2026-10-25T", "02:30:00", "02:31:00", "03:31:00", "7200", False),
        ("2026-10-25T", "01:30:00", "02:31:00", "03:31:00", "3600", False),
        # Its length fits both hours.
        ("2026-10-25T", "01:30:00", "02:10:00", "02:40:00", "1800", True),
        ("2026-10-25T", "01:30:00", "02:10:00", "Unknown", "1800", True),
        # An hour that the clock leaves out is there once.
        ("2026-03-29T", "02:30:00", "04:00:00", "05:00:00", "3600", False),
        ("2026-10-26T", "02:30:00", "02:31:00", "03:31:00", "3600", False),
    ],
)
def test_a_stamp_that_may_be_an_hour_later_is_the_earlier_one_and_said_to_be_so(
    day: str, submit: str, start: str, end: str, elapsed: str, *, may_be_later: bool
) -> None:
    stay = {"Submit": day + submit, "Eligible": day + submit, "Start": day + start, "ElapsedRaw": elapsed}
    over = {"End": end, "State": "RUNNING"} if end == "Unknown" else {"End": day + end}
    [row] = read(text({**stay, **over}), zone=ZoneInfo("Europe/Berlin"))
    assert isinstance(row, JobRow), row
    assert row.may_be_later is may_be_later


def test_a_repeated_line_of_names_and_the_ends_of_windows_are_no_records() -> None:
    columns = (*(name for name in COLUMNS if name != "NodeList"), "NodeList")
    lines = [line + b"|\r" for line in text({}, columns=columns)]
    found = read(lines + lines)
    assert [row.node for row in found if isinstance(row, JobRow)] == ["g01", "g01"]
    assert len(found) == 2


def test_widths_given_with_the_names_are_no_part_of_them() -> None:
    [row] = read(text({})[1:], fields=",".join(f"{name}%40" for name in COLUMNS))
    assert isinstance(row, JobRow)
    assert (row.job, row.name) == ("100", "train")


def test_a_text_without_names_takes_them_from_the_command() -> None:
    lines = text({})[1:]
    [row] = read(lines, fields=",".join(COLUMNS) + "%30")
    assert isinstance(row, JobRow)
    assert row.job == "100"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "the file is empty"),
        ([b"100|COMPLETED|x"], "expected the column names"),
        ([b"JobID State Submit Start End"], "expected the column names"),
        (
            [b"JobID|State|Submit|End"],
            "no column Start, AllocTRES or ReqTRES; found JobID, State, Submit, End",
        ),
    ],
)
def test_a_mistake_of_the_whole_file_names_what_was_found_and_expected(lines: list[bytes], told: str) -> None:
    with pytest.raises(RecordingError, match=told):
        read(lines)
