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
    caps = [claim.cap for claim in claims]
    if sum(caps) <= amount:
        return caps
    if all(claim.weight > 0 for claim in claims):
        return _fill(amount, claims)
    positive = [claim if claim.weight > 0 else Claim(0, 0) for claim in claims]
    shares = _fill(amount, positive)
    last = [Claim(0, 0) if claim.weight > 0 else Claim(claim.cap, 1) for claim in claims]
    rest = _fill(amount - sum(shares), last)
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


def _level(amount: int, claims: Sequence[Claim]) -> tuple[int, int] | None:
    """The level as a fraction, among positive weights: whole numbers are several times faster."""
    left, weight, open_claims = amount, sum(claim.weight for claim in claims), list(claims)
    while open_claims:
        unmet = [claim for claim in open_claims if claim.cap * weight > left * claim.weight]
        if len(unmet) == len(open_claims):
            return left, weight
        # Whoever is met at this level is met at any higher one, and what they leave only raises it.
        left -= sum(claim.cap for claim in open_claims) - sum(claim.cap for claim in unmet)
        weight = sum(claim.weight for claim in unmet)
        open_claims = unmet
    return None


def _fill(amount: int, claims: Sequence[Claim]) -> list[int]:
    """Shares among positive weights; a claim of nothing may have any."""
    if sum(claim.cap for claim in claims) <= amount:
        return [claim.cap for claim in claims]
    level = _level(amount, [claim for claim in claims if claim.weight > 0])
    if level is None:
        return [claim.cap for claim in claims]
    left, weight = level
    shares, remainders, missing = [], [], left
    for i, claim in enumerate(claims):
        if claim.cap * weight <= left * claim.weight:
            shares.append(claim.cap)
            continue
        share, remainder = divmod(left * claim.weight, weight)
        shares.append(share)
        remainders.append((-remainder, i))
        missing -= share
    for _, i in sorted(remainders)[:missing]:
        shares[i] += 1
    return shares
