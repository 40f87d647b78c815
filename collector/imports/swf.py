"""
Standard Workload Format: 18 whole numbers a line, -1 where nobody knows; comments begin with `;`.

Submissions are seconds since the log's UnixStartTime. The format knows processors, no GPUs: what a
processor stands for says whoever reads the log.

Source: Parallel Workloads Archive, The Standard Workload Format, version 2.2.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from collector.imports.row import (
    MILLI,
    NO_SUBMISSION,
    Aside,
    Ending,
    JobRow,
    Part,
    Read,
    contradiction,
    gpu_resources,
)
from collector.imports.stamps import epoch_ms
from domain.errors import RecordingError
from domain.window import MS_PER_SECOND

NO_NUMBERS: Final = "fields that are not 18 numbers"
NO_WAIT: Final = "how long it waited is not told"
NO_RUN: Final = "how long it ran is not told"
NO_STAMP: Final = "a stamp that is none"
FIELDS: Final = 18
_HEADER: Final = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
_ENDINGS: Final = {
    0: Ending.FAILED,
    1: Ending.SUCCEEDED,
    5: Ending.CANCELLED,
}
_WORDS: Final = {0: "failed", 1: "completed", 5: "cancelled"}
# Stays of a job that was checkpointed: the line of the whole job tells the same once more.
_PARTIAL: Final = frozenset({2, 3, 4})
# A log without UnixStartTime may still tell submissions since the epoch.
_SURELY_EPOCH: Final = 100_000_000


@dataclass(slots=True)
class Log:
    """
    How a log is read, and what its header says.

    Args:
        started_ms: the instant of its second 0; None takes its UnixStartTime.
        gpus_per_processor: how many GPUs a processor stands for.
        starts_when_submitted: whether a job whose wait nobody knows started when it was submitted.
    """

    started_ms: int | None = None
    gpus_per_processor: float = 1.0
    starts_when_submitted: bool = False
    header: dict[str, str] = field(default_factory=dict)


def read_swf(lines: Iterable[bytes], log: Log, *, name: str) -> Iterator[Read]:
    """
    The jobs of a log; `log.header` fills on the way.

    Raises:
        RecordingError: there is no job in it, or nobody says when it began.
    """
    none_yet = True
    for number, raw in enumerate(lines, 1):
        line = raw.decode("utf-8", "replace").strip()
        if not line:
            continue
        if line.startswith(";"):
            if found := _HEADER.fullmatch(line):
                log.header.setdefault(found[1], found[2])
            continue
        numbers = _numbers(line)
        if numbers is None:
            yield Aside(line=number, because=NO_NUMBERS, sample=line[:300])
            continue
        if none_yet:
            _start(log, numbers[1], name)
            none_yet = False
        yield _read(numbers, log, number, line)
    if none_yet:
        message = f"{name}: no line with {FIELDS} numbers; expected a log in the Standard Workload Format"
        raise RecordingError(message)


def _start(log: Log, first: float, name: str) -> None:
    if log.started_ms is not None:
        return
    written = log.header.get("UnixStartTime", "")
    log.started_ms = _epoch_of(written.split(" ")[0])
    if log.started_ms is not None:
        return
    if first >= _SURELY_EPOCH:
        log.started_ms = 0
    else:
        found = ", ".join(log.header) or "no header"
        says = f"no UnixStartTime in its header (found {found}); expected the instant of its second 0"
        if "UnixStartTime" in log.header:
            says = f"UnixStartTime {written!r} in its header; expected seconds since 1970, more than 0"
        message = f"{name}: {says}, give it with --start"
        raise RecordingError(message)


def _epoch_of(told: str) -> int | None:
    """The instant of seconds since 1970; None for what is none, or one that no calendar of ours has."""
    try:
        return epoch_ms(int(told), scale=MS_PER_SECOND) if told.isdecimal() and told.strip("0") else None
    except (ValueError, OverflowError):
        return None


def _numbers(line: str) -> list[float] | None:
    """The first 18 fields; a log may have more of its own."""
    try:
        found = [float(text) for text in line.split(None, FIELDS)[:FIELDS]]
    except ValueError:
        return None
    finite = all(abs(number) < 1e15 for number in found)  # NaN is not
    return found if len(found) == FIELDS and finite else None


def _read(numbers: list[float], log: Log, line: int, text: str) -> Read:
    job, submit, wait, run, processors = numbers[:5]
    status = int(numbers[10])
    if status in _PARTIAL:
        return Part(line=line)
    if submit < 0:
        return Aside(line=line, because=NO_SUBMISSION, sample=text[:300])
    never_started = status == 5 and run <= 0
    if wait < 0 and log.starts_when_submitted and not never_started:
        wait = 0
    because = ""
    if wait < 0:
        because = NO_WAIT
    elif run < 0 and not never_started:
        because = NO_RUN
    if because:
        return Aside(line=line, because=because, sample=text[:300])
    asked = numbers[7] if processors <= 0 else processors
    try:
        submit_ms = epoch_ms(submit, scale=MS_PER_SECOND, origin_ms=log.started_ms or 0)
        start_ms = epoch_ms(wait, scale=MS_PER_SECOND, origin_ms=submit_ms)
        end_ms = epoch_ms(max(run, 0), scale=MS_PER_SECOND, origin_ms=start_ms)
        gpus = gpu_resources(max(asked, 0) * log.gpus_per_processor)
    except (ValueError, OverflowError):
        return Aside(line=line, because=NO_STAMP, sample=text[:300])
    row = JobRow(
        line=line,
        job=f"{int(job)}",
        submit_ms=submit_ms,
        eligible_ms=submit_ms,
        start_ms=None if never_started else start_ms,
        end_ms=end_ms,
        ending=_ENDINGS.get(status, Ending.UNKNOWN),
        word=_WORDS.get(status, ""),
        team=_named("group", numbers[12]),
        user=_named("user", numbers[11]),
        queue=_named("queue", numbers[14]),
        name=_named("application", numbers[13]),
        gpus=gpus,
        milli_cpus=round(asked * MILLI) if asked > 0 else None,
        told_seconds=None if never_started else run,
    )
    because = contradiction(row)
    return Aside(line=line, because=because, sample=text[:300]) if because else row


def _named(what: str, number: float) -> str:
    """Logs number their users, groups and queues; -1 is unknown."""
    return "" if number < 0 else f"{what}{int(number)}"
