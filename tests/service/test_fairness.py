"""The stage of fairness on a store: whatever the order of arrival, the books are those of a single sweep."""

import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.entitlement import entitlement
from api.answers import ReportQuestion
from api.reports import REPORTS
from dashboard.views.fairness import LEDGER, OF_POOL, STATES
from domain import objects
from domain.errors import StoreError
from domain.facts import Description, ObjectKind, Transition
from domain.policy import Policy
from domain.quantity import Quota
from service.fairness import Fairness
from store.lives import Watermark
from tests.analytics.fairness.sites import GPU, RESOURCE
from tests.laws import law
from tests.service.fairness_world import (
    CLUSTER,
    END_MIN,
    HOMES,
    MINUTE,
    QUEUES,
    Life,
    append,
    at_once,
    books,
    job,
    lives_of,
    opened,
    site_of,
    values,
    world,
    write_lives,
)

# ------------------------------------------------------------ any order of arrival


@pytest.mark.slow
@law(15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_order_of_arrival_gives_the_books_of_a_single_sweep(seed: int) -> None:
    dice = random.Random(seed)
    facts, lives = site_of(dice), lives_of(dice)
    chance = random.Random(seed + 1)
    chance.shuffle(facts)
    with opened() as store:
        stage = Fairness(store, Policy())
        append(store, list(map(job, lives)))
        while facts or lives:
            part, facts = facts[: (k := chance.randrange(1, 6))], facts[k:]
            append(store, part)
            told = chance.sample(lives, min(len(lives), chance.randrange(3)))
            done = [life for life in told if chance.random() < 0.6 or not facts]
            lives = [life for life in lives if life not in done]
            early = [life.known_at(chance.randrange(END_MIN)) for life in told if life not in done]
            write_lives(store, [*done, *early])
            stage.refresh(CLUSTER, 0)
            if chance.random() < 0.3:
                stage = Fairness(store, Policy())
        assert books(store) == at_once(seed)


@pytest.mark.slow
@law(8, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_workload_that_vanishes_leaves_no_trace(seed: int) -> None:
    dice = random.Random(seed)
    facts, lives = site_of(dice), lives_of(dice)
    ghost = Life("ghost", "nlp", lives[0].team, 3, 5, 30, 90, "n0")
    with opened() as store:
        append(store, [*facts, *map(job, [*lives, ghost])])
        write_lives(store, [*lives, ghost])
        stage = Fairness(store, Policy())
        stage.refresh(CLUSTER, 0)
        store.write_lives(CLUSTER, ["ghost"], {}, Watermark("lives", store._seq + 1))
        stage.refresh(CLUSTER, 0)
        assert books(store) == at_once(seed)


@pytest.mark.slow
@law(8, deadline=None)
@given(seed=st.integers(0, 2**32), workloads=st.integers(1, 4), changes=st.integers(1, 9))
def test_parts_of_time_and_a_stop_between_them_give_the_books_of_a_single_sweep(
    seed: int, workloads: int, changes: int
) -> None:
    dice = random.Random(seed)
    facts, lives = site_of(dice), lives_of(dice)
    with opened() as store:
        append(store, [*facts, *map(job, lives)])
        # What is swept at first is swept from the beginning; what comes later, from where it differs.
        write_lives(store, lives[: len(lives) // 2])
        Fairness(store, Policy(), workloads=workloads, changes=changes).refresh(CLUSTER, 0)
        write_lives(store, lives[len(lives) // 2 :])
        stops = random.Random(seed)
        keep = store.replace

        def keep_or_stop(*given: Any) -> None:
            if stops.random() < 0.2:
                raise StoreError
            keep(*given)

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(store, "replace", keep_or_stop)
            for _ in range(9):
                with suppress(StoreError):
                    Fairness(store, Policy(), workloads=workloads, changes=changes).refresh(CLUSTER, 0)
        Fairness(store, Policy(), workloads=workloads, changes=changes).refresh(CLUSTER, 0)
        assert books(store) == at_once(seed)
        assert store.rows("select * from unswept") == []


def test_nothing_new_is_no_work() -> None:
    with opened() as store:
        append(store, site_of(random.Random(1)))
        write_lives(store, lives_of(random.Random(1)))
        stage = Fairness(store, Policy())
        assert stage.refresh(CLUSTER, 0) > 0
        assert stage.refresh(CLUSTER, 0) == 0


@pytest.mark.parametrize("moment", ["rows", "frame", "cut_since", "facts_of"])
def test_a_life_that_is_cut_while_the_stage_reads_is_booked_the_next_time(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(1)
    facts, lives = site_of(dice), lives_of(dice)
    with opened() as store:
        append(store, [*facts, *map(job, lives)])
        write_lives(store, lives[:-1])
        read, late = getattr(store, moment), lives[-1:]

        def then_cut(*given: Any, **named: Any) -> Any:
            found = read(*given, **named)
            if late:
                write_lives(store, [late.pop()])
            return found

        monkeypatch.setattr(store, moment, then_cut)
        stage = Fairness(store, Policy())
        stage.refresh(CLUSTER, 0)
        monkeypatch.undo()
        assert late == []
        stage.refresh(CLUSTER, 0)
        assert books(store) == at_once(1)


def test_another_half_life_makes_another_ledger() -> None:
    with opened() as store:
        append(store, site_of(random.Random(1)))
        write_lives(store, lives_of(random.Random(1)))
        Fairness(store, Policy()).refresh(CLUSTER, 0)
        before = books(store)
        Fairness(store, Policy(debt_half_life=timedelta(hours=1))).refresh(CLUSTER, 0)
        assert books(store)["demand_step"] == before["demand_step"]
        assert books(store)["share_span"] != before["share_span"]


# ------------------------------------------------------------ laws, through the store


@pytest.mark.slow
@law(12, deadline=None)
@given(seed=st.integers(0, 2**32), minute=st.integers(1, END_MIN))
def test_shares_keep_within_capacity_and_demand_and_loans_meet(seed: int, minute: int) -> None:
    with world(seed) as answers:
        at_ms = minute * MINUTE
        entitled = values(answers, "entitled_gpus", at_ms, "pool", "queue")
        demand = values(answers, "demanded_gpus", at_ms, "pool", "queue")
        held = values(answers, "received_gpus", at_ms, "pool", "queue")
        quotas = values(answers, "quota_gpus", at_ms, "pool", "queue")
        borrowed = values(answers, "borrowed_gpus", at_ms, "pool", "queue")
        lent = values(answers, "lent_gpus", at_ms, "pool", "queue")
        over = values(answers, "over_quota_gpus", at_ms, "pool", "queue")
        capacity = values(answers, "pool_capacity_gpus", at_ms, "pool")
        nobodys = values(answers, "from_unassigned_gpus", at_ms, "pool")
        assert capacity.keys() == nobodys.keys() == {key[:1] for key in entitled}
        for pool in capacity:
            mine = [key for key in entitled if key[:1] == pool]
            assert sum(entitled[key] for key in mine) <= capacity[pool] + 1e-9
            loans = sum(borrowed[key] for key in mine) - nobodys[pool]
            assert sum(lent[key] for key in mine) == pytest.approx(loans)
        assert all(entitled[key] <= demand[key] + 1e-9 for key in entitled)
        assert all(
            borrowed[key] + over[key] == pytest.approx(max(0, held[key] - quotas[key])) for key in held
        )


@pytest.mark.slow
@law(12, deadline=None)
@given(seed=st.integers(0, 2**32), cut=st.integers(1, END_MIN - 1))
def test_the_ledger_explains_every_debt_however_the_window_is_cut(seed: int, cut: int) -> None:
    keys = ("pool", "queue", "team")
    with world(seed) as answers:

        def moved(from_min: int, to_min: int) -> dict[tuple[str, ...], float]:
            window = timedelta(minutes=to_min - from_min)
            entitled, received, forgiven = (
                values(answers, metric, to_min * MINUTE, *keys, window=window)
                for metric in ("entitled_gpu_hours", "received_gpu_hours", "forgiven_gpu_hours")
            )
            return {key: entitled[key] - received[key] - forgiven[key] for key in entitled}

        first, second, whole = moved(0, cut), moved(cut, END_MIN), moved(0, END_MIN)
        closing = values(answers, "fairness_debt_gpu_hours", END_MIN * MINUTE, *keys)
        middle = values(answers, "fairness_debt_gpu_hours", cut * MINUTE, *keys)
        for key, debt in closing.items():
            assert whole[key] == pytest.approx(debt, abs=1e-9)
            assert first.get(key, 0.0) == pytest.approx(middle.get(key, 0.0), abs=1e-9)
            assert first.get(key, 0.0) + second[key] == pytest.approx(debt, abs=1e-9)


@pytest.mark.slow
@law(12, deadline=None)
@given(seed=st.integers(0, 2**32), minute=st.integers(1, END_MIN))
def test_teams_of_a_queue_add_up_to_the_queue(seed: int, minute: int) -> None:
    with world(seed) as answers:
        for metric in ("entitled_gpus", "demanded_gpus", "received_gpus", "fairness_debt_gpu_hours"):
            whole = values(answers, metric, minute * MINUTE, "pool", "queue")
            parts: dict[tuple[str, ...], float] = dict.fromkeys(whole, 0.0)
            for key, value in values(answers, metric, minute * MINUTE, "pool", "queue", "team").items():
                parts[key[:2]] += value
            assert parts == pytest.approx(whole, abs=1e-9)


# ------------------------------------------------------------ brute force


@pytest.mark.slow
@law(20, deadline=None)
@given(seed=st.integers(0, 2**32), minute=st.integers(0, END_MIN))
def test_the_shares_of_an_instant_are_those_counted_by_hand(seed: int, minute: int) -> None:
    """Everything that stood just before the instant, counted anew from the world as it was made."""
    dice = random.Random(seed)
    facts, lives = site_of(dice), lives_of(dice)
    said = {}
    for fact in sorted(facts, key=lambda f: f.from_ms if isinstance(f, Description) else f.at_ms):
        if isinstance(fact, Description) and fact.from_ms < minute * MINUTE:
            said[fact.kind, fact.name] = msgspec.json.decode(fact.body, type=objects.BODY_TYPES[fact.kind])
        elif isinstance(fact, Transition) and fact.at_ms < minute * MINUTE:
            said.pop((ObjectKind.NODE, "n2"), None)
    if not said:
        return
    pool = _pool_by_hand(said, lives, minute)
    with world(seed) as answers:
        found = values(answers, "entitled_gpus", minute * MINUTE, "pool", "queue")
        mine = {queue: value for (where, queue), value in found.items() if where == "all/a100"}
    expected = {name: micro / GPU for name, micro in entitlement(pool).entitled.items()}
    assert mine == {name: pytest.approx(value) for name, value in expected.items()}


def _pool_by_hand(said: dict[Any, Any], lives: Sequence[Life], minute: int) -> Pool:
    def holds(life: Life) -> bool:
        return (
            life.placed is not None and life.placed < minute and (life.ended is None or life.ended >= minute)
        )

    def waits(life: Life) -> bool:
        return life.submitted < minute and (life.placed is None or life.placed >= minute)

    def number(written: Quota) -> int | None:
        return written.milli // 1000 * GPU if written.kind.value == "number" else None

    entities: dict[str, list[Entity]] = {"research": [], "product": []}
    total = sum(
        number(b.quotas[0].nominal) or 0 for (k, _), b in said.items() if k is ObjectKind.CLUSTER_QUEUE
    )
    total += number(said[ObjectKind.COHORT, "all"].quotas[0].nominal) or 0
    for name in QUEUES:
        body = said[ObjectKind.CLUSTER_QUEUE, name]
        nominal, borrow = number(body.quotas[0].nominal) or 0, number(body.quotas[0].borrowing_limit)
        most = total if borrow is None else min(total, nominal + borrow)
        held = sum(life.gpus * GPU for life in lives if life.queue == name and holds(life))
        asked = sum(
            life.gpus * GPU
            for life in lives
            if life.queue == name and waits(life) and life.gpus * GPU <= most
        )
        entities[HOMES[name]].append(
            Entity(
                name=name, quota=nominal, demand=held + asked, held=held, weight_milli=body.weight_milli,
                borrowing_limit=borrow, lending_limit=number(body.quotas[0].lending_limit),
            )
        )  # fmt: skip
    capacity = 0
    for node in ("n0", "n1", "n2"):
        body = said.get((ObjectKind.NODE, node))
        own = sum(x.gpus * GPU for x in lives if holds(x) and x.node == node and x.queue in QUEUES)
        others = sum(x.gpus * GPU for x in lives if holds(x) and x.node == node and x.queue not in QUEUES)
        offered = 0 if body is None or body.unschedulable else body.gpu_allocatable[RESOURCE] * GPU
        capacity += max(offered - others, own)
    cohorts = tuple(CohortTree(name=name, entities=tuple(found)) for name, found in entities.items())
    tree = CohortTree(
        name="all", quota=number(said[ObjectKind.COHORT, "all"].quotas[0].nominal) or 0, cohorts=cohorts
    )
    return Pool(capacity=capacity, tree=tree, hard_quota=True)


# ------------------------------------------------------------ the report


def test_the_report_names_whom_the_cluster_owes_most_with_the_figures_of_the_page() -> None:
    with world(3) as answers:
        at_ms = END_MIN * MINUTE
        report = REPORTS["fairness"].build(answers, ReportQuestion(as_of_ms=at_ms))
        debts = values(answers, "fairness_debt_gpu_hours", at_ms, "pool", "queue")
        (pool, queue), most = max(debts.items(), key=lambda item: item[1])
        assert report.lead == (
            f"The cluster owes {queue} most, in pool {pool} of cluster {CLUSTER}: {most:,.1f} GPU-hours.",
        )
        keys = [column.metric for section in report.sections for column in section.columns if column.metric]
        assert set(keys) <= {metric for _, metric, _ in (*STATES, *LEDGER)} | {name for name, _ in OF_POOL}
