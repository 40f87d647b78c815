"""Facts: append a batch with the positions it stands for, and read them back."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from copy import copy
from dataclasses import astuple, fields
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

import duckdb
import polars as pl
import pyarrow as pa
from msgspec import Struct

from domain.errors import StoreBrokenError, StoreError
from domain.facts import (
    Batch,
    Description,
    EventSighting,
    Known,
    Moment,
    ObjectKind,
    ObjectState,
    SourceMark,
    Transition,
)
from domain.observed import Observed
from store import observed
from store.engine import Engine

Made = TypeVar("Made")

# How a column becomes the field of the same name, where the text itself does not do.
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "kind": {kind.value: kind for kind in ObjectKind}.__getitem__,
    "moment": {moment.value: moment for moment in Moment}.__getitem__,
    "body": str.encode,
}

# Kind, namespace and name of an object never change, and to write them again would double the cost. DuckDB
# looks through all rows in which the object may be: those of what is gone for long are stepped over.
_UPSERT_OBJECTS: Final = """
merge into object_state as known
using incoming
    on
        known.cluster = incoming.cluster
        and known.uid = incoming.uid
        and known.seen_ms >= $seen_since_ms
when matched then update set
    resource_version = incoming.resource_version,
    seen_ms = incoming.seen_ms,
    gone_ms = incoming.gone_ms
when not matched then insert by name
"""

# Marks are few: to give them as values takes less than half of the time that a table of them would.
_UPSERT_MARKS: Final = """
insert into source_mark
    (cluster, kind, resource_version, epoch, seen_ms, cluster_uid, last_error, restarts)
values {rows}
on conflict do update set
    resource_version = excluded.resource_version,
    epoch = excluded.epoch,
    seen_ms = excluded.seen_ms,
    cluster_uid = excluded.cluster_uid,
    last_error = excluded.last_error,
    restarts = excluded.restarts
"""

# The grain of each is its table's: the facts of one cluster, in the order of arrival.
_TRANSITIONS: Final = """
select transition.* from transition
where cluster = $cluster and ($uids is null or uid in (select unnest($uids::varchar[])))
order by seq
"""
_DESCRIPTIONS: Final = """
select description.* from description
where
    cluster = $cluster
    and ($uids is null or uid in (select unnest($uids::varchar[])))
order by seq
"""
# The uid of what a table of jobs tells begins so; a cluster's own are UUIDs.
IMPORTED: Final = "job/"
_LASTING_TRANSITIONS: Final = """
select transition.* from transition
where cluster = $cluster and not starts_with(uid, $imported)
order by seq
"""
_LASTING_DESCRIPTIONS: Final = """
select description.* from description
where cluster = $cluster and not starts_with(uid, $imported)
order by seq
"""
_OF_KINDS: Final = """
select description.* from description
where cluster = $cluster and list_contains($kinds::varchar[], kind)
order by seq
"""
_EVENTS: Final = """
select event_sighting.* from event_sighting
where
    cluster = $cluster
    and ($reasons is null or reason in (select unnest($reasons::varchar[])))
    and ($regarding is null or regarding_uid in (select unnest($regarding::varchar[])))
order by seq
"""
_OBJECTS: Final = """
-- One row per object that is there, or is gone for no longer than so many milliseconds.
select object_state.*
from object_state
where
    cluster = $cluster
    and (
        $gone_within_ms::bigint is null
        or gone_ms is null
        or gone_ms + $gone_within_ms::bigint
            >= (select max(seen_ms) from source_mark where cluster = $cluster)
    )
order by uid
"""
_STATES: Final = """
-- One row per object that is known of these.
select object_state.* from object_state
where cluster = $cluster and uid in (select unnest($uids::varchar[]))
order by uid
"""
_MARKS: Final = "select source_mark.* from source_mark where cluster = $cluster order by kind"

_LIVE_TRANSITIONS: Final = """
select transition.* from transition
semi join object_state as live
    on transition.cluster = live.cluster and transition.uid = live.uid and live.gone_ms is null
where transition.cluster = $cluster
order by transition.seq
"""

# One row per live object: what it said of itself last.
_LIVE_BODIES: Final = """
select description.uid as uid, arg_max(description.body, description.seq) as body
from description
semi join object_state as live
    on description.cluster = live.cluster and description.uid = live.uid and live.gone_ms is null
where description.cluster = $cluster
group by description.uid
"""

_HIGHEST: Final = """
select greatest(
    coalesce((select max(seq) from transition), 0),
    coalesce((select max(seq) from description), 0),
    coalesce((select max(seq) from event_sighting), 0),
    coalesce((select max(seq) from watermark), 0)
) as seq
"""

# One row per object with facts beyond the job's watermark; an event tells of whom it regards.
_CHANGED: Final = """
with reached as (
    select coalesce(max(seq), 0) as seq from watermark where cluster = $cluster and job = $job
),

news as (
    select uid, seq from transition where cluster = $cluster and seq > (select seq from reached)
    union all
    select uid, seq from description where cluster = $cluster and seq > (select seq from reached)
    union all
    select unnest([regarding_uid, related_uid]) as uid, seq
    from event_sighting where cluster = $cluster and seq > (select seq from reached)
)

select uid, max(seq) as seq from news group by uid
union all
select '' as uid, seq from reached
"""
# One row: how many objects changed before an instant, by facts that a job has not seen yet.
_UNSEEN: Final = """
select count(distinct transition.uid) as objects
from transition
left join watermark on transition.cluster = watermark.cluster and watermark.job = $job
where transition.at_ms < $before_ms and transition.seq > coalesce(watermark.seq, 0)
"""


class Changed(NamedTuple):
    """Whose facts a derived job has not seen yet, and the watermark to write with its result."""

    uids: set[str]
    seq: int


def highest_seq(engine: Engine) -> int:
    """The number of the newest fact."""
    return int(engine.frame(_HIGHEST).item())


def append(engine: Engine, batch: Batch, *, after_seq: int) -> int:
    """
    Write a batch in one transaction; its facts are numbered from `after_seq` + 1.

    Returns:
        Rows appended.

    Raises:
        StoreError: nothing of it was written.
    """
    try:
        _append(engine, batch, after_seq=after_seq, seen_since_ms=batch.seen_since_ms)
    except StoreError as error:
        if isinstance(error, StoreBrokenError) or not batch.seen_since_ms:
            raise
        # An object that the intake had forgotten may be known, and was seen long before.
        _append(engine, batch, after_seq=after_seq, seen_since_ms=0)
    return len(batch)


def _append(engine: Engine, batch: Batch, *, after_seq: int, seen_since_ms: int) -> None:
    with engine.transaction(changes_lives=False) as connection:
        write(engine, connection, batch, after_seq=after_seq, seen_since_ms=seen_since_ms)


def write(
    engine: Engine,
    connection: duckdb.DuckDBPyConnection,
    batch: Batch,
    *,
    after_seq: int,
    seen_since_ms: int = 0,
) -> None:
    """As `append`, inside a transaction of the caller; no known object of the batch was seen before."""
    seq = after_seq + 1
    grown: tuple[tuple[str, list[Any]], ...] = (
        ("transition", batch.transitions),
        ("description", batch.descriptions),
        ("event_sighting", batch.events),
        ("set_aside", batch.set_aside),
    )
    for table, facts in grown:
        if facts:
            rows = _arrow(engine.schema(table), batch.cluster, facts, seq=seq)
            connection.from_arrow(rows).insert_into(table)
            seq += len(facts)
    if batch.objects:
        states = _arrow(engine.schema("object_state"), batch.cluster, batch.objects.values())
        connection.register("incoming", states)
        connection.execute(_UPSERT_OBJECTS, {"seen_since_ms": seen_since_ms})
        connection.unregister("incoming")
    if batch.marks:
        rows = [(batch.cluster, *astuple(mark)) for mark in batch.marks.values()]
        places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows))
        connection.execute(_UPSERT_MARKS.format(rows=places), list(chain.from_iterable(rows)))
    sights = {Observed(kind): stretches for kind, stretches in batch.sights.items()}
    observed.add(engine, connection, batch.cluster, sights)


def holds(engine: Engine, batch: Batch) -> bool:
    """
    Whether a batch was committed: its marks and its objects stand as it says.

    All of a batch is in one transaction, so a part of it tells of the whole. Every batch with
    facts has objects, and nobody else writes those of its cluster.
    """
    place = {"cluster": batch.cluster, "gone_within_ms": None}
    if not (batch.marks or batch.objects):
        return False
    if not marks_of(engine, batch.cluster).items() >= batch.marks.items():
        return False
    objects = _made(ObjectState, engine.frame(_OBJECTS, place)) if batch.objects else []
    return {state.uid: state for state in objects}.items() >= batch.objects.items()


def known(engine: Engine, cluster: str, gone_within_ms: int | None = None) -> Known:
    """
    What an intake needs in order to tell a new reading from a replayed one.

    Of objects that are gone those of the last `gone_within_ms` of the reading; None gives all.
    """
    place = {"cluster": cluster, "gone_within_ms": gone_within_ms}
    objects = _made(ObjectState, engine.frame(_OBJECTS, place))
    found = Known(
        objects={state.uid: state for state in objects},
        bodies={str(uid): body.encode() for uid, body in engine.frame(_LIVE_BODIES, place).iter_rows()},
        marks=marks_of(engine, cluster),
    )
    for transition in _made(Transition, engine.frame(_LIVE_TRANSITIONS, place)):
        found.keys.setdefault(transition.uid, []).append(transition.key)
    return found


def marks_of(engine: Engine, cluster: str) -> dict[ObjectKind, SourceMark]:
    """Where the reading of each kind stands."""
    marks = _made(SourceMark, engine.frame(_MARKS, {"cluster": cluster}))
    return {mark.kind: mark for mark in marks}


def states_of(engine: Engine, cluster: str, uids: Collection[str]) -> list[ObjectState]:
    """The newest reading of each of these objects that is known."""
    return _made(ObjectState, engine.frame(_STATES, {"cluster": cluster, "uids": list(uids)}))


def changed_since(engine: Engine, cluster: str, job: str) -> Changed:
    """Objects with facts beyond the job's watermark, and the highest number among those facts."""
    frame = engine.frame(_CHANGED, {"cluster": cluster, "job": job})
    return Changed(uids=set(frame["uid"]) - {""}, seq=max(frame["seq"]))


def unseen(engine: Engine, job: str, *, before_ms: int) -> int:
    """How many objects changed before an instant, by facts that a derived job has not seen yet."""
    [row] = engine.rows(_UNSEEN, {"job": job, "before_ms": before_ms})
    return int(str(row["objects"]))


def facts_of(
    engine: Engine, cluster: str, uids: Collection[str] | None = None
) -> tuple[list[Transition], list[Description]]:
    """Facts of these objects, or of all, in the order of arrival."""
    asked = {"cluster": cluster, "uids": None if uids is None else list(uids)}
    return _made(Transition, engine.frame(_TRANSITIONS, asked)), _made(
        Description, engine.frame(_DESCRIPTIONS, asked)
    )


def lasting_facts_of(engine: Engine, cluster: str) -> tuple[list[Transition], list[Description]]:
    """Facts of all objects but those of imported jobs, in the order of arrival."""
    asked = {"cluster": cluster, "imported": IMPORTED}
    return (
        _made(Transition, engine.frame(_LASTING_TRANSITIONS, asked)),
        _made(Description, engine.frame(_LASTING_DESCRIPTIONS, asked)),
    )


def descriptions(engine: Engine, cluster: str, kinds: Iterable[ObjectKind]) -> list[Description]:
    """What all objects of these kinds said of themselves, in the order of arrival."""
    asked = {"cluster": cluster, "kinds": [kind.value for kind in kinds]}
    return _made(Description, engine.frame(_OF_KINDS, asked))


def events_of(
    engine: Engine,
    cluster: str,
    reasons: Collection[str] | None = None,
    regarding: Collection[str] | None = None,
) -> list[EventSighting]:
    """Sightings of events with these reasons, or of all, on these objects, in the order of arrival."""
    asked = {
        "cluster": cluster,
        "reasons": None if reasons is None else list(reasons),
        "regarding": None if regarding is None else list(regarding),
    }
    return _made(EventSighting, engine.frame(_EVENTS, asked))


def _arrow(schema: pa.Schema, cluster: str, rows: Collection[object], *, seq: int = 0) -> pa.Table:
    """The rows in the table's columns; a field has the name of its column."""
    columns = []
    for column in schema:
        if column.name == "cluster":
            columns.append(pl.repeat(cluster, len(rows), eager=True))
        elif column.name == "seq":
            columns.append(pl.int_range(seq, seq + len(rows), eager=True))
        else:
            columns.append(_column(column, list(map(attrgetter(column.name), rows))))
    return pl.DataFrame(columns, schema=schema.names).to_arrow()


def _column(column: pa.Field, values: list[Any]) -> pl.Series:
    """The values as a series, which takes them in twice as fast as Arrow does."""
    if column.name == "body":
        return pl.Series(values, dtype=pl.Binary).cast(pl.String)
    return pl.Series(values, dtype=pl.String if column.type == pa.string() else pl.Int64)


def _made(make: type[Made], frame: pl.DataFrame) -> list[Made]:
    """
    One object per row, each field from the column of its name.

    The fields are set through their slots: the way of a frozen class's own `__init__` takes five
    times as long, and every refresh reads facts back.
    """
    if issubclass(make, Struct):
        names = list(make.__struct_fields__)
        blank: Made = make(**dict.fromkeys(names))
        made = list(map(copy, repeat(blank, frame.height)))
    else:
        names = [field.name for field in fields(make)]  # type: ignore[arg-type]
        made = list(map(object.__new__, repeat(make, frame.height)))
    for name in names:
        values: Iterable[Any] = frame[name].to_list()
        if name in _READERS:
            values = map(_READERS[name], values)
        deque(map(getattr(make, name).__set__, made, values), maxlen=0)
    return made
