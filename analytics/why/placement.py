"""Why a gang has no place: a search on the free nodes, and what would have to go for it to find one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from analytics.why.barriers import Barrier, barriers, everything_borne
from analytics.why.holders import whose_end_helps
from analytics.why.nodes import Gang, NodeStock, View
from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source, Value
from analytics.why.search import Asked, fits
from analytics.why.stranded import never_enough, resources_of, stranded
from analytics.why.told import room_of, told_nodes

_NOW: Final = View()
_EMPTY: Final = View(empty=True)
_HARDWARE: Final = View(empty=True, everywhere=True)


def place(gang: Gang, stock: NodeStock) -> tuple[Finding, ...]:
    """
    Why the whole gang cannot be placed now, most severe reason first; empty where it can.

    Each reason is one that would help if it were gone, and nothing else were different:

    - NEVER_FITS: no room even if nobody held anything and all nodes were well, took pods, and had no taints.
      Taints come and go, hardware and labels do not.
    - NODE_UNAVAILABLE: there is room if nodes that take no pods counted.
    - CONSTRAINT: there is room if one of the named constraints were dropped, or all of them where `drop` is
      `all`. `when` is `now`; or `empty`, where GPUs are missing too, and waiting alone will never help.
      Where `drop` is `both`, so would have to be what NODE_UNAVAILABLE names. `waiting` is `helps` where
      the gang would have room, constraints and all, once others end; else `never`.
    - OTHER_RESOURCE: there is room if CPU, memory and the like were not looked at. What is free of those is
      an upper bound, so what is concluded of it holds whatever else there is.
    - Else FRAGMENTATION: the free devices on nodes that it may use are enough in sum. GPU_SHORTAGE: they are
      not.

    A finding is coarse where the search for unlike pods was given up: then no place is known, and none is
    proven missing.
    """
    asked = Asked.of(gang)
    found = stock.answers.get(asked.name)
    if found is None:
        stock.make_room()
        found = stock.answers[asked.name] = tuple(sorted(_findings(asked, stock), key=lambda one: one.order))
    return found


def _findings(asked: Asked, stock: NodeStock) -> Iterator[Finding]:
    now = fits(asked, stock, _NOW)
    if now or not asked.parts:
        return
    is_coarse = now is None
    shown = told_nodes(asked, stock)
    untainted = asked.wishing(everything_borne)
    if fits(untainted, stock, _HARDWARE) is False:
        yield _never(shown, asked, stock)
        yield from _dropped(asked, stock, shown, hardware=True)
        return
    # What nobody's end would cure.
    stays = fits(asked, stock, _EMPTY) is False
    found = [*_unavailable(asked, stock, shown, stays=stays), *_dropped(asked, stock, shown, stays=stays)]
    if stays and not found:
        found = list(_both(asked, stock, shown))
    yield from found
    blockers = () if stays else whose_end_helps(asked, stock)
    other = _other_resource(asked, stock, shown, blockers)
    if other:
        yield other
        return
    room = room_of(asked, stock)
    if room is None:
        # No GPUs are asked: what is missing can only be something else.
        if not found:
            yield _finding(Reason.OTHER_RESOURCE, shown, is_coarse=is_coarse)
        return
    reason = Reason.GPU_SHORTAGE if room["missing"] else Reason.FRAGMENTATION
    yield _finding(
        reason, {**shown, **room}, blockers=blockers, is_coarse=is_coarse, remedy=_REMEDIES[reason]
    )


def _never(shown: Mapping[str, Value], asked: Asked, stock: NodeStock) -> Finding:
    borne = asked.wishing(everything_borne)
    names, _ = _lacking(borne, stock, _HARDWARE)
    lacks = {"resources": tuple(names), **never_enough(borne, stock, names)} if names else {}
    return _finding(
        Reason.NEVER_FITS,
        {**shown, **(room_of(borne, stock, _HARDWARE) or {}), **lacks},
        blockers=tuple(each.blocker for each in barriers(asked, stock) if _matches_nothing(each, stock)),
        remedy=_NEVER_BESIDE if names else _REMEDIES[Reason.NEVER_FITS],
    )


def _matches_nothing(barrier: Barrier, stock: NodeStock) -> bool:
    """Whether it asks for a label that no node has."""
    key, _, value = barrier.blocker.name.partition("=")
    return barrier.blocker.kind is BlockerKind.SELECTOR and (key, value) not in stock.said


def _unavailable(
    asked: Asked, stock: NodeStock, shown: Mapping[str, Value], *, stays: bool
) -> Iterator[Finding]:
    """Nodes that take no pods, as few as one finds, with which the gang would have room."""
    out = [place for place, node in enumerate(stock.nodes) if not node.schedulable]
    for view in (_NOW, _EMPTY) if stays else (_NOW,):
        if out and fits(asked, stock, view._replace(everywhere=True)):
            names = _enough(out, asked, stock, view)
            yield _finding(
                Reason.NODE_UNAVAILABLE,
                {**shown, "when": "empty" if view.empty else "now", "unavailable": len(out)},
                blockers=tuple(Blocker(kind=BlockerKind.NODE, name=name) for name in names),
                remedy=_REMEDIES[Reason.NODE_UNAVAILABLE],
            )
            return


def _enough(out: list[int], asked: Asked, stock: NodeStock, view: View) -> list[str]:
    """Of nodes that take no pods those that are needed, the roomiest ones first."""
    lots = {place: stock.lots[stock.lot_of[place]]._replace(schedulable=True) for place in out}
    order = sorted(out, key=lambda place: (-sum(count for _, count in lots[place].free), place))
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        if fits(asked, stock, view, {place: lots[place] for place in order[:middle]}):
            high = middle
        else:
            low = middle + 1
    kept = order[:low]
    for place in kept[:-1] if len(kept) <= _MOST_TRIED else ():
        fewer = [other for other in kept if other != place]
        if fits(asked, stock, view, {other: lots[other] for other in fewer}):
            kept = fewer
    return [stock.nodes[place].name for place in kept]


def _dropped(
    asked: Asked,
    stock: NodeStock,
    shown: Mapping[str, Value],
    *,
    stays: bool = True,
    hardware: bool = False,
) -> Iterator[Finding]:
    """The constraints of which one, or all of a kind, would have to be dropped."""
    found = list(barriers(asked, stock))
    views = [_NOW, _HARDWARE if hardware else _EMPTY] if stays else [_NOW]
    for view in views:
        borne = hardware and view.empty
        single = [each for each in found if fits(_without(asked, (each,), borne=borne), stock, view)]
        groups = [tuple(e for e in found if e.blocker.kind is kind) for kind in _KINDS] if not single else []
        together = next(
            (g for g in groups if len(g) > 1 and fits(_without(asked, g, borne=borne), stock, view)), ()
        )
        if single or together:
            yield _finding(
                Reason.CONSTRAINT,
                {
                    **shown,
                    "drop": "any" if single else "all",
                    "when": "empty" if view.empty else "now",
                    "waiting": "never" if stays else "helps",
                    "constraints": tuple(each.blocker.name for each in single or together),
                },
                blockers=tuple(each.blocker for each in single or together),
                remedy=_REMEDIES[Reason.CONSTRAINT],
            )
            return


def _without(asked: Asked, dropped: tuple[Barrier, ...], *, borne: bool) -> Asked:
    for each in dropped:
        asked = each.dropped(asked)
    return asked.wishing(everything_borne) if borne else asked


def _both(asked: Asked, stock: NodeStock, shown: Mapping[str, Value]) -> Iterator[Finding]:
    """Where nodes take no pods, the others have taints, and neither alone is what is in the way."""
    taints = tuple(each for each in barriers(asked, stock) if each.blocker.kind is BlockerKind.TAINT)
    out = [place for place, node in enumerate(stock.nodes) if not node.schedulable]
    untainted = _without(asked, taints, borne=False)
    if not out or not taints or not fits(untainted, stock, _EMPTY._replace(everywhere=True)):
        return
    names = _enough(out, untainted, stock, _EMPTY)
    yield _finding(
        Reason.NODE_UNAVAILABLE,
        {**shown, "drop": "both", "when": "empty", "unavailable": len(out)},
        blockers=tuple(Blocker(kind=BlockerKind.NODE, name=name) for name in names),
        remedy=_REMEDIES[Reason.NODE_UNAVAILABLE],
    )
    yield _finding(
        Reason.CONSTRAINT,
        {
            **shown,
            "drop": "both",
            "when": "empty",
            "waiting": "never",
            "constraints": tuple(each.blocker.name for each in taints),
        },
        blockers=tuple(each.blocker for each in taints),
        remedy=_REMEDIES[Reason.CONSTRAINT],
    )


def _other_resource(
    asked: Asked, stock: NodeStock, shown: Mapping[str, Value], blockers: tuple[Blocker, ...]
) -> Finding | None:
    """Whether there is room but for CPU, memory and the like; the one that it is, where one alone is."""
    names, drop = _lacking(asked, stock, _NOW)
    if not names:
        return None
    return _finding(
        Reason.OTHER_RESOURCE,
        {
            **shown,
            "drop": drop,
            "resources": tuple(names),
            **stranded(asked, stock, names),
        },
        blockers=blockers,
        remedy=_REMEDIES[Reason.OTHER_RESOURCE],
    )


def _lacking(asked: Asked, stock: NodeStock, view: View) -> tuple[Sequence[str], str]:
    """
    Of CPU, memory and the like those but for which there would be room; none where it is not about them.

    `any`: without any one of them. `all`: without all of them, of which none is named in vain.
    """

    def has_room(without: Iterable[str]) -> bool:
        return bool(fits(asked, stock, view._replace(left_out=frozenset(without))))

    names = resources_of(asked)
    if not names or not fits(asked, stock, view._replace(others=False)):
        return (), ""
    alone = [name for name in names if has_room([name])]
    if alone:
        return alone, "any"
    for name in list(names):
        fewer = [other for other in names if other != name]
        names = fewer if has_room(fewer) else names
    return names, "all"


def _finding(
    reason: Reason,
    evidence: Mapping[str, Value],
    *,
    blockers: tuple[Blocker, ...] = (),
    remedy: str = "",
    is_coarse: bool = False,
) -> Finding:
    return Finding(
        reason=reason,
        source=Source.PLACEMENT,
        evidence=evidence,
        blockers=blockers,
        remedy=remedy,
        is_coarse=is_coarse,
    )


# Nodes of which it is tried whether each is needed.
_MOST_TRIED: Final = 12
_NEVER_BESIDE: Final = "Ask for less CPU or memory with each GPU: no node has as much."
_KINDS: Final = (BlockerKind.TAINT, BlockerKind.SELECTOR, BlockerKind.AFFINITY)
_REMEDIES: Final = {
    Reason.NEVER_FITS: "Ask for fewer GPUs, for fewer on one node, or for nodes that the cluster has.",
    Reason.NODE_UNAVAILABLE: "Wait until the nodes take pods again, or ask the administrators when that is.",
    Reason.CONSTRAINT: "Drop one of the constraints named, or tolerate the taint.",
    Reason.OTHER_RESOURCE: "Ask for less of it with each GPU, or wait until others on these nodes end.",
    Reason.FRAGMENTATION: "Ask for fewer GPUs on each node, or wait until one node has that many free.",
    Reason.GPU_SHORTAGE: "Wait until GPUs become free, or ask for fewer.",
}
