"""
Running sums of the sweep: what each entity and team of a pool has now, and each pool's capacity.

Capacity: GPUs on the pool's nodes that are schedulable or held by its entities, less those held by
others. What its entities hold elsewhere is theirs all the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from analytics.fairness.books.course import Piece
from analytics.fairness.books.layout import Layout
from analytics.fairness.books.site import NodeTurn
from analytics.fairness.books.state import NOTHING, Use
from analytics.fairness.maxmin import Claim
from domain.quantity import offered_micro_gpus


@dataclass(slots=True)
class TeamUse:
    """A team's part of an entity; `weights` counts its pieces by the weight of their local queue."""

    demand: int = 0
    held: int = 0
    weights: Counter[int] = field(default_factory=Counter)

    @property
    def claim(self) -> Claim:
        """What it can be entitled to, with the largest weight of its local queues."""
        return Claim(self.demand, max(self.weights, default=1000))


@dataclass(slots=True)
class Tally:
    """All sums; `layouts` are the pools of the present quotas."""

    layouts: Mapping[str, Layout] = field(default_factory=dict)
    teams: dict[str, dict[str, dict[str, TeamUse]]] = field(default_factory=dict)
    capacity: Counter[str] = field(default_factory=Counter)
    # By pool and entity: all sums, and those of entities that ask something.
    _sums: dict[str, dict[str, Use]] = field(default_factory=dict)
    _uses: dict[str, dict[str, Use]] = field(default_factory=dict)
    _nodes: dict[str, NodeTurn] = field(default_factory=dict)
    _held: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    _parts: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, piece: Piece, sign: int) -> None:
        """A piece begins (+1) or ends (-1); capacities follow with `settle`."""
        if piece.pool:
            entity = self.teams.setdefault(piece.pool, {}).setdefault(piece.entity, {})
            use = entity.setdefault(piece.team, TeamUse())
            self._add_use(piece, sign)
            use.demand += sign * piece.demand
            use.held += sign * piece.held
            use.weights[piece.weight_milli] += sign
            if not use.weights[piece.weight_milli]:
                del use.weights[piece.weight_milli]
        if piece.held:
            on_node = self._held.setdefault(piece.node, Counter())
            on_node[piece.pool, piece.resource] += sign * piece.held
            if not on_node[piece.pool, piece.resource]:
                del on_node[piece.pool, piece.resource]

    def turn(self, turn: NodeTurn) -> None:
        """A node changes."""
        if turn.here:
            self._nodes[turn.node] = turn
        else:
            self._nodes.pop(turn.node, None)

    def lay_out(self, layouts: Mapping[str, Layout]) -> set[str]:
        """The quotas change; gives all pools."""
        self.layouts = layouts
        self.capacity.clear()
        self._parts.clear()
        self.settle({*self._nodes, *self._held})
        return {*layouts, *self.teams}

    def settle(self, nodes: Iterable[str]) -> set[str]:
        """Count these nodes anew; gives the pools whose capacity changed."""
        changed = set()
        for node in nodes:
            before, now = self._parts.get(node, {}), self._parts_of(node)
            for pool in before.keys() | now.keys():
                more = now.get(pool, 0) - before.get(pool, 0)
                if more:
                    self.capacity[pool] += more
                    changed.add(pool)
            self._parts[node] = now
        return changed

    def uses(self, pool: str) -> Mapping[str, Use]:
        """What each entity of a pool asks and holds; one with nothing is left out."""
        return self._uses.get(pool, {})

    def _add_use(self, piece: Piece, sign: int) -> None:
        sums = self._sums.setdefault(piece.pool, {})
        before = sums.get(piece.entity, NOTHING)
        now = Use(before.demand + sign * piece.demand, before.held + sign * piece.held)
        sums[piece.entity] = now
        uses = self._uses.setdefault(piece.pool, {})
        if now.demand:
            uses[piece.entity] = now
        else:
            uses.pop(piece.entity, None)

    def _parts_of(self, node: str) -> dict[str, int]:
        """What a node adds to each pool."""
        turn, held = self._nodes.get(node), self._held.get(node, Counter())
        pools = {pool for pool, _ in held if pool}
        if turn is not None:
            pools |= {pool for pool, layout in self.layouts.items() if layout.selector.takes(turn)}
        parts = {}
        for pool in pools:
            own = sum(amount for (whose, _), amount in held.items() if whose == pool)
            layout = self.layouts.get(pool)
            if turn is None or layout is None or not layout.selector.takes(turn):
                parts[pool] = own
                continue
            others = sum(
                amount
                for (whose, resources), amount in held.items()
                if whose != pool and any(map(layout.shares, resources.split(",")))
            )
            parts[pool] = max(_offered(turn, layout) - others, own)
        return parts


def _offered(turn: NodeTurn, layout: Layout) -> int:
    """What a node offers to a pool; a share of unknown size counts nothing."""
    if not turn.schedulable:
        return 0
    shared = {name: count for name, count in turn.allocatable.items() if layout.shares(name)}
    return offered_micro_gpus(shared, product=turn.product or turn.model, replicas=turn.replicas) or 0
