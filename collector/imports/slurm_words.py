"""Slurm's words: states of jobs, and numbers of jobs, arrays and steps."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from collector.imports.row import Ending

# Source: sacct(1), JOB STATE CODES, Slurm 25.11; slurm/slurm.h, enum job_states.
STATES: Final = {
    "BOOT_FAIL": Ending.NODE_FAILED,
    "CANCELLED": Ending.CANCELLED,
    "COMPLETED": Ending.SUCCEEDED,
    "COMPLETING": Ending.OPEN,
    "CONFIGURING": Ending.OPEN,
    "DEADLINE": Ending.FAILED,
    "FAILED": Ending.FAILED,
    "LAUNCH_FAILED": Ending.NODE_FAILED,
    "NODE_FAIL": Ending.NODE_FAILED,
    "OUT_OF_MEMORY": Ending.FAILED,
    "PENDING": Ending.OPEN,
    "PREEMPTED": Ending.PREEMPTED,
    "RECONFIG_FAIL": Ending.NODE_FAILED,
    "REQUEUED": Ending.REQUEUED,
    "REQUEUE_FED": Ending.REQUEUED,
    "REQUEUE_HOLD": Ending.REQUEUED,
    "RESIZING": Ending.REQUEUED,
    "REVOKED": Ending.CANCELLED,
    "RUNNING": Ending.OPEN,
    "SIGNALING": Ending.OPEN,
    "SPECIAL_EXIT": Ending.FAILED,
    "STAGE_OUT": Ending.OPEN,
    "STOPPED": Ending.OPEN,
    "SUSPENDED": Ending.OPEN,
    "TIMEOUT": Ending.FAILED,
}
WAITING: Final = frozenset({"PENDING"})
_CODES: Final = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING",
    "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING",
    "PR": "PREEMPTED", "R": "RUNNING", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED",
    "S": "SUSPENDED", "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED",
    "TO": "TIMEOUT",
}  # fmt: skip
_NUMBER: Final = re.compile(
    r"(?P<job>\d{1,12})(?:_(?:(?P<index>\d{1,9})|\[(?P<indices>0[xX][\da-fA-F]{1,1000001}|[\d,\-:]+)(?P<cut>,?\.\.\.)?(?:%\d+)?\]))?"
    r"(?P<part>\+\d{1,6})?(?P<step>\.\S+)?"
)
# Slurm's MaxArraySize is at most 4,000,001; a row of so many pending jobs would be mostly itself.
MOST_OF_AN_ARRAY: Final = 100_000


class State(NamedTuple):
    """A state: Slurm's word, how the stay ended, and what else was said of it."""

    word: str
    ending: Ending
    detail: str


@lru_cache(maxsize=4096)
def state_of(text: str) -> State | None:
    """
    The state of a job; None for a word that is none, and for one cut off so that it may be several.

    >>> state_of("CANCELLED by 380693").detail, state_of("OUT_OF_ME+").word, state_of("RE+")
    ('by 380693', 'OUT_OF_MEMORY', None)
    """
    word, _, detail = text.strip().partition(" ")
    word = word.upper()
    if word.endswith("+"):
        begun = [known for known in STATES if known.startswith(word[:-1])]
        if len(begun) != 1:
            return None
        word = begun[0]
    word = _CODES.get(word, word)
    return State(word, STATES[word], detail.strip()) if word in STATES else None


class JobNumber(NamedTuple):
    """A job's number: those of its jobs, and whether a step of one is meant."""

    jobs: tuple[str, ...]
    is_step: bool


def job_number(text: str) -> JobNumber | None:
    """
    The jobs that a JobID names: several for the part of an array that nobody has started yet.

    None for what is no JobID, a list that was cut off, and one that would be too many.

    >>> job_number("1234_[2-4,7%2]").jobs, job_number("1234_5.batch"), job_number("88+1").jobs
    (('1234_2', '1234_3', '1234_4', '1234_7'), JobNumber(jobs=('1234_5',), is_step=True), ('88+1',))
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found["cut"]:
        return None
    job, part = found["job"], found["part"] or ""
    step = found["step"] is not None
    if found["indices"] is None:
        index = "" if found["index"] is None else f"_{found['index']}"
        return JobNumber((f"{job}{index}{part}",), step)
    try:
        indices = tuple(_indices(found["indices"]))
    except ValueError:
        return None
    return JobNumber(tuple(f"{job}_{index}{part}" for index in indices), step)


def _indices(text: str) -> Iterator[int]:
    """
    The numbers of `0-15:4,20`; ValueError where it is none, or too many.

    Slurm's database has them as a mask, of which the lowest bit is index 0: its documents may tell it so.

    >>> list(_indices("0-8:4,20")), list(_indices("0x2E"))
    ([0, 4, 8, 20], [1, 2, 3, 5])
    """
    given = 0
    if text[:2].lower() == "0x":
        mask = bin(int(text, 16))[:1:-1]
        found_at = [index for index, bit in enumerate(mask) if bit == "1"]
        if len(found_at) > MOST_OF_AN_ARRAY:
            message = f"{len(found_at)} jobs: expected at most {MOST_OF_AN_ARRAY}"
            raise ValueError(message)
        yield from found_at
        return
    for item in text.split(","):
        span, _, step = item.partition(":")
        first, dash, last = span.partition("-")
        found = range(int(first), int(last if dash else first) + 1, int(step or 1))
        given += len(found)
        if given > MOST_OF_AN_ARRAY:
            message = f"{given} jobs: expected at most {MOST_OF_AN_ARRAY}"
            raise ValueError(message)
        yield from found
