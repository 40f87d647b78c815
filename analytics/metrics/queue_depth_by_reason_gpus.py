"""Queue depth by reason, in GPUs."""

from collections.abc import Sequence

from analytics.evaluate import gpu_sums
from analytics.why.depth import DIMENSIONS, LABELS, WAITING_BY_REASON
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _asked(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    return gpu_sums([{**row, "value": row["micro_gpus"]} for row in rows], ask)


METRIC = Metric(
    name="queue_depth_by_reason_gpus",
    unit=Unit.GPUS,
    title="GPUs asked by the queue, by reason",
    definition=(
        "GPUs that waiting workloads ask for now, by the primary reason that the last look found. A request"
        " that cannot be known makes a lower bound."
    ),
    source="schedulers' messages, and our search for places and quota; see `gpuledger why`",
    sql=WAITING_BY_REASON,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=_asked,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
