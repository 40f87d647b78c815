"""The causes of held GPU-time in the store: metrics say what the whole account says, at any instant."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from analytics.wastage.asked import GPU_HOUR
from analytics.wastage.bill import Bill, bill
from analytics.wastage.causes import Cause, account
from analytics.wastage.course import Course
from analytics.wastage.idle import Device, Level
from analytics.wastage.ratios import activity_coverage, goodput, hell_ratio, self_inflicted, wastage_ratio
from domain.metric import Ask, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, Window
from domain.workload import Holding, Outcome
from service.books import books_of
from service.wastage import Wastage
from store.embedded import Store
from tests.analytics.wastage.lives_of_gpus import at as minutes
from tests.analytics.wastage.test_causes import gang
from tests.analytics.wastage.test_laws import HORIZON, MINUTES, courses
from tests.collector.objects import at
from tests.laws import law
from tests.service.wastage_worlds import CLUSTER, MINUTE, accounted, busy, crash_loop, write

WINDOWED = (
    *("held_gpu_hours", "wasted_gpu_hours", "wastage_ratio", "hell_ratio", "activity_known_ratio"),
    *("work_lost_gpu_hours", "work_lost_at_most_gpu_hours"),
)


def samples(store: Store, name: str, window: Window, *by: str) -> list[Sample]:
    metric = REGISTRY[name]
    ask = Ask(window=window, by=by)
    return evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)


def values(store: Store, name: str, window: Window, *by: str) -> dict[tuple[str, ...], float | None]:
    """What has a value or a reason, by label; nothing where nothing was held."""
    found = samples(store, name, window, *by)
    return {tuple(one.labels.values()): one.value for one in found if one.labels or not by}


# ------------------------------------------------------------ from objects to figures


def test_thirteen_crashes_of_seven_gpus_burn_47_of_49_gpu_hours() -> None:
    starts = [index * 32.5 for index in range(13)]
    end = starts[-1] + 30
    store = Store.open(None)
    crash_loop(store, gpus=7, starts=starts, run=30)
    busy(store, gpus=7, minutes=end)
    clock = FixedClock(at(24 * 60 * MINUTE))
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).refresh()
    day = Window.before(clock.now_ms(), timedelta(days=1))
    assert values(store, "held_gpu_hours", day, "cause") == {
        ("backoff",): 3.5,
        ("crash_lost",): 43.75,
        ("useful",): 1.75,
    }
    assert values(store, "held_gpu_hours", day) == {(): 49}
    assert values(store, "wastage_ratio", day) == {(): pytest.approx(0.9643, abs=5e-5)}
    assert values(store, "hell_ratio", day) == {(): pytest.approx(0.9643, abs=5e-5)}
    assert values(store, "activity_known_ratio", day) == {(): 1}


# ------------------------------------------------------------ laws


def bills(given_courses: Sequence[Course], window: Window) -> Mapping[str, Bill]:
    """By the pure core, as of the window's end."""
    return {
        f"w{number}": bill(account(course, as_of_ms=window.end_ms), window)
        for number, course in enumerate(given_courses)
    }


def held_ms(course: Course, window: Window) -> int:
    """How long any of its pods held within the window, straight from the definition."""
    until = [
        (each.bound_ms, window.end_ms if each.released_ms is None else each.released_ms)
        for each in course.holdings
    ]
    return sum(max(0, min(end, window.end_ms) - max(start, window.start_ms)) for start, end in until)


@law(15)
@given(st.lists(courses(), min_size=2, max_size=5), st.lists(MINUTES, min_size=2, max_size=8, unique=True))
def test_figures_as_of_any_instant_are_those_of_the_account_as_of_then(
    given_courses: list[Course], edges: list[int]
) -> None:
    store = accounted(given_courses)
    edges.sort()
    for until in edges[1:]:
        window = Window(start_ms=minutes(edges[0]), end_ms=minutes(until))
        expected = {
            team: one
            for team, one in bills(given_courses, window).items()
            if held_ms(given_courses[int(team[1:])], window)
        }
        held = values(store, "held_gpu_hours", window, "team", "cause")
        assert {key: value for key, value in held.items() if value} == {
            (team, cause.value): one.by_cause[cause] / GPU_HOUR
            for team, one in expected.items()
            for cause in Cause
            if one.by_cause[cause]
        }
        wasted = values(store, "wasted_gpu_hours", window, "team")
        assert wasted == {(team,): self_inflicted(one) / GPU_HOUR for team, one in expected.items()}
        for name, ratio in (
            ("wastage_ratio", wastage_ratio),
            ("hell_ratio", hell_ratio),
            ("activity_known_ratio", activity_coverage),
        ):
            found = {one.labels["team"]: one for one in samples(store, name, window, "team") if one.labels}
            for team, one in expected.items():
                truth = ratio(one)
                value = None if truth.value is None else float(truth.value)
                assert (found[team].value, found[team].lower_bound) == (value, truth.lower_bound)
                assert found[team].undefined_because == truth.undefined_because
        at_most = values(store, "work_lost_at_most_gpu_hours", window, "team")
        lost = values(store, "work_lost_gpu_hours", window, "team")
        for team, one in expected.items():
            low = sum(one.by_cause[cause] for cause in Cause if cause.value.endswith("_lost"))
            if lost[team,] is not None:
                assert lost[team,] == low / GPU_HOUR
                assert at_most[team,] == (low + sum(one.may_be_lost.values())) / GPU_HOUR
    store.close()


@law(15)
@given(st.lists(courses(), min_size=1, max_size=4), MINUTES)
def test_what_is_at_risk_now_is_what_running_pods_have_not_saved(
    given_courses: list[Course], until: int
) -> None:
    store = accounted(given_courses)
    now_ms = minutes(until)
    window = Window(start_ms=now_ms - 1, end_ms=now_ms)
    at_risk = values(store, "at_risk_gpu_hours", window, "team")
    late = values(store, "checkpoint_age_over_budget_workloads", window, "team")
    unused = values(store, "never_active_gpus", window, "team")
    for number, course in enumerate(given_courses):
        saved_ms = max((at_ms for at_ms in course.checkpoints_ms if at_ms < now_ms), default=None)
        running = [(pod, since) for pod in course.holdings if (since := runs_since(pod, now_ms)) is not None]
        ages = [(pod, now_ms - max(since, since if saved_ms is None else saved_ms)) for pod, since in running]
        team = (f"w{number}",)
        # A workload of which nothing runs is 0 or, before it was submitted, no row.
        assert at_risk.get(team, 0) == sum((pod.micro_gpus or 0) * age for pod, age in ages) / GPU_HOUR
        is_late = saved_ms is not None and any(age > minutes(15) for _, age in ages)
        assert late.get(team, 0) == int(is_late)
        assert unused.get(team, 0) == sum(
            device.micro_gpus / 1_000_000
            for device in course.devices
            for pod in course.holdings
            if pod.pod_uid == device.pod_uid and never_worked(pod, device, now_ms)
        )
    store.close()


def holds(pod: Holding, now_ms: int) -> bool:
    return pod.bound_ms < now_ms and (pod.released_ms is None or pod.released_ms >= now_ms)


def runs_since(pod: Holding, now_ms: int) -> int | None:
    """Since when a pod runs just before an instant, straight from its containers; batch may lose 15 min."""
    if not holds(pod, now_ms):
        return None
    running = [
        run.start_ms
        for run in pod.runs
        if run.start_ms < now_ms and (run.end_ms is None or run.end_ms >= now_ms)
    ]
    return min(running, default=None)


def never_worked(pod: Holding, device: Device, now_ms: int) -> bool:
    if not holds(pod, now_ms) or pod.started_ms is None:
        return False
    slots = [slot for slot in device.slots if pod.started_ms <= slot.start_ms < now_ms]
    seen_ms = sum(min(slot.end_ms, now_ms) - slot.start_ms for slot in slots)
    enough = seen_ms >= minutes(15) and seen_ms >= Fraction(4, 5) * (now_ms - pod.started_ms)
    return enough and all(slot.level in {Level.LOW, Level.RESIDENT} for slot in slots)


@law(10)
@given(st.lists(courses(), min_size=1, max_size=4), MINUTES)
def test_goodput_is_what_was_useful_over_what_the_nodes_had(given_courses: list[Course], until: int) -> None:
    store = accounted(given_courses)
    node = {"node": "n1", "gpu_model": "A100", "start_ms": 0, "end_ms": None, "schedulable": True}
    size = {"capacity_micro_gpus": 8_000_000, "allocatable_micro_gpus": 7_000_000,
            "unpartitioned_micro_gpus": 0}  # fmt: skip
    store.write_lives(CLUSTER, [], {"node_span": [{"cluster": CLUSTER, **node, **size}]}, ("lives", 1))
    window = Window(start_ms=0, end_ms=max(minutes(until), 1))
    whole = sum(bills(given_courses, window).values(), Bill.empty())
    truth = goodput(whole, 8_000_000 * window.end_ms)
    (sample,) = samples(store, "goodput_ratio", window)
    assert sample.value == (None if truth.value is None else float(truth.value))
    assert (sample.lower_bound, sample.undefined_because) == (truth.lower_bound, truth.undefined_because)
    store.close()


HELD = """
select workload_uid, coalesce(sum(micro_gpus::hugeint * (
    least(coalesce(released_ms, $end_ms), $end_ms) - greatest(bound_ms, $start_ms)
)), 0) as amount
from gpu_holding
where bound_ms < $end_ms and coalesce(released_ms > $start_ms, true)
group by workload_uid
"""
CAUSES = """
select workload_uid, coalesce(sum(micro_gpus::hugeint * (
    least(coalesce(end_ms, $end_ms), $end_ms) - greatest(start_ms, $start_ms)
)), 0) as amount
from gpu_time
where start_ms < $end_ms and coalesce(end_ms > $start_ms, true)
group by workload_uid
"""


@law(15)
@given(st.lists(courses(), min_size=1, max_size=5), st.lists(MINUTES, min_size=2, max_size=6, unique=True))
def test_causes_sum_to_the_gpu_time_held_per_workload_and_stretch_of_time(
    given_courses: list[Course], edges: list[int]
) -> None:
    store = accounted(given_courses)
    edges.sort()
    for start, end in pairwise(edges):
        asked = {"start_ms": minutes(start), "end_ms": minutes(end)}
        held, causes = (
            {str(row["workload_uid"]): row["amount"] for row in store.rows(sql, asked) if row["amount"]}
            for sql in (HELD, CAUSES)
        )
        assert held == causes
    store.close()


@law(15)
@given(st.lists(courses(), min_size=1, max_size=4), MINUTES)
def test_without_gpu_metrics_nothing_is_useful_idle_or_lost(given_courses: list[Course], until: int) -> None:
    blind = [replace(course, devices=()) for course in given_courses]
    store = accounted(blind)
    window = Window(start_ms=0, end_ms=max(minutes(until), 1))
    causes = {cause for (cause,) in values(store, "held_gpu_hours", window, "cause")}
    running = {Cause.UNKNOWN.value}
    not_running = {cause.value for cause in tuple(Cause)[:5]}
    assert causes <= running | not_running
    store.close()


def test_a_month_is_the_sum_of_its_days() -> None:
    store = accounted([gang()])
    whole = values(store, "held_gpu_hours", Window(start_ms=0, end_ms=minutes(HORIZON)))
    days = [
        values(store, "held_gpu_hours", Window(start_ms=minutes(start), end_ms=minutes(start + 5)))
        for start in range(0, HORIZON, 5)
    ]
    assert sum(day[()] or 0 for day in days) == pytest.approx(whole[()])


# ------------------------------------------------------------ the stage


def test_what_has_no_news_is_not_accounted_again() -> None:
    store = accounted([gang(), gang()])
    stage = Wastage(store, Policy())
    assert stage.refresh(CLUSTER, 0) == 0
    write(store, [gang()], seq=2)
    assert stage.refresh(CLUSTER, 0) == 1


def test_a_workload_that_vanishes_leaves_nothing_behind() -> None:
    store = accounted([gang()])
    store.write_lives(CLUSTER, ["w0"], {}, ("lives", 2))
    assert Wastage(store, Policy()).refresh(CLUSTER, 0) == 1
    assert store.rows("select waste_piece.* from waste_piece") == []


def test_other_rules_make_every_account_anew() -> None:
    store = accounted([gang()])
    shorter = Policy(assumed_checkpoint_interval=timedelta(minutes=1), checkpoint_budgets={})
    assert Wastage(store, shorter).refresh(CLUSTER, 0) == 1
    lost = store.rows("select sum(end_ms - start_ms) as ms from waste_piece where cause = 'preempted_lost'")
    assert lost == [{"ms": 2 * 60_000}]


@pytest.mark.parametrize("name", ["checkpoint_budgets", "serving_workloads"])
def test_budgets_and_serving_workloads_alone_make_every_account_anew_too(name: str) -> None:
    other = {
        "checkpoint_budgets": Policy(checkpoint_budgets={"batch": timedelta(minutes=1)}),
        "serving_workloads": Policy(serving_workloads=("red/w*",)),
    }[name]
    store = accounted([gang()])
    assert Wastage(store, other).refresh(CLUSTER, 0) == 1
    assert Wastage(store, other).refresh(CLUSTER, 0) == 0
    store.close()


def test_new_activity_is_accounted() -> None:
    store = accounted([replace(gang(), devices=())])
    window = Window(start_ms=0, end_ms=minutes(HORIZON))
    assert ("useful",) not in values(store, "held_gpu_hours", window, "cause")
    write(store, [gang()])
    with store.transaction() as connection:
        connection.execute("insert into activity_cut values ('east', 'w0', 7)")
    assert Wastage(store, Policy()).refresh(CLUSTER, 0) == 1
    assert ("useful",) in values(store, "held_gpu_hours", window, "cause")


def test_a_pod_on_which_more_is_named_than_it_holds_is_unknown() -> None:
    store = accounted([gang()])
    write(store, [gang()], seq=2)
    with store.transaction() as connection:
        connection.execute(
            "insert into activity_span select cluster, workload_uid, pod_uid, 'other', micro_gpus, start_ms,"
            " end_ms, level from activity_span where pod_uid = 'w0-a'"
        )
    Wastage(store, Policy()).refresh(CLUSTER, 0)
    causes = store.rows(
        "select distinct cause from gpu_time where pod_uid = 'w0-a' and start_ms >= $ms and end_ms <= $end",
        {"ms": minutes(12), "end": minutes(32)},
    )
    assert causes == [{"cause": "unknown"}]


def test_a_serving_workload_that_the_policy_names_is_not_charged_for_resident_idleness() -> None:
    policy = Policy(serving_workloads=("red/w*",))
    resident = gang()
    resident = replace(
        resident,
        attempts=(replace(resident.attempts[0], outcome=Outcome.SUCCEEDED),),
        devices=tuple(
            replace(each, slots=tuple(replace(slot, level=Level.RESIDENT) for slot in each.slots))
            for each in resident.devices
        ),
    )
    for given_policy, charged in ((policy, False), (Policy(), True)):
        store = accounted([resident], policy=given_policy)
        found = store.rows("select distinct charged from gpu_time where cause = 'resident_idle'")
        assert found == [{"charged": charged}]


@pytest.mark.parametrize("name", WINDOWED)
def test_a_store_without_lives_says_why_there_is_no_figure(name: str) -> None:
    (sample,) = samples(Store.open(None), name, Window(start_ms=0, end_ms=1))
    assert sample.undefined_because == "no GPU was held in the window"
