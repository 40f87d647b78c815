"""Clusters of the settings that were never reached: a wrong name must not lower every figure for ever."""

from collections.abc import Iterable
from typing import Final

from store.engine import Engine

_FORGET: Final = """
delete from source_mark
where
    cluster != all($watched::varchar[])
    and cluster not in (
        select seen.cluster from source_mark as seen
        where seen.seen_ms > 0
    )
"""


def forget_unread(engine: Engine, watched: Iterable[str]) -> None:
    """Forget the marks of clusters of which nothing was ever read, but for those that are watched."""
    with engine.transaction() as connection:
        connection.execute(_FORGET, {"watched": sorted(watched)})
