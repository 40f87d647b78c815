"""
The stage that keeps the debt ledger: pools, shares and debts over time, from lives and quotas.

What is new about a workload is found by comparing its pieces with those it had; the earliest
difference, of quotas and nodes too, is the instant from which everything is booked anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from analytics.copies import Place
from analytics.fairness.books.accounts import Accounts, Entry, FiguresT, PoolFigures, Share, TeamShare
from analytics.fairness.books.copies import Sibling, counted_once
from analytics.fairness.books.course import FOREVER, Piece, pieces
from analytics.fairness.books.site import SITE_KINDS, Site
from analytics.fairness.books.sweep import Sweep
from domain.policy import Policy
from service.copied import Family, elsewhere, families_of
from service.courses import courses
from service.histories import histories_of
from service.refresh import JOB as LIVES
from store.derived import Replacement
from store.embedded import Store
from store.retention import closed_until

# One row: up to which fact the lives and this stage have come; null where never.
_REACHED: Final = """
select
    max(seq) filter (where job = $lives) as lives,
    max(seq) filter (where job = $job) as own
from watermark
where cluster = $cluster
"""

# One row: the earliest instant of a fact about quotas and nodes that is new, null without one.
_SITE_NEWS: Final = """
select min(at_ms) as at_ms
from (
    select from_ms as at_ms from description
    where cluster = $cluster and kind in (select unnest($kinds::varchar[])) and seq > $own and seq <= $lives
    union all
    select at_ms from transition
    where
        cluster = $cluster
        and moment = 'gone'
        and kind in (select unnest($kinds::varchar[])) and seq > $own and seq <= $lives
) as news
"""

# One row per object whose history is the site's.
_SITE_UIDS: Final = """
select distinct uid from description
where cluster = $cluster and kind in (select unnest($kinds::varchar[])) and seq <= $lives
"""

# One row per workload that lives at $since_ms or later.
_LIVING: Final = """
select workload_uid from workload
where cluster = $cluster and coalesce(ended_ms >= $since_ms, true)
union
select workload_uid from demand_step
where cluster = $cluster and until_ms >= $since_ms
"""

# One row per piece of these workloads.
_OLD: Final = """
select * exclude (cluster) from demand_step
where cluster = $cluster and workload_uid in (select unnest($uids::varchar[]))
"""

# One row per piece of all other workloads that reaches $since_ms.
_OTHERS: Final = """
select * exclude (cluster, workload_uid) from demand_step
where
    cluster = $cluster
    and until_ms >= $since_ms
    and workload_uid not in (select unnest($uids::varchar[]))
"""

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


@dataclass(slots=True)
class Fairness:
    """Keeps the ledger up to date."""

    store: Store
    policy: Policy
    _sites: dict[str, Site] = field(default_factory=dict)

    @property
    def job(self) -> str:
        """Its name among the watermarks: another half-life makes another ledger."""
        return f"fairness, half-life {self.policy.debt_half_life}"

    def refresh(self, cluster: str, as_of_ms: int) -> int:  # noqa: ARG002 (lives say when they were)
        """Book what has news; gives the number of workloads looked at."""
        lives, own = self._reached(cluster)
        if lives is None or lives == own:
            return 0
        seen = -1 if own is None else own
        news_ms = self._site_news(cluster, seen, lives)
        uids = self.store.cut_since(cluster, self.job).uids
        if news_ms is not None:
            living = self.store.rows(_LIVING, {"cluster": cluster, "since_ms": news_ms})
            uids |= {str(row["workload_uid"]) for row in living}
            self._sites.pop(cluster, None)
        families = families_of(self.store, cluster, uids)
        uids |= {place.uid for family in families for place in family if place.cluster == cluster}
        # Where the demand of a workload counts may change with its copies; only then the watermark moves.
        for other, theirs in elsewhere(families, cluster).items():
            if self._reached(other)[1] is not None:
                replacements = self._replacements(other, theirs, families, None)
                self.store.replace(other, replacements)
        replacements = self._replacements(cluster, uids, families, 0 if own is None else news_ms)
        self.store.replace(cluster, replacements, (self.job, lives))
        return len(uids)

    def _replacements(
        self, cluster: str, uids: set[str], families: Iterable[Family], since_ms: int | None
    ) -> list[Replacement]:
        """What becomes of the books: these workloads anew, and all from an instant on where one is given."""
        old = _by_workload(self.store.rows(_OLD, {"cluster": cluster, "uids": sorted(uids)}))
        new = self._pieces(cluster, uids, families)
        since_ms = _first_difference(old, new, since_ms)
        if since_ms is None:
            return []
        since_ms = max(since_ms, closed_until(self.store, cluster))
        accounts = self._booked(cluster, self._site(cluster), new, uids, since_ms)
        return [
            Replacement(
                table="demand_step",
                rows=[_step_row(cluster, uid, piece) for uid in new for piece in new[uid]],
                keys=("workload_uid", uids),
            ),
            *_accounts_rows(cluster, accounts, since_ms),
        ]

    def _pieces(self, cluster: str, uids: set[str], families: Iterable[Family]) -> dict[str, list[Piece]]:
        """The pieces of these workloads of a cluster; of those with copies elsewhere what counts here."""
        here = {Place(cluster, uid) for uid in uids}
        mine = [family for family in families if not here.isdisjoint(family)]
        wanted: dict[str, set[str]] = {cluster: set(uids)}
        for place in (place for family in mine for place in family):
            wanted.setdefault(place.cluster, set()).add(place.uid)
        known = {
            Place(where, course.uid): Sibling(course=course, pieces=pieces(course, self._site(where)))
            for where, theirs in wanted.items()
            for course in courses(self.store, where, theirs)
        }
        found = {place.uid: list(known[place].pieces) for place in known if place.cluster == cluster}
        for family in mine:
            members = [place for place in family if place in known]
            counted = counted_once([replace(known[one], original=one is family[-1]) for one in members])
            found |= {
                one.uid: own for one, own in zip(members, counted, strict=True) if one.cluster == cluster
            }
        return {uid: own for uid, own in found.items() if uid in uids}

    def _reached(self, cluster: str) -> tuple[int | None, int | None]:
        """Up to which fact the lives and these books have come; None where never."""
        (reached,) = self.store.rows(_REACHED, {"cluster": cluster, "lives": LIVES, "job": self.job})
        lives, own = reached["lives"], reached["own"]
        return lives if isinstance(lives, int) else None, own if isinstance(own, int) else None

    def _site_news(self, cluster: str, own: int, lives: int) -> int | None:
        asked = {"cluster": cluster, "kinds": list(SITE_KINDS), "own": own, "lives": lives}
        (row,) = self.store.rows(_SITE_NEWS, asked)
        at_ms = row["at_ms"]
        return at_ms if isinstance(at_ms, int) else None

    def _site(self, cluster: str) -> Site:
        if cluster not in self._sites:
            lives = self._reached(cluster)[0] or 0
            asked = {"cluster": cluster, "kinds": list(SITE_KINDS), "lives": lives}
            uids = {str(row["uid"]) for row in self.store.rows(_SITE_UIDS, asked)}
            known = histories_of(*self.store.facts_of(cluster, uids)) if uids else {}
            self._sites[cluster] = Site.of(cluster, known.values())
        return self._sites[cluster]

    def _booked(
        self, cluster: str, site: Site, new: Mapping[str, list[Piece]], uids: set[str], since_ms: int
    ) -> Accounts:
        """The accounts swept from that instant on."""
        asked = {"cluster": cluster, "since_ms": since_ms}
        others = self.store.rows(_OTHERS, asked | {"uids": sorted(uids)})
        own = [piece for found in new.values() for piece in found if piece.until_ms >= since_ms]
        accounts = Accounts.of(
            self.policy.debt_half_life,
            shares=[_entry(row, ("pool", "entity"), Share) for row in self.store.rows(_SHARES, asked)],
            teams=[
                _entry(row, ("pool", "entity", "team"), TeamShare)
                for row in self.store.rows(_TEAM_SHARES, asked)
            ],
            pools=[_entry(row, ("pool",), PoolFigures) for row in self.store.rows(_POOLS, asked)],
        )
        Sweep(site, accounts).run((*own, *(_piece(row) for row in others)), since_ms)
        return accounts


def _first_difference(
    old: Mapping[str, list[Piece]], new: Mapping[str, list[Piece]], since_ms: int | None
) -> int | None:
    """The earliest instant at which these pieces differ, or the given one; None where nothing does."""
    found = [] if since_ms is None else [since_ms]
    for uid in old.keys() | new.keys():
        before, now = set(old.get(uid, ())), set(new.get(uid, ()))
        found += _differences(before - now, now - before)
    return min(found, default=None)


def _differences(gone: set[Piece], come: set[Piece]) -> Iterable[int]:
    """When each piece of one set differs from its like in the other: at its start, or at the earlier end."""
    ends = {piece._replace(until_ms=0): piece.until_ms for piece in come}
    for piece in gone:
        until_ms = ends.pop(piece._replace(until_ms=0), None)
        yield piece.at_ms if until_ms is None else min(until_ms, piece.until_ms)
    yield from (piece.at_ms for piece in ends)


def _by_workload(rows: Iterable[Mapping[str, object]]) -> dict[str, list[Piece]]:
    found: dict[str, list[Piece]] = {}
    for row in rows:
        found.setdefault(str(row["workload_uid"]), []).append(_piece(row))
    return found


def _piece(row: Mapping[str, Any]) -> Piece:
    return Piece(**{name: row[name] for name in Piece._fields})


def _step_row(cluster: str, uid: str, piece: Piece) -> dict[str, object]:
    return {"cluster": cluster, "workload_uid": uid, **piece._asdict()}


def _entry(row: Mapping[str, Any], key: tuple[str, ...], figures: type[FiguresT]) -> Entry[FiguresT]:
    """An account that is open again."""
    return Entry(
        key=tuple(str(row[name]) for name in key),
        start_ms=row["start_ms"],
        figures=figures(**{name: row[name] for name in figures._fields}),
        opening_debt=row.get("opening_debt", 0.0),
        opening_forgiven=row.get("opening_forgiven") or 0.0,
    )


def _accounts_rows(cluster: str, accounts: Accounts, since_ms: int) -> list[Replacement]:
    def rows(
        entries: Iterable[Entry[FiguresT]], key: tuple[str, ...], carried: tuple[str, ...] = ()
    ) -> list[dict[str, object]]:
        return [
            {
                "cluster": cluster,
                "start_ms": entry.start_ms,
                "end_ms": None if entry.until_ms == FOREVER else entry.until_ms,
                "until_ms": entry.until_ms,
                **entry.figures._asdict(),
                **dict(zip(key, entry.key, strict=True)),
                **{name: getattr(entry, name) for name in carried},
            }
            for entry in entries
        ]

    shares = rows(accounts.shares.entries(), ("pool", "entity"), ("opening_debt",))
    teams = rows(accounts.teams.entries(), ("pool", "entity", "team"), ("opening_debt", "opening_forgiven"))
    pools = rows(accounts.pools.entries(), ("pool",))
    since = ("until_ms", since_ms)
    return [
        Replacement(table="share_span", rows=shares, since=since),
        Replacement(table="team_share_span", rows=teams, since=since),
        Replacement(table="pool_span", rows=pools, since=since),
    ]
