"""
From a row of a table of jobs to facts: a job, and a pod for each of its stays.

The same lifecycle that reads pods of a cluster cuts the waits and attempts. A row is known by its
job and its submission, and has a version: how far the stay had come, and what it says.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET
from typing_extensions import override

from collector.imports.row import Ending, JobRow
from domain.facts import Description, Moment, ObjectKind, Transition
from domain.objects import Body, ImportedJob, Owner, Pod

JOB: Final = ObjectKind.IMPORTED_JOB
POD: Final = ObjectKind.POD
# What keeps a stay back until its row says that it is eligible; no queueing system owns such a gate.
GATE: Final = "imported-job/eligible"
_CONTAINER: Final = "job"
_PENDING: Final = "Pending"
_OVER: Final = "Over"
_PHASES: Final = {Ending.SUCCEEDED: "Completed", Ending.FAILED: "Failed"}
_DISRUPTIONS: Final = {
    Ending.PREEMPTED: "PreemptedByBatchScheduler",
    Ending.REQUEUED: "Requeued",
    Ending.NODE_FAILED: "NodeFailure",
}
_POD_PHASES: Final = {Ending.SUCCEEDED: "Succeeded", Ending.FAILED: "Failed", Ending.UNKNOWN: "Unknown"}
_BODY: Final = msgspec.json.Encoder(order="deterministic")


class Version(NamedTuple):
    """
    How far a stay had come when its row was written, and a fingerprint of what the row says.

    Of two versions the greater one counts, in whatever order they are read.
    """

    progress: int
    digest: str

    @classmethod
    def parse(cls, text: str) -> "Version":
        """The version that `str` wrote."""
        progress, _, digest = text.partition(":")
        return cls(int(progress), digest)

    @override
    def __str__(self) -> str:
        return f"{self.progress}:{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFacts:
    """All that a row says, of its stay (a pod) and of its job."""

    row: JobRow
    pod_uid: str
    job_uid: str
    version: Version
    of_pod: tuple[Transition, ...]
    of_job: tuple[Transition, ...]
    descriptions: tuple[Description, ...]
    job_description: Description


def version_of(row: JobRow) -> Version:
    """The version of a row."""
    if row.end_ms is not None:
        progress = 4
    elif row.start_ms is not None:
        progress = 3
    else:
        progress = 2 if row.eligible_ms is not None else 1
    said = (
        *(row.eligible_ms, row.start_ms, row.end_ms, row.ending, row.word, row.detail, row.name, row.team),
        *(row.user, row.queue, row.priority_class, row.node, sorted(row.gpus.items()), row.gpu_model),
        row.exit_code,
    )
    if row.milli_cpus is None and row.nodes is None:
        return Version(progress, _digest(said))
    # A row that tells its size says more than the same one read before sizes were: so it counts.
    return Version(progress, f"size-{_digest((*said, row.milli_cpus, row.nodes))}")


def _digest(said: tuple[object, ...]) -> str:
    return blake2b(repr(said).encode(), digest_size=8).hexdigest()


def job_uid(row: JobRow) -> str:
    """The workload's identity within its cluster."""
    return f"job/{row.job}"


def pod_uid(row: JobRow) -> str:
    """The identity of one stay."""
    return f"job/{row.job}@{row.submit_ms}"


def facts(row: JobRow) -> RowFacts:
    """The transitions and descriptions that a row tells."""
    return RowFacts(
        row=row,
        pod_uid=pod_uid(row),
        job_uid=job_uid(row),
        version=version_of(row),
        of_pod=tuple(_of_pod(row)),
        of_job=tuple(_of_job(row)),
        descriptions=tuple(_pod_descriptions(row)),
        job_description=_described(row, job_uid(row), JOB, row.submit_ms, _job_body(row)),
    )


def _of_pod(row: JobRow) -> list[Transition]:
    uid, start_ms, end_ms = pod_uid(row), row.start_ms, row.end_ms
    found = [_transition(uid, POD, Moment.CREATED, row.submit_ms)]
    if start_ms is not None:
        found.append(_transition(uid, POD, Moment.BOUND, start_ms, subject=row.node))
        found.append(
            _transition(uid, POD, Moment.CONTAINER_STARTED, start_ms, subject=_CONTAINER, state="main")
        )
    if end_ms is None:
        return found
    if start_ms is not None:
        found.append(
            _transition(
                uid,
                POD,
                Moment.CONTAINER_ENDED,
                end_ms,
                subject=_CONTAINER,
                state="main",
                reason=row.word,
                amount=row.exit_code,
            )
        )
    phase = _POD_PHASES.get(row.ending)
    if phase is not None:
        found.append(_transition(uid, POD, Moment.ENDED, end_ms, state=phase, reason=row.word))
        return found
    if row.ending in _DISRUPTIONS:
        found.append(
            _transition(
                uid,
                POD,
                Moment.CONDITION,
                end_ms,
                subject="DisruptionTarget",
                state="True",
                reason=_DISRUPTIONS[row.ending],
                detail=row.word,
            )
        )
    else:
        found.append(
            _transition(uid, POD, Moment.DELETE_REQUESTED, end_ms, reason=row.word, detail=row.detail)
        )
    found.append(_transition(uid, POD, Moment.GONE, end_ms))
    return found


def _of_job(row: JobRow) -> list[Transition]:
    uid = job_uid(row)
    found = [
        _transition(uid, JOB, Moment.CREATED, row.submit_ms),
        # Where one stay ends as the next is submitted, the end comes first: see below.
        _transition(uid, JOB, Moment.PHASE, row.submit_ms, state=_PENDING, after_ms=1),
    ]
    if row.end_ms is not None:
        # A job that is over in the second of its submission was submitted first.
        after_ms = 0 if row.end_ms > row.submit_ms else 2
        phase = _PHASES.get(row.ending, _OVER)
        found.append(
            _transition(uid, JOB, Moment.PHASE, row.end_ms, state=phase, reason=row.word, after_ms=after_ms)
        )
    return found


def _transition(  # noqa: PLR0913 (the fields of a fact)
    uid: str,
    kind: ObjectKind,
    moment: Moment,
    at_ms: int,
    *,
    subject: str = "",
    state: str = "",
    reason: str = "",
    detail: str = "",
    amount: int | None = None,
    after_ms: int = 0,
) -> Transition:
    """
    A transition at the table's own stamp.

    It counts as observed when it happened: `after_ms` only puts facts of one instant into their order.
    """
    return Transition(
        uid=uid,
        kind=kind,
        moment=moment,
        at_ms=at_ms,
        observed_ms=at_ms + after_ms,
        subject=subject,
        state=state,
        reason=reason,
        detail=detail,
        amount=amount,
    )


def _pod_descriptions(row: JobRow) -> list[Description]:
    uid = pod_uid(row)
    held_until_ms = row.eligible_ms
    if held_until_ms is None and row.start_ms is None:
        return [_described(row, uid, POD, row.submit_ms, _pod_body(row, gates=(GATE,)))]
    free = _pod_body(row, gates=())
    if held_until_ms is None or held_until_ms <= row.submit_ms:
        return [_described(row, uid, POD, row.submit_ms, free)]
    # A row may call a job eligible after it started or ended; then nobody held it back any longer.
    ends = [stamp for stamp in (row.start_ms, row.end_ms) if stamp is not None]
    free_ms = max(min([held_until_ms, *ends]), row.submit_ms)
    return [
        _described(row, uid, POD, row.submit_ms, _pod_body(row, gates=(GATE,))),
        _described(row, uid, POD, free_ms, free),
    ]


def _described(row: JobRow, uid: str, kind: ObjectKind, from_ms: int, body: Body) -> Description:
    return Description(
        uid=uid,
        kind=kind,
        namespace=row.team,
        name=row.job,
        from_ms=from_ms,
        observed_ms=from_ms,
        body=_BODY.encode(body),
    )


def _pod_body(row: JobRow, *, gates: tuple[str, ...]) -> Pod:
    return Pod(
        owner=Owner(api_group="", kind=JOB, name=row.job, uid=job_uid(row)),
        labels={},
        gpu_requests=row.gpus,
        gates=gates,
        scheduler="",
        priority=0,
        priority_class=row.priority_class,
        gpu_model=row.gpu_model,
        milli_cpus=UNSET if row.milli_cpus is None else row.milli_cpus,
        nodes=UNSET if row.nodes is None else row.nodes,
    )


def _job_body(row: JobRow) -> ImportedJob:
    labels = {"user": row.user, "job-name": row.name}
    return ImportedJob(
        owner=None,
        labels={key: value for key, value in labels.items() if value},
        min_member=1,
        nodes=row.nodes or 1,
        queue=row.queue,
        priority_class=row.priority_class,
    )
