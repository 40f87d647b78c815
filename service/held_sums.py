"""Who held what, added up where it lies: a month of millions of stays is read as some thousand rows."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from analytics.chargeback import capacity
from analytics.chargeback.cutter import Cutter
from analytics.chargeback.held import Held
from analytics.chargeback.levels import Packing, pieces
from analytics.chargeback.stays import OWNER
from analytics.chargeback.usage import QUANTITY_UNKNOWN, Unknown
from domain.money import Sku
from domain.window import MS_PER_HOUR
from service.held_time import SET_ASIDE, stays
from store.embedded import Store

# What of a stay lies in the window, where something does.
_INSIDE: Final = """\
    holding.bound_ms < $end_ms
    and holding.open_until_ms >= $start_ms
    and (holding.released_ms is null or holding.released_ms > $start_ms)
    and (holding.released_ms is null or holding.released_ms > holding.bound_ms)"""
_FROM: Final = "greatest(holding.bound_ms, $start_ms)"
_UNTIL: Final = "least(coalesce(holding.released_ms, $end_ms), $end_ms)"

# One row per node on which something was held, and quantity; null where nobody knows it.
_SEEN: Final = f"""
select distinct holding.cluster, holding.node, holding.micro_gpus
from holding
where
    (holding.micro_gpus is null or holding.micro_gpus > 0)
    and {_INSIDE}
order by holding.cluster, holding.node, holding.micro_gpus
"""  # noqa: S608 (text from here)

# One row per owner, model and frame of a cluster: what was held. Where the window is cut into slots of one
# length, most stays begin and end in the same one, and all of it lies in one frame: such a stay is one piece.
# The others have a piece for each frame of their node that they touch.
_USAGE: Final = f"""
with node as (
    select unnest($nodes::varchar[]) as node, unnest($courses::bigint[]) as course
),

frame as (
    select
        unnest($frame_courses::bigint[]) as course,
        unnest($numbers::bigint[]) as number,
        unnest($from_ms::bigint[]) as from_ms,
        unnest($to_ms::bigint[]) as to_ms
),

touched as (
    select
        course * $slots
        + unnest(range((from_ms - $first_ms) // $slot_ms, (to_ms - 1 - $first_ms) // $slot_ms + 1)) as slot,
        number
    from frame
),

slot as (
    select slot, min(number) as number
    from touched
    group by slot
    having count(*) = 1
),

stay as (
    select
        holding.gpu_model,
        holding.micro_gpus,
        case when workload.skewed = '' then workload.team else $set_aside end as team,
        case when workload.skewed = '' and $fine then workload.project else '' end as project,
        case when workload.skewed = '' and $fine then workload.user_name else '' end as user,
        case when workload.skewed = '' and $fine then workload.queue else '' end as queue,
        coalesce(node.course, 0) as course,
        {_FROM} as start_ms,
        {_UNTIL} as end_ms,
        ({_FROM} - $first_ms) // $slot_ms as first,
        ({_UNTIL} - 1 - $first_ms) // $slot_ms as last
    from holding
    inner join workload on holding.workload_uid = workload.workload_uid
    left join node on holding.node = node.node
    where
        holding.cluster = $cluster
        and workload.cluster = $cluster
        and workload.open_until_ms >= $start_ms
        and holding.micro_gpus > 0
        and {_INSIDE}
)

select
    stay.team,
    stay.project,
    stay.user,
    stay.queue,
    stay.gpu_model,
    coalesce(slot.number, frame.number) as number,
    sum(
        stay.micro_gpus::hugeint
        * case
            when slot.number is not null then stay.end_ms - stay.start_ms
            else least(stay.end_ms, frame.to_ms) - greatest(stay.start_ms, frame.from_ms)
        end
    ) as micro_gpu_ms
from stay
left join slot
    on case when stay.first = stay.last then stay.course * $slots + stay.first end = slot.slot
left join frame
    on case when slot.number is null then stay.course end = frame.course
    and stay.start_ms < frame.to_ms
    and stay.end_ms > frame.from_ms
group by all
"""  # noqa: S608

# One row per stay: its beginning and its end as `analytics.chargeback.levels` packs them.
_CHANGES: Final = f"""
with node as (
    select
        unnest($clusters::varchar[]) as cluster,
        unnest($nodes::varchar[]) as node,
        unnest(range(len($nodes::varchar[]))) as place
),

quantity as (
    select
        unnest($quantities::bigint[]) as micro_gpus,
        2 * unnest(range(1, len($quantities::bigint[]) + 1)) as code
)

select
    node.place * $place_step + ({_FROM} - $start_ms) * $time_step + quantity.code as came,
    node.place * $place_step + ({_UNTIL} - $start_ms) * $time_step + quantity.code + 1 as went
from holding
inner join node on holding.cluster = node.cluster and holding.node = node.node
inner join quantity on holding.micro_gpus = quantity.micro_gpus
where {_INSIDE}
"""  # noqa: S608

# One row per stay of which the quantity is not known.
_NOT_KNOWN: Final = f"""
select holding.cluster, holding.node, {_FROM} as start_ms, {_UNTIL} as end_ms
from holding
where
    holding.micro_gpus is null
    and {_INSIDE}
"""  # noqa: S608

# Of a slot.
_LONGEST_MS: Final = 24 * MS_PER_HOUR
_SHORTEST_MS: Final = MS_PER_HOUR // 4


class _Slots(NamedTuple):
    """Parts of one length that cover a window."""

    start_ms: int
    length_ms: int
    number: int


def held(store: Store, cutter: Cutter, *, fine: bool = True) -> Held:
    """
    The sums of all stays of the cutter's window, as `Held.of` makes them of `held_time.stays`.

    Args:
        fine: whether users, projects and queues are told apart; without it nobody's in particular.
    """
    seen = store.frame(_SEEN, _bounds(cutter))
    found, models = _usage(store, cutter, seen, fine=fine)
    levels, not_there = _levels(store, cutter, seen)
    return Held(
        found,
        [Sku(gpu_model=model) for model in models],
        levels,
        (*_not_known(store, cutter, seen), *not_there),
    )


def _usage(
    store: Store, cutter: Cutter, seen: pl.DataFrame, *, fine: bool
) -> tuple[pl.DataFrame, Sequence[str]]:
    slots, frames = _slots(cutter), cutter.frames_of
    asked = {
        **_bounds(cutter),
        "set_aside": SET_ASIDE,
        "fine": fine,
        "first_ms": slots.start_ms,
        "slot_ms": slots.length_ms,
        "slots": slots.number,
        "frame_courses": frames["course"].to_list(),
        "numbers": frames["number"].to_list(),
        "from_ms": frames["from_ms"].to_list(),
        "to_ms": frames["to_ms"].to_list(),
    }
    parts = []
    for cluster in seen["cluster"].unique().sort():
        nodes = cutter.nodes.filter(pl.col("cluster") == cluster)
        told = {"cluster": cluster, "nodes": nodes["node"].to_list(), "courses": nodes["course"].to_list()}
        parts.append(store.frame(_USAGE, asked | told).with_columns(cluster=pl.lit(cluster)))
    if not parts:
        return _NOTHING, ()
    rows = pl.concat(parts)
    models = rows["gpu_model"].unique().sort()
    numbered = pl.DataFrame({"gpu_model": models}).with_row_index("sku")
    return rows.join(numbered, on="gpu_model").select(
        "cluster", *OWNER, pl.col("sku").cast(pl.Int64), "number", pl.col("micro_gpu_ms").cast(pl.Int128)
    ), models.to_list()


def _levels(store: Store, cutter: Cutter, seen: pl.DataFrame) -> tuple[pl.DataFrame, Sequence[Unknown]]:
    """How long nodes were held to which level, and what nobody knows of them."""
    held_on = seen.drop_nulls("micro_gpus").select("cluster", "node").unique()
    nodes = pl.concat([cutter.nodes, cutter.coursed(held_on)]).unique().sort("cluster", "node")
    quantities = seen["micro_gpus"].drop_nulls().unique().sort().to_list()
    packing = Packing.of(cutter, nodes.height, quantities)
    if packing is None:
        nodes, found = capacity.pieces_of_nodes(stays(store, cutter.window), cutter)
    else:
        asked = {
            **_bounds(cutter),
            "clusters": nodes["cluster"].to_list(),
            "nodes": nodes["node"].to_list(),
            "quantities": quantities,
            "place_step": packing.place_step,
            "time_step": packing.time_step,
        }
        changes = store.frame(_CHANGES, asked)
        nodes = nodes.with_row_index("place").cast({"place": pl.Int64})
        came, went = changes["came"].to_numpy(), changes["went"].to_numpy()
        found = pieces(came, went, nodes, cutter, packing)
    return capacity.lasted(found), capacity.not_known(nodes, found, cutter)


def _not_known(store: Store, cutter: Cutter, seen: pl.DataFrame) -> list[Unknown]:
    if not seen["micro_gpus"].null_count():
        return []
    rows = store.frame(_NOT_KNOWN, _bounds(cutter))
    return [Unknown(**row, because=QUANTITY_UNKNOWN) for row in rows.iter_rows(named=True)]


def _slots(cutter: Cutter) -> _Slots:
    """Days begin with a slot wherever that can be; one that holds a cut is looked at piece by piece."""
    window = cutter.window
    # The first day may be a part of one.
    begins = [day.start_ms for day in cutter.days[1:]] or [window.start_ms]
    length_ms = max(math.gcd(*(at_ms - begins[0] for at_ms in begins)) or _LONGEST_MS, _SHORTEST_MS)
    start_ms = begins[0] - -((window.start_ms - begins[0]) // length_ms) * length_ms
    return _Slots(start_ms, length_ms, (window.end_ms - 1 - start_ms) // length_ms + 1)


def _bounds(cutter: Cutter) -> dict[str, int]:
    return {"start_ms": cutter.window.start_ms, "end_ms": cutter.window.end_ms}


_NOTHING: Final = pl.DataFrame(
    schema={
        "cluster": pl.String, **dict.fromkeys(OWNER, pl.String), "sku": pl.Int64, "number": pl.Int64,
        "micro_gpu_ms": pl.Int128,
    }
)  # fmt: skip
