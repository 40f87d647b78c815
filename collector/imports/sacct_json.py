"""
What `sacct --json` prints: one document with a list of jobs, their steps within them.

It is read job by job: memory does not grow with the document. Only the fields that are kept are decoded.
Numbers are plain, or `{set, infinite, number}` in newer versions of Slurm's data parser; an instant of 0
is none.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from collector.imports.json_list import ListInDocument
from collector.imports.row import Aside, Part, Read
from collector.imports.slurm_row import Told, rows_of
from collector.imports.stamps import epoch_ms
from domain.errors import RecordingError
from domain.window import MS_PER_SECOND

UNREADABLE: Final = "a job whose fields are not those of sacct"
NO_STAMP: Final = "a stamp that is none"
ENDS_WITHIN: Final = "the document ends before its last brace"
MORE_FOLLOWS: Final = "more follows the document's list of jobs: a file holds one document"
HAS_ERRORS: Final = "the document tells of errors of sacct: jobs may be missing"
_MOST_SAMPLE: Final = 300
# NO_VAL and INFINITE of slurm.h: no instant.
_UNKNOWN: Final = frozenset({0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF})
_NO_VALUES: Final = _UNKNOWN | {0}


class _Optional(msgspec.Struct):
    set: bool = False
    infinite: bool = False
    number: float = 0


_Number: TypeAlias = int | float | _Optional | None
_Words: TypeAlias = str | list[str] | None


class _Time(msgspec.Struct):
    elapsed: _Number = None
    eligible: _Number = None
    end: _Number = None
    start: _Number = None
    submission: _Number = None
    suspended: _Number = None


class _State(msgspec.Struct):
    current: _Words = None


class _Resource(msgspec.Struct):
    type: str = ""
    name: str | None = ""
    count: _Number = 0


class _Tres(msgspec.Struct):
    allocated: list[_Resource] | None = None
    requested: list[_Resource] | None = None


class _Array(msgspec.Struct):
    job_id: _Number = 0
    task_id: _Number = None
    task: str | None = ""


class _Het(msgspec.Struct):
    job_id: _Number = 0
    job_offset: _Number = None


class _Signal(msgspec.Struct):
    """The parsers up to Slurm 23.02 call it `signal_id`."""

    id: _Number = None
    signal_id: _Number = None


class _Exit(msgspec.Struct):
    return_code: _Number = 0
    signal: _Signal | None = None


class _Job(msgspec.Struct):
    job_id: int
    time: _Time
    state: _State
    name: str | None = ""
    account: str | None = ""
    user: str | None = ""
    partition: str | None = ""
    qos: str | None = ""
    cluster: str | None = ""
    nodes: str | None = ""
    allocation_nodes: _Number = None
    tres: _Tres | None = None
    array: _Array | None = None
    het: _Het | None = None
    exit_code: _Exit | None = None
    kill_request_user: str | None = ""
    steps: list[msgspec.Raw] | None = None


_JOB: Final = msgspec.json.Decoder(_Job)


def read_sacct_json(pieces: Iterable[bytes], *, name: str) -> Iterator[Read]:
    """
    The jobs of a document; each counts as a line, and so does each of its steps.

    Args:
        pieces: the document's bytes, cut anywhere.
        name: of the file.

    Raises:
        RecordingError: it is no document of sacct.
    """
    jobs = ListInDocument(pieces, key="jobs", beside="errors", name=name)
    number = 0
    for raw in jobs:
        number += 1
        sample = raw[:_MOST_SAMPLE].decode("utf-8", "replace")
        try:
            job = _JOB.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield Aside(line=number, because=UNREADABLE, sample=sample)
            continue
        try:
            told = _told(job, number, sample)
        except (ValueError, OverflowError):
            yield Aside(line=number, because=NO_STAMP, sample=sample)
        else:
            yield from rows_of(told)
        for _ in job.steps or ():
            number += 1
            yield Part(line=number)
    if not jobs.found:
        message = f"{name}: not a document of sacct; expected what sacct --json prints, with a list jobs"
        raise RecordingError(message)
    # An empty list of errors is none.
    if errors := jobs.beside[1:-1].strip()[:_MOST_SAMPLE].decode("utf-8", "replace"):
        if not number:
            message = f"{name}: no jobs, and sacct's errors: {errors}; export again when it answers"
            raise RecordingError(message)
        number += 1
        yield Aside(line=number, because=HAS_ERRORS, sample=errors)
    if jobs.has_more or not jobs.complete:
        yield Aside(line=number + 1, because=MORE_FOLLOWS if jobs.has_more else ENDS_WITHIN)


def _told(job: _Job, line: int, sample: str) -> Told:
    words = job.state.current
    word = words if isinstance(words, str) else next(iter(words or ()), "")
    killer, nodes = job.kill_request_user, _number(job.allocation_nodes)
    tres = job.tres or _Tres()
    return Told(
        line=line,
        job_id=_job_id(job),
        state=f"{word} by {killer}" if killer and word == "CANCELLED" else word,
        submit_ms=_instant(job.time.submission),
        eligible_ms=_instant(job.time.eligible),
        start_ms=_instant(job.time.start),
        end_ms=_instant(job.time.end),
        elapsed_seconds=_number(job.time.elapsed),
        suspended_seconds=_number(job.time.suspended),
        cluster=job.cluster or "",
        account=job.account or "",
        user=job.user or "",
        partition=job.partition or "",
        qos=job.qos or "",
        name=job.name or "",
        node_list=job.nodes or "",
        node_count="" if nodes is None else str(int(nodes)),
        allocated=_tres(tres.allocated),
        requested=_tres(tres.requested),
        exit_code=_exit_code(job.exit_code),
        sample=sample,
    )


def _job_id(job: _Job) -> str:
    """The JobID as sacct's text writes it."""
    if job.array is not None and (array := int(_number(job.array.job_id) or 0)):
        if job.array.task:
            return f"{array}_[{job.array.task}]"
        task = _number(job.array.task_id)
        if task is not None and task not in _UNKNOWN:
            return f"{array}_{int(task)}"
    if job.het is not None and (first := int(_number(job.het.job_id) or 0)):
        return f"{first}+{int(_number(job.het.job_offset) or 0)}"
    return str(job.job_id)


def _exit_code(told: _Exit | None) -> str:
    if told is None:
        return ""
    signal = (
        None if told.signal is None else told.signal.signal_id if told.signal.id is None else told.signal.id
    )
    return f"{int(_number(told.return_code) or 0)}:{int(_number(signal) or 0)}"


def _tres(resources: list[_Resource] | None) -> str:
    """As the text writes them: `cpu=8,gres/gpu:a100=4`."""
    kept = [one for one in resources or () if one.type in {"gres", "cpu", "node"}]
    names = [f"{one.type}/{one.name}" if one.name else one.type for one in kept]
    counts = [int(_number(one.count) or 0) for one in kept]
    told = ",".join(f"{name}={count}" for name, count in zip(names, counts, strict=True))
    return told or ("none=0" if resources else "")


def _number(told: _Number) -> float | None:
    if isinstance(told, _Optional):
        return told.number if told.set and not told.infinite else None
    return told


def _instant(told: _Number) -> int | None:
    seconds = _number(told)
    if seconds is None or seconds in _NO_VALUES:
        return None
    return epoch_ms(seconds, scale=MS_PER_SECOND)
