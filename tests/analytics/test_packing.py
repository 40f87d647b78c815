"""Pods of several kinds beside each other, against every way to choose a mix on each node."""

from functools import partial
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from analytics.packing import Alike, Pods, fits_together, mixes

ROOMS = st.lists(st.fixed_dictionaries({"gpu": st.integers(0, 6), "cpu": st.integers(0, 6)}), max_size=3)
PARTS = st.lists(
    st.fixed_dictionaries({"gpu": st.integers(0, 3), "cpu": st.integers(0, 3)}), min_size=2, max_size=3
)


def alike(rooms: list[dict[str, int]], parts: list[dict[str, int]], wanted: Pods) -> list[Alike]:
    def alone(room: dict[str, int], part: dict[str, int], most: int) -> int:
        return min([most, *(room[name] // each for name, each in part.items() if each)])

    found = []
    for room in rooms:
        most = tuple(alone(room, part, want) for part, want in zip(parts, wanted, strict=True))
        found.append(Alike(1, most, partial(mixes, room, parts, most)))
    return found


@given(ROOMS, PARTS, st.data())
def test_it_fits_where_some_choice_of_mixes_holds_all(
    rooms: list[dict[str, int]], parts: list[dict[str, int]], data: st.DataObject
) -> None:
    wanted = tuple(data.draw(st.integers(1, 3)) for _ in parts)
    nodes = alike(rooms, parts, wanted)
    counts = [range(want + 1) for want in wanted]
    on_a_node = [
        [
            pods
            for pods in product(*counts)
            if all(
                sum(n * part[name] for n, part in zip(pods, parts, strict=True)) <= room[name]
                for name in room
            )
        ]
        for room in rooms
    ]
    by_trying = any(
        all(sum(pods[part] for pods in choice) >= want for part, want in enumerate(wanted))
        for choice in product(*on_a_node)
    )
    assert fits_together(nodes, wanted, most_steps=10**6) == by_trying


def test_a_search_is_given_up_after_so_many_steps_and_says_so() -> None:
    # Two threes leave 2 and 2 of two nodes of 5: with the node of 2 there is room for three twos, not four.
    nodes = alike([{"gpu": 5}, {"gpu": 5}, {"gpu": 2}], [{"gpu": 3}, {"gpu": 2}], (2, 4))
    assert [fits_together(nodes, (2, 4), most_steps=steps) for steps in (0, 10_000)] == [None, False]


def test_nodes_that_are_alike_count_as_often_as_there_are() -> None:
    many = Alike(50, (1, 2), lambda: [(1, 0), (0, 2)])
    assert fits_together([many], (30, 40), most_steps=10**6)
    assert not fits_together([many], (30, 41), most_steps=10**6)
