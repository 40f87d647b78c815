"""
The sweep of the ledger of fairness over a store: in parts of time, each of as many changes as fit in memory.

After each part the accounts stand as if nothing had changed since; the next one goes on from there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import polars as pl

from analytics.fairness.books.accounts import Accounts, Entry, FiguresT, PoolFigures, Share, TeamShare
from analytics.fairness.books.course import FOREVER, Piece
from analytics.fairness.books.site import Site
from analytics.fairness.books.sweep import Sweep
from store.derived import Replacement
from store.embedded import Store

_UNSWEPT: Final = "select since_ms from unswept where cluster = $cluster"

# One row: the instant of so many changes after $since_ms; none where there are fewer.
_NTH_CHANGE: Final = """
with change as (
    select at_ms from demand_step where cluster = $cluster and at_ms >= $since_ms
    union all
    select until_ms as at_ms from demand_step
    where cluster = $cluster and until_ms >= $since_ms and until_ms < $forever
)

select at_ms from change order by at_ms limit 1 offset $number
"""

# One row per piece of a workload between two instants, its columns as `Piece` has them.
_PIECES: Final = f"""
select {", ".join(Piece._fields)} from demand_step
where cluster = $cluster and at_ms < $until_ms and until_ms >= $since_ms
"""  # noqa: S608 (names from here)

_SHARES: Final = """
-- One row per account of an entity: its stretch just before $since_ms.
select * exclude (cluster, end_ms) from share_span
where cluster = $cluster and start_ms < $since_ms and until_ms >= $since_ms
"""
_TEAM_SHARES: Final = """
-- One row per account of a team in an entity: its stretch just before $since_ms.
select * exclude (cluster, end_ms) from team_share_span
where cluster = $cluster and start_ms < $since_ms and until_ms >= $since_ms
"""
_POOLS: Final = """
-- One row per pool: its stretch just before $since_ms.
select * exclude (cluster, end_ms) from pool_span
where cluster = $cluster and start_ms < $since_ms and until_ms >= $since_ms
"""


def unswept(store: Store, cluster: str) -> int | None:
    """From when on the ledger is older than the pieces; None where it is not."""
    since_ms = [int(str(row["since_ms"])) for row in store.rows(_UNSWEPT, {"cluster": cluster})]
    return min(since_ms, default=None)


def to_sweep(cluster: str, since_ms: int | None) -> Replacement:
    """Note from when on the ledger is to be swept; None: all of it was."""
    rows = [] if since_ms is None else [{"cluster": cluster, "since_ms": since_ms}]
    return Replacement(table="unswept", rows=rows)


def swept(
    store: Store, site: Site, half_life: timedelta | None, since_ms: int, *, changes: int
) -> Iterator[list[Replacement]]:
    """
    Sweep the ledger from an instant on; each part is to be written before the next one is asked for.

    Args:
        store: has the pieces, and the accounts as they stood.
        site: of the cluster.
        half_life: of the debt.
        since_ms: from when on.
        changes: so many are in memory at once, and those of the same instant as the last of them.
    """
    cluster = site.cluster
    accounts = _opened(store, cluster, half_life, since_ms)
    while True:
        asked: dict[str, object] = {"cluster": cluster, "since_ms": since_ms}
        nth = store.rows(_NTH_CHANGE, asked | {"forever": FOREVER, "number": changes - 1})
        until_ms = int(str(nth[0]["at_ms"])) + 1 if nth else FOREVER
        pieces = store.frame(_PIECES, asked | {"until_ms": until_ms})
        Sweep(site, accounts).run(map(Piece._make, pieces.iter_rows()), since_ms, until_ms)
        rest = to_sweep(cluster, None if until_ms == FOREVER else until_ms)
        yield [*_replacements(cluster, accounts, since_ms), rest]
        if until_ms == FOREVER:
            return
        accounts.drop_over()
        since_ms = until_ms


def _opened(store: Store, cluster: str, half_life: timedelta | None, since_ms: int) -> Accounts:
    """The accounts as they stood just before an instant."""
    asked = {"cluster": cluster, "since_ms": since_ms}
    return Accounts.of(
        half_life,
        shares=[_entry(row, ("pool", "entity"), Share) for row in store.rows(_SHARES, asked)],
        teams=[_entry(row, ("pool", "entity", "team"), TeamShare) for row in store.rows(_TEAM_SHARES, asked)],
        pools=[_entry(row, ("pool",), PoolFigures) for row in store.rows(_POOLS, asked)],
    )


def _entry(row: Mapping[str, Any], key: tuple[str, ...], figures: type[FiguresT]) -> Entry[FiguresT]:
    """An account that is open again."""
    return Entry(
        key=tuple(str(row[name]) for name in key),
        start_ms=row["start_ms"],
        figures=figures(**{name: row[name] for name in figures._fields}),
        opening_debt=row.get("opening_debt", 0.0),
        opening_forgiven=row.get("opening_forgiven") or 0.0,
    )


def _replacements(cluster: str, accounts: Accounts, since_ms: int) -> list[Replacement]:
    """The rows of the ledger from an instant on."""
    shares, teams, pools = accounts.shares.entries(), accounts.teams.entries(), accounts.pools.entries()
    debts = ("opening_debt", "opening_forgiven")
    rows = {
        "share_span": _rows(cluster, shares, ("pool", "entity"), Share._fields, debts[:1]),
        "team_share_span": _rows(cluster, teams, ("pool", "entity", "team"), TeamShare._fields, debts),
        "pool_span": _rows(cluster, pools, ("pool",), PoolFigures._fields, ()),
    }
    return [Replacement(table=name, rows=rows[name], since=("until_ms", since_ms)) for name in rows]


def _rows(
    cluster: str,
    entries: Iterable[Entry[FiguresT]],
    key: Sequence[str],
    figures: Sequence[str],
    carried: Sequence[str],
) -> pl.DataFrame:
    """One row per stretch, in the columns of its table."""
    found = list(entries)
    columns: dict[str, list[Any]] = {
        "start_ms": [entry.start_ms for entry in found],
        "until_ms": [entry.until_ms for entry in found],
        "end_ms": [None if entry.until_ms == FOREVER else entry.until_ms for entry in found],
    }
    columns |= {name: [getattr(entry, name) for entry in found] for name in carried}
    columns |= {name: [entry.figures[place] for entry in found] for place, name in enumerate(figures)}
    columns |= {name: [entry.key[place] for entry in found] for place, name in enumerate(key)}
    return pl.DataFrame(columns).with_columns(cluster=pl.lit(cluster))
