"""
What a workload held and asked over time, in which pool and for whom.

Held GPUs count where their node is. GPUs that are asked count in the flavor that Kueue assigned,
else in the first flavor of the queue's order that could ever hold the workload: its labels are those
that the pods select, its nodes were large enough by then, and its quota with what may be borrowed
too. What fits nowhere asks for nothing (NEVER_FITS), nor does what names a queue that does not exist
(MISCONFIGURED). Affinity, tolerations and volumes are not known here: the exact reasons come with
the explanation of waits.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from analytics.fairness.books.layout import kai_entity, kueue_pool, plain_pool, root_of
from analytics.fairness.books.site import Quotas, Resources, Selector, Site
from domain.objects import FlavorQuota
from domain.quantity import MICRO_PER_GPU, QuotaKind, is_gpu_resource, micro_gpus
from domain.workload import WAITING_STATES

FOREVER = (1 << 63) - 1


class Stretch(NamedTuple):
    """Something that held in `[start_ms, end_ms)`: a state, a reserved flavor, a lost member's quantity."""

    what: str
    start_ms: int
    end_ms: int
    micro_gpus: int = 0


class Stay(NamedTuple):
    """A pod's GPUs on its node in `[start_ms, end_ms)`."""

    node: str
    model: str
    micro_gpus: int
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    A workload as far as fairness is concerned.

    `manager` is the queueing system: `kueue`, `volcano`, `kai`, or empty. `each` is what its largest pod
    asks, `total` what all ask, whole units by resource; `requested` is the same in micro-GPU where
    units say nothing; `selector` are labels that its pods want of their nodes. `set_aside`: its record
    is not trusted; what it holds is nobody's.
    """

    uid: str
    namespace: str
    team: str
    queue: str
    local_queue: str = ""
    manager: str = ""
    each: Resources
    total: Resources
    requested: int = 0
    selector: Mapping[str, str] = field(default_factory=dict)
    set_aside: bool = False
    spans: Sequence[Stretch] = ()
    stays: Sequence[Stay] = ()
    member_waits: Sequence[Stretch] = ()
    reservations: Sequence[Stretch] = ()


class Piece(NamedTuple):
    """
    Demand and holding, micro-GPU, that a workload adds to an entity of a pool in `[at_ms, until_ms)`.

    `node` is where it is held, empty for what is only asked; an empty `pool` is nobody's holding.
    """

    at_ms: int
    until_ms: int
    pool: str
    entity: str
    team: str
    node: str
    resource: str
    weight_milli: int
    demand: int
    held: int


def pieces(course: Course, site: Site) -> list[Piece]:
    """A workload's pieces in order of time; equal ones of several pods are added up."""
    resource = ",".join(sorted(name for name in course.total if is_gpu_resource(name)))
    found: dict[tuple[object, ...], list[int]] = {}
    for piece in (*_held(course, site, resource), *_asked(course, site, resource)):
        if piece.at_ms < piece.until_ms and (piece.demand or piece.held):
            amounts = found.setdefault(piece[:8], [0, 0])
            amounts[0] += piece.demand
            amounts[1] += piece.held
    return sorted(joined(Piece(*key, *amounts) for key, amounts in found.items()))  # type: ignore[arg-type]


def joined(found: Iterable[Piece]) -> Iterator[Piece]:
    """Pieces that touch and differ in nothing else are one."""
    before: Piece | None = None
    for piece in sorted(found, key=lambda each: (each[2:], each.at_ms)):
        if before is not None and before[2:] == piece[2:] and before.until_ms == piece.at_ms:
            before = before._replace(until_ms=piece.until_ms)
            continue
        if before is not None:
            yield before
        before = piece
    if before is not None:
        yield before


class _Place(NamedTuple):
    """Whose it is and where it counts."""

    pool: str
    entity: str
    weight_milli: int = 1000


def _held(course: Course, site: Site, resource: str) -> Iterator[Piece]:
    for stay in course.stays:
        for quotas, start_ms, end_ms in _by_version(site, stay.start_ms, stay.end_ms):
            place = _Place("", "") if course.set_aside else _place_of_stay(course, site, quotas, stay)
            amount = 0 if course.set_aside else stay.micro_gpus
            yield Piece(
                start_ms,
                end_ms,
                place.pool,
                place.entity,
                course.team,
                stay.node,
                resource,
                place.weight_milli,
                amount,
                stay.micro_gpus,
            )


def _asked(course: Course, site: Site, resource: str) -> Iterator[Piece]:
    """What is asked while it waits, less what it holds; and what lost members ask."""
    if course.set_aside:
        return
    waiting = [span for span in course.spans if span.what in WAITING_STATES]
    elsewhere = [
        span for span in course.spans if span.what not in (*WAITING_STATES, "held", "backoff", "ended")
    ]
    for span in waiting:
        yield from _ask(course, site, resource, span, lost=None)
    for lost in course.member_waits:
        for span in elsewhere:
            both = lost._replace(
                start_ms=max(lost.start_ms, span.start_ms), end_ms=min(lost.end_ms, span.end_ms)
            )
            if both.start_ms < both.end_ms:
                yield from _ask(course, site, resource, both, lost=lost.micro_gpus)


def _ask(course: Course, site: Site, resource: str, span: Stretch, *, lost: int | None) -> Iterator[Piece]:
    for quotas, start_ms, end_ms in _by_version(site, span.start_ms, span.end_ms):
        edges = _edges(course, site, quotas, start_ms, end_ms)
        for at_ms, until_ms in zip(edges, [*edges[1:], end_ms], strict=True):
            place, micro = _place_of_ask(course, site, quotas, at_ms)
            if place is None:
                continue
            held = sum(s.micro_gpus for s in course.stays if s.start_ms <= at_ms < s.end_ms)
            amount = max(0, micro - held) if lost is None else lost
            yield Piece(
                at_ms, until_ms, place.pool, place.entity, course.team, "", resource,
                place.weight_milli, amount, 0,
            )  # fmt: skip


def _by_version(site: Site, start_ms: int, end_ms: int) -> Iterator[tuple[Quotas, int, int]]:
    """The stretch cut where quotas change."""
    changes = [v.from_ms for v in site.versions[1:] if start_ms < v.from_ms < end_ms]
    for at_ms, until_ms in zip([start_ms, *changes], [*changes, end_ms], strict=True):
        yield site.quotas_at(at_ms), at_ms, until_ms


def _edges(course: Course, site: Site, quotas: Quotas, start_ms: int, end_ms: int) -> list[int]:
    """Instants within at which what it asks, or where, may change."""
    found = {start_ms}
    for stay in course.stays:
        found |= {stay.start_ms, stay.end_ms}
    for reserved in course.reservations:
        found |= {reserved.start_ms, reserved.end_ms}
    selectors = [Selector.of_flavor(quotas.flavors.get(f)) for f in _flavors(course, quotas)]
    for selector in selectors or [Selector(model=model) for model in site.models()]:
        since_ms = site.room(selector).fits_from(course.each, course.total)
        if since_ms is not None:
            found.add(since_ms)
    return sorted(at_ms for at_ms in found if start_ms <= at_ms < end_ms)


# ------------------------------------------------------------ whose


def _is_kueues(course: Course, quotas: Quotas) -> bool:
    return course.manager != "volcano" and course.queue in quotas.cluster_queues


def _plain_entity(course: Course, quotas: Quotas) -> str:
    if course.manager == "volcano" and course.queue in quotas.volcano_queues:
        return course.queue
    if course.manager in ("", "kai") and course.queue in quotas.kai_queues:
        return kai_entity(quotas, course.queue)
    if quotas.elastic(course.namespace) or quotas.hard(course.namespace):
        return f"namespace/{course.namespace}"
    return f"team/{course.team}"


def _flavors(course: Course, quotas: Quotas) -> list[str]:
    """The flavors of its queue for its resources, in the order in which Kueue tries them."""
    if not _is_kueues(course, quotas):
        return []
    rows = quotas.cluster_queues[course.queue].quotas
    return list(dict.fromkeys(row.flavor for row in rows if row.resource in course.total))


def _weight(course: Course, quotas: Quotas) -> int:
    door = quotas.local_queues.get((course.namespace, course.local_queue))
    return door.weight_milli if door else 1000


# ------------------------------------------------------------ where


def _place_of_stay(course: Course, site: Site, quotas: Quotas, stay: Stay) -> _Place:
    node = site.node_at(stay.node, stay.start_ms)
    flavors = _flavors(course, quotas)
    if not flavors:
        model = node.model if node else stay.model
        return _Place(plain_pool(site.cluster, model), _plain_entity(course, quotas))
    here = [f for f in flavors if node and Selector.of_flavor(quotas.flavors.get(f)).takes(node)]
    reserved = [r.what for r in course.reservations if r.start_ms <= stay.start_ms and r.what in flavors]
    flavor = (here or reserved[-1:] or flavors)[0]
    return _Place(kueue_pool(quotas, course.queue, flavor), course.queue, _weight(course, quotas))


def _place_of_ask(course: Course, site: Site, quotas: Quotas, at_ms: int) -> tuple[_Place | None, int]:
    """Where what it asks counts, and how much it asks there; None where it asks nothing."""
    if not _is_kueues(course, quotas) and course.manager == "kueue" and quotas.cluster_queues:
        return None, 0  # its queue does not exist
    flavors = _flavors(course, quotas)
    if not flavors:
        if _is_kueues(course, quotas):
            return None, 0  # its queue has no flavor for what it asks
        model = _model_for(course, site, at_ms)
        if model is None:
            return None, 0
        place = _Place(plain_pool(site.cluster, model), _plain_entity(course, quotas))
        return place, _amount(course, site, Selector(model=model), at_ms)
    flavor = _flavor_for(course, site, quotas, flavors, at_ms)
    if flavor is None:
        return None, 0
    selector = Selector.of_flavor(quotas.flavors.get(flavor))
    place = _Place(kueue_pool(quotas, course.queue, flavor), course.queue, _weight(course, quotas))
    return place, _amount(course, site, selector, at_ms)


def _flavor_for(course: Course, site: Site, quotas: Quotas, flavors: Sequence[str], at_ms: int) -> str | None:
    for reserved in course.reservations:
        if reserved.start_ms <= at_ms < reserved.end_ms and reserved.what in flavors:
            return reserved.what
    for flavor in _selected(course, quotas, flavors):
        since_ms = site.room(Selector.of_flavor(quotas.flavors.get(flavor))).fits_from(
            course.each, course.total
        )
        if since_ms is not None and since_ms <= at_ms and _within_quota(course, quotas, flavor):
            return flavor
    return None


def _selected(course: Course, quotas: Quotas, flavors: Sequence[str]) -> list[str]:
    """
    The flavors that the pods' node selector allows, in their order.

    As in Kueue only labels count that one of the flavors has: others are the scheduler's business.
    """
    labels = {name: quotas.flavors[name].node_labels for name in flavors if name in quotas.flavors}
    known = {key for of_flavor in labels.values() for key in of_flavor}
    wanted = {key: value for key, value in course.selector.items() if key in known}
    return [
        flavor
        for flavor in flavors
        if all(labels.get(flavor, {}).get(key) == value for key, value in wanted.items())
    ]


def _within_quota(course: Course, quotas: Quotas, flavor: str) -> bool:
    """Whether its queue could ever use so much of a flavor: its quota and what may be borrowed."""
    body = quotas.cluster_queues[course.queue]
    for row in body.quotas:
        if row.flavor != flavor or row.resource not in course.total:
            continue
        most = _quota_of_cohort(quotas, body.cohort, row) if body.cohort else row.nominal.milli
        if body.cohort and row.borrowing_limit.kind is QuotaKind.NUMBER:
            most = min(most, row.nominal.milli + row.borrowing_limit.milli)
        if course.total[row.resource] * 1000 > most:
            return False
    return True


def _quota_of_cohort(quotas: Quotas, cohort: str, row: FlavorQuota) -> int:
    """All quota of the cohort's tree for a flavor and resource, thousandths."""
    root = root_of(quotas, cohort)
    queues = (body for body in quotas.cluster_queues.values() if body.cohort)
    written = [
        *(each for body in queues if root_of(quotas, body.cohort) == root for each in body.quotas),
        *(
            each
            for name, body in quotas.cohorts.items()
            if root_of(quotas, name) == root
            for each in body.quotas
        ),
    ]
    same = (each for each in written if (each.flavor, each.resource) == (row.flavor, row.resource))
    return sum(each.nominal.milli for each in same)


def _model_for(course: Course, site: Site, at_ms: int) -> str | None:
    """The model that it last had, else the commonest that could hold it; empty where no node is known."""
    before = [stay for stay in course.stays if stay.start_ms <= at_ms and stay.model]
    if before:
        return max(before, key=lambda stay: stay.start_ms).model
    known = [model for model, seen_ms in site.models().items() if seen_ms <= at_ms]
    if not known:
        return ""
    rooms = {model: site.room(Selector(model=model)) for model in known}
    fitting = [
        (-room.offered(course.total, at_ms), model)
        for model, room in rooms.items()
        if (since_ms := room.fits_from(course.each, course.total)) is not None and since_ms <= at_ms
    ]
    return min(fitting)[1] if fitting else None


def _amount(course: Course, site: Site, selector: Selector, at_ms: int) -> int:
    units = {name: site.unit(selector, name, at_ms) for name in course.total}
    if not units or None in units.values():
        return course.requested or micro_gpus(dict(course.total)) or 0
    return math.floor(sum((units[name] or 0) * count for name, count in course.total.items()) * MICRO_PER_GPU)
