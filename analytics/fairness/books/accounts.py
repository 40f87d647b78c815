"""
The accounts that a sweep keeps: stretches in which nothing changes, each with its debt at the start.

Beside the debt stands what was forgiven of it since the account began. Neighbours that do not differ are
one stretch. An account is never closed: who has lost everything goes on with zeros, so that its debt
fades in sight and is there when it comes back.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from analytics.fairness.books.course import FOREVER
from analytics.fairness.books.state import PoolState
from analytics.fairness.books.tally import TeamUse
from analytics.fairness.debt import carried
from analytics.fairness.lending import Standing
from analytics.fairness.maxmin import max_min
from domain.quantity import MICRO_PER_GPU

# As much as the store can hold; sites write more for "no limit".
MOST = FOREVER
_UNUSED = TeamUse()
_NO_STANDING = Standing(free_quota=0, lent=0, borrowed=0, over_quota=0)


class Share(NamedTuple):
    """An entity in a stretch, micro-GPU; `team` is empty where several share it."""

    team: str
    gpu_model: str
    quota: int
    demand: int
    held: int
    entitled: int
    lent: int
    borrowed: int
    over_quota: int


class TeamShare(NamedTuple):
    """A team's part of an entity in a stretch, micro-GPU."""

    gpu_model: str
    demand: int
    held: int
    entitled: int


class PoolFigures(NamedTuple):
    """A pool in a stretch, micro-GPU and ratios."""

    gpu_model: str
    capacity: int
    without_quota: int
    error_ratio: float | None
    jain: float | None
    undefined_because: str
    from_unassigned: int


FiguresT = TypeVar("FiguresT", Share, TeamShare, PoolFigures)


class Entry(NamedTuple, Generic[FiguresT]):
    """A stretch of an account; `key` is its pool, entity and team, as far as it has them."""

    key: tuple[str, ...]
    start_ms: int
    figures: FiguresT
    opening_debt: float = 0.0
    opening_forgiven: float = 0.0
    until_ms: int = FOREVER


@dataclass(slots=True)
class Book(Generic[FiguresT]):
    """Accounts of one kind: those that are open, and stretches that are over."""

    half_life: timedelta | None
    open: dict[tuple[str, ...], Entry[FiguresT]] = field(default_factory=dict)
    over: list[Entry[FiguresT]] = field(default_factory=list)

    def write(self, key: tuple[str, ...], at_ms: int, figures: FiguresT) -> None:
        """What holds from that instant on; nothing happens where it held before."""
        before = self.open.get(key)
        if before is None:
            self.open[key] = Entry(key=key, start_ms=at_ms, figures=figures)
            return
        if before.figures == figures:
            return
        debt, forgiven = self._carried(before, at_ms)
        if before.start_ms < at_ms:
            self.over.append(before._replace(until_ms=at_ms))
        self.open[key] = Entry(
            key=key, start_ms=at_ms, figures=figures, opening_debt=debt, opening_forgiven=forgiven
        )

    def entries(self) -> Iterator[Entry[FiguresT]]:
        """All stretches."""
        yield from self.over
        yield from self.open.values()

    def _carried(self, entry: Entry[FiguresT], at_ms: int) -> tuple[float, float]:
        """The debt at the end of a stretch, and what was forgiven until then."""
        figures = entry.figures
        if isinstance(figures, PoolFigures):
            return 0.0, 0.0
        gap_gpus, elapsed_ms = (figures.entitled - figures.held) / MICRO_PER_GPU, at_ms - entry.start_ms
        debt, forgiven = carried(
            entry.opening_debt, gap_gpus=gap_gpus, elapsed_ms=elapsed_ms, half_life=self.half_life
        )
        return debt, entry.opening_forgiven + forgiven


@dataclass(slots=True)
class Accounts:
    """The accounts of entities, of teams, and of pools; `known` are the teams by pool and entity."""

    shares: Book[Share]
    teams: Book[TeamShare]
    pools: Book[PoolFigures]
    known: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    # By pool the model and the state that were booked last.
    _last: dict[str, tuple[str, PoolState]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        half_life: timedelta | None,
        *,
        shares: Sequence[Entry[Share]] = (),
        teams: Sequence[Entry[TeamShare]] = (),
        pools: Sequence[Entry[PoolFigures]] = (),
    ) -> "Accounts":
        """Accounts as they stood, each with the stretch that was the last then."""
        accounts = cls(
            Book(half_life, {entry.key: entry for entry in shares}),
            Book(half_life, {entry.key: entry for entry in teams}),
            Book(half_life, {entry.key: entry for entry in pools}),
        )
        for entry in shares:
            accounts.known.setdefault(entry.key[0], {}).setdefault(entry.key[1], set())
        for each in teams:
            accounts.known.setdefault(each.key[0], {}).setdefault(each.key[1], set()).add(each.key[2])
        return accounts

    def drop_over(self) -> None:
        """Forget the stretches that are over; they were written down."""
        for book in (self.shares, self.teams, self.pools):
            book.over.clear()

    def book(
        self,
        at_ms: int,
        pool: str,
        *,
        model: str,
        state: PoolState,
        teams: Mapping[str, Mapping[str, TeamUse]],
        touched: Collection[str] | None = None,
    ) -> None:
        """
        The state of a pool from that instant on.

        Args:
            at_ms: the instant.
            pool: its name.
            model: of its GPUs.
            state: of the pool.
            teams: their uses by entity.
            touched: the entities whose uses changed since the pool was booked last; None is all.
        """
        known = self.known.setdefault(pool, {})
        for entity in state.entitled.keys() - known.keys():
            known[entity] = set()
        if not known:
            return
        last_model, last = self._last.get(pool, ("", None))
        self._last[pool] = (model, state)
        # Of many entities few change at once: the others are as they were booked.
        changed: Collection[str] = known
        if touched is not None and last is not None and model == last_model:
            changed = known.keys() & {*touched, *_others(last, state)}
        for entity in sorted(changed):
            uses = teams.get(entity, {})
            self._book_entity(at_ms, (pool, entity), known[entity], model, state=state, uses=uses)
        figures = PoolFigures(
            gpu_model=model,
            capacity=state.capacity,
            without_quota=state.without_quota,
            error_ratio=state.error.value,
            jain=state.jain.value,
            undefined_because=state.error.undefined_because or state.jain.undefined_because,
            from_unassigned=state.from_unassigned,
        )
        self.pools.write((pool,), at_ms, figures)

    def _book_entity(
        self,
        at_ms: int,
        key: tuple[str, str],
        names: set[str],
        model: str,
        *,
        state: PoolState,
        uses: Mapping[str, TeamUse],
    ) -> None:
        names.update(uses)
        entity, order = key[1], sorted(names)
        claimed = [uses.get(name, _UNUSED) for name in order]
        entitled = state.entitled.get(entity, 0)
        parts = max_min(entitled, [use.claim for use in claimed]) if len(order) > 1 else [entitled]
        for name, use, part in zip(order, claimed, parts, strict=False):
            share = TeamShare(gpu_model=model, demand=use.demand, held=use.held, entitled=part)
            self.teams.write((*key, name), at_ms, share)
        standing = state.standings.get(entity, _NO_STANDING)
        self.shares.write(
            key,
            at_ms,
            Share(
                team=order[0] if len(order) == 1 else "",
                gpu_model=model,
                quota=min(state.quota.get(entity, 0), MOST),
                demand=sum(use.demand for use in claimed),
                held=sum(use.held for use in claimed),
                entitled=entitled,
                lent=standing.lent,
                borrowed=standing.borrowed,
                over_quota=standing.over_quota,
            ),
        )


def _others(before: PoolState, now: PoolState) -> Iterator[str]:
    """Entities of which quota, entitlement or standing differ between two states."""
    for was, is_now in (
        (before.quota, now.quota),
        (before.entitled, now.entitled),
        (before.standings, now.standings),
    ):
        if was != is_now:
            yield from (name for name, _ in was.items() ^ is_now.items())
