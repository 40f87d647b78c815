"""Whatever is in a file: nothing crashes, and each line is counted once."""

import csv
import io
import json
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from collector.imports.facts import facts
from collector.imports.mapping import mapping_of
from collector.imports.row import Aside, JobRow, Part, Read, contradiction
from collector.imports.sacct import read_sacct
from collector.imports.sacct_json import read_sacct_json
from collector.imports.stamps import instant_ms, length_seconds
from collector.imports.state_table import StateRow, read_state_csv, state_mapping_of
from collector.imports.states import taken
from collector.imports.swf import FIELDS, Log, read_swf
from collector.imports.table import read_csv
from domain.errors import RecordingError

UTC = ZoneInfo("UTC")
COLUMNS = ("JobID", "State", "Submit", "Start", "End", "ElapsedRaw", "AllocTRES", "ReqTRES", "JobName")
WORDS = st.one_of(
    st.sampled_from([
        "", "1", "77_3", "7_[1-4]", "9.batch", "5+1", "COMPLETED", "PENDING", "RUNNING", "CANCELLED by 1",
        "PREEMPTED", "NODE_FAIL", "F", "Unknown", "None", "2026-03-02T09:00:00", "2026-03-02T10:00:00",
        "2026-03-02T10:00:00+01:00", "1772442000", "-1", "0", "3600", "nan", "inf", "1e400", "1-00:00:00",
        "gres/gpu=4", "gres/gpu:a100=2", "gres/gpu=x", "gres/gpu=99999999999", "gres/shard=1",
        "9999-12-31T23:59:59", "0001-01-01T00:00:00", "\uff11\uff12", "\u0661", "\u00b2",
    ]),
    st.text(max_size=12),
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-3, 10**6).map(str),
    st.sampled_from(["-1", "0", "1e5", "nan", "inf", "-inf", "1e300", "x", "1_0", "99999999999999999999"]),
)


def counted(reads: list[Read]) -> int:
    """The lines that readings stand for; each row is sound, and becomes facts."""
    for row in reads:
        if isinstance(row, JobRow):
            assert contradiction(row) == ""
            told = facts(row)
            assert [fact.at_ms for fact in told.of_pod] == sorted(fact.at_ms for fact in told.of_pod) or (
                row.start_ms is not None and row.start_ms < row.submit_ms
            )
            assert told == facts(row)
    return sum(1 if isinstance(each, Part) else each.lines for each in reads)


@given(rows=st.lists(st.lists(WORDS, min_size=1, max_size=11), max_size=6))
def test_each_line_of_a_text_of_sacct_is_counted(rows: list[list[str]]) -> None:
    lines = ["|".join(COLUMNS), *("|".join(row) for row in rows)]
    cleaned = [line.replace("\n", " ").encode("utf-8", "surrogatepass") for line in lines]
    filled = [line for line in cleaned[1:] if line.decode("utf-8", "replace").rstrip("\r").strip()]
    repeated = sum(line.decode("utf-8", "replace").rstrip("\r") == lines[0] for line in filled)
    reads = list(read_sacct(cleaned, name="x", zone=UTC))
    assert counted(reads) == len(filled) - repeated


@given(
    data=st.binary(max_size=200), fields=st.one_of(st.none(), st.just("JobID,State,Submit,Start,End,ReqTRES"))
)
def test_bytes_are_no_text_of_sacct_or_are_counted(data: bytes, fields: str | None) -> None:
    try:
        counted(list(read_sacct(data.split(b"\n"), name="x", zone=UTC, fields=fields)))
    except RecordingError:
        return  # the message is tested beside its cause


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), WORDS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["set", "number", "current", "submission", "start", "end"]), inner),
    ),
    max_leaves=6,
)
JOBS = st.fixed_dictionaries(
    {"job_id": st.one_of(st.integers(0, 99), VALUES), "time": VALUES, "state": VALUES},
    optional=dict.fromkeys(("tres", "array", "het", "exit_code", "nodes", "account", "steps"), VALUES),
)
SOUND = st.fixed_dictionaries(
    {
        "job_id": st.integers(-5, 10**20),
        "time": st.fixed_dictionaries(
            {name: st.integers(-5, 10**20) for name in ("submission", "eligible", "start", "end", "elapsed")}
        ),
        "state": st.fixed_dictionaries(
            {"current": st.sampled_from(["COMPLETED", "PENDING", "X", ["RUNNING"], []])}
        ),
    },
    optional={"array": st.fixed_dictionaries({"job_id": st.integers(0, 9), "task": WORDS})},
)


@given(jobs=st.lists(st.one_of(JOBS, SOUND), max_size=5), cut=st.integers(1, 40))
def test_each_job_of_a_document_is_counted(jobs: list[dict[str, object]], cut: int) -> None:
    data = json.dumps({"jobs": jobs}).encode()
    reads = list(read_sacct_json([data], name="x"))
    # However the bytes come, they say the same.
    assert reads == list(read_sacct_json((data[at : at + cut] for at in range(0, len(data), cut)), name="x"))
    assert counted([each for each in reads if not isinstance(each, Part)]) == len(jobs)


@given(data=st.binary(max_size=100))
def test_bytes_are_no_document(data: bytes) -> None:
    try:
        list(read_sacct_json([data], name="x"))
        list(read_sacct_json([b'{"jobs": [', data], name="x"))
    except RecordingError:
        return  # the message is tested beside its cause


@given(rows=st.lists(st.lists(NUMBERS, min_size=1, max_size=FIELDS + 2), max_size=8), whole=st.booleans())
def test_each_line_of_a_log_is_counted(rows: list[list[str]], *, whole: bool) -> None:
    lines = [" ".join((row + ["-1"] * FIELDS)[:FIELDS] if whole else row).encode() for row in rows]
    log = Log(started_ms=0, starts_when_submitted=whole)
    reads: list[Read] = []
    try:
        reads.extend(read_swf([b"; Version: 2", *lines], log, name="x"))
    except RecordingError:
        return  # none of them has 18 numbers
    assert counted(reads) == len(lines)


MAPPING = mapping_of(
    {
        "columns": {
            "id": "id", "submit": "submit", "start": "start", "end": "end", "run": "run", "state": "state",
            "gpus": "gpus", "share": "share",
        }
    },
    name="map.yaml",
)  # fmt: skip


@given(rows=st.lists(st.lists(st.one_of(WORDS, NUMBERS), min_size=1, max_size=9), max_size=6))
def test_each_record_of_a_csv_is_counted(rows: list[list[str]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "submit", "start", "end", "run", "state", "gpus", "share"])
    kept = [[cell.replace("\r", "").replace("\n", "").replace("\0", "") for cell in row] for row in rows]
    writer.writerows(kept)
    lines = out.getvalue().encode("utf-8", "surrogatepass").split(b"\n")
    assert counted(list(read_csv(lines, MAPPING, name="x"))) == len(kept)


STATES = state_mapping_of(
    {
        "columns": {
            "at": "submit",
            "queue": "id",
            "waiting_jobs": "run",
            "held_gpus": "gpus",
            "total_gpus": "end",
        }
    },
    name="map.yaml",
)


@given(rows=st.lists(st.lists(st.one_of(WORDS, NUMBERS), min_size=1, max_size=6), max_size=6))
def test_each_row_of_counts_is_counted_once(rows: list[list[str]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "submit", "end", "run", "gpus"])
    kept = [[cell.replace("\r", "").replace("\n", "").replace("\0", "") for cell in row] for row in rows]
    writer.writerows(kept)
    lines = out.getvalue().encode("utf-8", "surrogatepass").split(b"\n")
    reads = list(read_state_csv(lines, STATES, name="x"))
    assert len(reads) == len(kept)
    found = taken([read for read in reads if isinstance(read, StateRow)], {}, step_ms=60_000)
    assert found.new + found.known + len(found.aside) == sum(isinstance(read, StateRow) for read in reads)


@given(data=st.binary(max_size=200))
def test_bytes_are_no_table_or_are_counted(data: bytes) -> None:
    head = b"id,submit,start,end,run,state,gpus,share"
    reads = list(read_csv([head, *data.split(b"\n")], MAPPING, name="x"))
    assert all(isinstance(each, JobRow | Aside) for each in reads)


@given(text=st.one_of(WORDS, st.text(alphabet="0123456789-:T.+eZ", max_size=20)))
@example(text="0\x1f")
def test_a_stamp_is_an_instant_nothing_or_refused(text: str) -> None:
    try:
        at_ms = instant_ms(text, UTC)
    except ValueError:
        return
    assert at_ms is None or isinstance(at_ms, int)
    assert length_seconds(text) is None or isinstance(length_seconds(text), float)
