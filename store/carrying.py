"""Carry facts of an earlier file that no journal tells into a rebuilt store, to where they stood."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import duckdb
import polars as pl

from domain.facts import Batch, ObjectKind, SourceMark
from domain.observed import Observed, Stretch
from domain.window import LAST_KEPT_MS
from store import observed
from store.embedded import Store

# Of each table: what makes a fact the same one, and its kind. Cards and drivers (kind GPU) are told of by
# exporters, and taken over by `store.adoption`.
_FACTS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "transition": (("uid", "moment", "subject", "state", "reason", "at_ms", "amount"), "kind"),
    "description": (("uid", "body", "from_ms"), "kind"),
    "event_sighting": (("uid", "resource_version"), "'Event'"),
}
# Which annotations tell of checkpoints is a setting of today, and what they told stays told.
_DOUBTFUL: Final = {"transition": "fact.moment = 'checkpoint' or"}
# One row per fact that the journal does not tell, or may not tell; and when it is due. What the journal
# tells of that instant goes before: it may tell this fact too, where it stood.
_UNTOLD: Final = """
create or replace temp table untold_{table} as
with fact as (
    select
        fact.*,
        fact.observed_ms + (told.at_ms is not null)::bigint as due_ms,
        told.at_ms is not null
        and not ({doubtful} fact.observed_ms in (select at_ms from doubtful)) as is_told
    from earlier.{table} as fact
    left join told on fact.observed_ms = told.at_ms and told.kind = {kind}
    where fact.cluster = $cluster and {kind} <> 'GPU'
)

select fact.* from fact
where not fact.is_told or fact.observed_ms in (select at_ms from ends)
"""
# At the end of a file blocks may be gone without a sign, and what they told within its last millisecond.
_TOLD_AFTER_ALL: Final = """
delete from untold_{table} as untold
where
    untold.is_told
    and untold.observed_ms < $until_ms
    and exists (
        select 1 from {table} as known
        where
            known.cluster = untold.cluster
            and known.uid = untold.uid
            and known.observed_ms = untold.observed_ms
            {and_moment}
    )
"""
_AND_MOMENT: Final = {"transition": "and known.moment = untold.moment"}
_UNTOLD_ASIDE: Final = """
insert into set_aside by name
select fact.* from earlier.set_aside as fact
where
    fact.cluster = $cluster
    and fact.source not in (select source from earlier.gpu_sample_mark)
    and not exists (
        select 1 from told where told.at_ms = fact.observed_ms and told.kind = fact.source
    )
"""
# What happens once in a life, and did so by the earlier file.
_SINGLE: Final = """
create or replace temp table single as
select uid, moment
from earlier.transition
where cluster = $cluster and moment in ('created', 'bound', 'ended', 'delete_requested', 'gone')
group by uid, moment
having count(*) = 1
"""
# Facts up to an instant that are not there yet: beside a damage the journal may have told them after all.
_CARRY: Final = """
insert into {table} by name
select * exclude (is_told, due_ms) replace ($seq + row_number() over (order by seq) as seq)
from untold_{table} as untold
where
    untold.due_ms <= $until_ms
    and not exists (
        select 1 from {table} as known where known.cluster = untold.cluster and {same}
    )
    {and_not_once}
"""
# After a kill the journal may have told what happens once before the store heard it again.
_AND_NOT_ONCE: Final = {
    "transition": """
    and not exists (
        select 1 from transition as known
        inner join single on known.uid = single.uid and known.moment = single.moment
        where
            known.cluster = untold.cluster
            and known.uid = untold.uid
            and known.moment = untold.moment
    )
"""
}
_CARRIED: Final = "delete from untold_{table} where due_ms <= $until_ms"
# One row per object of those, and what they say of its newest reading.
_MET: Final = """
create or replace temp table met as
with fact as (
    select
        uid, kind, observed_ms, due_ms, seq, case when moment = 'gone' then observed_ms end as gone_ms,
        null as version
    from untold_transition
    union all
    select uid, kind, observed_ms, due_ms, seq, null as gone_ms, null as version from untold_description
    union all
    select uid, 'Event' as kind, observed_ms, due_ms, seq, null as gone_ms, resource_version as version
    from untold_event_sighting
)

select
    uid,
    kind,
    max(observed_ms) as seen_ms,
    case when max(gone_ms) = max(observed_ms) then max(gone_ms) end as gone_ms,
    coalesce(arg_max(version, seq), '') as version
from fact
where due_ms <= $until_ms
group by uid, kind
"""
# What is kept of an object that was not seen later is what was known of it then; of others their facts tell.
_STATES_MET: Final = """
select
    state.cluster,
    state.uid,
    state.kind,
    state.namespace,
    state.name,
    -- It was emptied where the history began anew later.
    coalesce(
        case when state.seen_ms < $until_ms then nullif(state.resource_version, '') end,
        met.version
    ) as resource_version,
    case when state.seen_ms < $until_ms then state.seen_ms else met.seen_ms end as seen_ms,
    case when state.gone_ms < $until_ms then state.gone_ms else met.gone_ms end as gone_ms
from earlier.object_state as state
inner join met on state.uid = met.uid
where state.cluster = $cluster
"""
_STATES_ALL: Final = "select * from earlier.object_state where cluster = $cluster and kind <> 'GPU'"
# A list ends what it does not show, and that is no sight of it.
_UPSERT_STATES: Final = """
merge into object_state as known
using ({states}) as incoming
    on known.cluster = incoming.cluster and known.uid = incoming.uid
when matched and incoming.seen_ms > known.seen_ms then update set
    resource_version = coalesce(nullif(incoming.resource_version, ''), known.resource_version),
    seen_ms = incoming.seen_ms,
    gone_ms = incoming.gone_ms
when matched and incoming.seen_ms = known.seen_ms then update set
    resource_version = case when incoming.resource_version <> '' then known.resource_version else '' end,
    gone_ms = coalesce(incoming.gone_ms, known.gone_ms)
when not matched then insert by name
"""
# Where an object was seen in between without a fact, only the earlier file knows how late it was so.
_EARLIEST: Final = """
update {table} as known
set earliest_ms = fact.earliest_ms
from earlier.{table} as fact
where
    known.cluster = $cluster
    and fact.cluster = known.cluster
    and fact.observed_ms = known.observed_ms
    and fact.earliest_ms > known.earliest_ms
    and {same}
"""
# One row per kind: until when it was read at least, before an instant.
_READ_UNTIL: Final = """
select kind, max(seen_ms) as seen_ms
from (
    select kind, seen_ms from met
    union all
    select kind, end_ms as seen_ms from earlier.observed_stretch
    where cluster = $cluster and source = '' and end_ms < $until_ms
) as sight
group by kind
"""
_MARKS: Final = """
select kind, resource_version, epoch, seen_ms, cluster_uid, last_error, restarts
from earlier.source_mark
where cluster = $cluster
"""
_STRETCHES: Final = """
select kind, start_ms, end_ms, resumed from earlier.observed_stretch
where cluster = $cluster and source = ''
"""
# One row per kind of fact of which some are nowhere in the rebuilt store.
_LACKING: Final = """
select fact.kind || ' ' || fact.moment as what, count(distinct fact.uid)::bigint as objects
from earlier.transition as fact
where
    fact.cluster = $cluster and fact.kind <> 'GPU'
    and not exists (
        select 1 from transition as known
        where known.cluster = fact.cluster and known.uid = fact.uid and known.moment = fact.moment
    )
group by what
union all
select fact.kind || ' description' as what, count(distinct fact.uid)::bigint as objects
from earlier.description as fact
where
    fact.cluster = $cluster
    and not exists (
        select 1 from description as known where known.cluster = fact.cluster and known.uid = fact.uid
    )
group by what
union all
select 'Event' as what, count(distinct (fact.uid, fact.resource_version))::bigint as objects
from earlier.event_sighting as fact
where
    fact.cluster = $cluster
    and not exists (
        select 1 from event_sighting as known
        where
            known.cluster = fact.cluster and known.uid = fact.uid
            and known.resource_version = fact.resource_version
    )
having count(*) > 0
order by what
"""
# Before any version: the next list is no sign that the history began anew.
_FIRST_VERSION: Final = "0"


class Carrier:
    """
    Carries what is not told of one cluster, while the file is attached as `earlier` and the journal replayed.

    Args:
        store: the rebuilt one.
        cluster: whose facts.
        told: the instants of which the journal tells, by kind.
        doubtful: those of which it may tell in part only.
        ends: the last ones of its files, of which it may do so too; but what it tells of an object is so.
    """

    def __init__(
        self,
        store: Store,
        cluster: str,
        told: Mapping[ObjectKind, Sequence[int]],
        *,
        doubtful: Collection[int],
        ends: Collection[int],
    ) -> None:
        self.facts = 0
        self._store = store
        self._cluster = cluster
        self._has_untold = False
        frames = [
            pl.DataFrame({"kind": [kind.value], "at_ms": [list(instants)]}).explode("at_ms").unique()
            for kind, instants in told.items()
        ]
        empty = pl.DataFrame(schema={"kind": pl.String, "at_ms": pl.Int64})
        given = {"told": pl.concat([empty, *frames])}
        for name, instants in (("doubtful", doubtful), ("ends", ends)):
            given[name] = pl.DataFrame({"at_ms": list(instants)}, schema={"at_ms": pl.Int64})
        with store.transaction() as connection:
            for table, frame in given.items():
                connection.register("instants", frame.to_arrow())
                connection.execute(f"create or replace temp table {table} as from instants")
                connection.unregister("instants")
            connection.execute(_SINGLE, {"cluster": cluster})
            for table, (_, kind) in _FACTS.items():
                sql = _UNTOLD.format(
                    table=table,
                    kind=kind if kind.startswith("'") else f"fact.{kind}",
                    doubtful=_DOUBTFUL.get(table, ""),
                )
                connection.execute(sql, {"cluster": cluster})

    def carry(self, until_ms: int, marks: Mapping[ObjectKind, SourceMark]) -> bool:
        """
        Carry what was observed up to an instant, before the journal goes on with it; whether anything was.

        Args:
            until_ms: the instant.
            marks: where reading stood then; without any it follows from what was observed.
        """
        self._store.add_facts(lambda connection, seq: self._carry(connection, seq, until_ms))
        if not marks and self._has_untold:
            marks = self._marks_at(until_ms)
        self._take_marks(marks, or_equal=False)
        return self._has_untold

    def finish(self) -> None:
        """Carry all that is left, when the journal is at its end; and where the reading stands."""
        self._store.add_facts(lambda connection, seq: self._carry(connection, seq, LAST_KEPT_MS))
        place = {"cluster": self._cluster}
        with self._store.transaction() as connection:
            connection.execute(_UPSERT_STATES.format(states=_STATES_ALL), place)
            connection.execute(_UNTOLD_ASIDE, place)
            for table in ("transition", "description") if self.facts else ():
                connection.execute(_EARLIEST.format(table=table, same=_same(table, "fact")), place)
            sights: dict[Observed, list[Stretch]] = {}
            for kind, start_ms, end_ms, resumed in connection.execute(_STRETCHES, place).fetchall():
                stretch = Stretch(start_ms=start_ms, end_ms=end_ms, resumed=resumed)
                sights.setdefault(Observed(kind), []).append(stretch)
            observed.add(self._store, connection, self._cluster, sights)
        self._take_marks(self._marks(), or_equal=True)

    def lacking(self) -> dict[str, int]:
        """Of how many objects the rebuilt store has no fact of a kind that the earlier file has."""
        with self._store.transaction(changes_lives=False) as connection:
            rows = connection.execute(_LACKING, {"cluster": self._cluster}).fetchall()
        return {str(what): int(objects) for what, objects in rows}

    def _carry(self, connection: duckdb.DuckDBPyConnection, seq: int, until_ms: int) -> int:
        asked = {"until_ms": until_ms}
        for table in _FACTS:
            sql = _TOLD_AFTER_ALL.format(table=table, and_moment=_AND_MOMENT.get(table, ""))
            connection.execute(sql, asked)
        connection.execute(_MET, asked)
        (met,) = connection.execute("select count(*) from met").fetchone() or (0,)
        self._has_untold = bool(met)
        if not met:
            return 0
        carried = 0
        for table in _FACTS:
            sql = _CARRY.format(
                table=table, same=_same(table, "untold"), and_not_once=_AND_NOT_ONCE.get(table, "")
            )
            (rows,) = connection.execute(sql, asked | {"seq": seq + carried}).fetchone() or (0,)
            carried += rows
            connection.execute(_CARRIED.format(table=table), asked)
        states = {"cluster": self._cluster, "until_ms": until_ms}
        connection.execute(_UPSERT_STATES.format(states=_STATES_MET), states)
        self.facts += carried
        return carried

    def _marks_at(self, until_ms: int) -> dict[ObjectKind, SourceMark]:
        known, later = self._store.known_marks(self._cluster), self._marks()
        with self._store.transaction(changes_lives=False) as connection:
            asked = {"cluster": self._cluster, "until_ms": until_ms}
            read = connection.execute(_READ_UNTIL, asked).fetchall()
        marks = {}
        for name, seen_ms in read:
            kind = ObjectKind(name)
            of_kind, then = known.get(kind), later.get(kind)
            marks[kind] = SourceMark(
                kind=kind,
                resource_version=(of_kind.resource_version if of_kind else "") or _FIRST_VERSION,
                epoch=of_kind.epoch if of_kind else 0,
                seen_ms=seen_ms,
                cluster_uid=of_kind.cluster_uid if of_kind else then.cluster_uid if then else "",
                restarts=of_kind.restarts if of_kind else 0,
            )
        return marks

    def _marks(self) -> dict[ObjectKind, SourceMark]:
        """Where the reading stands in the earlier file."""
        with self._store.transaction(changes_lives=False) as connection:
            rows = connection.execute(_MARKS, {"cluster": self._cluster}).fetchall()
        return {
            (kind := ObjectKind(name)): SourceMark(
                kind=kind,
                resource_version=version,
                epoch=epoch,
                seen_ms=seen_ms,
                cluster_uid=cluster_uid,
                last_error=last_error,
                restarts=restarts,
            )
            for name, version, epoch, seen_ms, cluster_uid, last_error, restarts in rows
        }

    def _take_marks(self, marks: Mapping[ObjectKind, SourceMark], *, or_equal: bool) -> None:
        """Those that stand further than what is known; `or_equal`: as far."""
        known = self._store.known_marks(self._cluster)
        ahead = {
            kind: mark
            for kind, mark in marks.items()
            if kind not in known or mark.seen_ms > known[kind].seen_ms - or_equal
        }
        self._store.append(Batch(cluster=self._cluster, marks=ahead))


def _same(table: str, other: str) -> str:
    """That a known fact and another one are the same."""
    names, _ = _FACTS[table]
    return " and ".join(f"known.{name} is not distinct from {other}.{name}" for name in names)
