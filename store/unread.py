"""What the settings named and nobody ever read: a wrong name must not lower every figure for ever."""

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
# Sources of GPU metrics that never gave a sample.
_FORGET_SAMPLES: Final = """
delete from gpu_sample_mark
where last_sample_ms is null and cluster != all($measured::varchar[])
"""


def forget_unread(engine: Engine, watched: Iterable[str], measured: Iterable[str] = ()) -> None:
    """
    Forget the marks of what was never read.

    Args:
        engine: the store.
        watched: the clusters of the settings, whose marks stay.
        measured: the clusters of whose GPU metrics the settings name a source.
    """
    with engine.transaction() as connection:
        connection.execute(_FORGET, {"watched": sorted(watched)})
        connection.execute(_FORGET_SAMPLES, {"measured": sorted(measured)})
