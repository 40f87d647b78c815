"""Dominant resource fairness: the paper's example, its properties, and max-min as a special case."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.drf import Bundle, allocation, progressive_filling
from analytics.fairness.maxmin import Claim, max_min

RESOURCES = ("cpu", "gpu", "memory")
AMOUNTS = st.fixed_dictionaries({resource: st.integers(0, 12) for resource in RESOURCES})
BUNDLES = st.lists(st.builds(Bundle, asks=AMOUNTS, weight=st.integers(0, 3)), max_size=6)


def use(bundles: list[Bundle], served: list[Fraction], resource: str) -> Fraction:
    return sum((part * b.asks[resource] for part, b in zip(served, bundles, strict=True)), Fraction(0))


def test_the_papers_example() -> None:
    # 9 CPUs and 18 GB; A's tasks need <1 CPU, 4 GB>, B's <3 CPUs, 1 GB>: three and two tasks run,
    # and both dominant shares are 2/3 (Ghodsi et al. 2011, section 4.1). Each asks for 100 tasks.
    totals = {"cpu": 9, "memory": 18}
    asks = [Bundle(asks={"cpu": 100, "memory": 400}), Bundle(asks={"cpu": 300, "memory": 100})]
    assert [part * 100 for part in progressive_filling(asks, totals=totals)] == [3, 2]
    assert [allocation(asks, resource, totals=totals) for resource in totals] == [[3, 6], [12, 2]]


@given(BUNDLES, AMOUNTS)
def test_nobody_gets_more_than_is_asked_or_there_is(bundles: list[Bundle], totals: dict[str, int]) -> None:
    served = progressive_filling(bundles, totals=totals)
    assert all(0 <= part <= 1 for part in served)
    assert all(
        use(bundles, served, resource) <= totals[resource] for resource in RESOURCES if totals[resource]
    )


@given(BUNDLES, AMOUNTS)
def test_who_lacks_something_needs_a_resource_that_is_used_up(
    bundles: list[Bundle], totals: dict[str, int]
) -> None:
    served = progressive_filling(bundles, totals=totals)
    used_up = {r for r in RESOURCES if totals[r] and use(bundles, served, r) == totals[r]}
    for part, bundle in zip(served, bundles, strict=True):
        if part < 1 and any(bundle.asks[r] and totals[r] for r in RESOURCES):
            assert any(bundle.asks[r] for r in used_up)


@given(BUNDLES, AMOUNTS)
def test_nobody_envies_another_of_the_same_weight(bundles: list[Bundle], totals: dict[str, int]) -> None:
    # With what another got, nobody could serve more of their own bundle (section 3 of the paper).
    served = progressive_filling(bundles, totals=totals)
    for mine, bundle in zip(served, bundles, strict=True):
        needed = [r for r in RESOURCES if totals[r] and bundle.asks[r]]
        for theirs, other in zip(served, bundles, strict=True):
            if needed and bundle.weight == other.weight:
                assert mine == 1 or any(theirs * other.asks[r] <= mine * bundle.asks[r] for r in needed)


@given(st.lists(st.builds(Claim, st.integers(0, 12), st.integers(0, 4)), max_size=6), st.integers(0, 60))
def test_with_one_resource_it_is_weighted_max_min(claims: list[Claim], total: int) -> None:
    bundles = [Bundle(asks={"gpu": claim.cap}, weight=claim.weight) for claim in claims]
    assert allocation(bundles, "gpu", totals={"gpu": total}) == max_min(total, claims)


@given(BUNDLES, AMOUNTS)
def test_a_resource_that_does_not_exist_changes_nothing(
    bundles: list[Bundle], totals: dict[str, int]
) -> None:
    without = [
        Bundle(asks={r: ask for r, ask in bundle.asks.items() if totals[r]}, weight=bundle.weight)
        for bundle in bundles
    ]
    assert progressive_filling(bundles, totals=totals) == progressive_filling(without, totals=totals)
    assert all(
        allocation(bundles, resource, totals=totals) == [0] * len(bundles)
        for resource in RESOURCES
        if not totals[resource]
    )


def test_what_is_taken_already_can_be_less_than_the_totals() -> None:
    # Of 8 GPUs 2 are left, and A asks for them with half the CPU that B wants.
    bundles = [Bundle(asks={"gpu": 4, "cpu": 4}), Bundle(asks={"gpu": 4, "cpu": 8})]
    served = allocation(bundles, "gpu", totals={"gpu": 8, "cpu": 80}, available={"gpu": 2, "cpu": 80})
    assert served == [1, 1]
