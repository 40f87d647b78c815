"""Who waits at an instant, with the reason that the last look found; and time waited by reason."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Row, Sample
from domain.window import MS_PER_HOUR

DIMENSIONS: Final = (
    "cluster",
    "queue",
    "service_class",
    "priority_class",
    "team",
    "gang_size",
    "reason",
    "blocker",
)
# "reasons per cluster and class": queues and teams are told by the API, so that series stay few.
LABELS: Final = ("cluster", "service_class", "reason")
WAITING_BY_REASON: Final = """\
-- One row per workload that waits just before $as_of_ms, with its primary reason.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gang_size,
    reason,
    blocker,
    1 as workloads,
    requested_micro_gpus as micro_gpus
from wait_reasons($as_of_ms - 1, $as_of_ms)
where waits
"""
TIME_BY_REASON: Final = """\
-- One row per piece of waiting in [$window_start_ms, $as_of_ms) with one primary reason.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gang_size,
    reason,
    blocker,
    end_ms - start_ms as waited_ms
from wait_reasons($window_start_ms, $as_of_ms)
where waits
"""


def hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Hours waited."""
    samples = [
        Sample(
            labels=labels,
            value=float(Fraction(sum(whole(row, "waited_ms") for row in members), MS_PER_HOUR)),
        )
        for labels, members in grouped(rows, ask.by)
    ]
    return samples or [Sample.undefined({}, NOTHING_OBSERVED)]
