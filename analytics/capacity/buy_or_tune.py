"""Buy or tune: more GPUs help only where those that there are are held, productive, and still waited for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Self

from domain.policy import Policy


class Verdict(StrEnum):
    """What to do; one of the three to tune is the first of the conditions that fails most."""

    BUY = "buy"
    FILL = "fill"
    WASTE_LESS = "waste_less"
    ENOUGH = "enough"
    NOT_KNOWN = "not_known"


SENTENCES = {
    Verdict.BUY: "Buy: the GPUs are held, used, and still waited for.",
    Verdict.FILL: (
        "Tune first, do not buy: the GPUs are not full. Look at fragmentation, quotas and cordoned nodes."
    ),
    Verdict.WASTE_LESS: (
        "Tune first, do not buy: the GPUs are held but not productive. Look at idle, lost and gang-hold time."
    ),
    Verdict.ENOUGH: "Do not buy: batch work does not wait long.",
    Verdict.NOT_KNOWN: "Not known: too few days on which all three conditions were observed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of one day; None where it is undefined, a lower bound where the truth may be more."""

    value: float | None
    lower_bound: bool = False

    def reaches(self, least: float) -> bool | None:
        """
        Whether it is at least so much; None where nobody knows.

        >>> Figure(value=0.5, lower_bound=True).reaches(0.85) is None, Figure(value=0.9).reaches(0.85)
        (True, True)
        """
        if self.value is None:
            return None
        return True if self.value >= least else None if self.lower_bound else False

    def exceeds(self, most: float) -> bool | None:
        """Whether it is more than so much; None where nobody knows."""
        if self.value is None:
            return None
        return True if self.value > most else None if self.lower_bound else False


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """
    One day of a pool: the parts of its capacity that were held and productive, and the median wait.

    `wait_seconds` is the censored median of batch. Nobody waited: 0, not undefined.
    """

    held: Figure
    productive: Figure
    wait_seconds: Figure

    @classmethod
    def told(cls, held: Figure, productive: Figure, wait_seconds: Figure) -> Self:
        """
        The day of these figures; where the nodes are known and no median is, nobody waited.

        >>> Day.told(Figure(value=0.5), Figure(value=0.4), Figure(value=None)).wait_seconds.value
        0.0
        """
        if wait_seconds.value is None and held.value is not None:
            wait_seconds = Figure(value=0.0)
        return cls(held=held, productive=productive, wait_seconds=wait_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Whether each condition held on a day; None where nobody knows."""

    held: bool | None
    productive: bool | None
    waits: bool | None

    @property
    def all_hold(self) -> bool | None:
        """Whether the day speaks for buying; one condition that fails is enough against it."""
        parts = (self.held, self.productive, self.waits)
        if False in parts:
            return False
        return None if None in parts else True


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The verdict, the days that speak for buying, and whether waits begin to grow: erosion."""

    verdict: Verdict
    days_for: int
    days_known: int
    days: tuple[Conditions, ...]
    erosion: bool


def conditions(day: Day, policy: Policy) -> Conditions:
    """
    The three conditions on one day.

    Productive time is a part of what is held: where all of that falls short, so does the part.
    """
    all_held = day.held.reaches(policy.buy_productive_ratio)
    return Conditions(
        held=day.held.reaches(policy.buy_held_ratio),
        productive=False if all_held is False else day.productive.reaches(policy.buy_productive_ratio),
        waits=day.wait_seconds.exceeds(policy.buy_wait / timedelta(seconds=1)),
    )


def advice(days: Sequence[Day], policy: Policy) -> Advice:
    """
    What the days say together.

    Buy where all three conditions hold on enough days. Else, where too few days are known that
    enough could still hold, nothing is said. Else the condition that fails on most days is named;
    of equals the first: fill before saving waste, and that before being content.

    Args:
        days: the newest first; those beyond the policy's number are left out.
        policy: thresholds, and on how many of how many days.
    """
    judged = tuple(conditions(day, policy) for day in days[: policy.buy_of_days])
    days_for = sum(each.all_hold is True for each in judged)
    open_days = sum(each.all_hold is None for each in judged) + policy.buy_of_days - len(judged)
    fails = {
        Verdict.FILL: sum(each.held is False for each in judged),
        Verdict.WASTE_LESS: sum(each.productive is False for each in judged),
        Verdict.ENOUGH: sum(each.waits is False for each in judged),
    }
    if days_for >= policy.buy_days:
        verdict = Verdict.BUY
    elif days_for + open_days >= policy.buy_days:
        verdict = Verdict.NOT_KNOWN
    else:
        verdict = max(fails, key=lambda each: fails[each])
    eroded = sum(day.held.reaches(policy.erosion_from_ratio) is True for day in days[: policy.buy_of_days])
    return Advice(
        verdict=verdict,
        days_for=days_for,
        days_known=sum(each.all_hold is not None for each in judged),
        days=judged,
        erosion=verdict is not Verdict.BUY and eroded >= policy.buy_days,
    )
