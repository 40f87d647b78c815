"""Laws of the lifecycle, on random facts: also on facts that no sane cluster would produce."""

from hypothesis import example, given
from hypothesis import strategies as st

from analytics.history import Catalog, History, NodeStretch, WorkloadFacts
from analytics.lifecycle import live
from domain.facts import Moment
from domain.quantity import MICRO_PER_GPU
from domain.workload import Life, Span, State
from tests.lives import before, condition, kueue, kueue_body, pod, pod_body, workload_facts

GPUS = {"a": 1, "b": 2, "c": 4}
SECONDS = st.integers(0, 60).map(float)
CATALOG = Catalog(nodes={"n1": [NodeStretch(from_ms=0, gone_ms=None, model="A100", replicas=1)]})


@st.composite
def pods(draw: st.DrawFn, uid: str) -> History:
    """A pod whose course is in order, and may stop anywhere; some are deleted and never end."""
    stamps = sorted(draw(st.lists(SECONDS, min_size=8, max_size=8)))
    created, bound, start, stop, again, stop_again, end, gone = stamps
    progress = draw(st.integers(0, 7))
    runs: list[tuple[float, float | None, int | None]] = []
    if progress >= 2:
        runs.append((start, stop if progress >= 3 else None, 1 if progress >= 3 else None))
    if progress >= 4:
        runs.append((again, stop_again if progress >= 5 else None, 0 if progress >= 5 else None))
    vanished = progress == 7 and draw(st.booleans())
    disrupted = (stop, "PreemptionByScheduler") if progress >= 3 and draw(st.booleans()) else None
    return pod(
        uid,
        created,
        bound_s=bound if progress >= 1 else None,
        runs=runs,
        ended=(end, draw(st.sampled_from(["Succeeded", "Failed"])))
        if progress >= 6 and not vanished
        else None,
        deleted_s=end if progress == 7 and draw(st.booleans()) else None,
        gone_s=gone if progress == 7 or (progress == 0 and draw(st.booleans())) else None,
        disrupted=disrupted,
        body=pod_body(gpus=GPUS[uid]),
    )


@st.composite
def queueings(draw: st.DrawFn) -> History:
    """A Kueue Workload with conditions in any order of any truth."""
    names = st.sampled_from(["QuotaReserved", "Admitted", "Evicted", "Requeued", "Finished", "Preempted"])
    found = draw(st.lists(st.tuples(SECONDS, names, st.sampled_from(["True", "False"])), max_size=10))
    found.sort(key=lambda item: item[0])
    conditions = [condition("w", at, name, state, reason="Preempted") for at, name, state in found]
    return kueue(0, *conditions, body=kueue_body(count=draw(st.integers(1, 2))))


@st.composite
def workloads(draw: st.DrawFn) -> WorkloadFacts:
    """A workload of up to three pods, with or without a queue."""
    members = [draw(pods(uid)) for uid in ("a", "b", "c")[: draw(st.integers(0, 3))]]
    queueing = [draw(queueings())] if not members or draw(st.booleans()) else []
    return workload_facts(*queueing, *members, uid="w", catalog=CATALOG)


def cut_off(spans: tuple[Span, ...], at_ms: int) -> list[tuple[State, int, int | None, bool]]:
    """Spans as they are known at an instant: those that began before it, open if they end later."""
    return [
        (s.state, s.start_ms, s.end_ms if s.end_ms is not None and s.end_ms < at_ms else None, s.first_wait)
        for s in spans
        if s.start_ms < at_ms
    ]


@given(workloads())
def test_spans_neither_overlap_nor_leave_a_hole(facts: WorkloadFacts) -> None:
    life = live(facts)
    assert life.spans
    assert life.spans[0].start_ms == life.submitted_ms
    for span, following in zip(life.spans, life.spans[1:], strict=False):
        assert span.end_ms == following.start_ms
        assert span.start_ms < span.end_ms
        assert (span.state, span.first_wait) != (following.state, following.first_wait)
    assert life.spans[-1].end_ms is None


@given(workloads(), st.integers(1, 61))
def test_an_answer_as_of_an_instant_needs_only_facts_from_before_it(facts: WorkloadFacts, at_s: int) -> None:
    early = before(facts, at_s)
    if not (early.queueing or early.jobs or early.pods):
        return
    known, whole = live(early), live(facts)
    at_ms = at_s * 1000
    assert cut_off(known.spans, at_ms) == cut_off(whole.spans, at_ms)
    assert known.first_placed_ms == (
        whole.first_placed_ms if whole.first_placed_ms is not None and whole.first_placed_ms < at_ms else None
    )
    assert [(a.number, a.start_ms) for a in known.attempts] == [
        (a.number, a.start_ms) for a in whole.attempts if a.start_ms < at_ms
    ]
    assert [e.at_ms for e in known.evictions] == [e.at_ms for e in whole.evictions if e.at_ms < at_ms]


def held_ms(pod: History) -> int | None:
    """How long a pod held its GPUs, from its facts as they came; None while it does, or never did."""
    bound = [fact.at_ms for fact in pod.transitions if fact.moment is Moment.BOUND]
    ends = [fact.at_ms for fact in pod.transitions if fact.moment in (Moment.ENDED, Moment.GONE)]
    return min(ends) - bound[0] if bound and ends else None


def gpu_ms(life: Life, attempt: int | None = None) -> int:
    """Micro-GPU-milliseconds of the holdings that have ended, of one attempt or of all."""
    return sum(
        (h.micro_gpus or 0) * (h.released_ms - h.bound_ms)
        for h in life.holdings
        if h.released_ms is not None and attempt in (None, h.attempt)
    )


@given(workloads())
def test_what_pods_hold_sums_to_what_attempts_hold(facts: WorkloadFacts) -> None:
    life = live(facts)
    expected = {pod.uid: held_ms(pod) for pod in facts.pods if pod.first(Moment.BOUND) is not None}
    found = {h.pod_uid: None if h.released_ms is None else h.released_ms - h.bound_ms for h in life.holdings}
    assert found == expected
    total = sum(GPUS[uid] * MICRO_PER_GPU * length for uid, length in expected.items() if length)
    assert gpu_ms(life) == total
    assert sum(gpu_ms(life, attempt.number) for attempt in life.attempts) == total
    for attempt in life.attempts:
        members = [h for h in life.holdings if h.attempt == attempt.number]
        ends = [h.released_ms for h in members]
        known = [end for end in ends if end is not None]
        assert attempt.start_ms == min(h.bound_ms for h in members)
        assert attempt.end_ms == (max(known) if len(known) == len(ends) else None)


# Two pods of which one failed and one succeeded in the same instant.
ONE_OF_TWO = workload_facts(
    pod("a", 0, bound_s=1, runs=[(2, 3, 1)], ended=(3, "Failed")),
    pod("b", 0, bound_s=1, runs=[(2, 3, 0)], ended=(3, "Succeeded")),
    uid="w",
    catalog=CATALOG,
)


@given(workloads())
@example(ONE_OF_TWO)
def test_a_life_does_not_depend_on_the_order_in_which_objects_are_given(facts: WorkloadFacts) -> None:
    turned = workload_facts(*facts.queueing, *reversed(facts.pods), uid="w", catalog=CATALOG)
    assert live(turned).spans == live(facts).spans
