"""Whether pods of several kinds find room at the same time: counting, where trying would take for ever."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

# How many pods of each part, in the order of the parts.
Pods: TypeAlias = tuple[int, ...]


class Alike(NamedTuple):
    """
    So many nodes that hold the same: `most` of each part alone, and any one of `mixes()`, or less.

    The mixes are asked for only where the search comes to these nodes.
    """

    nodes: int
    most: Pods
    mixes: Callable[[], Sequence[Pods]]


def mixes(room: Mapping[str, int], parts: Sequence[Mapping[str, int]], most: Pods) -> tuple[Pods, ...]:
    """
    The mixes of pods that a node holds and to which no pod can be added.

    Args:
        room: what is free on the node, by resource; what is missing is 0.
        parts: what a pod of each part asks.
        most: pods of each part beyond which nobody asks; 0 where a part may not stand on the node.

    >>> mixes({"gpu": 5}, [{"gpu": 2}, {"gpu": 1}], (2, 9))
    ((2, 1), (1, 3), (0, 5))
    """
    return tuple(_largest(_all_mixes(dict(room), parts, most)))


def _all_mixes(room: dict[str, int], parts: Sequence[Mapping[str, int]], most: Pods) -> Iterator[Pods]:
    if not parts:
        yield ()
        return
    first, here = parts[0], most[0]
    for name, each in first.items():
        if each > 0:
            here = min(here, room.get(name, 0) // each)
    # Of the last part a node holds as many as it can: less is no largest mix.
    for pods in range(here, -1, -1) if len(parts) > 1 else (here,):
        left = room
        if pods:
            left = {**room, **{name: room.get(name, 0) - pods * each for name, each in first.items()}}
        for others in _all_mixes(left, parts[1:], most[1:]):
            yield (pods, *others)


def fits_together(alike: Iterable[Alike], wanted: Pods, *, most_steps: int) -> bool | None:
    """
    Whether the nodes hold all wanted pods at once; None where the search was given up.

    Easy cases are settled by filling one node after the other. Else, node by node, it keeps what could
    have been placed so far, and of that only what is not less than
    something else. With two parts that is never more than the pods of the smaller one.

    >>> two = Alike(2, (2, 3), lambda: [(2, 0), (1, 1), (0, 3)])
    >>> fits_together([two], (2, 3), most_steps=1000), fits_together([two], (3, 2), most_steps=1000)
    (True, False)
    """
    nodes = sorted(alike, key=lambda each: sum(each.most), reverse=True)
    if _fits_in_turn(nodes, wanted):
        return True
    reached: list[Pods] = [(0,) * len(wanted)]
    steps = 0
    for each, later in zip(nodes, _seats_after(nodes, len(wanted)), strict=True):
        mixes_here = each.mixes()
        for number in range(each.nodes):
            # What the other nodes cannot make up for is dropped.
            left = [rest + (each.nodes - number) * here for rest, here in zip(later, each.most, strict=True)]
            reached = [
                placed
                for placed in reached
                if all(got + more >= want for got, more, want in zip(placed, left, wanted, strict=True))
            ]
            if not reached:
                return False
            if steps > most_steps:
                return None
            grown = _largest(
                tuple(min(got + more, want) for got, more, want in zip(placed, mix, wanted, strict=True))
                for placed in reached
                for mix in mixes_here
            )
            if grown == [wanted]:
                return True
            # With three parts or more each new mix is held against all that are kept.
            steps += len(reached) * len(mixes_here) * (len(grown) if len(wanted) > 2 else 1)
            if grown == reached:
                break
            reached = grown
    return wanted in reached


def _fits_in_turn(nodes: Sequence[Alike], wanted: Pods) -> bool:
    """Whether filling nodes in turn places all: on each as many as can be of what has fewest seats in all."""
    seats = [sum(each.nodes * each.most[part] for each in nodes) for part in range(len(wanted))]
    order = sorted(range(len(wanted)), key=lambda part: seats[part])
    left = list(wanted)
    for each in nodes:
        mixes_here = each.mixes()
        for _ in range(each.nodes):
            if not any(left):
                return True
            best = max(mixes_here, key=lambda mix: [min(mix[part], left[part]) for part in order])
            if not any(min(got, want) for got, want in zip(best, left, strict=True)):
                break
            left = [max(want - got, 0) for got, want in zip(best, left, strict=True)]
    return not any(left)


def _seats_after(nodes: Sequence[Alike], parts: int) -> list[Pods]:
    """For each kind of nodes the seats of each part on all that come after it."""
    found: list[Pods] = []
    later = (0,) * parts
    for each in reversed(nodes):
        found.append(later)
        later = tuple(rest + each.nodes * seats for rest, seats in zip(later, each.most, strict=True))
    return found[::-1]


def _largest(found: Iterable[Pods]) -> list[Pods]:
    """Those of which none is at most as large in every part as another, largest first."""
    kept: list[Pods] = []
    ordered = sorted(set(found), reverse=True)
    if ordered and len(ordered[0]) == 2:
        highest = -1
        for one in ordered:
            if one[1] > highest:
                highest = one[1]
                kept.append(one)
        return kept
    for one in ordered:
        if not any(all(mine <= other for mine, other in zip(one, bigger, strict=True)) for bigger in kept):
            kept.append(one)
    return kept
