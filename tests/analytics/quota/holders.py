"""Builders of quota holders and of a site that proposals are applied to."""

from fractions import Fraction

from analytics.quota.rules import Holder, Leftover, Pool

WEEK = 7 * 86_400_000


def holder(
    name: str,
    agreed: int,
    live: int | None = None,
    *,
    ratio: float | None = 0,
    debt: float = 0,
    hours: float = 1000,
    coverage: float = 1,
    good: int = 0,
) -> Holder:
    return Holder(
        name=name, agreed=agreed, live=agreed if live is None else live,
        ratio=None if ratio is None else Fraction(str(ratio)), debt=Fraction(str(debt)),
        gpu_hours=Fraction(str(hours)), coverage=Fraction(str(coverage)), good_before=good,
    )  # fmt: skip


def pool(*holders: Holder, unit: int = 1, leftover: Leftover = Leftover.COHORT, spare: int = 0) -> Pool:
    return Pool(holders=holders, unit=unit, leftover=leftover, spare=spare)
