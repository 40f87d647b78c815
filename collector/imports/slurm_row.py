"""From what sacct tells of a job, in whichever format, to rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from collector.imports.row import (
    MILLI,
    NO_START,
    NO_SUBMISSION,
    Aside,
    Ending,
    JobRow,
    Part,
    Read,
    contradiction,
)
from collector.imports.slurm_words import WAITING, State, job_number, state_of
from collector.imports.tres import Gpus, Size, gpus_in_gres, gpus_in_tres, size_in_tres, told_count
from domain.errors import QuantityError
from domain.window import MS_PER_HOUR, MS_PER_SECOND

NO_JOB: Final = "a JobID that is none or was cut off"
NO_STATE: Final = "a state that Slurm does not have, or one that was cut off"
NO_GPUS: Final = "a count of GPUs that is none, or one of each node without a count of nodes"
RAN_LONGER: Final = "Elapsed is longer than Start and End are apart"
RAN_SHORTER: Final = "Elapsed is shorter than Start and End are apart, and no suspension explains it"
# Slurm rounds each stamp to the second by itself, and a clock may be set while a job runs.
_TOLERATED_MS: Final = 60 * MS_PER_SECOND
# Without the column Suspended, so much at most may be one: a longer one is told by that column.
_LONGEST_SUSPENSION_MS: Final = 7 * 24 * MS_PER_HOUR
_UNASSIGNED: Final = "none assigned"
_EXIT: Final = re.compile(r"(-?\d{1,9}):(\d{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One record of sacct; texts are as they stand there, empty where a column is missing."""

    line: int
    job_id: str
    state: str
    submit_ms: int | None
    eligible_ms: int | None
    start_ms: int | None
    end_ms: int | None
    elapsed_seconds: float | None = None
    suspended_seconds: float | None = None
    cluster: str = ""
    account: str = ""
    user: str = ""
    partition: str = ""
    qos: str = ""
    name: str = ""
    node_list: str | None = None
    cpu_count: str = ""
    node_count: str = ""
    allocated: str = ""
    requested: str = ""
    allocated_gres: str = ""
    requested_gres: str = ""
    exit_code: str = ""
    sample: str = ""
    may_be_later: bool = False


def rows_of(told: Told) -> Iterator[Read]:
    """
    The jobs of a record: one, those of an array's part that waits, or why it is set aside.

    A job that was cancelled while it waited has Start = End and no node: it never started.
    """
    number = job_number(told.job_id)
    if number is None:
        yield _aside(told, NO_JOB)
        return
    if number.is_step:
        yield Part(line=told.line)
        return
    state = state_of(told.state)
    if state is None:
        yield _aside(told, NO_STATE)
        return
    try:
        gpus = _gpus(told, started=_started(told, state))
    except QuantityError:
        yield _aside(told, NO_GPUS)
        return
    row = _row(told, state, gpus, number.jobs[0])
    because = _trouble(row, state) or _trouble_of_length(row, told) if row is not None else NO_SUBMISSION
    if row is None or because:
        yield _aside(told, because)
        return
    yield row
    for job in number.jobs[1:]:
        other = _row(told, state, gpus, job, lines=0)
        assert other is not None
        yield other


def _row(told: Told, state: State, gpus: Gpus, job: str, *, lines: int = 1) -> JobRow | None:
    if told.submit_ms is None:
        return None
    started = _started(told, state)
    over = state.ending is not Ending.OPEN
    node = told.node_list or ""
    size = _size(told, started=started)
    return JobRow(
        line=told.line,
        job=job,
        submit_ms=told.submit_ms,
        eligible_ms=told.eligible_ms,
        start_ms=told.start_ms if started else None,
        end_ms=told.end_ms if over else None,
        ending=state.ending,
        word=state.word,
        detail=state.detail,
        name=told.name,
        team=told.account,
        user=told.user,
        queue=told.partition,
        priority_class=told.qos,
        node="" if node.lower() == _UNASSIGNED else node,
        gpus=gpus.resources,
        gpu_model=gpus.model,
        milli_cpus=None if size.cpus is None else size.cpus * MILLI,
        nodes=size.nodes,
        exit_code=_exit_code(told.exit_code) if started and over else None,
        told_seconds=told.elapsed_seconds if started else None,
        cluster=told.cluster,
        lines=lines,
        may_be_later=told.may_be_later,
    )


def _trouble(row: JobRow, state: State) -> str:
    ran = state.ending is Ending.SUCCEEDED or (state.ending is Ending.OPEN and state.word not in WAITING)
    if ran and row.start_ms is None:
        return NO_START
    return contradiction(row)


def _trouble_of_length(row: JobRow, told: Told) -> str:
    """
    Why its length cannot be true beside its stamps; empty where it can, or nobody tells.

    Slurm leaves the time in which a job was suspended out of its length.
    """
    if row.start_ms is None or row.end_ms is None or row.told_seconds is None:
        return ""
    apart_ms = row.end_ms - row.start_ms - row.told_seconds * MS_PER_SECOND
    if apart_ms < -_TOLERATED_MS:
        return RAN_LONGER
    if told.suspended_seconds is None:
        return RAN_SHORTER if apart_ms > _LONGEST_SUSPENSION_MS else ""
    suspended_ms = told.suspended_seconds * MS_PER_SECOND
    return RAN_SHORTER if apart_ms - suspended_ms > _TOLERATED_MS else ""


def _started(told: Told, state: State) -> bool:
    if told.start_ms is None or state.word in WAITING:
        return False
    if state.ending in {Ending.SUCCEEDED, Ending.OPEN}:
        return True
    if told.node_list is not None and told.node_list.lower() == _UNASSIGNED:
        return False
    return not (state.ending is Ending.CANCELLED and told.start_ms == told.end_ms and not told.node_list)


def _gpus(told: Told, *, started: bool) -> Gpus:
    """What it was given, once it had started; else what it asked for."""
    given, asked = (told.allocated, told.allocated_gres), (told.requested, told.requested_gres)
    for tres, gres in (given, asked) if started else (asked, given):
        if tres:
            return gpus_in_tres(tres)
        if gres:
            return gpus_in_gres(gres, _nodes_of_gres(told, started=started))
    return Gpus({}, "")


def _nodes_of_gres(told: Told, *, started: bool) -> int | None:
    """How many nodes have what the older list tells of each; None where nobody tells."""
    one_name = told.node_list and re.fullmatch(r"[\w.-]+", told.node_list)
    return _size(told, started=started).nodes or (1 if one_name and started else None)


def _size(told: Told, *, started: bool) -> Size:
    """As `_gpus`; a count that the list leaves out may stand in a column of its own."""
    given, asked = told.allocated, told.requested
    size = size_in_tres((given or asked) if started else (asked or given))
    cpus = told_count(told.cpu_count) if size.cpus is None else size.cpus
    return Size(cpus=cpus, nodes=told_count(told.node_count) or size.nodes)


def _exit_code(text: str) -> int | None:
    """The shell's way: what the job returned, or 128 and the signal that ended it."""
    found = _EXIT.fullmatch(text)
    if found is None:
        return None
    code, signal = int(found[1]), int(found[2])
    return code or (128 + signal if signal else 0)


def _aside(told: Told, because: str) -> Aside:
    return Aside(line=told.line, because=because, sample=told.sample or told.job_id)
