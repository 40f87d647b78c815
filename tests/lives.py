"""Builders of facts for tests of the lifecycle: objects that say little and change at instants."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from analytics.history import Catalog, Described, History, WorkloadFacts
from domain import objects
from domain.facts import Moment, ObjectKind, Transition


def change(uid: str, kind: ObjectKind, moment: Moment, at_s: float, **more: object) -> Transition:
    """A transition at `at_s` seconds, seen when it happened."""
    at_ms = round(at_s * 1000)
    return structs.replace(
        Transition(uid=uid, kind=kind, moment=moment, at_ms=at_ms, observed_ms=at_ms),
        **more,
    )


def condition(uid: str, at_s: float, subject: str, state: str, **more: object) -> Transition:
    """A condition of a Kueue Workload."""
    return change(uid, ObjectKind.WORKLOAD, Moment.CONDITION, at_s, subject=subject, state=state, **more)


def described(body: objects.Body, from_s: float = 0) -> Described:
    """A description that holds from `from_s` seconds on."""
    return Described(from_ms=round(from_s * 1000), observed_ms=round(from_s * 1000), body=body)


def kueue_body(*, count: int = 1, gpus: int = 1, active: bool = True, **more: object) -> objects.Workload:
    """A Kueue Workload of `count` pods with `gpus` GPUs each."""
    pod_set = objects.PodSet(name="main", count=count, min_count=None, gpu_requests={"nvidia.com/gpu": gpus})
    body = objects.Workload(
        owners=(),
        job_uid="",
        labels={},
        local_queue="main",
        cluster_queue="",
        active=active,
        priority=0,
        priority_class="batch",
        pod_sets=(pod_set,),
        reserved={},
        checks={},
        evictions={},
    )
    return replace(body, **more)  # type: ignore[arg-type]


def pod_body(*, gpus: int = 1, gates: tuple[str, ...] = (), **more: object) -> objects.Pod:
    """A pod that asks for `gpus` GPUs."""
    body = objects.Pod(
        owner=None,
        labels={},
        gpu_requests={"nvidia.com/gpu": gpus},
        gates=gates,
        scheduler="default-scheduler",
        priority=0,
        priority_class="",
    )
    return structs.replace(body, **more)


def kueue(
    created_s: float, *conditions: Transition, uid: str = "w", body: objects.Workload | None = None
) -> History:
    """A Kueue Workload's history."""
    created = change(uid, ObjectKind.WORKLOAD, Moment.CREATED, created_s)
    return History(
        uid=uid,
        kind=ObjectKind.WORKLOAD,
        namespace="red",
        name=uid,
        descriptions=(described(body or kueue_body(), created_s),),
        transitions=(created, *conditions),
    )


def job_history(
    uid: str,
    *,
    parallelism: int = 1,
    gpus: int = 1,
    owner: objects.Owner | None = None,
    complete_s: float | None = None,
) -> History:
    """A batch/v1 Job's history."""
    body = objects.Job(
        owner=owner,
        labels={},
        suspend=False,
        parallelism=parallelism,
        completions=parallelism,
        gpu_requests_per_pod={"nvidia.com/gpu": gpus},
        priority_class="",
        queue="",
    )
    facts = [change(uid, ObjectKind.JOB, Moment.CREATED, 0)]
    if complete_s is not None:
        done = {"subject": "Complete", "state": "True"}
        facts.append(change(uid, ObjectKind.JOB, Moment.CONDITION, complete_s, **done))
    return History(
        uid=uid,
        kind=ObjectKind.JOB,
        namespace="red",
        name=uid,
        descriptions=(described(body),),
        transitions=tuple(facts),
    )


def pod(
    uid: str,
    created_s: float,
    *,
    bound_s: float | None = None,
    runs: Sequence[tuple[float, float | None, int | None]] = (),
    ended: tuple[float, str] | None = None,
    deleted_s: float | None = None,
    gone_s: float | None = None,
    disrupted: tuple[float, str] | None = None,
    node: str = "n1",
    body: objects.Pod | None = None,
    descriptions: Sequence[Described] = (),
) -> History:
    """A pod's history; `runs` are (start, end, exit code)."""

    def fact(moment: Moment, at_s: float, **more: object) -> Transition:
        return change(uid, ObjectKind.POD, moment, at_s, **more)

    facts = [fact(Moment.CREATED, created_s)]
    if bound_s is not None:
        facts.append(fact(Moment.BOUND, bound_s, subject=node))
    for start, end, code in runs:
        facts.append(fact(Moment.CONTAINER_STARTED, start, subject="main", state="main"))
        if end is not None:
            facts.append(fact(Moment.CONTAINER_ENDED, end, subject="main", state="main", amount=code))
    if disrupted is not None:
        at_s, reason = disrupted
        facts.append(fact(Moment.CONDITION, at_s, subject="DisruptionTarget", state="True", reason=reason))
    if deleted_s is not None:
        facts.append(fact(Moment.DELETE_REQUESTED, deleted_s))
    if ended is not None:
        facts.append(fact(Moment.ENDED, ended[0], state=ended[1]))
    if gone_s is not None:
        facts.append(fact(Moment.GONE, gone_s))
    return History(
        uid=uid,
        kind=ObjectKind.POD,
        namespace="red",
        name=uid,
        descriptions=tuple(descriptions) or (described(body or pod_body(), created_s),),
        transitions=tuple(facts),
    )


def workload_facts(
    *histories: History, uid: str | None = None, catalog: Catalog | None = None, pods_observed: bool = True
) -> WorkloadFacts:
    """The facts of one workload made of these objects."""
    queueing = tuple(h for h in histories if h.kind in (ObjectKind.WORKLOAD, ObjectKind.VOLCANO_POD_GROUP))
    jobs = tuple(h for h in histories if h.kind in (ObjectKind.JOB, ObjectKind.VOLCANO_JOB))
    pods = tuple(h for h in histories if h.kind is ObjectKind.POD)
    return WorkloadFacts(
        uid=uid or histories[0].uid,
        queueing=queueing,
        jobs=jobs,
        pods=pods,
        catalog=catalog or Catalog(),
        pods_observed=pods_observed,
    )


def before(facts: WorkloadFacts, at_s: float) -> WorkloadFacts:
    """The facts whose instants lie before `at_s` seconds."""
    limit_ms = round(at_s * 1000)

    def cut(history: History) -> History:
        return replace(
            history,
            descriptions=tuple(d for d in history.descriptions if d.from_ms < limit_ms),
            transitions=tuple(t for t in history.transitions if t.at_ms < limit_ms),
        )

    def cut_all(histories: tuple[History, ...]) -> tuple[History, ...]:
        return tuple(c for c in map(cut, histories) if c.transitions)

    return replace(
        facts, queueing=cut_all(facts.queueing), jobs=cut_all(facts.jobs), pods=cut_all(facts.pods)
    )
