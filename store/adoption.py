"""Take over rows of another store's file, so that a rebuild loses nothing that the journal does not tell."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from store.engine import Engine

# One row per table with rows of clusters.
_TABLES: Final = """
select table_name from duckdb_columns()
where column_name = 'cluster' and table_name in (select table_name from duckdb_tables())
group by table_name
order by table_name
"""
_COPY: Final = """
insert into {table} by name
select given.* from earlier.{table} as given where {whose}
"""
_OF_OTHERS: Final = "not (cluster = any($rebuilt::varchar[]))"
_OF_REBUILT: Final = "cluster = any($rebuilt::varchar[])"
# What was read of GPUs comes from other sources; what was found, told, proposed and decided at the time, and
# up to when facts were dropped, from nowhere else.
_OF_SAMPLES: Final = "source in (select source from earlier.gpu_sample_mark)"
_NOT_IN_THE_JOURNAL: Final = {
    "gpu_sample": _OF_REBUILT,
    "gpu_sample_mark": _OF_REBUILT,
    "transition": f"{_OF_REBUILT} and moment = 'gpu_fault'",
    "object_state": f"{_OF_REBUILT} and kind = 'GPU'",
    "observed_stretch": f"{_OF_REBUILT} and source <> ''",
    "set_aside": f"{_OF_REBUILT} and {_OF_SAMPLES}",
    "queue_position": _OF_REBUILT,
    "queue_position_mark": _OF_REBUILT,
    "queue_state": _OF_REBUILT,
    "wait_reason": _OF_REBUILT,
    "reason_look": _OF_REBUILT,
    "eta_told": _OF_REBUILT,
    "closed_until": _OF_REBUILT,
    "quota_week": _OF_REBUILT,
    "proposal": _OF_REBUILT,
    "proposal_audit": _OF_REBUILT,
}
# What was said and signed at the time, of whichever cluster.
_SAID: Final = tuple(
    f"insert into {table} by name select * from earlier.{table}"  # noqa: S608 (names from here)
    for table in (
        "measurement",
        "alert_state",
        "alert_firing",
        "alert_mark",
        "closed_month",
        "month_correction",
        "month_basis",
        "month_left",
        "month_user",
    )
)


def at_hand(engine: Engine, path: Path) -> AbstractContextManager[None]:
    """With another store's file attached for the writer, as `earlier`."""
    quoted = str(path).replace("'", "''")
    return engine.attached(f"attach '{quoted}' as earlier (read_only)", "detach earlier")


def adopt(engine: Engine, path: Path, rebuilt: Collection[str]) -> None:
    """
    Take what is not to be rebuilt from a file that nobody has open, into an empty store.

    Other clusters than those that are rebuilt are taken as they are, with their marks. Of the rebuilt
    ones comes what no journal tells: GPU samples, reasons and starts as they were told, proposals and their
    audit; facts that their own journal does not tell are carried by `store.carrying`. What is derived of
    facts and samples is made anew. All measurements, alerts and closed months are taken.

    Raises:
        StoreError: the file is no store of this version; nothing was taken.
    """
    tables = [str(row["table_name"]) for row in engine.rows(_TABLES)]
    with at_hand(engine, path), engine.transaction() as connection:
        for table, whose in [(table, _OF_OTHERS) for table in tables] + [*_NOT_IN_THE_JOURNAL.items()]:
            connection.execute(_COPY.format(table=table, whose=whose), {"rebuilt": list(rebuilt)})
        for copy in _SAID:
            connection.execute(copy)
