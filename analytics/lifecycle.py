"""
The life of a workload: facts in, spans and attempts out.

A fold over the facts in the order of their instants. At every instant the state is a function of
what happened until then, never of what came later: an answer as of T is the life cut off at T.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from analytics.admission import admitted_stays, unless_dispatched
from analytics.claims import asked_micro_gpus, with_claims
from analytics.history import History, WorkloadFacts
from analytics.placeholders import replaced
from analytics.pods import Instant, PodCourse, is_imported, pod_course
from analytics.requests import min_members, requested_micro_gpus
from analytics.standing import Standing
from analytics.stays import Stays
from domain import objects
from domain.facts import Moment, Transition
from domain.workload import Life, MemberWait, Outcome, Span, State

SKEW_TOLERATED = timedelta(seconds=60)
_LEFT = frozenset({"pod released", "pod over", "pod gone"})


@dataclass(slots=True)
class _Step:
    """Something that happens to the workload; steps of one instant are taken in order of arrival."""

    at_ms: int
    observed_ms: int
    rank: int
    what: str
    subject: object
    detail: object = None
    earliest_ms: int | None = None


@dataclass(slots=True)
class _Course:
    """The fold's state beside standing and stays: spans so far and the first times."""

    spans: list[Span] = field(default_factory=list)
    state: State | None = None
    since_ms: int = 0
    since_earliest_ms: int | None = None
    earliest_ms: int | None = None
    reason: str = ""
    first_wait: bool = True
    first_placed_ms: int | None = None
    first_running_ms: int | None = None
    ended_ms: int | None = None
    ended_earliest_ms: int | None = None


def live(facts: WorkloadFacts, *, skew_tolerated: timedelta = SKEW_TOLERATED) -> Life:
    """
    Cut a workload's facts into spans, attempts and evictions.

    Stamps up to `skew_tolerated` before the submission count as the submission; a larger skew is
    named in `skewed`, and the workload stays out of the figures.

    Source: definitions, sections 1 and 2; states after Kueue's conditions, Volcano's phases and
    the pods themselves.
    """
    facts = unless_dispatched(facts)
    pods = replaced(tuple(pod_course(pod, catalog=facts.catalog, events=facts.events) for pod in facts.pods))
    submitted_ms = _submitted_ms(facts)
    standing = Standing.of(facts, pods)
    stays = Stays(facts=facts, min_members=min_members(facts))
    course = _Course(since_ms=submitted_ms)
    steps = sorted(
        _steps(facts, pods),
        key=lambda step: (max(step.at_ms, submitted_ms), step.observed_ms, step.rank, _last_word(step)),
    )
    position = 0
    now_ms = submitted_ms
    while True:
        taken = position
        while position < len(steps) and max(steps[position].at_ms, submitted_ms) <= now_ms:
            _take(steps[position], now_ms, standing, stays)
            position += 1
        course.earliest_ms = _earliest_ms(steps[taken:position])
        _enter(course, now_ms, standing, stays)
        if position == len(steps):
            break
        now_ms = steps[position].at_ms
    _close(course, None)
    spans, outcome = tuple(course.spans), _outcome(course, standing, stays)
    attempts, holdings = stays.attempts(), with_claims(stays.holdings(), facts)
    if not facts.pods_observed:
        attempts, holdings = admitted_stays(
            facts,
            spans=spans,
            evictions=tuple(stays.evictions),
            micro_gpus=requested_micro_gpus(facts),
            outcome=outcome,
        )
    return Life(
        submitted_ms=submitted_ms,
        first_placed_ms=course.first_placed_ms,
        first_running_ms=course.first_running_ms,
        ended_ms=course.ended_ms,
        ended_earliest_ms=course.ended_earliest_ms,
        outcome=outcome,
        spans=spans,
        attempts=attempts,
        holdings=holdings,
        evictions=tuple(stays.evictions),
        member_waits=_member_waits(pods, stays, facts),
        skewed=_skewed(steps, submitted_ms, skew_tolerated),
    )


def _submitted_ms(facts: WorkloadFacts) -> int:
    """The earlier creation of the queueing object and its job object; a pod is its own job."""
    queueing = [history.created_ms for history in facts.queueing]
    jobs = [history.created_ms for history in facts.top_jobs]
    owners = {owner.uid for history in facts.queueing for owner in _owners(history)}
    own_pods = [pod.created_ms for pod in facts.pods if pod.uid == facts.uid or pod.uid in owners]
    known = queueing + jobs + own_pods
    return min(known or [pod.created_ms for pod in facts.pods])


def _owners(history: History) -> tuple[objects.Owner, ...]:
    body = history.latest
    if isinstance(body, objects.PodGroup):
        return (body.owner,) if body.owner is not None else ()
    return body.owners if isinstance(body, objects.Workload) else ()


def _steps(facts: WorkloadFacts, pods: tuple[PodCourse, ...]) -> Iterator[_Step]:
    for history in (*facts.queueing, *facts.jobs):
        for fact in history.transitions:
            if fact.moment is not Moment.CHECKPOINT:  # what a job writes of its own work moves no state
                yield _Step(fact.at_ms, fact.observed_ms, 0, "fact", history, fact, fact.earliest_ms)
        for described in history.descriptions:
            said, earliest_ms = described.body, described.earliest_ms
            yield _Step(described.from_ms, described.observed_ms, 1, "described", history, said, earliest_ms)
    for pod in pods:
        yield from _pod_steps(pod)


def _pod_steps(pod: PodCourse) -> Iterator[_Step]:
    """
    A pod's own steps.

    Within one instant its runs come before its end, its end before its deletion; and a pod that held
    before is gone before another one is bound: a controller makes the second because of that.
    """
    # The stays of an imported job follow each other, and its stamps are whole seconds: in the one in
    # which a stay is thrown out, it holds; in the one in which the next is submitted, it is over.
    imported = is_imported(pod)
    appears = 15 if imported else 2
    yield _Step(pod.created_ms, pod.created_ms, appears, "pod created", pod)
    for start_ms, end_ms in pod.held_back:
        yield _Step(start_ms, start_ms, appears + 1, "pod held back", pod)
        if end_ms is not None:
            yield _Step(end_ms, end_ms, appears + 2, "pod let go", pod)
    bound = pod.bound
    if bound is not None:
        yield _Step(bound.at_ms, bound.at_ms, 20, "pod bound", pod, earliest_ms=bound.earliest_ms)
    if pod.started_ms is not None:
        yield _Step(pod.started_ms, pod.started_ms, 21, "pod started", pod)
    for run in pod.runs:
        yield _Step(run.start_ms, run.start_ms, 21, "run started", pod)
        if run.end_ms is not None:
            yield _Step(run.end_ms, run.end_ms, 22, "run ended", pod)
    for order, (what, when) in enumerate(_way_out(pod)):
        if when is not None:
            at_ms = when.at_ms
            left = (what in _LEFT or imported) and (bound is None or at_ms > bound.at_ms)
            rank = 10 + order if left else 30 + order
            mark = pod.disruption if what == "pod disrupted" else None
            yield _Step(at_ms, at_ms, rank, what, pod, mark, when.earliest_ms)


def _way_out(pod: PodCourse) -> list[tuple[str, Instant | None]]:
    """The steps by which a pod leaves, in order; None for one that it has not taken."""
    disrupted = Instant(at_ms=pod.disruption.at_ms) if pod.disruption else None
    asked = Instant(at_ms=pod.delete_requested_ms) if pod.delete_requested_ms is not None else None
    ended = Instant(at_ms=pod.ended_ms) if pod.ended_ms is not None else None

    def first(*instants: Instant | None) -> Instant | None:
        return min((i for i in instants if i is not None), key=lambda i: i.at_ms, default=None)

    return [
        ("pod disrupted", disrupted),
        ("pod leaving", first(asked, pod.released)),
        ("pod released", pod.released),
        ("pod over", first(ended, pod.gone, pod.released)),
        ("pod gone", pod.gone),
    ]


def _last_word(step: _Step) -> bool:
    """Of pods that end at one instant the one that succeeded ends last, whichever is named first."""
    pod = step.subject
    return step.what == "pod over" and isinstance(pod, PodCourse) and pod.phase == "Succeeded"


def _take(step: _Step, now_ms: int, standing: Standing, stays: Stays) -> None:
    if isinstance(step.subject, PodCourse):
        stays.take(step.what, step.subject, now_ms)
        return
    history = step.subject
    assert isinstance(history, History)
    if isinstance(step.detail, Transition):
        evicted = standing.take(history, step.detail)
        if evicted is not None:
            stays.evict(evicted)
        if step.detail.subject == "QuotaReserved" and step.detail.state == "True":
            stays.begin_anew()
    else:
        for missed in standing.describe(history, step.detail):
            stays.evict(missed)


def _enter(course: _Course, now_ms: int, standing: Standing, stays: Stays) -> None:
    """Note the state after all steps of an instant."""
    if course.first_placed_ms is None:
        course.first_placed_ms = stays.placed_ms
    if stays.has_run and course.first_running_ms is None:
        course.first_running_ms = now_ms
    state, reason = standing.state(stays)
    if not standing.pods_observed and state is State.RUNNING and course.first_placed_ms is None:
        course.first_placed_ms = course.first_running_ms = now_ms
    if state is State.ENDED and course.ended_ms is None:
        course.ended_ms = now_ms
        course.ended_earliest_ms = standing.ended_earliest_ms
    elif state is not State.ENDED:
        course.ended_ms = course.ended_earliest_ms = None
    first_wait = state.waits and course.first_placed_ms is None
    if (state, first_wait) == (course.state, course.first_wait):
        return
    _close(course, now_ms)
    course.state, course.reason, course.first_wait, course.since_ms = state, reason, first_wait, now_ms
    course.since_earliest_ms = course.earliest_ms


def _close(course: _Course, end_ms: int | None) -> None:
    """End the open span; one of no length is dropped: nothing lasted."""
    if course.state is None or end_ms == course.since_ms:
        return
    last = course.spans[-1] if course.spans else None
    if last is not None and (last.state, last.first_wait) == (course.state, course.first_wait):
        course.spans.pop()
        course.since_ms, course.reason = last.start_ms, last.reason
        course.since_earliest_ms = last.start_earliest_ms
    course.spans.append(
        Span(
            state=course.state,
            start_ms=course.since_ms,
            end_ms=end_ms,
            reason=course.reason,
            first_wait=course.first_wait,
            start_earliest_ms=course.since_earliest_ms,
        )
    )


def _earliest_ms(steps: list[_Step]) -> int | None:
    """When a change may have happened at the earliest; None where one of its stamps is exact."""
    bounds = [step.earliest_ms for step in steps]
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known and len(known) == len(bounds) else None


def _outcome(course: _Course, standing: Standing, stays: Stays) -> Outcome:
    if course.ended_ms is None:
        return Outcome.OPEN
    return standing.outcome(stays)


def _member_waits(pods: tuple[PodCourse, ...], stays: Stays, facts: WorkloadFacts) -> tuple[MemberWait, ...]:
    """Waits of pods that were not needed for the placement of their attempt, or replace a lost one."""
    waits = []
    for pod in pods:
        start_ms = stays.member_wait_from(pod)
        if start_ms is None or pod.body is None:
            continue
        over = pod.gone.at_ms if pod.gone else pod.ended_ms
        end_ms = pod.bound.at_ms if pod.bound else over
        if end_ms is not None and end_ms <= start_ms:
            continue
        stretch = facts.catalog.at(pod.node, pod.bound.at_ms) if pod.bound else None
        quantity = asked_micro_gpus(facts, pod.body, stretch)
        waits.append(MemberWait(pod_uid=pod.uid, start_ms=start_ms, end_ms=end_ms, micro_gpus=quantity))
    return tuple(waits)


def _skewed(steps: list[_Step], submitted_ms: int, tolerated: timedelta) -> tuple[str, ...]:
    """Names of stamps that lie further before the submission than clocks may differ."""
    limit_ms = submitted_ms - tolerated // timedelta(milliseconds=1)
    return tuple(
        f"{step.what} {(submitted_ms - step.at_ms) / 1000:g} s before the submission"
        for step in steps
        if step.at_ms < limit_ms and _has_own_stamp(step)
    )


def _has_own_stamp(step: _Step) -> bool:
    if isinstance(step.subject, PodCourse):
        return step.what != "pod created"
    return isinstance(step.detail, Transition) and step.detail.moment is not Moment.CREATED
