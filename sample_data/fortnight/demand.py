"""What is asked of the cluster in two weeks: ordinary work by day and night, from a seed."""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from sample_data.fortnight.site import GPU, MIG_LARGE, MIG_SMALL, SHARED_GPU, Kind

MS_PER_MINUTE = 60_000
MS_PER_HOUR = 3_600_000
MS_PER_DAY = 86_400_000
_WEEKEND = (5, 6)
_MONDAY_MS = 4 * MS_PER_DAY  # 1970-01-05 was a Monday


class Course(StrEnum):
    """How a job goes once it runs."""

    SUCCEEDS = "succeeds"
    FAILS = "fails"
    CRASH_LOOPS = "crash_loops"
    RETRIES = "retries"


class Work(StrEnum):
    """What its GPUs do while it runs."""

    TRAINS = "trains"
    INPUT_BOUND = "input_bound"
    EXPLORES = "explores"
    SLEEPS = "sleeps"
    SLEEPS_FULL = "sleeps_full"
    LEAVES_GPUS_IDLE = "leaves_gpus_idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    One thing that a user submits: a Job under Kueue or, in a namespace without a queue, a bare Pod.

    Instants are milliseconds of the epoch. It runs for `run_ms`; a crash loop crashes after each
    `crash_after_ms` and a retried job `crashes` times. `cancel_ms` is when its user deletes it.
    It publishes a checkpoint each `checkpoint_ms`; 0: never. `mark` names an arranged story.
    """

    name: str
    namespace: str
    user: str
    priority_class: str
    flavor: str
    resource: str
    gpus: int
    submit_ms: int
    run_ms: int
    work: Work
    pods: int = 1
    course: Course = Course.SUCCEEDS
    crash_after_ms: int = 0
    crashes: int = 0
    cancel_ms: int | None = None
    checkpoint_ms: int = 0
    slow_start: bool = False
    binds_one_by_one: bool = False
    mark: str = ""

    @property
    def kind(self) -> Kind:
        """The flavor and resource that it asks for."""
        return self.flavor, self.resource

    @property
    def total(self) -> int:
        """Devices of all pods together."""
        return self.gpus * self.pods


@dataclass(slots=True, kw_only=True)
class Calendar:
    """Draws instants with a rhythm: offices by day, pipelines by night, less at weekends."""

    rng: Random
    start_ms: int
    end_ms: int

    def some_time(self, *, weekend: float, first_hour: float, peak_hour: float, last_hour: float) -> int:
        """An instant; a day of a weekend is drawn `weekend` times as often as another one."""
        days = range((self.end_ms - self.start_ms) // MS_PER_DAY + 1)
        first = self.start_ms - self.start_ms % MS_PER_DAY
        weights = [weekend if self._is_weekend(first + day * MS_PER_DAY) else 1.0 for day in days]
        while True:
            day = self.rng.choices(days, weights=weights)[0]
            hour = self.rng.triangular(first_hour, last_hour, peak_hour)
            at_ms = first + day * MS_PER_DAY + round(hour * MS_PER_HOUR)
            if self.start_ms <= at_ms < self.end_ms - MS_PER_MINUTE:
                return at_ms

    def _is_weekend(self, at_ms: int) -> bool:
        return (at_ms - _MONDAY_MS) // MS_PER_DAY % 7 in _WEEKEND


@dataclass(slots=True, kw_only=True)
class Demand:
    """Draws requests. `share` scales their number with the cluster and the time, `width` gangs."""

    rng: Random
    calendar: Calendar
    share: float
    nodes_of_h100: int
    users: dict[str, tuple[str, ...]]
    _count: int = 0

    def all(self) -> list[Request]:
        """Everything that is submitted, in order of submission."""
        drawn = [
            *self._notebooks(round(700 * self.share)),
            *self._small_inference(round(260 * self.share)),
            *self._trainings(round(190 * self.share), flavor="a100"),
            *self._trainings(round(64 * self.share), flavor="h100"),
            *self._batch(round(740 * self.share)),
            *self._sweeps(round(420 * self.share)),
            *self._evaluations(round(150 * self.share)),
            *self._starved(round(125 * self.share)),
            *self._bare(round(90 * self.share)),
        ]
        return sorted(drawn, key=lambda request: (request.submit_ms, request.name))

    def name(self, stem: str) -> str:
        """A name that no other request has."""
        self._count += 1
        return f"{stem}-{self._count:04d}"

    def _office(self, weekend: float = 0.15) -> int:
        return self.calendar.some_time(weekend=weekend, first_hour=7.5, peak_hour=13.0, last_hour=18.5)

    def _any_time(self) -> int:
        return self.calendar.some_time(weekend=0.45, first_hour=0.0, peak_hour=15.0, last_hour=24.0)

    def _hours(self, *, median: float, spread: float, most: float) -> int:
        drawn = self.rng.lognormvariate(0.0, spread) * median
        return round(max(0.02, min(drawn, most)) * MS_PER_HOUR)

    def _notebooks(self, count: int) -> list[Request]:
        """Interactive sessions on time-sliced cards."""
        found = []
        for _ in range(count):
            team = self.rng.choices(
                ("vision", "nlp", "speech", "ads", "robotics"), weights=(26, 26, 14, 24, 10)
            )[0]
            work = Work.EXPLORES if self.rng.random() < 0.75 else Work.SLEEPS
            found.append(
                Request(
                    name=self.name("notebook"),
                    namespace="vision-lab" if team == "vision" and self.rng.random() < 0.4 else team,
                    user=self.rng.choice(self.users[team]),
                    priority_class="interactive",
                    flavor="l40s",
                    resource=SHARED_GPU,
                    gpus=1,
                    submit_ms=self._office(),
                    run_ms=self._hours(median=4, spread=0.8, most=13),
                    work=work,
                    course=Course.FAILS if self.rng.random() < 0.02 else Course.SUCCEEDS,
                )
            )
        return found

    def _small_inference(self, count: int) -> list[Request]:
        """Interactive and batch work on MIG instances."""
        found = []
        for _ in range(count):
            team = self.rng.choice(("vision", "nlp", "speech", "ads", "robotics"))
            found.append(
                Request(
                    name=self.name("infer"),
                    namespace=team,
                    user=self.rng.choice(self.users[team]),
                    priority_class=self.rng.choice(("interactive", "batch", "batch")),
                    flavor="mig",
                    resource=MIG_SMALL,
                    gpus=1,
                    submit_ms=self._office(weekend=0.4),
                    run_ms=self._hours(median=1.6, spread=1.0, most=20),
                    work=self.rng.choices((Work.INPUT_BOUND, Work.EXPLORES, Work.SLEEPS_FULL), (5, 4, 1))[0],
                )
            )
        return found

    def _trainings(self, count: int, *, flavor: str) -> list[Request]:
        """Gangs of whole nodes or halves for hours and days, most with checkpoints."""
        found = []
        h100 = flavor == "h100"
        weights = (50, 42, 0, 8) if h100 else (50, 36, 1, 13)
        for _ in range(count):
            team = self.rng.choices(("vision", "nlp", "ads", "robotics"), weights)[0]
            wide = self.rng.random() < (0.4 if h100 else 0.25)
            found.append(
                Request(
                    name=self.name(self.rng.choice(("pretrain", "finetune", "distill", "detector"))),
                    namespace="atlas" if team == "vision" and self.rng.random() < 0.25 else team,
                    user=self.rng.choice(self.users[team]),
                    priority_class="training",
                    flavor=flavor,
                    resource=GPU,
                    gpus=8 if wide else 4,
                    pods=self._members(flavor),
                    submit_ms=self._early() if self.rng.random() < 0.12 else self._any_time(),
                    run_ms=self._hours(median=17, spread=0.8, most=88),
                    work=Work.TRAINS if self.rng.random() < 0.85 else Work.INPUT_BOUND,
                    course=Course.FAILS if self.rng.random() < 0.06 else Course.SUCCEEDS,
                    checkpoint_ms=self.rng.choice((40, 60, 90)) * MS_PER_MINUTE
                    if self.rng.random() < 0.8
                    else 0,
                    slow_start=self.rng.random() < 0.2,
                )
            )
        return found

    def _members(self, flavor: str) -> int:
        """Pods of a gang: seldom more than two nodes' worth."""
        if flavor != "h100":
            return self.rng.choices((1, 2, 3), weights=(12, 7, 1))[0]
        return min(self.rng.choices((1, 2, 3), weights=(5, 4, 1))[0], self.nodes_of_h100)

    def _early(self) -> int:
        """In the first hours: a cluster does not begin empty."""
        return self.calendar.start_ms + self.rng.randint(1, 150) * MS_PER_MINUTE

    def _batch(self, count: int) -> list[Request]:
        """Ordinary jobs of 1 to 4 A100, minutes to hours; some nightly."""
        found = []
        for _ in range(count):
            team = self.rng.choices(("vision", "nlp", "ads", "robotics"), (32, 28, 26, 14))[0]
            nightly = self.rng.random() < 0.25
            submit_ms = (
                self.calendar.some_time(weekend=0.9, first_hour=0.5, peak_hour=2.0, last_hour=5.0)
                if nightly
                else self._any_time()
            )
            works, weights = (Work.TRAINS, Work.INPUT_BOUND, Work.LEAVES_GPUS_IDLE), (70, 27, 3)
            if team == "ads":
                weights = (34, 30, 36)
            request = Request(
                name=self.name(
                    "nightly" if nightly else self.rng.choice(("embed", "rerank", "segment", "ctr"))
                ),
                namespace=team,
                user=self.rng.choice(self.users[team]),
                priority_class=self.rng.choice(("batch", "batch", "training")),
                flavor="a100",
                resource=GPU,
                gpus=self.rng.choices((1, 2, 4), (50, 32, 18))[0],
                pods=2 if self.rng.random() < 0.06 else 1,
                submit_ms=submit_ms,
                run_ms=self._hours(median=1.1, spread=1.1, most=16),
                work=self.rng.choices(works, weights)[0],
                checkpoint_ms=45 * MS_PER_MINUTE if self.rng.random() < 0.12 else 0,
                slow_start=self.rng.random() < 0.05,
            )
            found.append(self._with_trouble(request, wasteful=team == "ads"))
        return found

    def _with_trouble(self, request: Request, *, wasteful: bool) -> Request:
        """Some fail, some are tried again, some are given up by their users."""
        drawn = self.rng.random() / (3 if wasteful else 1)
        if drawn < 0.03:
            return replace(request, course=Course.FAILS)
        if drawn < 0.05 and request.pods == 1:
            return replace(
                request,
                course=Course.RETRIES,
                crashes=self.rng.randint(1, 3),
                crash_after_ms=self.rng.randint(8, 100) * MS_PER_MINUTE,
            )
        if drawn < 0.08:
            return replace(request, cancel_ms=request.submit_ms + self.rng.randint(2, 240) * MS_PER_MINUTE)
        return request

    def _sweeps(self, count: int) -> list[Request]:
        """Best-effort trials in bursts of one user."""
        found: list[Request] = []
        while len(found) < count:
            team = self.rng.choices(("nlp", "vision", "robotics"), (3, 2, 1))[0]
            user, begin_ms = self.rng.choice(self.users[team]), self._any_time()
            for _ in range(self.rng.randint(4, 24)):
                at_ms = min(begin_ms + self.rng.randint(0, 90_000), self.calendar.end_ms - MS_PER_MINUTE)
                found.append(
                    Request(
                        name=self.name("sweep"),
                        namespace=team,
                        user=user,
                        priority_class="best-effort",
                        flavor="a100",
                        resource=GPU,
                        gpus=1,
                        submit_ms=at_ms,
                        run_ms=self._hours(median=1.8, spread=0.6, most=9),
                        work=Work.TRAINS if self.rng.random() < 0.8 else Work.INPUT_BOUND,
                        checkpoint_ms=30 * MS_PER_MINUTE if team == "nlp" else 0,
                    )
                )
        return found[:count]

    def _evaluations(self, count: int) -> list[Request]:
        """Short interactive jobs on H100."""
        found = []
        for _ in range(count):
            team = self.rng.choices(("vision", "nlp", "robotics"), (4, 5, 1))[0]
            found.append(
                Request(
                    name=self.name("eval"),
                    namespace=team,
                    user=self.rng.choice(self.users[team]),
                    priority_class="interactive",
                    flavor="h100",
                    resource=GPU,
                    gpus=self.rng.choice((1, 1, 2)),
                    submit_ms=self._office(),
                    run_ms=self._hours(median=0.35, spread=0.7, most=3),
                    work=Work.TRAINS,
                )
            )
        return found

    def _starved(self, count: int) -> list[Request]:
        """Speech: asks for what it owns, and waits for those who borrowed it."""
        found = []
        for _ in range(count):
            h100 = self.rng.random() < 0.3
            found.append(
                Request(
                    name=self.name("asr"),
                    namespace="speech",
                    user=self.rng.choice(self.users["speech"]),
                    priority_class=self.rng.choice(("training", "batch")),
                    flavor="h100" if h100 else "a100",
                    resource=GPU,
                    gpus=4 if h100 else self.rng.choice((4, 8, 8)),
                    submit_ms=self._any_time(),
                    run_ms=self._hours(median=9, spread=0.7, most=48),
                    work=Work.TRAINS,
                    checkpoint_ms=60 * MS_PER_MINUTE,
                )
            )
        return found

    def _bare(self, count: int) -> list[Request]:
        """Plain pods: large MIG sessions, and memory-resident notebooks of the wasteful team."""
        found = []
        for number in range(count):
            resident = number % 9 == 0
            space, team = ("ads-notebooks", "ads") if resident or number % 2 else ("platform", "platform")
            found.append(
                Request(
                    name=self.name("jupyter" if space == "ads-notebooks" else "probe"),
                    namespace=space,
                    user=self.rng.choice(self.users[team]),
                    priority_class="interactive" if space == "ads-notebooks" else "batch",
                    flavor="a100" if resident else "mig",
                    resource=GPU if resident else MIG_LARGE,
                    gpus=1,
                    submit_ms=self._office(weekend=0.3),
                    run_ms=self._hours(median=26 if resident else 5, spread=0.6, most=90),
                    work=Work.SLEEPS_FULL if resident else self.rng.choice((Work.EXPLORES, Work.SLEEPS)),
                )
            )
        return found
