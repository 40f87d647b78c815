"""What is asked of the cluster: ordinary work from a seed, and a few arranged stories."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from sample_data.site import FLAVORS, TEAMS, USERS, Flavor
from sample_data.stamps import MS_PER_MINUTE, MS_PER_SECOND


class Course(StrEnum):
    """How a job goes once it runs, or that somebody stops it."""

    SUCCEEDS = "succeeds"
    FAILS = "fails"
    CRASH_LOOPS = "crash_loops"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    One thing that a user submits: a Job under Kueue or, without a queue, a bare Pod.

    Times are milliseconds from the start of the recording. It runs for `run_ms`, or until
    `until_ms` where that is set. `cancel_ms` is when its user deletes it, `keep_ms` how long it
    stays in the API after its end (`ttlSecondsAfterFinished`). `mark` names an arranged story.
    """

    name: str
    team: str
    user: str
    priority_class: str
    flavor: str
    gpus: int
    submit_ms: int
    run_ms: int = 0
    until_ms: int | None = None
    pods: int = 1
    course: Course = Course.SUCCEEDS
    cancel_ms: int | None = None
    keep_ms: int | None = None
    queue: str = "main"
    gate: str = ""
    mark: str = ""

    @property
    def hardware(self) -> Flavor:
        """The flavor that it asks for."""
        return FLAVORS[self.flavor]

    @property
    def resource(self) -> str:
        """The resource name that its pods request."""
        return self.hardware.resource

    @property
    def total(self) -> int:
        """Devices of all pods together."""
        return self.gpus * self.pods


INTERACTIVE_LATE = "interactive_waits_9_minutes"
BATCH_LATE = "batch_waits_70_minutes"
VICTIM = "preempted_and_requeued"
PREEMPTOR = "preempts"
NEVER_FITS = "never_fits"
GATED = "gated"
CRASH_LOOP = "crash_loop"
GANG = "gang_of_4"
BARE_POD = "bare_pod"

_JOBS = {
    "vision": ("detector", "segment", "depth", "tracker"),
    "nlp": ("finetune", "embed", "rerank", "distill"),
    "ads": ("ctr", "bidding", "uplift"),
}
_NOTEBOOKS = 140
_BATCH_JOBS = 96
_LENGTH_MINUTES = 120


def demand(rng: Random) -> list[Request]:
    """Everything that is submitted in the two hours, in order of submission."""
    requests = [*_notebooks(rng), *_batch_jobs(rng), *_arranged()]
    return sorted(requests, key=lambda request: (request.submit_ms, request.name))


def _notebooks(rng: Random) -> list[Request]:
    """Short interactive sessions on the time-sliced node; at most a minute of waiting."""
    requests = []
    for number in range(_NOTEBOOKS):
        team = rng.choice(TEAMS)
        requests.append(
            Request(
                name=f"notebook-{number:03d}",
                team=team,
                user=rng.choice(USERS[team]),
                priority_class="interactive",
                flavor="l4-shared",
                gpus=1,
                submit_ms=_some_time(rng, first_minute=0.2, last_minute=119),
                run_ms=rng.randint(90, 640) * MS_PER_SECOND,
                course=Course.FAILS if rng.random() < 0.03 else Course.SUCCEEDS,
                keep_ms=600 * MS_PER_SECOND if rng.random() < 0.3 else None,
            )
        )
    return requests


def _batch_jobs(rng: Random) -> list[Request]:
    """Training and batch work that nearly fills the A100 nodes."""
    requests = []
    for number in range(_BATCH_JOBS):
        team = rng.choice(TEAMS)
        # Only one class in the preempting queue, so that it preempts in the arranged story alone.
        classes = (
            ("training",) if team == "vision" else ("training", "training", "batch", "batch", "best-effort")
        )
        submit_ms = _some_time(rng, first_minute=0.1, last_minute=112)
        cancelled = rng.random() < 0.05
        requests.append(
            Request(
                name=f"{rng.choice(_JOBS[team])}-{number:03d}",
                team=team,
                user=rng.choice(USERS[team]),
                priority_class=rng.choice(classes),
                flavor="a100",
                gpus=rng.choices((1, 2, 4, 8), weights=(40, 30, 22, 8))[0],
                pods=rng.choices((1, 2), weights=(9, 1))[0],
                submit_ms=submit_ms,
                run_ms=rng.randint(180, 1260) * MS_PER_SECOND,
                course=_course(rng, cancelled=cancelled),
                cancel_ms=submit_ms + rng.randint(20, 400) * MS_PER_SECOND if cancelled else None,
                keep_ms=900 * MS_PER_SECOND if rng.random() < 0.25 else None,
            )
        )
    return requests


def _course(rng: Random, *, cancelled: bool) -> Course:
    fails = rng.random() < 0.06
    if cancelled:
        return Course.CANCELLED
    return Course.FAILS if fails else Course.SUCCEEDS


def _some_time(rng: Random, *, first_minute: float, last_minute: float) -> int:
    return round(rng.uniform(first_minute, last_minute) * MS_PER_MINUTE)


def _arranged() -> list[Request]:
    """
    The stories that the demo tells. Only they use the H100 nodes.

    NLP owns 8 H100 and may not borrow. `foundation` holds them until minute 80. `pretrain` queues
    for them at minute 32, the interactive `eval-session` at minute 71. The session outranks the
    training, so it goes first at minute 80 (9 minutes) and the training at 102 (70 minutes).
    In vision, `sweep` (best-effort) is preempted by `release` at minute 25 and goes on at 60.
    """

    def minute(at: float) -> int:
        return round(at * MS_PER_MINUTE)

    def whole_node(  # noqa: PLR0913 - a story has that many parts
        name: str, *, team: str, user: str, priority_class: str, at: float, until: float, mark: str = ""
    ) -> Request:
        return Request(
            name=name,
            team=team,
            user=user,
            priority_class=priority_class,
            flavor="h100",
            gpus=8,
            submit_ms=minute(at),
            until_ms=minute(until),
            mark=mark,
        )

    late = 2 * _LENGTH_MINUTES
    return [
        whole_node("foundation", team="nlp", user="emil", priority_class="training", at=0.5, until=80),
        whole_node(
            "pretrain",
            team="nlp",
            user="goran",
            priority_class="training",
            at=32,
            until=late,
            mark=BATCH_LATE,
        ),
        whole_node(
            "eval-session",
            team="nlp",
            user="hye",
            priority_class="interactive",
            at=71,
            until=102,
            mark=INTERACTIVE_LATE,
        ),
        whole_node(
            "sweep", team="vision", user="dara", priority_class="best-effort", at=1, until=115, mark=VICTIM
        ),
        whole_node(
            "release", team="vision", user="ana", priority_class="training", at=25, until=60, mark=PREEMPTOR
        ),
        Request(
            name="colossus",
            team="ads",
            user="kofi",
            priority_class="best-effort",
            flavor="a100",
            gpus=8,
            pods=8,
            submit_ms=minute(20),
            run_ms=minute(60),
            mark=NEVER_FITS,
        ),
        Request(
            name="ranker-debug",
            team="ads",
            user="ines",
            priority_class="batch",
            flavor="a100",
            gpus=1,
            submit_ms=minute(0.7),
            course=Course.CRASH_LOOPS,
            mark=CRASH_LOOP,
        ),
        Request(
            name="llm-ddp",
            team="nlp",
            user="fatima",
            priority_class="training",
            flavor="a100",
            gpus=2,
            pods=4,
            submit_ms=minute(2),
            run_ms=minute(35),
            mark=GANG,
        ),
        Request(
            name="probe",
            team="platform",
            user="lena",
            priority_class="batch",
            flavor="l4-shared",
            gpus=1,
            submit_ms=minute(3),
            run_ms=minute(95),
            queue="",
            mark=BARE_POD,
        ),
        Request(
            name="nightly-report",
            team="platform",
            user="lena",
            priority_class="batch",
            flavor="l4-shared",
            gpus=1,
            submit_ms=minute(45),
            run_ms=minute(5),
            queue="",
            gate="platform.example/data-ready",
            mark=GATED,
        ),
    ]
