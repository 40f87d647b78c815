"""Teams that have submitted work, and what they share with others."""

from collections.abc import Set as AbstractSet
from typing import Final

from api.answers import Listing
from domain.view import View
from domain.window import format_instant
from store.embedded import Store

# One row per team that had submitted work before $as_of_ms.
_TEAMS: Final = """
select
    team,
    count(*) as workloads,
    count(*) filter (where coalesce(ended_ms >= $as_of_ms, true)) as open_workloads,
    max(submitted_ms) as last_submitted_ms
from gpu_workload
where submitted_ms < $as_of_ms
group by team order by team
"""

# One row per team and queue in which it had submitted work before $as_of_ms, and per team, queue and
# pool in which it had stood by then.
_STANDS: Final = """
select distinct cluster, team, queue, null as pool
from gpu_work
where submitted_ms < $as_of_ms
union
select distinct cluster, team, queue, pool
from team_share
where start_ms < $as_of_ms
"""

_FIRST: Final = "select min(submitted_ms) as first_ms from gpu_workload"


def listing(store: Store, as_of_ms: int) -> Listing:
    """Every team that had submitted work by then."""
    rows = [
        {
            **{name: row[name] for name in ("team", "workloads", "open_workloads")},
            "last_submitted_at": format_instant(int(str(row["last_submitted_ms"]))),
        }
        for row in store.rows(_TEAMS, {"as_of_ms": as_of_ms})
    ]
    return Listing(as_of_ms=as_of_ms, rows=rows, total=len(rows), page_size=max(len(rows), 1))


def view(store: Store, teams: AbstractSet[str], as_of_ms: int) -> View:
    """What these teams share with others: the queues and pools in which they stood by then."""
    rows = [row for row in store.rows(_STANDS, {"as_of_ms": as_of_ms}) if row["team"] in teams]
    return View(
        teams=frozenset(teams),
        queues={(str(row["cluster"]), str(row["queue"])) for row in rows if row["queue"]},
        pools={(str(row["cluster"]), str(row["pool"])) for row in rows if row["pool"]},
    )


def first_ms(store: Store) -> int | None:
    """The instant at which a team first submitted work; None while none has."""
    ((first_ms,),) = (row.values() for row in store.rows(_FIRST))
    return None if first_ms is None else int(str(first_ms))
