"""Documents of sacct of all versions that there are: the same job in the words of each."""

from typing import Any

import pytest

from collector.imports.row import Aside, JobRow
from collector.imports.sacct_json import UNREADABLE, read_sacct_json
from tests.collector_imports.test_sacct_json import document

SET = {"set": True, "infinite": False}
UNSET = {"set": False, "infinite": False, "number": 0}


@pytest.mark.parametrize(
    ("changes", "job", "code"),
    [
        # Slurm 21.08 to 22.05: plain numbers, null or NO_VAL for none, signal_id.
        ({"array": {"job_id": 0, "task_id": None, "task": None}, "het": {"job_id": 0, "job_offset": None},
          "exit_code": {"status": "SIGNALED", "return_code": 0,
                        "signal": {"signal_id": 9, "name": "Killed"}}},
         "100", 137),
        ({"array": {"job_id": 7, "task_id": 4294967294, "task": "0x4"}}, "7_2", 0),
        ({"array": {"job_id": 7, "task_id": 0, "task": ""}}, "7_0", 0),
        ({"het": {"job_id": 99, "job_offset": 1}}, "99+1", 0),
        # From 23.02 on: whether a number is set; words in lists.
        ({"array": {"job_id": 7, "task_id": SET | {"number": 3}, "task": ""},
          "exit_code": {"status": ["ERROR"], "return_code": SET | {"number": 2},
                        "signal": {"id": UNSET, "name": ""}}},
         "7_3", 2),
        ({"het": {"job_id": 99, "job_offset": SET | {"number": 2}},
          "exit_code": {"status": ["SIGNALED"], "return_code": UNSET,
                        "signal": {"id": SET | {"number": 15}, "name": "Terminated"}}},
         "99+2", 143),
        ({"array": {"job_id": 0, "task_id": UNSET, "task": ""}, "het": {"job_id": 0, "job_offset": UNSET}},
         "100", 0),
    ],
)  # fmt: skip
def test_documents_of_each_version_name_jobs_and_their_ends(
    changes: dict[str, Any], job: str, code: int
) -> None:
    [found] = read_sacct_json([document(**changes)], name="jobs.json")
    assert isinstance(found, JobRow)
    assert (found.job, found.exit_code) == (job, code)


INFINITE = {"set": True, "infinite": True, "number": 3}


@pytest.mark.parametrize(
    "none", [0, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, INFINITE]
)
def test_what_slurm_writes_for_no_number_is_no_instant_and_no_task(none: Any) -> None:
    waits = {"state": {"current": ["PENDING"]}, "tres": {"requested": []}}
    time = {"submission": 1_772_442_000, "eligible": none, "start": none, "end": none, "elapsed": 0}
    task = {"array": {"job_id": 7, "task_id": none, "task": ""}} if none else {}
    [found] = read_sacct_json([document(**waits, time=time, **task)], name="jobs.json")
    assert isinstance(found, JobRow)
    assert (found.eligible_ms, found.start_ms, found.end_ms, found.job) == (None, None, None, "100")


@pytest.mark.parametrize(("state", "detail"), [("CANCELLED", "by root"), ("COMPLETED", ""), ("FAILED", "")])
def test_who_killed_a_job_counts_where_it_was_cancelled(state: str, detail: str) -> None:
    [found] = read_sacct_json(
        [document(state={"current": [state]}, kill_request_user="root")], name="jobs.json"
    )
    assert isinstance(found, JobRow)
    assert (found.word, found.detail) == (state, detail)


def test_a_job_that_was_given_no_gpu_holds_none_though_it_asked_for_one() -> None:
    tres = {
        "allocated": [{"type": "mem", "name": "", "count": 1}],
        "requested": [{"type": "gres", "name": "gpu", "count": 4}],
    }
    [found] = read_sacct_json([document(tres=tres)], name="jobs.json")
    assert isinstance(found, JobRow)
    assert found.gpus == {}


@pytest.mark.parametrize(
    "field", [b'"name": "\xff\xfe"', b'"unknown": ' + b"[" * 100_000 + b"]" * 100_000], ids=["bytes", "depth"]
)
def test_a_job_that_no_decoder_takes_is_set_aside_and_the_next_one_is_read(field: bytes) -> None:
    job = document().removeprefix(b'{"meta": {}, "jobs": [').removesuffix(b"]}")
    broken = b'{"job_id": 1, "time": {}, "state": {}, %s}' % field
    aside, row = read_sacct_json([b'{"jobs": [' + broken + b", " + job + b"]}"], name="jobs.json")
    assert isinstance(aside, Aside)
    assert aside.because == UNREADABLE
    assert isinstance(row, JobRow)
