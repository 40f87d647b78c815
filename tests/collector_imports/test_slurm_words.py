"""How Slurm names its jobs."""

import pytest

from collector.imports.slurm_words import job_number


@pytest.mark.parametrize(
    ("number", "jobs"),
    [
        ("7_[0-8:4,20]", ("7_0", "7_4", "7_8", "7_20")),
        ("7_[3]%1", None),
        # Cut off by sacct: nobody knows how many more there are.
        ("7_[1-3,...]", None),
        ("7_[1-3...]", None),
        ("7_[0-100000]", None),
        ("12+3.extern", ("12+3",)),
    ],
)
def test_a_number_names_its_jobs_or_none(number: str, jobs: tuple[str, ...] | None) -> None:
    found = job_number(number)
    assert (found.jobs if found is not None else None) == jobs
