"""Counts of queues that somebody else made: stretches are appended, and read again before that."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa

from domain.queue_state import Counts, QueueState
from store.engine import Engine

# One row per stretch of these queues that touches the time asked about.
_NEAR: Final = """
select queue, start_ms, end_ms, running_workloads, waiting_workloads, held_micro_gpus, waiting_micro_gpus,
    idle_micro_gpus, total_micro_gpus
from queue_state
where
    cluster = $cluster
    and queue in (select unnest($queues::varchar[]))
    and start_ms <= $to_ms
    and end_ms >= $from_ms
order by queue, start_ms
"""


def append(engine: Engine, cluster: str, states: Sequence[QueueState]) -> None:
    """Append stretches that overlap with none that is there."""
    if not states:
        return
    rows = [
        {"cluster": cluster, "queue": state.queue, "start_ms": state.start_ms, "end_ms": state.end_ms}
        | state.counts._asdict()
        for state in states
    ]
    with engine.transaction(changes_lives=False) as connection:
        incoming = pa.Table.from_pylist(rows, schema=engine.schema("queue_state"))
        connection.from_arrow(incoming).insert_into("queue_state")


def near(
    engine: Engine, cluster: str, queues: Collection[str], *, from_ms: int, to_ms: int
) -> dict[str, list[QueueState]]:
    """The stretches of each of these queues that touch [from_ms, to_ms], in the order of time."""
    params = {"cluster": cluster, "queues": sorted(queues), "from_ms": from_ms, "to_ms": to_ms}
    found: dict[str, list[QueueState]] = defaultdict(list)
    for row in engine.rows(_NEAR, params):
        queue, start_ms, end_ms, *counts = row.values()
        found[str(queue)].append(
            QueueState(
                queue=str(queue),
                start_ms=int(str(start_ms)),
                end_ms=int(str(end_ms)),
                counts=Counts(*(None if count is None else int(str(count)) for count in counts)),
            )
        )
    return found
