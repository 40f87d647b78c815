"""
The stage that keeps the debt ledger: pools, shares and debts over time, from lives and quotas.

What is new about a workload is found by comparing its pieces with those it had; the earliest
difference, of quotas and nodes too, is the instant from which everything is booked anew. Pieces are kept
some workloads at a time, with a note of that instant, and then the ledger is swept: see
`service.fairness_ledger`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from analytics.copies import Place
from analytics.fairness.books.copies import Sibling, counted_once
from analytics.fairness.books.course import Piece, pieces
from analytics.fairness.books.site import SITE_KINDS, Site
from domain.policy import Policy
from service.copied import Family, elsewhere, families_of
from service.courses import courses
from service.fairness_ledger import swept, to_sweep, unswept
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

# One row per piece of these workloads: the workload, and the columns of `Piece`.
_OLD: Final = f"""
select workload_uid, {", ".join(Piece._fields)} from demand_step
where cluster = $cluster and workload_uid in (select unnest($uids::varchar[]))
"""  # noqa: S608 (names from here)


@dataclass(slots=True)
class Fairness:
    """
    Keeps the ledger up to date.

    Args:
        store: has the lives, and keeps the ledger.
        policy: has the half-life of debts.
        workloads: so many are in memory at once.
        changes: so many of their changes are.
    """

    store: Store
    policy: Policy
    workloads: int = 5_000
    changes: int = 50_000
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
        news_ms = self._site_news(cluster, -1 if own is None else own, lives)
        if news_ms is not None:
            self._sites.pop(cluster, None)
        looked_at = 0
        for some in self._with_news(cluster, None if own is None else news_ms):
            families = families_of(self.store, cluster, some)
            uids = some | {place.uid for family in families for place in family if place.cluster == cluster}
            # Where the demand of a workload counts may change with its copies; their watermark stays.
            for other, theirs in elsewhere(families, cluster).items():
                if self._reached(other)[1] is not None:
                    self._keep(other, theirs, families)
                    self._sweep(other, None)
            self._keep(cluster, uids, families)
            looked_at += len(uids)
        self._sweep(cluster, 0 if own is None else news_ms)
        self.store.replace(cluster, [], (self.job, lives))
        return looked_at

    def _with_news(self, cluster: str, news_ms: int | None) -> Iterator[set[str]]:
        """Workloads that were cut since, and those living when the site changed; some at a time."""
        cut = self.store.cut_since(cluster, self.job, most=self.workloads)
        if news_ms is None:
            yield from cut
            return
        rows = self.store.rows(_LIVING, {"cluster": cluster, "since_ms": news_ms})
        found = {str(row["workload_uid"]) for row in rows}.union(*cut)
        for first in range(0, len(order := sorted(found)), self.workloads):
            yield set(order[first : first + self.workloads])

    def _keep(self, cluster: str, uids: set[str], families: Iterable[Family]) -> None:
        """Keep the pieces of these workloads that differ from those they had, and from when on."""
        old = _by_workload(self.store.frame(_OLD, {"cluster": cluster, "uids": sorted(uids)}))
        new = self._pieces(cluster, uids, families)
        differ = {uid for uid in old.keys() | new.keys() if set(old.get(uid, ())) != set(new.get(uid, ()))}
        if not differ:
            return
        since = [
            at_ms
            for uid in differ
            for before, now in [(set(old.get(uid, ())), set(new.get(uid, ())))]
            for at_ms in _differences(before - now, now - before)
        ]
        earlier = unswept(self.store, cluster)
        rows = [(cluster, uid, *piece) for uid in sorted(differ) for piece in new.get(uid, ())]
        columns = ("cluster", "workload_uid", *Piece._fields)
        frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
        self.store.replace(
            cluster,
            [
                Replacement(table="demand_step", rows=frame, keys=("workload_uid", differ)),
                to_sweep(cluster, min(since if earlier is None else [*since, earlier])),
            ],
        )

    def _sweep(self, cluster: str, since_ms: int | None) -> None:
        """Sweep the ledger from an instant on, and from where its pieces are newer."""
        since = [at_ms for at_ms in (since_ms, unswept(self.store, cluster)) if at_ms is not None]
        if not since:
            return
        first_ms = max(min(since), closed_until(self.store, cluster))
        half_life = self.policy.debt_half_life
        site = self._site(cluster)
        for replacements in swept(self.store, site, half_life, first_ms, changes=self.changes):
            self.store.replace(cluster, replacements)

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


def _differences(gone: set[Piece], come: set[Piece]) -> Iterable[int]:
    """When each piece of one set differs from its like in the other: at its start, or at the earlier end."""
    ends = {piece._replace(until_ms=0): piece.until_ms for piece in come}
    for piece in gone:
        until_ms = ends.pop(piece._replace(until_ms=0), None)
        yield piece.at_ms if until_ms is None else min(until_ms, piece.until_ms)
    yield from (piece.at_ms for piece in ends)


def _by_workload(rows: pl.DataFrame) -> dict[str, list[Piece]]:
    found: dict[str, list[Piece]] = {}
    for uid, *piece in rows.iter_rows():
        found.setdefault(uid, []).append(Piece(*piece))
    return found
