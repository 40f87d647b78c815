"""Who held what, added up by the store: the same to the last unit as stay by stay."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from analytics.chargeback.cutter import Cutter
from analytics.chargeback.held import Held
from analytics.chargeback.levels import Packing
from analytics.chargeback.usage import Unknown
from domain.calendar import Unit, billing_zone, cut
from domain.money import Price, PriceBook
from domain.window import Window, parse_instant
from service.held_sums import held
from service.held_time import node_stretches, stays
from store.embedded import Store
from tests.build import Books, make_workload
from tests.laws import law
from tests.service.test_chargeback import HELD

# Around the 25 hours of 25 October in Berlin, and Lord Howe's clock change by half an hour on 4 October.
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")
FIRST = parse_instant("2026-10-03T00:00:00Z")
LAST = parse_instant("2026-10-28T00:00:00Z")
MINUTE_MS = 60_000

# On a grid of hours many things happen at one instant; between them nothing fits a slot.
instants = st.one_of(
    st.integers(-30, 25 * 24 + 30).map(lambda hour: FIRST + hour * 60 * MINUTE_MS),
    st.integers(FIRST - 10 * MINUTE_MS, LAST + 10 * MINUTE_MS),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Books], PriceBook]:
    """Lives and nodes of two clusters, by the same names, and prices that change at any time."""
    clusters = [draw(lives(cluster)) for cluster in ("north", "south")]
    changes = draw(st.lists(instants, max_size=2, unique=True))
    return clusters, PriceBook([Price(listed=Decimal(1), valid_from_ms=at_ms) for at_ms in (0, *changes)])


@st.composite
def lives(draw: st.DrawFn, cluster: str) -> Books:
    books = Books(cluster, {"node_span": []})
    for number in range(draw(st.integers(0, 4))):
        uid = f"w{number}"
        make_workload(
            books, uid, team=draw(st.sampled_from(["ash", "birch"])),
            user_name=draw(st.sampled_from(["", "ada"])), queue=draw(st.sampled_from(["q", "r"])),
            project=draw(st.sampled_from(["", "p"])),
            skewed=draw(st.sampled_from(["", "", "bound before it was submitted"])),
        )  # fmt: skip
        for pod in range(draw(st.integers(1, 2))):
            start_ms, end_ms = sorted((draw(instants), draw(instants)))
            books.add(
                "holding", **(HELD | {"gpu_model": draw(st.sampled_from(["A100", "H100"]))}),
                workload_uid=uid, pod_uid=f"{uid}-{pod}", pod_name=uid, bound_ms=start_ms,
                node=draw(st.sampled_from(["n1", "n2", "gone", ""])),
                micro_gpus=draw(st.sampled_from([None, 0, 142_857, 1_000_000, 8_000_000])),
                released_ms=draw(st.sampled_from([end_ms, end_ms, None])),
            )  # fmt: skip
    for node in ("n1", "n2"):
        edges = sorted(draw(st.lists(instants, min_size=0, max_size=4, unique=True)))
        for left, right in pairwise(edges):
            gpus = draw(st.sampled_from([None, 1_000_000, 8_000_000]))
            books.add(
                "node_span", node=node, gpu_model=draw(st.sampled_from(["A100", "H100"])),
                start_ms=left, end_ms=right, capacity_micro_gpus=gpus, schedulable=draw(st.booleans()),
                allocatable_micro_gpus=draw(st.sampled_from([None, 0, 1_000_000])),
            )  # fmt: skip
    return books


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    store = Store.open(None)
    yield store
    store.close()


def rewritten(store: Store, clusters: Iterable[Books]) -> None:
    """Let the store hold these lives, and no others."""
    for books in clusters:
        store.write_lives(books.cluster, [f"w{number}" for number in range(4)], books.tables, ("lives", 1))


def merged(found: Iterable[Unknown]) -> list[Unknown]:
    """In order, whoever found them first."""
    return sorted(found, key=lambda each: (each.cluster, each.node, each.because, each.start_ms, each.end_ms))


def sums(found: Held) -> tuple[dict[Any, int], dict[Any, int], list[Unknown]]:
    usage = {
        (*owned, found.skus[sku].gpu_model, number): int(amount)
        for *owned, sku, number, amount in found.usage.iter_rows()
    }
    assert len(usage) == found.usage.height
    levels = {(number, level): ms for number, level, ms in found.levels.iter_rows()}
    assert len(levels) == found.levels.height
    return usage, levels, merged(found.unknown)


@law(20, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.sampled_from(ZONES), instants, instants, st.booleans())
def test_the_store_adds_up_what_stay_by_stay_gives(
    store: Store,
    world: tuple[list[Books], PriceBook],
    zone: str,
    from_ms: int,
    to_ms: int,
    fine: bool,  # noqa: FBT001
) -> None:
    clusters, prices = world
    window = Window(start_ms=min(from_ms, to_ms), end_ms=max(from_ms, to_ms) + 1)
    rewritten(store, clusters)
    cutter = Cutter.over(cut(window, billing_zone(zone), Unit.DAY), node_stretches(store, window, ()), prices)
    one_by_one = stays(store, window)
    expected = sums(Held.of(one_by_one if fine else one_by_one.of_teams(), cutter))
    assert sums(held(store, cutter, fine=fine)) == expected
    with pytest.MonkeyPatch.context() as patched:
        # As where there are too many nodes and quantities for one number.
        patched.setattr(Packing, "of", lambda *_: None)
        assert sums(held(store, cutter, fine=fine)) == expected


def test_changes_are_packed_as_long_as_they_fit() -> None:
    month = Cutter.over(
        cut(Window(start_ms=FIRST, end_ms=LAST), billing_zone("UTC"), Unit.DAY), [], PriceBook([])
    )
    packing = Packing.of(month, 100_000, range(1, 1000))
    assert packing is not None
    assert packing.place_step * 100_000 < 2**63
    assert Packing.of(month, 2**20, range(1, 2**12)) is None
    assert list(replace(packing, time_step=8, quantities=(5, 7)).changes()) == [0, 0, 5, -5, 7, -7, 0, 0]


def test_a_stay_is_cut_where_the_price_or_the_node_changes_within_an_hour(store: Store) -> None:
    changes_ms, gone_ms = FIRST + 7 * MINUTE_MS + 1, FIRST + 31 * MINUTE_MS
    books = Books("north", {"node_span": []})
    make_workload(books, "w0")
    books.add(
        "holding", **(HELD | {"gpu_model": "A100"}), workload_uid="w0", pod_uid="p", pod_name="p", node="n1",
        micro_gpus=1, bound_ms=FIRST + 1, released_ms=FIRST + 50 * MINUTE_MS,
    )  # fmt: skip
    books.add(
        "node_span", node="n1", gpu_model="A100", start_ms=FIRST, end_ms=gone_ms, schedulable=True,
        capacity_micro_gpus=8, allocatable_micro_gpus=8,
    )  # fmt: skip
    rewritten(store, [Books("south", {"node_span": []}), books])
    window = Window(start_ms=FIRST, end_ms=LAST)
    prices = PriceBook([Price(listed=Decimal(1), valid_from_ms=at_ms) for at_ms in (0, changes_ms)])
    cutter = Cutter.over(
        cut(window, billing_zone("UTC"), Unit.DAY), node_stretches(store, window, ()), prices
    )
    pieces = {
        cutter.frames[number].start_ms: int(amount)
        for number, amount in held(store, cutter).usage.select("number", "micro_gpu_ms").iter_rows()
    }
    assert pieces == {
        FIRST: changes_ms - FIRST - 1,
        changes_ms: gone_ms - changes_ms,
        gone_ms: 19 * MINUTE_MS,
    }
