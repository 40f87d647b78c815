"""How Slurm names its jobs."""

import pytest

from collector.imports.slurm_words import job_number


@pytest.mark.parametrize(
    ("number", "jobs"),
    [
        ("7_[0-8:4,20]", ("7_0", "7_4", "7_8", "7_20")),
        ("7_[3]%1", None),
        ("7_[0x]", None),
        # Cut off by sacct: nobody knows how many more there are.
        ("7_[1-3,...]", None),
        ("7_[1-3...]", None),
        ("7_[0-100000]", None),
        ("12+3.extern", ("12+3",)),
        # As Slurm's database keeps them: a mask, of which the lowest bit is index 0.
        ("7_[0x2E]", ("7_1", "7_2", "7_3", "7_5")),
        ("7_[0x3%2]", ("7_0", "7_1")),
        ("7_[0x" + "f" * 30_000 + "]", None),
    ],
)
def test_a_number_names_its_jobs_or_none(number: str, jobs: tuple[str, ...] | None) -> None:
    found = job_number(number)
    assert (found.jobs if found is not None else None) == jobs
