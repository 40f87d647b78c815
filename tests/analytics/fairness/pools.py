"""Random pools of every shape, and an independent water filling to compare with."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from analytics.fairness.entities import CohortTree, Entity, Pool
from analytics.fairness.maxmin import Claim

GPU = 1_000_000
# Small ones, so that ties are common; parts of a card; a quota that somebody wrote for "unlimited".
AMOUNTS = st.integers(0, 12) | st.sampled_from([142_857, GPU, 3 * GPU, 8 * GPU, 10**23])
WEIGHTS = st.sampled_from([1000, 0, 1, 3000])
LIMITS = st.none() | AMOUNTS


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    """Up to eight claims on a small grid, so that ties, zeros and full caps are common."""
    return draw(st.lists(st.builds(Claim, st.integers(0, 12), st.integers(0, 4)), max_size=8))


@st.composite
def pools(draw: st.DrawFn, limits: st.SearchStrategy[int | None] = LIMITS) -> Pool:
    """
    Up to six entities in the root cohort or in one of up to three below it, in any shape.

    Without limits nobody stands alone either.
    """
    where = st.integers(0, draw(st.integers(0, 3)))
    parents = [draw(st.integers(0, i)) for i in range(draw(where))]
    homes = [min(draw(where), len(parents)) for _ in range(draw(st.integers(0, 6)))]
    entities = [
        Entity(
            name=f"e{i}",
            quota=draw(AMOUNTS),
            demand=draw(AMOUNTS),
            held=draw(AMOUNTS),
            weight_milli=draw(WEIGHTS),
            borrowing_limit=draw(limits),
            lending_limit=draw(limits),
            alone=limits is LIMITS and draw(st.booleans()),
        )
        for i in range(len(homes))
    ]
    cohorts = [
        CohortTree(
            name=f"e{i}",
            quota=draw(AMOUNTS),
            weight_milli=draw(WEIGHTS),
            borrowing_limit=draw(limits) if i else None,
            lending_limit=draw(limits) if i else None,
            entities=tuple(entity for entity, home in zip(entities, homes, strict=True) if home == i),
        )
        for i in range(len(parents) + 1)
    ]
    for i in range(len(parents), 0, -1):  # the last first: a parent always stands before its child
        above = cohorts[parents[i - 1]]
        cohorts[parents[i - 1]] = replace(above, cohorts=(cohorts[i], *above.cohorts))
    return Pool(capacity=draw(AMOUNTS), tree=cohorts[0], hard_quota=draw(st.booleans()))


def poured(amount: int, claims: Sequence[Claim]) -> list[Fraction]:
    """
    Water filling by the book: share what is left by weight, stop those that are full, repeat.

    The weights of 0 are poured into afterwards, as if each were 1.
    """
    shares = [Fraction(0)] * len(claims)
    left = Fraction(amount)
    for weights in ([c.weight for c in claims], [0 if c.weight else 1 for c in claims]):
        thirsty = {i for i, c in enumerate(claims) if weights[i] and c.cap}
        while thirsty and left:
            level = left / sum(weights[i] for i in thirsty)
            full = {i for i in thirsty if claims[i].cap - shares[i] <= weights[i] * level}
            for i in full or thirsty:
                given = min(claims[i].cap - shares[i], weights[i] * level)
                shares[i] += given
                left -= given
            thirsty = thirsty - full if full else set()
    return shares
