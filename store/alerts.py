"""Alerts as they stand, kept across restarts, and when they fired."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from store.engine import Engine
from store.lives import fitting

AlertRow: TypeAlias = Mapping[str, object]

_STATES: Final = "select alert_state.* from alert_state order by labels"
# One row per time that an alert fired in [start_ms, end_ms), as it was known at end_ms, the newest first.
_FIRINGS: Final = """
select alert_firing.* replace (case when resolved_ms < $end_ms then resolved_ms end as resolved_ms)
from alert_firing
where fired_ms < $end_ms and coalesce(resolved_ms >= $start_ms, true)
order by fired_ms desc, labels
"""
_MARK: Final = "select max(as_of_ms) as as_of_ms from alert_mark"
_SET_MARK: Final = "insert into alert_mark (as_of_ms) values ($as_of_ms)"
_END: Final = """
update alert_firing
set resolved_ms = $resolved_ms, worst_value = $worst_value, because = $because
where labels = $labels and fired_ms = $fired_ms
"""
_DROP: Final = "delete from alert_firing where resolved_ms < $before_ms"


def states(engine: Engine) -> list[dict[str, object]]:
    """Every alert that is pending, fires or resolved a while ago, with the columns of `alert_state`."""
    return engine.rows(_STATES)


def firings(engine: Engine, *, start_ms: int, end_ms: int) -> list[dict[str, object]]:
    """When alerts fired that did so within [start, end), the newest first; columns of `alert_firing`."""
    return engine.rows(_FIRINGS, {"start_ms": start_ms, "end_ms": end_ms})


def evaluated_ms(engine: Engine) -> int | None:
    """The instant of the data for which alerts were evaluated last; None: never."""
    [row] = engine.rows(_MARK)
    return row["as_of_ms"] if isinstance(row["as_of_ms"], int) else None


def keep(
    engine: Engine,
    as_of_ms: int,
    *,
    standing: Sequence[AlertRow],
    began: Sequence[AlertRow] = (),
    ended: Iterable[AlertRow] = (),
) -> None:
    """
    Keep how every alert stands at an instant, all in one.

    Args:
        standing: columns of `alert_state`; they replace all that there were.
        began: columns of `alert_firing`, of those that fire from now on.
        ended: labels, fired_ms, resolved_ms, worst_value and because, of those that fire no more.

    Raises:
        StoreError: a column or type is wrong; nothing was written.
    """
    with engine.transaction(changes_lives=False) as connection:
        connection.execute("delete from alert_state")
        connection.execute("delete from alert_mark")
        connection.execute(_SET_MARK, {"as_of_ms": as_of_ms})
        for table, rows in (("alert_state", standing), ("alert_firing", began)):
            if rows:
                connection.from_arrow(fitting(table, engine.schema(table), rows)).insert_into(table)
        for row in ended:
            connection.execute(_END, row)


def drop_before(engine: Engine, before_ms: int) -> None:
    """Drop what resolved before an instant."""
    with engine.transaction(changes_lives=False) as connection:
        connection.execute(_DROP, {"before_ms": before_ms})
