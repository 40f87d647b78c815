"""A metric at many instants is what it is at each of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.metrics import REGISTRY
from analytics.over_time import MOST_ONE_BY_ONE, MOST_SWEPT, Instants
from api.answers import MetricAnswer, Question
from domain.errors import UsageError
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.view import View
from domain.window import FixedClock
from service.answers import Answers
from store.embedded import Store
from tests.laws import law
from tests.random_lives import CLUSTER, HOUR, Tables, random_lives, write

SWEPT = sorted(metric.name for metric in REGISTRY.values() if metric.stretches)
END = 48 * HOUR
QUESTIONS = (
    Question(by=()),
    Question(by=("queue",)),
    Question(by=("gpu_model", "service_class"), filters={"queue": ("q",)}),
    Question(filters={"gpu_model": ("A100", "")}),
    Question(by=("team", "queue"), view=View(teams={"a"}, queues={(CLUSTER, "r")})),
)


def world(random: Random) -> Tables:
    """Random lives; a third waited all the time, which three instants of their own tell, as of most work."""
    tables = random_lives(random, workloads=40, end_ms=END)
    plain = {row["workload_uid"]: row for row in tables["workload"] if random.random() < 0.3}
    tables["span"] = [row for row in tables["span"] if row["workload_uid"] not in plain]
    for uid, row in plain.items():
        placed_ms = row["submitted_ms"] + random.choice((0, 1, HOUR // 2, 20 * HOUR))
        row |= {"first_placed_ms": placed_ms, "ended_ms": None}
        if random.random() < 0.3:
            row |= {"first_placed_ms": None, "ended_ms": placed_ms}
        if placed_ms > row["submitted_ms"]:
            span = {"cluster": CLUSTER, "workload_uid": uid, "state": "queued", "first_wait": True}
            tables["span"].append(span | {"start_ms": row["submitted_ms"], "end_ms": placed_ms})
    for row in tables["workload"]:
        if random.random() < 0.2:
            row["requested_micro_gpus"] = None
    tables["queue_span"] = [
        {"cluster": CLUSTER, "queue": "q", "kind": "ClusterQueue", "start_ms": start, "end_ms": end}
        for start, end in ((3 * HOUR, 9 * HOUR), (14 * HOUR, random.choice((None, 20 * HOUR))))
    ]
    return tables


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.open(None)
    yield store
    store.close()


def answers(store: Store) -> Answers:
    return Answers(store, Tenancy(), Policy(), FixedClock(END))


def seen_by(view: View | None, _at_ms: int) -> View | None:
    """The same at each instant."""
    return view


def plain(answer: MetricAnswer) -> MetricAnswer:
    """Without hints, of which the last answer alone has any."""
    return replace(answer, hints=())


@law(9, few=2)
@given(st.integers(0, 2**32), st.integers(0, 30 * HOUR), st.sampled_from((1, 7 * HOUR, 90 * 60_000)))
def test_a_sweep_tells_what_each_instant_tells(seed: int, first_ms: int, step_ms: int) -> None:
    store = Store.open(None)
    write(store, world(Random(seed)))
    instants = Instants.between(first_ms, min(first_ms + 3 * step_ms, END), step_ms)
    for name in SWEPT:
        for question in QUESTIONS:
            swept = answers(store).metric_at(name, question, instants, partial(seen_by, question.view))
            assert [plain(one) for one in swept] == [
                plain(answers(store).metric(name, replace(question, as_of_ms=at_ms))) for at_ms in instants
            ], (name, question)
    store.close()


def test_a_law_of_nothing_proves_nothing(store: Store) -> None:
    """In the worlds of the law somebody waits, again too, requests are unknown, and a queue is gone."""
    write(store, world(Random(1)))
    instants = Instants.between(0, END, 90 * 60_000)
    asked = Question(by=("queue", "team", "service_class", "gpu_model"))
    swept = answers(store).metric_at("queue_depth_gpus", asked, instants)
    rows = [row for one in swept for row in one.rows]
    assert any(row.lower_bound for row in rows)
    assert any(row.value and row.labels["gpu_model"] for row in rows)
    zeros = {one.as_of_ms: [row for row in one.rows if row.value == 0] for one in swept}
    of_queue = {at_ms: {row.labels["queue"] for row in found} for at_ms, found in zeros.items()}
    assert "q" in of_queue[9 * HOUR]
    assert "q" not in of_queue[12 * HOUR]


def test_a_metric_without_stretches_is_asked_for_each_instant(store: Store) -> None:
    write(store, random_lives(Random(2), workloads=9, end_ms=END))
    instants = Instants.between(END - 3 * HOUR, END, HOUR)
    asked = Question(window=timedelta(hours=5), filters={"team": ("nobody",)})
    found = answers(store).metric_at("queue_wait_seconds", asked, instants)
    assert [one.as_of_ms for one in found] == list(instants)
    assert found == [
        answers(store).metric("queue_wait_seconds", replace(asked, as_of_ms=at)) for at in instants
    ]
    assert found[-1].hints


@pytest.mark.parametrize(("name", "most"), [(SWEPT[0], MOST_SWEPT), ("held_gpus", MOST_ONE_BY_ONE)])
def test_too_many_instants_are_refused(store: Store, name: str, most: int) -> None:
    with pytest.raises(UsageError, match=f"at most {most}; take a longer step"):
        answers(store).metric_at(name, Question(), Instants(first_ms=0, step_ms=1, number=most + 1))


def test_a_range_into_the_future_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="nothing is known of the time after"):
        answers(store).metric_at(SWEPT[0], Question(), Instants.between(0, 10 * END, END))


def test_a_range_needs_an_order_and_a_step() -> None:
    with pytest.raises(UsageError, match="expected a start that is not after the end"):
        Instants.between(2, 1, 1)
    with pytest.raises(UsageError, match="expected a length above 0"):
        Instants.between(1, 2, 0)
    assert list(Instants.between(1, 6, 2)) == [1, 3, 5]
