"""
A small random world for the books of fairness, told to a store in any order.

Two cohorts under one root, a queue of two teams, a namespace with a ResourceQuota and bare pods, on
nodes that come, are cordoned and leave, under quotas that are edited.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from api.answers import Question
from domain import objects
from domain.facts import Batch, Description, Moment, ObjectKind, Transition
from domain.policy import Policy
from domain.quantity import Quota
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from service.fairness import Fairness
from store.embedded import Store
from store.lives import Watermark
from tests.analytics.fairness.sites import (
    GPU,
    RESOURCE,
    cohort_body,
    flavor_body,
    node_body,
    queue_body,
    quota,
)
from tests.build import Books, make_workload

CLUSTER = "north"
TABLES = ("demand_step", "share_span", "team_share_span", "pool_span")
MINUTE = 60_000
END_MIN = 600
QUEUES = ("nlp", "vision", "ads")
HOMES = {"nlp": "research", "vision": "research", "ads": "product"}


@dataclass(frozen=True)
class Life:
    """A workload's row of derived tables, all of it or what was known earlier."""

    uid: str
    queue: str
    team: str
    gpus: int
    submitted: int
    placed: int | None
    ended: int | None
    node: str

    def known_at(self, minute: int) -> "Life":
        """What was known of it by then."""
        placed = self.placed if self.placed is not None and self.placed <= minute else None
        ended = self.ended if self.ended is not None and self.ended <= minute else None
        return Life(self.uid, self.queue, self.team, self.gpus, self.submitted, placed, ended, self.node)


# ------------------------------------------------------------ the world


def description(
    kind: ObjectKind, name: str, minute: int, body: objects.Body, namespace: str = ""
) -> Description:
    return Description(
        uid=f"{kind}-{name}",
        kind=kind,
        namespace=namespace,
        name=name,
        from_ms=minute * MINUTE,
        observed_ms=minute * MINUTE,
        body=msgspec.json.encode(body),
    )


def site_of(dice: random.Random) -> list[Description | Transition]:
    """Quotas and nodes with some edits, and a node that leaves."""
    kinds = ObjectKind
    found: list[Description | Transition] = [
        description(kinds.RESOURCE_FLAVOR, "a100", 0, flavor_body(pool="a100")),
        description(kinds.COHORT, "all", 0, cohort_body("", quota("a100", dice.randrange(4)))),
        *(description(kinds.COHORT, name, 0, cohort_body("all")) for name in ("research", "product")),
        description(
            kinds.RESOURCE_QUOTA, "limit", 0, objects.ResourceQuota(hard={RESOURCE: Quota.of("2")}), "lab"
        ),
    ]
    for name in QUEUES:
        for minute in (0, *sorted(dice.sample(range(1, END_MIN), dice.randrange(3)))):
            terms = quota(
                "a100", dice.randrange(9), borrow=dice.choice((None, 0, 4)), lend=dice.choice((None, 2))
            )
            body = queue_body(HOMES[name], terms, weight=dice.choice((1000, 2000, 0)))
            found.append(description(kinds.CLUSTER_QUEUE, name, minute, body))
    for number in range(3):
        edits = (0, *sorted(dice.sample(range(1, END_MIN), dice.randrange(3))))
        bodies = [node_body(gpus=dice.choice((4, 8)), cordoned=dice.random() < 0.3) for _ in edits]
        found += [
            description(kinds.NODE, f"n{number}", minute, body)
            for minute, body in zip(edits, bodies, strict=True)
        ]
    gone_ms = dice.randrange(END_MIN // 2, END_MIN) * MINUTE
    gone = Transition(uid="Node-n2", kind=kinds.NODE, moment=Moment.GONE, at_ms=gone_ms, observed_ms=gone_ms)
    return [*found, gone]


def lives_of(dice: random.Random) -> list[Life]:
    found = []
    for number in range(dice.randrange(1, 12)):
        queue = dice.choice((*QUEUES, "", "lab"))
        submitted = dice.randrange(END_MIN)
        placed = submitted + dice.randrange(60) if dice.random() < 0.8 else None
        ended = None if placed is None or dice.random() < 0.2 else placed + dice.randrange(1, 200)
        team = dice.choice(("a", "b")) if queue == "nlp" else queue or "bare"
        node = f"n{dice.randrange(3)}"
        found.append(Life(f"w{number}", queue, team, dice.randrange(1, 5), submitted, placed, ended, node))
    return found


def write_lives(store: Store, lives: Sequence[Life]) -> None:
    """The derived rows of these workloads, as the first stage would write them."""
    books = Books(CLUSTER)
    for life in lives:
        make_workload(
            books, life.uid, gpus=life.gpus, team=life.team, queue="" if life.queue == "lab" else life.queue,
            namespace=life.queue or "bare", gang_size=1,
        )  # fmt: skip
        books.tables["workload"][-1] |= {  # type: ignore[operator]
            "submitted_ms": life.submitted * MINUTE,
            "ended_ms": None if life.ended is None else life.ended * MINUTE,
        }
        waits_until = None if life.placed is None else life.placed * MINUTE
        span = {"workload_uid": life.uid, "reason": "", "start_earliest_ms": None}
        if waits_until != life.submitted * MINUTE:
            books.add("span", **span, state="queued", start_ms=life.submitted * MINUTE, end_ms=waits_until,
                      first_wait=True)  # fmt: skip
        if life.placed is not None:
            books.add(
                "holding", workload_uid=life.uid, attempt=1, pod_uid=f"{life.uid}-0", pod_name=life.uid,
                node=life.node, gpu_model="A100", micro_gpus=life.gpus * GPU, bound_ms=life.placed * MINUTE,
                bound_earliest_ms=None, bound_source="condition", started_ms=None,
                released_ms=None if life.ended is None else life.ended * MINUTE, released_earliest_ms=None,
                phase="", restarts=0,
            )  # fmt: skip
        books.add("member", workload_uid=life.uid, object_uid=life.uid, kind="Job")
    # Lives are cut because of a fact.
    append(store, [description(ObjectKind.CRON_JOB, "tick", 0, objects.CronJob(schedule=""))])
    uids = [life.uid for life in lives]
    store.write_lives(CLUSTER, uids, books.tables, Watermark("lives", store._seq))


def job(life: Life) -> Description:
    body = objects.Job(
        owner=None, labels={}, suspend=False, parallelism=1, completions=1,
        gpu_requests_per_pod={RESOURCE: life.gpus}, priority_class="", queue=life.queue,
    )  # fmt: skip
    return structs.replace(description(ObjectKind.JOB, life.uid, life.submitted, body), uid=life.uid)


@contextmanager
def opened() -> Iterator[Store]:
    store = Store.open(None)
    try:
        yield store
    finally:
        store.close()


def books(store: Store) -> dict[str, list[str]]:
    return {table: sorted(map(repr, store.rows(f"select * from {table}"))) for table in TABLES}  # noqa: S608


def append(store: Store, facts: Sequence[Description | Transition]) -> None:
    batch = Batch(cluster=CLUSTER)
    for fact in facts:
        if isinstance(fact, Description):
            batch.descriptions.append(fact)
        else:
            batch.transitions.append(fact)
    store.append(batch)


def at_once(seed: int) -> dict[str, list[str]]:
    dice = random.Random(seed)
    facts, lives = site_of(dice), lives_of(dice)
    with opened() as store:
        append(store, [*facts, *map(job, lives)])
        write_lives(store, lives)
        Fairness(store, Policy()).refresh(CLUSTER, 0)
        return books(store)


@contextmanager
def world(seed: int) -> Iterator[Answers]:
    dice = random.Random(seed)
    facts, lives = site_of(dice), lives_of(dice)
    with opened() as store:
        append(store, [*facts, *map(job, lives)])
        write_lives(store, lives)
        Fairness(store, Policy()).refresh(CLUSTER, 0)
        yield Answers(store, Tenancy(), Policy(), FixedClock(END_MIN * MINUTE))


def values(answers: Answers, metric: str, at_ms: int, *by: str, **rest: Any) -> dict[tuple[str, ...], float]:
    rows = answers.metric(metric, Question(as_of_ms=at_ms, by=by, **rest)).rows
    return {tuple(row.labels[name] for name in by): row.value for row in rows if row.value is not None}
