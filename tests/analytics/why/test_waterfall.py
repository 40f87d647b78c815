"""What a priority is made of, and when age lifts it above the next class."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from analytics.why.waterfall import waterfall
from domain.policy import Policy

HOUR = 3_600_000
CITY = {"interactive": 100_000, "training": 50_000, "batch-low": 1_000}
CLASSES = st.dictionaries(st.sampled_from("abcd"), st.integers(-50, 5_000), min_size=1)


def test_after_thirteen_hours_two_steps_count() -> None:
    one = waterfall("batch-low", CITY, value=1_000, waited_ms=13 * HOUR, as_of_ms=20 * HOUR,
                    submitted_ms=HOUR, quota_used_ratio=1.2, fairness_debt_gpu_hours=-3.0)  # fmt: skip
    assert (one.class_value, one.ageing_bonus, one.value) == (1_000, 200.0, 1_200.0)
    # (50,000 - 1,000) / 100 = 490 steps make it level: the 491st lifts it above, 2,946 h after hour 7.
    assert (one.next_class, one.outranks_at_ms) == ("training", (7 + 491 * 6) * HOUR)
    assert (one.quota_used_ratio, one.fairness_debt_gpu_hours, one.submitted_ms) == (1.2, -3.0, HOUR)


def test_a_class_of_value_zero_ages_by_the_way_to_the_next() -> None:
    one = waterfall(
        "", {"low": 0, "high": 1_000}, value=0, waited_ms=6 * HOUR, as_of_ms=6 * HOUR, submitted_ms=0
    )
    assert (one.ageing_bonus, one.outranks_at_ms) == (100.0, 11 * 6 * HOUR)


def test_the_highest_class_outranks_nobody() -> None:
    one = waterfall("interactive", CITY, value=100_000, waited_ms=0, as_of_ms=0, submitted_ms=0)
    assert (one.next_class, one.next_value, one.outranks_at_ms) == ("", None, None)


def test_where_age_counts_nothing_it_outranks_nobody() -> None:
    still = Policy(ageing_ratio=0.0)
    one = waterfall(
        "training", CITY, value=50_000, waited_ms=9 * HOUR, as_of_ms=0, submitted_ms=0, policy=still
    )
    assert (one.value, one.outranks_at_ms) == (50_000.0, None)


@given(CLASSES, st.data(), st.integers(0, 400 * HOUR), st.integers(1, 12))
def test_at_the_time_told_it_is_above_and_a_moment_before_it_was_not(
    classes: dict[str, int], data: st.DataObject, waited_ms: int, hours: int
) -> None:
    name = data.draw(st.sampled_from(sorted(classes)))
    policy = Policy(ageing_every=timedelta(hours=hours), ageing_ratio=0.2)

    def at(later_ms: int) -> float:
        one = waterfall(name, classes, value=classes[name], waited_ms=waited_ms + later_ms, as_of_ms=later_ms,
                        submitted_ms=0, policy=policy)  # fmt: skip
        return one.value

    told = waterfall(name, classes, value=classes[name], waited_ms=waited_ms, as_of_ms=0, submitted_ms=0,
                     policy=policy)  # fmt: skip
    above = sorted(value for value in classes.values() if value > classes[name])
    assert told.next_value == (above[0] if above else None)
    assert (told.outranks_at_ms is None) == (not above)
    if told.outranks_at_ms is not None and told.next_value is not None:
        assert at(told.outranks_at_ms) > told.next_value
        if told.outranks_at_ms > -waited_ms:
            assert at(told.outranks_at_ms - 1) <= told.next_value
