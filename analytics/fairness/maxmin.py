"""
Weighted max-min: share an amount so that nobody can get more without taking from one who has less.

Amounts and caps are whole units (micro-GPU); shares are whole and sum exactly.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Claim(NamedTuple):
    """At most `cap` is wanted. `weight` counts against the other claims only, so its unit is free."""

    cap: int
    weight: int


def max_min(amount: int, claims: Sequence[Claim]) -> list[int]:
    """
    Each claim's share; together they take the amount, or all caps where those are less.

    Weight 0 comes last: it shares, in equal parts, what is left when every positive weight is
    satisfied. Shares are within one unit of the exact ones; a unit that cannot be cut goes to the
    largest remainder, ties to the earlier claim.

    Source: Bertsekas and Gallager, Data Networks, 6.5.2 (progressive filling).

    >>> max_min(9, [Claim(cap=9, weight=2), Claim(cap=1, weight=1), Claim(cap=9, weight=1)])
    [5, 1, 3]
    >>> max_min(9, [Claim(cap=4, weight=1), Claim(cap=9, weight=0)])
    [4, 5]
    """
    return shared(amount, [claim.cap for claim in claims], [claim.weight for claim in claims])


def shared(amount: int, caps: list[int], weights: Sequence[int]) -> list[int]:
    """As `max_min`, of caps and weights that lie apart: a sweep asks it millions of times."""
    if sum(caps) <= amount:
        return caps
    if not amount:
        return [0] * len(caps)
    if min(weights) > 0:
        return _fill(amount, caps, weights)
    shares = _fill(amount, [cap if w > 0 else 0 for cap, w in zip(caps, weights, strict=True)], weights)
    last = [0 if weight > 0 else cap for cap, weight in zip(caps, weights, strict=True)]
    rest = _fill(amount - sum(shares), last, [0 if weight > 0 else 1 for weight in weights])
    return [share + more for share, more in zip(shares, rest, strict=True)]


def whole_parts(exact: Sequence[Fraction]) -> list[int]:
    """
    Round parts to whole units so that they sum to the sum of the exact ones, rounded down.

    >>> whole_parts([Fraction(4, 3), Fraction(4, 3), Fraction(4, 3)])
    [2, 1, 1]
    """
    parts = [part.numerator // part.denominator for part in exact]
    missing = int(sum(exact, Fraction(0))) - sum(parts)
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    for index in by_remainder[:missing]:
        parts[index] += 1
    return parts


def _level(amount: int, caps: list[int], weights: Sequence[int]) -> tuple[int, int] | None:
    """The level as a fraction, among positive weights: whole numbers are several times faster."""
    wanted = [(cap, weight) for cap, weight in zip(caps, weights, strict=True) if cap and weight > 0]
    left, total = amount, sum(weight for _, weight in wanted)
    while wanted:
        unmet = [(cap, weight) for cap, weight in wanted if cap * total > left * weight]
        if len(unmet) == len(wanted):
            return left, total
        # Whoever is met at this level is met at any higher one, and what they leave only raises it.
        left -= sum(cap for cap, _ in wanted) - sum(cap for cap, _ in unmet)
        total = sum(weight for _, weight in unmet)
        wanted = unmet
    return None


def _fill(amount: int, caps: list[int], weights: Sequence[int]) -> list[int]:
    """Shares among positive weights; a claim of nothing may have any."""
    if sum(caps) <= amount:
        return caps
    level = _level(amount, caps, weights)
    if level is None:
        return caps
    left, total = level
    shares, remainders, missing = [], [], left
    for i, (cap, weight) in enumerate(zip(caps, weights, strict=True)):
        if cap * total <= left * weight:
            shares.append(cap)
            continue
        share, remainder = divmod(left * weight, total)
        shares.append(share)
        remainders.append((-remainder, i))
        missing -= share
    for _, i in sorted(remainders)[:missing]:
        shares[i] += 1
    return shares
