"""Documents of sacct of all versions that there are: the same job in the words of each."""

from typing import Any

import pytest

from collector.imports.row import JobRow
from collector.imports.sacct_json import read_sacct_json
from tests.collector_imports.test_sacct import document

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
