"""What single workloads wasted: the list and the detail say what their accounts say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.wastage.asked import GPU_HOUR
from analytics.wastage.bill import bill
from analytics.wastage.causes import Cause, account
from analytics.wastage.course import Course
from analytics.wastage.ratios import self_inflicted
from api.answers import ListQuestion
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, Window
from service.books import books_of
from service.workloads import detail, listing
from store.embedded import Store
from tests.analytics.wastage.lives_of_gpus import at as minutes
from tests.analytics.wastage.test_laws import MINUTES, courses
from tests.collector.objects import at
from tests.laws import law
from tests.service.test_wastage import held_ms
from tests.service.wastage_worlds import MINUTE, accounted, busy, crash_loop


@law(15)
@given(st.lists(courses(), min_size=1, max_size=4), MINUTES)
def test_the_waste_of_each_workload_is_that_of_its_account_and_orders_the_list(
    given_courses: list[Course], until: int
) -> None:
    store = accounted(given_courses)
    # A workload is listed from its submission on, and every course begins at the epoch or later.
    whole_life = Window(start_ms=0, end_ms=max(1, minutes(until)))
    question = ListQuestion(sort="-wasted_gpu_hours", filters={"user": ("ada",)})
    listed = listing(store, question, whole_life.end_ms).rows
    for row in listed:
        course = given_courses[int(row["uid"][1:])]
        expected = bill(account(course, as_of_ms=whole_life.end_ms), whole_life)
        told = detail(store, row["uid"], whole_life.end_ms)
        assert told is not None
        columns = ("wasted_gpu_hours", "wasted_lower_bound")
        assert [told[name] for name in columns] == [row[name] for name in columns]
        if not held_ms(course, whole_life):
            assert (row["wasted_gpu_hours"], told["gpu_time_by_cause"]) == (None, [])
            continue
        unsure = expected.unmeasured_ms > 0
        bound = unsure or expected.by_cause[Cause.UNKNOWN] > 0
        assert [row[name] for name in columns] == [self_inflicted(expected) / GPU_HOUR, bound]
        by_cause = {each["cause"]: each for each in told["gpu_time_by_cause"]}
        for cause in Cause:
            hours = by_cause.pop(cause.value, {"gpu_hours": 0})["gpu_hours"]
            assert hours == expected.by_cause[cause] / GPU_HOUR
        assert not by_cause
        charged = sum(each["charged_gpu_hours"] for each in told["gpu_time_by_cause"])
        assert charged == pytest.approx(row["wasted_gpu_hours"])
    order = [-1 if row["wasted_gpu_hours"] is None else row["wasted_gpu_hours"] for row in listed]
    assert order == sorted(order, reverse=True)
    assert listing(store, replace(question, filters={"user": ("eve",)}), whole_life.end_ms).total == 0
    store.close()


def test_the_waste_of_a_crash_loop_is_traced_from_its_user_to_the_job() -> None:
    store = Store.open(None)
    crash_loop(store, gpus=7, starts=[index * 32.5 for index in range(13)], run=30)
    busy(store, gpus=7, minutes=12 * 32.5 + 30)
    clock = FixedClock(at(24 * 60 * MINUTE))
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).refresh()
    (row,) = listing(store, ListQuestion(sort="-wasted_gpu_hours"), clock.now_ms()).rows
    assert (row["wasted_gpu_hours"], row["wasted_lower_bound"]) == (47.25, False)
    told = detail(store, row["uid"], clock.now_ms())
    assert told is not None
    assert told["gpu_time_by_cause"] == [
        {"cause": cause, "gpu_hours": hours, "charged_gpu_hours": charged, "lower_bound": False}
        for cause, hours, charged in (
            ("crash_lost", 43.75, 43.75),
            ("backoff", 3.5, 3.5),
            ("useful", 1.75, 0),
        )
    ]
