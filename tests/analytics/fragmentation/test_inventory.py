"""What fits at once and what stays stranded, against all ways to place pods on small pools."""

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from analytics.fragmentation.inventory import Ask, Inventory, Part, is_placeable, stranded
from analytics.fragmentation.repack import Movable, reclaimable, repacked

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"

DEVICES = st.dictionaries(st.sampled_from([GPU, SLICE]), st.integers(1, 4), min_size=1, max_size=2)
PARTS = st.builds(lambda pods, devices: Part(pods=pods, devices=devices), st.integers(1, 3), DEVICES)
ASKS = st.builds(lambda parts: Ask(parts=tuple(parts)), st.lists(PARTS, min_size=1, max_size=2))
INVENTORIES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=4).map(
    lambda free: Inventory({f"n{i}": {GPU: gpus, SLICE: slices} for i, (gpus, slices) in enumerate(free)})
)


def fits(ask: Ask, inventory: Inventory) -> bool:
    """Every way to put every pod on some node is tried."""
    pods = [part.devices for part in ask.parts for _ in range(part.pods)]
    nodes = list(inventory.free)
    for choice in product(nodes, repeat=len(pods)):
        left = {node: dict(devices) for node, devices in inventory.free.items()}
        for node, pod in zip(choice, pods, strict=True):
            for name, count in pod.items():
                left[node][name] -= count
        if all(count >= 0 for devices in left.values() for count in devices.values()):
            return True
    return False


def test_a_gang_is_not_placeable_by_the_sum_of_what_is_free() -> None:
    three_one_two = Inventory({"n1": {GPU: 3}, "n2": {GPU: 1}, "n3": {GPU: 2}})
    assert not is_placeable(Ask(parts=(Part(pods=1, devices={GPU: 4}),)), three_one_two)
    assert is_placeable(Ask(parts=(Part(pods=2, devices={GPU: 2}),)), three_one_two)


def test_pods_of_two_sizes_are_placed_with_thought() -> None:
    # 3 + 3 and 2 + 2 + 2 fill two nodes of 6; whoever mixes them finds no room for the last.
    ask = Ask(parts=(Part(pods=2, devices={GPU: 3}), Part(pods=3, devices={GPU: 2})))
    assert is_placeable(ask, Inventory({"a": {GPU: 6}, "b": {GPU: 6}}))
    assert not is_placeable(ask, Inventory({"a": {GPU: 7}, "b": {GPU: 4}}))


@given(ASKS, INVENTORIES)
def test_placeable_is_what_some_way_to_place_all_pods_shows(ask: Ask, inventory: Inventory) -> None:
    assert is_placeable(ask, inventory) == fits(ask, inventory)


@given(st.lists(ASKS, max_size=3), INVENTORIES)
def test_what_is_stranded_is_what_no_placeable_workload_fills(asks: list[Ask], inventory: Inventory) -> None:
    parts = [part for ask in asks if fits(ask, inventory) for part in ask.parts]
    wanted = {name for ask in asks for part in ask.parts for name in part.devices}
    for (node, resource), count in stranded(inventory, asks).items():
        free = inventory.free[node]
        filled = [
            pods * part.devices[resource]
            for part in parts
            if resource in part.devices
            for pods in range(9)
            if all(pods * each <= free[name] for name, each in part.devices.items())
        ]
        assert count == (free[resource] - max(filled, default=0) if resource in wanted else 0)


def total(inventory: Inventory) -> int:
    return sum(count for devices in inventory.free.values() for count in devices.values())


@given(
    INVENTORIES,
    st.lists(ASKS, max_size=3),
    st.lists(st.tuples(st.integers(0, 3), DEVICES), max_size=5),
)
def test_a_repack_loses_no_device_and_gives_back_at_most_what_was_stranded(
    inventory: Inventory, asks: list[Ask], held: Sequence[tuple[int, dict[str, int]]]
) -> None:
    pods = [Movable(node=f"n{place % len(inventory.free)}", devices=devices) for place, devices in held]
    after = repacked(inventory, pods)
    if after is not None:
        assert total(after) == total(inventory)
        assert all(count >= 0 for devices in after.free.values() for count in devices.values())
    before = sum(stranded(inventory, asks).values())
    assert 0 <= sum(reclaimable(inventory, asks, pods).values()) <= before


def test_without_movable_pods_nothing_is_given_back() -> None:
    inventory = Inventory({"n1": {GPU: 3}, "n2": {GPU: 1}})
    assert reclaimable(inventory, [Ask(parts=(Part(pods=1, devices={GPU: 4}),))], []) == {}
