"""The ranges of thresholds: each has one, and what lies outside is told by its key."""

from dataclasses import fields
from datetime import timedelta
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import PolicyError
from domain.policy import LEAST, LENGTHS, RATIOS, SHARES, Policy, Target
from domain.workload import ServiceClass

# Thresholds with a check of their own, or none.
OTHERWISE = {
    "targets": "each of its lengths is checked",
    "checkpoint_budgets": "each of its lengths is checked",
    "skew_tolerated": "may be 0: no difference between clocks is tolerated",
    "preemptible_classes": "its type is its range",
    "protected_classes": "its type is its range",
    "gpu_hour_budgets": "each of its numbers is checked",
    "alert_limits": "each is a number of at least 0",
    "money_budgets": "each of its numbers is checked",
    "budget_zone": "its type is its range",
    "serving_workloads": "any pattern is one",
    "quota_ratio": "its type is its range",
    "reserve_counts_preemptible": "yes or no",
    "job_kinds": "names of kinds",
}


def test_every_threshold_has_one_range() -> None:
    named = [*LENGTHS, *RATIOS, *SHARES, *LEAST, *OTHERWISE]
    assert sorted(named) == sorted(field.name for field in fields(Policy))


@given(st.sampled_from([*RATIOS, *SHARES]), st.floats())
def test_a_share_lies_between_0_and_1(name: str, value: Any) -> None:
    if 0 < value <= 1 or (value == 0 and name in RATIOS):
        assert getattr(Policy(**{name: value}), name) == value
    else:
        with pytest.raises(PolicyError, match=rf"policy\.{name} = .*: expected a share"):
            Policy(**{name: value})


@pytest.mark.parametrize("name", LEAST)
def test_a_number_is_no_less_than_its_least(name: str) -> None:
    least: Any = LEAST[name]
    # Of one day no more than one can count.
    assert getattr(Policy(**{"buy_days": 1, name: least}), name) == least
    wrong: Any
    for wrong in (least - 1, nan):
        with pytest.raises(PolicyError, match=rf"policy\.{name} = .*: expected a number of at least"):
            Policy(**{name: wrong})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        *[
            ({name: timedelta()}, rf"policy\.{name} = 0:00:00: expected a positive length")
            for name in LENGTHS
        ],
        ({"skew_tolerated": timedelta(seconds=-1)}, r"policy\.skew_tolerated = "),
        (
            {"targets": {ServiceClass.BATCH: Target(wait=timedelta(1), window=timedelta())}},
            r"policy\.targets\.batch\.window = ",
        ),
        ({"checkpoint_budgets": {"gold": timedelta()}}, r"policy\.checkpoint_budgets\.gold = "),
        (
            {"gpu_hour_budgets": {"nlp": {"year": 5.0}}},
            r"policy\.gpu_hour_budgets\.nlp\.year = 5.0: expected one of day, week, month",
        ),
        (
            {"money_budgets": {"nlp": {"day": -1.0}}},
            r"policy\.money_budgets\.nlp\.day = -1.0: expected one of",
        ),
        ({"gpu_hour_budgets": {"nlp": {"day": 0.0}}}, r"policy\.gpu_hour_budgets\.nlp\.day = 0"),
        ({"alert_limits": {"GpuIdle": nan}}, r"policy\.alert_limits\.GpuIdle = nan: expected a number of"),
        ({"alert_limits": {"GpuIdle": -1.0}}, r"policy\.alert_limits\.GpuIdle = -1.0: .* at least 0"),
        ({"buy_days": 8}, r"policy\.buy_days = 8: expected at most buy_of_days, which is 7"),
        (
            {"scheduler_stalled_after": timedelta(days=8)},
            r"scheduler_stalled_after = 8 .*: expected at most 7d",
        ),
    ],
)
def test_a_length_that_makes_no_sense_is_told_by_its_key(given: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Policy(**given)
