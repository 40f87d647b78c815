"""Random small clusters for the laws of money: nodes, stays and prices on a grid of half hours."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from hypothesis import strategies as st

from analytics.chargeback.stays import NodeStretch, Owner, Stay
from domain.calendar import billing_zone
from domain.money import CapacityType, Price, Sku
from domain.window import MS_PER_HOUR, Window, parse_instant

ZONES = tuple(map(billing_zone, ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Africa/Cairo")))
# Around the 25 hours of 25 October 2026 in Berlin.
START = parse_instant("2026-10-24T00:00:00Z")
STEP_MS = MS_PER_HOUR // 2
STEPS = 3 * 48
WINDOW = Window(start_ms=START, end_ms=START + STEPS * STEP_MS)
SKUS = (Sku(gpu_model="A"), Sku(gpu_model="B", flavor="b-spot", capacity_type=CapacityType.SPOT))
TEAMS = ("ash", "birch", "cedar")
NODES = ("n1", "n2", "n3")

instants = st.integers(-10, STEPS + 10).map(lambda step: START + step * STEP_MS)
# A third of a GPU, a MIG slice and a time-slice do not divide evenly.
quantities = st.sampled_from([142_857, 333_333, 1_000_000, 8_000_000])


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    stays: tuple[Stay, ...]
    stretches: tuple[NodeStretch, ...]
    prices: tuple[Price, ...]


@st.composite
def stays(draw: st.DrawFn) -> Stay:
    start_ms, end_ms = sorted((draw(instants), draw(instants)))
    owners = tuple(
        Owner(team=draw(st.sampled_from(TEAMS)), user=draw(st.sampled_from(["", "ada"])), from_ms=from_ms)
        for from_ms in sorted(draw(st.lists(instants, min_size=1, max_size=3)))
    )
    return Stay(
        cluster="c",
        node=draw(st.sampled_from([*NODES, "not-known"])),
        sku=draw(st.sampled_from(SKUS)),
        micro_gpus=draw(st.none() | quantities),
        start_ms=start_ms,
        end_ms=draw(st.sampled_from([end_ms, None])),
        owners=owners,
    )


@st.composite
def stretches(draw: st.DrawFn, node: str) -> list[NodeStretch]:
    """The node's life in stretches that do not overlap and may leave holes."""
    edges = sorted(draw(st.lists(instants, min_size=2, max_size=5, unique=True)))
    found = []
    for place, (start_ms, end_ms) in enumerate(pairwise(edges)):
        if draw(st.booleans()):
            continue
        last = place == len(edges) - 2
        found.append(
            NodeStretch(
                cluster="c",
                node=node,
                sku=draw(st.sampled_from(SKUS)),
                start_ms=start_ms,
                end_ms=None if last and draw(st.booleans()) else end_ms,
                capacity_micro_gpus=draw(st.sampled_from([None, 4_000_000, 8_000_000])),
                allocatable_micro_gpus=draw(st.sampled_from([None, 0, 3_000_000, 8_000_000])),
                schedulable=draw(st.booleans()),
            )
        )
    return found


amounts = st.decimals(0, 100, places=4, allow_nan=False, allow_infinity=False)


@st.composite
def prices(draw: st.DrawFn) -> tuple[Price, ...]:
    """One price that always holds, and some for a model from an instant on."""
    always = Price(listed=draw(amounts), valid_from_ms=0)
    dates = draw(st.lists(instants, max_size=3, unique=True))
    later = [
        Price(
            listed=draw(amounts),
            contracted=draw(st.none() | amounts),
            effective=draw(st.none() | amounts),
            gpu_model=draw(st.sampled_from(["A", "B", "*"])),
            valid_from_ms=at,
        )
        for at in dates
    ]
    return (always, *later)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    return World(
        stays=tuple(draw(st.lists(stays(), max_size=8))),
        stretches=tuple(stretch for node in NODES for stretch in draw(stretches(node))),
        prices=draw(prices()),
    )


CENT = Decimal("0.01")
