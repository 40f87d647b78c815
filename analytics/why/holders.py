"""Whose end would let a gang find its place: few workloads, found cheaply."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from analytics.why.nodes import ANY, Each, Ending, Hold, Lot, Node, NodeStock, View, amounts, seats
from analytics.why.reason import Blocker, BlockerKind
from analytics.why.search import (
    Asked,
    Part,
    class_seats,
    domain_of,
    fits,
    opened,
    seats_by_domain,
)

_NOW: Final = View()
# Unlike pods, and pods of one domain: so many workloads more are tried than each part needs by itself.
_MOST_MORE: Final = 16
# In so many domains, those with most room, it is tried to make some.
_MOST_DOMAINS: Final = 4
# Of so many it is tried whether each is needed.
_MOST_TRIED: Final = 6


def whose_end_helps(asked: Asked, stock: NodeStock) -> tuple[Blocker, ...]:
    """
    Workloads whose end would let the gang be placed; empty where none is known.

    Those that free most seats for each of them come first, and of few none is named in vain. That is seldom
    more than the fewest, and costs little: what an ending frees is counted once for all pods that ask alike.
    """
    if not stock.holds:
        return ()
    for domain in _domains(asked, stock):
        ended = _enough(asked, stock, domain)
        if ended is not None:
            return tuple(_blockers(_needed(ended, asked, stock), asked, stock))
    return ()


def _domains(asked: Asked, stock: NodeStock) -> Sequence[str | None]:
    """The domains in which most of the gang has room by now; None where there is no such label."""
    if not asked.domain:
        return (None,)
    room: dict[str | None, int] = {}
    for part in asked.parts:
        for number in range(len(part.wishes)):
            for domain, here in seats_by_domain(part, number, asked=asked, stock=stock, view=_NOW).items():
                room[domain] = room.get(domain, 0) + min(part.pods, here)
    return sorted(room, key=lambda domain: (-room[domain], domain or ""))[:_MOST_DOMAINS]


@dataclass(slots=True)
class _After:
    """The nodes after some workloads have ended."""

    stock: NodeStock
    uids: dict[str, None] = field(default_factory=dict)
    lots: dict[int, Lot] = field(default_factory=dict)

    def end(self, uids: Iterable[str]) -> None:
        """More workloads end."""
        for uid in uids:
            self.uids[uid] = None
            for hold in self.stock.holds_of[uid]:
                place = self.stock.place_of[hold.node]
                self.lots[place] = self.freed(place, (hold,))

    def freed(self, place: int, holds: Iterable[Hold]) -> Lot:
        """What a node offers once these holds of others are gone too."""
        lot = self.lots.get(place) or self.stock.lots[self.stock.lot_of[place]]
        free, others = dict(lot.free), dict(lot.others_free)
        node = self.stock.nodes[place]
        for hold in holds:
            for name, count in hold.devices.items():
                # A device that is sick by now comes back to nobody.
                free[name] = min(free.get(name, 0) + count, node.allocatable.get(name, 0))
            for name, count in hold.others.items():
                if name in others:
                    others[name] = min(others[name] + count, node.others[name])
        return lot._replace(free=amounts(free), others_free=tuple(others.items()))

    def gain(self, ending: Ending, each: Each, opened: frozenset[int], class_of: Sequence[int]) -> int:
        """The seats that an ending adds to what there is by now."""
        if not any(place in self.lots for place, _ in ending.gains):
            return sum(more for place, more in ending.gains if class_of[place] in opened)
        freed: dict[int, list[Hold]] = {}
        for uid in ending.uids:
            for hold in self.stock.holds_of[uid] if uid not in self.uids else ():
                freed.setdefault(self.stock.place_of[hold.node], []).append(hold)
        return sum(
            seats(self.freed(place, holds), each, _NOW) - seats(self.freed(place, ()), each, _NOW)
            for place, holds in freed.items()
            if class_of[place] in opened
        )


def _enough(asked: Asked, stock: NodeStock, domain: str | None) -> list[str] | None:
    """Enough workloads, most useful ones first; None where their ends do not help."""
    after = _After(stock)
    spare: list[str] = []
    for part in sorted(asked.parts, key=lambda one: one.each.devices, reverse=True):
        may_use = frozenset(
            one
            for number in range(len(part.wishes))
            for one in opened(part, number, asked=asked, stock=stock)
            if domain is None or domain_of(one, asked=asked, stock=stock) == domain
        )
        spare += _enough_for(part, may_use, after, asked=asked)
    for uid in ["", *spare[:_MOST_MORE]]:
        after.end([uid] if uid and uid not in after.uids else [])
        if fits(asked, stock, _NOW, after.lots):
            return list(after.uids)
        if asked.is_plain:
            break
    return None


def _enough_for(part: Part, may_use: frozenset[int], after: _After, *, asked: Asked) -> list[str]:
    """Lets workloads end until the part alone has room; gives some that would free more."""
    stock, each = after.stock, part.each
    division, here = stock.division(asked.keys), stock.seats(each, _NOW)
    on_class = class_seats(each, _NOW, asked=asked, stock=stock)
    have = sum(on_class[number] for number in may_use)
    have += sum(
        seats(lot, each, _NOW) - here[stock.lot_of[place]]
        for place, lot in after.lots.items()
        if division.class_of[place] in may_use
    )
    spare: list[str] = []
    for ending in _endings_in(may_use, each, asked=asked, stock=stock):
        gain = after.gain(ending, each, may_use, division.class_of)
        if gain <= 0:
            continue
        new = [uid for uid in ending.uids if uid not in after.uids]
        if have < part.pods:
            have += gain
            after.end(new)
        elif asked.is_plain or len(spare) >= _MOST_MORE:
            break
        else:
            spare += new
    return spare


def _endings_in(may_use: frozenset[int], each: Each, *, asked: Asked, stock: NodeStock) -> Sequence[Ending]:
    """Endings that free seats on nodes of these classes, the most seats for each workload first."""
    if each not in stock.endings:
        stock.endings[each] = list(_endings(each, stock))
    key = each, asked.keys, may_use
    found = stock.endings_in.get(key)
    if found is None:
        class_of = stock.division(asked.keys).class_of
        rated = []
        for ending in stock.endings[each]:
            gain = sum(more for place, more in ending.gains if class_of[place] in may_use)
            if gain:
                rated.append((-gain / len(ending.uids), ending.uids, ending))
        rated.sort(key=lambda one: one[:2])
        found = stock.endings_in[key] = [ending for _, _, ending in rated]
    return found


def _endings(each: Each, stock: NodeStock) -> Iterator[Ending]:
    """Each workload whose end frees seats, and those on one node that do so together only."""
    asked, others = dict(each.devices), dict(each.others)
    here = stock.seats(each, _NOW)
    # What an empty node would hold: where that is no more, nobody's end helps.
    most = stock.seats(each, View(empty=True))
    gains: dict[str, list[tuple[int, int]]] = {}
    for place, on_node in stock.holds_on.items():
        before, node = here[stock.lot_of[place]], stock.nodes[place]
        if most[stock.lot_of[place]] <= before:
            continue
        useful = [hold for hold in on_node if _holds(hold, asked) or _holds_others(hold, others)]
        total = _seats_after(node, each, useful) - before
        if not total:
            continue
        by_uid: dict[str, list[Hold]] = {}
        for hold in useful:
            by_uid.setdefault(hold.workload_uid, []).append(hold)
        for uid, holds in by_uid.items():
            more = _seats_after(node, each, holds) - before if len(by_uid) > 1 else total
            if more:
                gains.setdefault(uid, []).append((place, more))
        if len(by_uid) == 1:
            continue
        useful.sort(key=lambda hold: (-sum(hold.devices.get(name, 0) for name in asked), hold.workload_uid))
        best = 0
        for number in range(1, len(useful) + 1):
            more = _seats_after(node, each, useful[:number]) - before
            uids = tuple(dict.fromkeys(hold.workload_uid for hold in useful[:number]))
            if more > best and len(uids) > 1:
                yield Ending(uids, ((place, more),))
            best = max(best, more)
            if best == total:
                break
    for uid, found in gains.items():
        yield Ending((uid,), tuple(found))


def _seats_after(node: Node, each: Each, ended: Sequence[Hold]) -> int:
    """How many such pods a node holds once these holds are gone."""
    found = ANY
    for name, count in each.devices:
        free = node.free.get(name, 0)
        for hold in ended:
            free += hold.devices.get(name, 0)
        # A device that is sick by now comes back to nobody.
        found = min(found, min(free, node.allocatable.get(name, 0)) // count)
    for name, count in each.others:
        if name in node.others:
            free = node.others_free[name]
            for hold in ended:
                free += hold.others.get(name, 0)
            found = min(found, min(free, node.others[name]) // count)
    return max(found, 0)


def _holds(hold: Hold, devices: Mapping[str, int]) -> bool:
    return not devices.keys().isdisjoint(hold.devices)


def _holds_others(hold: Hold, others: Mapping[str, int]) -> bool:
    return any(hold.others.get(name) for name in others)


def _needed(ended: list[str], asked: Asked, stock: NodeStock) -> list[str]:
    kept = ended
    for uid in ended[:-1] if len(ended) <= _MOST_TRIED else ():
        fewer = _After(stock)
        fewer.end(other for other in kept if other != uid)
        if fits(asked, stock, _NOW, fewer.lots):
            kept = list(fewer.uids)
    return kept


def _blockers(uids: Iterable[str], asked: Asked, stock: NodeStock) -> Iterator[Blocker]:
    wanted = {name for part in asked.parts for name, _ in part.each.devices}
    for uid in uids:
        on_nodes: dict[str, int] = {}
        for hold in stock.holds_of[uid]:
            devices = sum(count for name, count in hold.devices.items() if name in wanted)
            if devices:
                on_nodes[hold.node] = on_nodes.get(hold.node, 0) + devices
        for node, devices in on_nodes.items():
            yield Blocker(kind=BlockerKind.WORKLOAD, name=uid, node=node, devices=devices)
        if not on_nodes:
            # It has other devices, and with them the CPU or memory that is wanted.
            yield Blocker(kind=BlockerKind.WORKLOAD, name=uid, node=stock.holds_of[uid][0].node)
