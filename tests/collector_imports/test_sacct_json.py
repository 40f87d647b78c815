"""What is read of sacct's JSON, and what is set aside."""

import json
import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from collector.imports.row import (
    Aside,
    JobRow,
    Part,
    Read,
)
from collector.imports.sacct_json import (
    ENDS_WITHIN,
    HAS_ERRORS,
    MORE_FOLLOWS,
    UNREADABLE,
    read_sacct_json,
)
from domain.errors import RecordingError
from tests.collector_imports.test_sacct import at, one


def seconds(stamp: str) -> int:
    return at(stamp) // 1000


def document(**changes: Any) -> bytes:
    job = {
        "job_id": 100, "name": "train", "account": "nlp", "user": "ada", "partition": "gpu", "qos": "normal",
        "cluster": "hpc", "nodes": "g01", "allocation_nodes": 1, "unknown": {"field": [1]},
        "time": {
            "submission": seconds("09:00:00"), "eligible": {"set": True, "number": seconds("09:00:00")},
            "start": seconds("09:10:00"), "end": seconds("10:10:00"), "elapsed": 3600,
        },
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "exit_code": {"return_code": {"set": True, "infinite": False, "number": 0}, "signal": {"id": 0}},
        "tres": {
            "allocated": [
                {"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 4},
                {"type": "gres", "name": "gpu:a100", "count": 4},
            ],
            "requested": [{"type": "gres", "name": "gpu", "count": 4}],
        },
        "steps": [],
        **changes,
    }  # fmt: skip
    return json.dumps({"meta": {}, "jobs": [job]}).encode()


def test_the_document_tells_the_same_as_the_text() -> None:
    [found] = read_sacct_json([document()], name="jobs.json")
    assert isinstance(found, JobRow)
    text_row = one()
    assert [getattr(found, name) for name in JobRow.__slots__ if name != "line"] == [
        getattr(text_row, name) for name in JobRow.__slots__ if name != "line"
    ]


def test_older_documents_have_plain_words_and_zero_for_no_instant() -> None:
    time = {"submission": seconds("09:00:00"), "eligible": 0, "start": 0, "end": 0, "elapsed": 0}
    data = document(state={"current": "PENDING"}, time=time, steps=[{"a": 1}], tres={"requested": []})
    row, step = read_sacct_json([data], name="jobs.json")
    assert isinstance(row, JobRow)
    assert (row.start_ms, row.end_ms, row.eligible_ms, row.gpus) == (None, None, None, {})
    assert step == Part(line=2)


def test_arrays_of_a_document_are_named_as_in_the_text() -> None:
    task = document(array={"job_id": 7, "task_id": {"set": True, "number": 3}, "task": ""})
    waits = document(
        array={"job_id": 7, "task_id": {"set": False}, "task": "4-5%1"}, state={"current": ["PENDING"]}
    )
    names = [
        row.job
        for data in (task, waits)
        for row in read_sacct_json([data], name="jobs.json")
        if isinstance(row, JobRow)
    ]
    assert names == ["7_3", "7_4", "7_5"]


def test_a_job_that_cannot_be_read_is_set_aside_alone() -> None:
    [found] = read_sacct_json([b'{"jobs": [{"job_id": "x"}]}'], name="jobs.json")
    assert isinstance(found, Aside)
    assert found.because == UNREADABLE


@pytest.mark.parametrize("data", [b"", b"[]", b'{"jobs": {}}', b'{"meta": {"jobs": [1]}}', b'{"a": "jobs"'])
def test_a_document_without_a_list_of_jobs_is_none_of_sacct(data: bytes) -> None:
    with pytest.raises(RecordingError, match="expected what sacct --json prints, with a list jobs"):
        list(read_sacct_json([data], name="jobs.json"))


def test_a_document_that_is_cut_off_is_read_up_to_there() -> None:
    whole = document(name='a "quoted" \\ ] }')
    row, aside = read_sacct_json([whole.removesuffix(b"]}") + b', {"job_id": 5, "name": "x]'], name="x")
    assert isinstance(row, JobRow)
    assert row.name == 'a "quoted" \\ ] }'
    assert isinstance(aside, Aside)
    assert (aside.line, aside.because) == (2, ENDS_WITHIN)


@pytest.mark.parametrize(
    ("after", "because"),
    [
        (b'], "errors": [], "warnings": ["]}"]} \r\n', ""),
        (b'], "errors": []', ENDS_WITHIN),
        (b'], "warnings": ["cut off', ENDS_WITHIN),
        (b"]", ENDS_WITHIN),
        (b"]} {{{", MORE_FOLLOWS),
        (b']}\n{"jobs": []}', MORE_FOLLOWS),
        (b'], "jobs": []}', MORE_FOLLOWS),
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 20])
def test_what_comes_after_the_list_of_jobs_is_read_too(after: bytes, because: str, piece_bytes: int) -> None:
    data = document().removesuffix(b"]}") + after
    pieces = (data[at : at + piece_bytes] for at in range(0, len(data), piece_bytes))
    row, *asides = read_sacct_json(pieces, name="jobs.json")
    assert isinstance(row, JobRow)
    assert asides == ([Aside(line=2, because=because)] if because else [])


@pytest.mark.parametrize("place", ["before", "after"])
def test_what_sacct_could_not_tell_is_told(place: str) -> None:
    errors = b'"errors": [{"description": "slurmdbd is down", "error": "x"}]'
    job = document().removeprefix(b'{"meta": {}, "jobs": [').removesuffix(b"]}")

    def read_of(jobs: bytes) -> list[Read]:
        listed = b'"jobs": [%s]' % jobs
        data = b"{" + b", ".join([errors, listed] if place == "before" else [listed, errors]) + b"}"
        return list(read_sacct_json([data], name="jobs.json"))

    with pytest.raises(RecordingError, match=r"jobs.json: no jobs, and sacct's errors: .*slurmdbd is down"):
        read_of(b"")
    row, aside = read_of(job)
    assert isinstance(row, JobRow)
    assert isinstance(aside, Aside)
    assert (aside.line, aside.because) == (2, HAS_ERRORS)
    assert "slurmdbd is down" in aside.sample


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": None},
        {"tres": None},
        {"tres": {"requested": None, "allocated": [{"type": "gres", "name": "gpu", "count": 4}]}},
    ],
)
def test_what_is_null_is_not_told_and_does_not_refuse_the_job(changes: dict[str, Any]) -> None:
    [row] = read_sacct_json([document(**changes)], name="jobs.json")
    assert isinstance(row, JobRow)
    assert row.gpus == ({} if changes.get("tres", 1) is None else {"nvidia.com/gpu": 4})


def test_a_document_is_read_job_by_job_however_large_it_is() -> None:
    job = document(comment="x" * 4000).removeprefix(b'{"meta": {}, "jobs": [').removesuffix(b"]}")
    jobs = 1500

    def pieces() -> Iterator[bytes]:
        yield b'{"meta": {"jobs": []}, "jobs": ['
        for number in range(jobs):
            yield job + (b"," if number + 1 < jobs else b"")
        yield b"]}"

    tracemalloc.start()
    try:
        counted = sum(isinstance(row, JobRow) for row in read_sacct_json(pieces(), name="jobs.json"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counted == jobs
    # The document has 7 MB; a job some 5 kB.
    assert jobs * len(job) > 7_000_000
    assert most < 500_000


def test_a_job_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    endless = chain([b'{"jobs": [{"name": "'], repeat(b"x" * (17 << 20), 3))
    with pytest.raises(RecordingError, match="a job of more than 16 MiB"):
        list(read_sacct_json(endless, name="jobs.json"))


def test_a_job_counts_as_a_gang_of_its_nodes() -> None:
    assert one(NNodes="4").nodes == 4
    # A job that waits tells what it asked for; where NNodes is no column its TRES tells.
    assert one(NNodes="", AllocTRES="gres/gpu=16,node=2").nodes == 2
    assert one(NNodes="", AllocTRES="gres/gpu=16").nodes is None
    [found] = read_sacct_json([document(allocation_nodes=3)], name="jobs.json")
    assert isinstance(found, JobRow)
    assert found.nodes == 3
