"""
The sweep: all changes of a cluster in order of time, and what each entity should have in between.

It can begin at any instant, from the accounts as they stood there. Begun earlier it gives the same,
to the last bit: a debt is carried from change to change of its own account.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from analytics.fairness.books.accounts import Accounts
from analytics.fairness.books.course import FOREVER, Piece
from analytics.fairness.books.layout import Layout, layouts
from analytics.fairness.books.site import NodeTurn, Quotas, Selector, Site
from analytics.fairness.books.state import (
    NOTHING,
    PoolState,
    Terms,
    Use,
    part_of,
    pool_of,
    state_of,
    strangers_of,
)
from analytics.fairness.books.tally import Tally
from analytics.fairness.entities import CohortTree, Entity

_ENDS, _BEGINS = 0, 1
_NO_NODES = Selector(model="no node")


@dataclass(slots=True)
class Sweep:
    """Goes through the changes and writes down the states of all pools in `accounts`."""

    site: Site
    accounts: Accounts
    _tally: Tally = field(default_factory=Tally)
    # By pool those who were not in its tree at its last change.
    _strangers: dict[str, dict[str, Entity]] = field(default_factory=dict)
    _spread: set[str] = field(default_factory=set)

    def run(self, found: Iterable[Piece], since_ms: int, until_ms: int = FOREVER) -> None:
        """
        Sweep `[since_ms, until_ms)`.

        `found` are all pieces that reach the first instant, or come later and before the other.
        """
        known = list(found)
        for turn in self.site.nodes:
            if turn.at_ms < since_ms:
                self._tally.turn(turn)
        for piece in known:
            if piece.at_ms < since_ms:
                self._tally.add(piece, 1)
        self._lay_out(since_ms - 1)
        anew = {version.from_ms for version in self.site.versions} | set(self.site.models().values())
        for at_ms, changes in groupby(
            _changes(self.site, known, since_ms, until_ms), key=lambda change: change[0]
        ):
            touched, nodes = dict[str, set[str]](), set[str]()
            for _, order, change in changes:
                if isinstance(change, NodeTurn):
                    self._tally.turn(change)
                    nodes.add(change.node)
                elif isinstance(change, Piece):
                    self._tally.add(change, 1 if order == _BEGINS else -1)
                    touched.setdefault(change.pool, set()).add(change.entity)
                    nodes.add(change.node)
            pools = set(touched)
            # A quota that is one for all models follows the use: each of its pools has a new part of it.
            if pools & self._spread:
                pools |= self._spread
            pools |= self._lay_out(at_ms) if at_ms in anew else self._tally.settle(nodes)
            self._book(at_ms, pools - {""}, touched)

    def _lay_out(self, at_ms: int) -> set[str]:
        found = layouts(self.site, self.site.quotas_at(at_ms), at_ms)
        spread = {pool for pool, layout in found.items() if layout.spread}
        self._spread = spread if len(spread) > 1 else set()
        self._strangers.clear()
        return self._tally.lay_out(found)

    def _book(self, at_ms: int, pools: set[str], touched: Mapping[str, set[str]]) -> None:
        """Write down the state of these pools; `touched` are the entities whose uses changed, by pool."""
        terms = self._terms() if pools & self._spread else {}
        for pool in sorted(pools):
            layout = self._tally.layouts.get(pool) or self._without_quotas(pool)
            self.accounts.book(
                at_ms,
                pool,
                model=self.site.models_of(layout.selector, at_ms),
                state=self._state(layout, self._tally.uses(pool), terms.get(pool, {})),
                teams=self._tally.teams.get(pool, {}),
                touched=touched.get(pool, ()),
            )

    def _state(self, layout: Layout, uses: Mapping[str, Use], terms: Mapping[str, Terms]) -> PoolState:
        """The state of a pool; of those outside its tree few differ from what they were before."""
        strangers = strangers_of(layout, uses, self._strangers.get(layout.pool, {}))
        self._strangers[layout.pool] = strangers
        capacity = self._tally.capacity[layout.pool]
        return state_of(pool_of(layout, capacity, uses, terms, strangers=strangers))

    def _without_quotas(self, pool: str) -> Layout:
        """A pool whose queues are gone, or whose nodes nobody has seen."""
        return Layout(
            pool=pool,
            tree=CohortTree(name=pool),
            hard_quota=True,
            selector=_NO_NODES,
            grows=pool.startswith(f"{self.site.cluster}/"),
        )

    def _terms(self) -> dict[str, dict[str, Terms]]:
        """Each pool's part of the quotas that are one for all models."""
        plain = {pool: self._tally.layouts[pool] for pool in self._spread}
        uses = {pool: self._tally.uses(pool) for pool in plain}
        found: dict[str, dict[str, Terms]] = {pool: {} for pool in plain}
        for name in sorted({name for layout in plain.values() for name in layout.spread}):
            offered = {pool: layout.offered for pool, layout in plain.items() if name in layout.spread}
            used = {pool: uses[pool].get(name, NOTHING) for pool in offered}
            members = (e for pool in sorted(offered) for e in plain[pool].tree.members())
            entity = next(member for member in members if member.name == name)
            quota = part_of(entity.quota, used, offered)
            most = lends = None
            if entity.borrowing_limit is not None:
                most = part_of(entity.quota + entity.borrowing_limit, used, offered)
            if entity.lending_limit is not None:
                lends = part_of(entity.lending_limit, used, offered)
            for pool in offered:
                found[pool][name] = Terms(
                    quota[pool],
                    None if most is None else max(0, most[pool] - quota[pool]),
                    None if lends is None else lends[pool],
                )
        return found


def _changes(
    site: Site, known: list[Piece], since_ms: int, until_ms: int
) -> Iterator[tuple[int, int, Piece | NodeTurn | Quotas]]:
    """Every change with its instant, in order."""
    found: list[tuple[int, int, Piece | NodeTurn | Quotas]] = [
        *((piece.at_ms, _BEGINS, piece) for piece in known if piece.at_ms >= since_ms),
        *((piece.until_ms, _ENDS, piece) for piece in known if since_ms <= piece.until_ms < until_ms),
        *((turn.at_ms, _BEGINS, turn) for turn in site.nodes if since_ms <= turn.at_ms < until_ms),
        *((v.from_ms, _BEGINS, v) for v in site.versions[1:] if since_ms <= v.from_ms < until_ms),
    ]
    found.sort(key=lambda change: change[:2])
    return iter(found)
