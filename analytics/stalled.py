"""
Whether the scheduler has stalled: work waits that it could place, and it binds nothing.

Definitions leave open what is quota-admissible: here work that is admitted and is being placed; and work
that waits for quota, where all that its queue holds back would fit into what is left of the queue's own
quota at once, so that the order in the queue does not matter. What might be borrowed is left out, so
that nothing is accused that Kueue may rightly keep back. Nothing was bound: no pod with GPUs, in the
whole cluster.
"""

from collections.abc import Sequence
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, whole
from analytics.fragmentation.inventory import is_placeable
from analytics.fragmentation.pools import pools
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_SECOND

LATE: Final = "late"


def stalled(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Workloads that wait too long for a place that is there, while nothing was bound for as long."""
    after_ms = round(ask.policy.scheduler_stalled_after.total_seconds() * MS_PER_SECOND)
    late = {
        (str(row["cluster"]), str(row["name"]))
        for row in rows
        if row["what"] == LATE
        and whole(row, "pods")
        and min(whole(row, "devices"), whole(row, "bound")) > after_ms
    }
    found: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for labels, pool in pools(rows):
        key = tuple(labels[name] for name in ask.by)
        # A workload that may go to several pools is one.
        found.setdefault(key, set()).update(
            (labels["cluster"], uid)
            for uid, wanted in pool.asks.items()
            if (labels["cluster"], uid) in late and is_placeable(wanted, pool.inventory)
        )
    return [
        Sample(labels=dict(zip(ask.by, key, strict=True)), value=len(stuck)) for key, stuck in found.items()
    ] or [Sample.undefined({}, NOTHING_OBSERVED)]
