"""What a row of a table of jobs says, whoever wrote the table; and why a row says nothing."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from domain.objects import Resources
from domain.quantity import MICRO_GPU, MICRO_PER_GPU
from domain.window import CLOCK_SKEW_MS, format_instant
from domain.workload import Outcome

_MOST_MICRO_GPUS: Final = 10**6 * MICRO_PER_GPU
MILLI: Final = 1000
GPU: Final = "nvidia.com/gpu"
SHARES: Final = "nvidia.com/gpu.shared"


class Ending(StrEnum):
    """How a stay of a job ended, by what its row says; `open` while it has not."""

    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    NODE_FAILED = "node_failed"
    UNKNOWN = "unknown"

    @property
    def outcome(self) -> Outcome:
        """How the books call it."""
        return _OUTCOMES.get(self) or Outcome(self.value)


_OUTCOMES: Final = {Ending.REQUEUED: Outcome.EVICTED, Ending.NODE_FAILED: Outcome.INFRA_FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """
    One stay of a job, from its submission or re-queueing to its end; the table's own words are kept.

    `job` is the job's number, the same for each of its stays; a stay is known by it and by
    `submit_ms`. `eligible_ms` is when its owner stopped holding it back; None while he does.
    `start_ms` is None for one that never started, `end_ms` for one that is not over. `gpus` are
    units of GPU resources; `milli_cpus`, and `nodes`, over which it spread or for which it asked, are
    None where nobody tells. `told_seconds` is how long it ran by the table's own column, where there is
    one. `lines` is how many lines of the file it stands for: a line may tell of several jobs, and the
    others of them stand for none. `may_be_later` says that a stamp is of an hour that the clock of its zone
    shows twice, and nothing tells which was meant: the earlier one is taken.
    """

    line: int
    job: str
    submit_ms: int
    eligible_ms: int | None
    start_ms: int | None
    end_ms: int | None
    ending: Ending
    word: str = ""
    detail: str = ""
    name: str = ""
    team: str = ""
    user: str = ""
    queue: str = ""
    priority_class: str = ""
    node: str = ""
    gpus: Resources = field(default_factory=dict)
    gpu_model: str = ""
    milli_cpus: int | None = None
    nodes: int | None = None
    exit_code: int | None = None
    told_seconds: float | None = None
    cluster: str = ""
    lines: int = 1
    may_be_later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A line that is set aside: why, and its text."""

    line: int
    because: str
    sample: str = ""
    lines: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A line that belongs to a job of another line, such as a step of it."""

    line: int


Read: TypeAlias = JobRow | Aside | Part

NO_SUBMISSION: Final = "when it was submitted is not told"
NO_START: Final = "it ran, and when it started is not told"
NO_END: Final = "it is over, and when it ended is not told"
ENDS_EARLY: Final = "it ends before it starts"
ENDS_UNSUBMITTED: Final = "it ends before it was submitted"
OF_THE_FUTURE: Final = "of the future by this machine's clock: is the zone or the unit of its stamps right?"


def contradiction(row: JobRow) -> str:
    """
    Why the instants of a row cannot all be true; empty where they can.

    A start before the submission is left to the lifecycle, which knows how far clocks may differ.
    """
    if row.end_ms is None:
        return "" if row.ending is Ending.OPEN else NO_END
    if row.start_ms is not None and row.end_ms < row.start_ms:
        return ENDS_EARLY
    if row.start_ms is None and row.end_ms < row.submit_ms:
        return ENDS_UNSUBMITTED
    return ""


def unless_of_the_future(read: Read, now_ms: int) -> Read:
    """
    As it was read; set aside where it tells of something that has not happened yet.

    One such row would move the end of the data, and with it every question that names no instant.
    When a job will be eligible may lie ahead.
    """
    if not isinstance(read, JobRow):
        return read
    stamps = {"submitted": read.submit_ms, "started": read.start_ms, "ended": read.end_ms}
    ahead = {
        what: at_ms for what, at_ms in stamps.items() if at_ms is not None and at_ms > now_ms + CLOCK_SKEW_MS
    }
    if not ahead:
        return read
    told = ", ".join(f"{what} {format_instant(at_ms)}" for what, at_ms in ahead.items())
    return Aside(line=read.line, because=OF_THE_FUTURE, sample=f"job {read.job}: {told}", lines=read.lines)


def gpu_resources(gpus: float) -> Resources:
    """
    A number of GPUs as resources; parts of a GPU to the millionth.

    >>> gpu_resources(2), gpu_resources(0.46), gpu_resources(0)
    ({'nvidia.com/gpu': 2}, {'kai.scheduler/micro-gpu': 460000}, {})

    Raises:
        ValueError: it is no number of GPUs.
    """
    micro = round(gpus * MICRO_PER_GPU)  # NaN and infinity are ValueError and OverflowError
    if not 0 <= micro <= _MOST_MICRO_GPUS:
        message = f"{gpus:g} GPUs: expected 0 to 1,000,000"
        raise ValueError(message)
    if micro % MICRO_PER_GPU:
        return {MICRO_GPU: micro}
    return {GPU: micro // MICRO_PER_GPU} if micro else {}
