"""
Tables whose rows cease to count are kept in the order in which they do.

DuckDB steps over a row group where the largest value of a column is too small. A row that is written while
it counts has the largest bigint there, and its group keeps that after the row was replaced: rewritten in
order, all that still counts stands in the last groups. See docs/adr/0031.
"""

from typing import Final

from store.engine import Engine
from store.lives import OF_WORKLOADS
from store.open_until import OPEN_UNTIL

# By which column; without a value, or with the largest bigint, a row still counts.
_ORDERED_BY: Final = {
    **dict.fromkeys(OF_WORKLOADS, OPEN_UNTIL),
    **dict.fromkeys(("demand_step", "share_span", "team_share_span", "pool_span"), "until_ms"),
    **dict.fromkeys(("waste_piece", "own_failure_wait"), "end_ms"),
}
# Rows of a group, DuckDB's default; and how many groups more than needed do not matter yet.
_GROUP_ROWS: Final = 122_880
_SPARE_GROUPS: Final = 1

# One row: groups that are read whatever a question asks, because something in them counts or counted.
_READ_ALWAYS: Final = """
select count(distinct row_group_id) as number
from pragma_storage_info($table)
where
    column_name = $column
    and (
        stats.max::varchar = '9223372036854775807'
        or (segment_type = 'VALIDITY' and stats.has_null::boolean)
    )
"""


def put_in_order(engine: Engine) -> list[str]:
    """
    Write those tables anew whose rows lie so that questions about now read too many; gives their names.

    Costs a sort of such a table; nothing is done where all is well. Answers stay as they are.
    """
    found = [table for table in _ORDERED_BY if _reads_too_much(engine, table)]
    for table in found:
        column = _ORDERED_BY[table]
        with engine.transaction() as connection:
            connection.execute(f"create or replace temp table kept_rows as from {table}")
            connection.execute(f"delete from {table}")  # noqa: S608 (names from here)
            connection.execute(f"insert into {table} from kept_rows order by {column} nulls last")
            connection.execute("drop table kept_rows")
    if found:
        engine.fold()
    return found


def _reads_too_much(engine: Engine, table: str) -> bool:
    column = _ORDERED_BY[table]
    (groups,) = engine.rows(_READ_ALWAYS, {"table": table, "column": column})
    number = groups["number"]
    if not isinstance(number, int) or number <= 1 + _SPARE_GROUPS:
        return False
    counting = f"select count(*) as rows from {table} where coalesce({column}, $forever) = $forever"  # noqa: S608
    (open_rows,) = engine.rows(counting, {"forever": 2**63 - 1})
    return number > int(str(open_rows["rows"])) // _GROUP_ROWS + 1 + _SPARE_GROUPS
