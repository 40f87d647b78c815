"""Each rule of quota proposals by hand: GPUs before and after, and what pays."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from analytics.quota.exposed import Reclaim, Running, exposed
from analytics.quota.movements import movements
from analytics.quota.rules import DEFAULT_RULES, Leftover, Pool, good_periods, penalty, scaled_weight, step
from domain.errors import PolicyError
from tests.analytics.quota.holders import holder, pool


def moved(subject: Pool) -> dict[str, tuple[str, int, int]]:
    """Kind, before and after by holder; the cohort is the empty name."""
    return {each.holder: (each.kind.value, each.before, each.after) for each in movements(subject)}


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(0.15, 0), (0.16, Fraction("0.4")), (0.25, 4), (0.45, 12), (0.9643, 12), (None, 0)],
)
def test_the_penalty_is_the_excess_over_15_percent_and_at_most_30_percent(
    ratio: float | None, expected: Fraction
) -> None:
    assert penalty(holder("a", 40, ratio=ratio)) == expected


@pytest.mark.parametrize(
    ("agreed", "unit", "expected"), [(40, 1, 4), (45, 1, 4), (3, 1, 1), (40, 8, 8), (200, 8, 16)]
)
def test_a_step_is_ten_percent_in_whole_units_and_at_least_one(agreed: int, unit: int, expected: int) -> None:
    assert step(holder("a", agreed), unit) == expected


def test_a_wasteful_holder_goes_down_a_step_and_the_cohort_keeps_it() -> None:
    assert moved(pool(holder("a", 40, ratio=0.5), holder("b", 40))) == {
        "a": ("cut", 40, 36),
        "": ("spare_up", 0, 4),
    }


@pytest.mark.parametrize(
    ("live", "ratio", "after"),
    [
        (36, 0.5, 32),  # towards 40 - 12 = 28
        (30, 0.5, 28),  # no further than the target
        (28, 0.5, None),  # there
        (28, 0.2, None),  # a smaller penalty (target 38) moves nothing up
        (38, 0.18, None),  # target 38.8
        (40, 0.18, 39),  # 1.2 GPU rounded down
    ],
)
def test_a_cut_goes_towards_its_target_and_never_up(live: int, ratio: float, after: int | None) -> None:
    found = moved(pool(holder("a", 40, live, ratio=ratio), spare=40 - live))
    assert (found["a"][2] if "a" in found else None) == after


def test_nobody_goes_below_half_of_what_was_agreed() -> None:
    harsh = replace(DEFAULT_RULES, largest_penalty=Fraction("0.9"))
    found = movements(pool(holder("a", 41, 22, ratio=1), spare=19), harsh)
    # half of 41 is 20.5: 21 is the floor
    assert [(each.holder, each.after) for each in found] == [("a", 21), ("", 20)]


@pytest.mark.parametrize(
    ("live", "good", "after"),
    [(28, 0, None), (28, 1, 32), (36, 1, 38), (39, 5, 40), (40, 5, None)],
    ids=["one good period", "a step", "half of what is missing", "at least one", "all is there"],
)
def test_a_quota_returns_after_two_good_periods(live: int, good: int, after: int | None) -> None:
    found = moved(pool(holder("a", 40, live, good=good), spare=40 - live))
    assert found.get("a") == (None if after is None else ("return", live, after))


def test_gifts_go_to_those_owed_in_proportion_to_their_debt() -> None:
    found = moved(
        pool(
            holder("waster", 90, ratio=0.9),
            holder("owed", 60, debt=200),
            holder("less", 60, debt=100),
            holder("even", 60),
        )
    )
    # 9 GPU: 6 and 3 by debt; both are below the step of 6
    assert found == {"waster": ("cut", 90, 81), "owed": ("gift", 60, 66), "less": ("gift", 60, 63)}


def test_a_gift_ends_at_its_step_and_at_120_percent_and_the_rest_goes_to_others() -> None:
    found = moved(
        pool(
            holder("waster", 200, ratio=0.9),
            holder("full", 40, 47, debt=500),
            holder("owed", 60, debt=1),
            spare=0,
        )
    )
    # of 20 - 7 = 13 GPU one fits below 48, six are a step, six are left
    assert found == {
        "waster": ("cut", 200, 180), "full": ("gift", 47, 48), "owed": ("gift", 60, 66),
        "": ("spare_up", 0, 6),
    }  # fmt: skip


def test_a_gift_is_withdrawn_when_the_debt_is_paid() -> None:
    found = moved(pool(holder("a", 40, 46), holder("b", 40, 34)))
    assert found == {"a": ("withdrawal", 46, 42), "": ("spare_up", 0, 4)}


def test_a_return_takes_gifts_from_the_least_owed_as_far_as_it_needs() -> None:
    found = moved(
        pool(
            holder("back", 40, 32, good=2), holder("much", 40, 44, debt=90), holder("little", 40, 44, debt=10)
        )
    )
    assert found == {"little": ("withdrawal", 44, 40), "back": ("return", 32, 36)}


def test_a_return_that_nobody_covers_shrinks() -> None:
    # of the 4 that it wants, only one is free: the other holder is frozen on too few GPU-hours
    found = movements(pool(holder("back", 40, 32, good=2), holder("frozen", 40, 47, hours=49)))
    assert [(each.holder, each.after, each.from_free) for each in found] == [("back", 33, 1)]


@pytest.mark.parametrize("too_little", [{"hours": 49.9}, {"coverage": 0.89}, {"ratio": None}])
def test_nothing_moves_on_too_little_knowledge(too_little: dict[str, float | None]) -> None:
    known: dict[str, float | None] = {"ratio": 0.9, "debt": 100, **too_little}
    assert moved(pool(holder("a", 40, **known))) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("just_enough", [{"hours": 50}, {"coverage": 0.9}])
def test_exactly_the_least_that_must_be_known_is_enough(just_enough: dict[str, float]) -> None:
    assert moved(pool(holder("a", 40, ratio=0.9, **just_enough)))["a"] == ("cut", 40, 36)  # type: ignore[arg-type]


def test_without_a_writable_cohort_a_cut_is_as_large_as_its_gifts() -> None:
    alone = pool(holder("waster", 90, ratio=0.9), holder("even", 60), leftover=Leftover.NOT_CUT)
    assert moved(alone) == {}
    owed = pool(
        holder("worse", 40, ratio=0.9),
        holder("waster", 90, ratio=0.5),
        holder("owed", 60, debt=9),
        leftover=Leftover.NOT_CUT,
    )
    # the step of `owed` is 6: four from the worst, two from the next
    assert moved(owed) == {"worse": ("cut", 40, 36), "waster": ("cut", 90, 88), "owed": ("gift", 60, 66)}


def test_movements_are_whole_nodes_where_nodes_are_the_unit() -> None:
    found = moved(pool(holder("a", 100, ratio=0.9), holder("b", 100, debt=5), unit=8))
    assert found == {"a": ("cut", 100, 92), "b": ("gift", 100, 108)}


def test_the_order_of_holders_does_not_matter() -> None:
    holders = [holder(n, 40, 36 + 2 * i, debt=i * 7, good=i, ratio=0.1 * i) for i, n in enumerate("abcd")]
    assert movements(pool(*holders)) == movements(pool(*reversed(holders)))


def test_a_weight_moves_like_a_quota() -> None:
    assert scaled_weight(Decimal("1.5"), agreed=40, proposed=44) == Decimal("1.65")
    with pytest.raises(PolicyError, match="agreed quota of 0"):
        scaled_weight(Decimal(1), agreed=0, proposed=0)


def test_a_setting_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"quota.floor = 50: expected a share"):
        replace(DEFAULT_RULES, floor=Fraction(50))
    with pytest.raises(PolicyError, match=r"gift_cap = 9/10"):
        replace(DEFAULT_RULES, gift_cap=Fraction(9, 10))
    with pytest.raises(PolicyError, match="each holder once"):
        pool(holder("a", 1), holder("a", 1))
    with pytest.raises(PolicyError, match="live -1"):
        holder("a", 1, -1)


def test_a_cut_exposes_the_lowest_and_newest_until_usage_fits() -> None:
    running = [
        Running(workload_uid="old", gpus=8, priority=10, admitted_ms=1),
        Running(workload_uid="new", gpus=8, priority=10, admitted_ms=9),
        Running(workload_uid="low", gpus=4, priority=1, admitted_ms=1),
    ]

    def names(after: int, reclaim: Reclaim, priority: int | None = None) -> list[str]:
        found = exposed(running, after=after, reclaim=reclaim, preemptor_priority=priority)
        return [each.workload_uid for each in found]

    assert names(20, Reclaim.ANY) == []
    assert names(16, Reclaim.ANY) == ["low"]
    assert names(15, Reclaim.ANY) == ["low", "new"]
    assert names(0, Reclaim.LOWER_PRIORITY, 10) == ["low"]
    assert names(0, Reclaim.LOWER_PRIORITY) == ["low", "new", "old"]
    assert names(0, Reclaim.NEVER) == []


def test_who_is_below_what_was_agreed_returns_before_gifts() -> None:
    # a debt does not make up for the second good period that is missing
    assert moved(pool(holder("back", 40, 36, debt=500), spare=4)) == {}


@pytest.mark.parametrize("thin", [{"ratio": None}, {"hours": 49}, {"coverage": 0.5}])
def test_a_period_of_which_too_little_is_known_is_not_a_good_one(thin: dict[str, float | None]) -> None:
    assert good_periods(holder("a", 40, 32, good=1, **thin)) == 1  # type: ignore[arg-type]
    assert good_periods(holder("a", 40, 32, good=1)) == 2
