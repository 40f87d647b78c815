"""Queue depth, in GPUs."""

from collections.abc import Sequence

from analytics.evaluate import gpu_sums
from analytics.waiting import WAITING_NOW
from analytics.waiting_stretches import WAITING_STRETCHES
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _asked(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    return gpu_sums([{**row, "value": row["micro_gpus"]} for row in rows], ask)


METRIC = Metric(
    name="queue_depth_gpus",
    unit=Unit.GPUS,
    title="GPUs asked by the queue",
    definition="GPUs that waiting workloads ask for now; a request that cannot be known makes a lower bound.",
    source="Kueue pending workloads' resource requests",
    sql=WAITING_NOW,
    stretches=WAITING_STRETCHES,
    stretch_sums=("micro_gpus",),
    labels=("cluster", "queue", "service_class", "team"),
    compute=_asked,
    pages=(Page.HOME, Page.QUEUES),
    shared_labels=("queue",),
    # deploy/keda.yaml.
    acted_on=True,
)
