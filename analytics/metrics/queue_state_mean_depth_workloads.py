"""Mean queue depth in imported counts, as somebody else counted it."""

from analytics.queue_states import DIMENSIONS, QUEUE_STATES, mean
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_state_mean_depth_workloads",
    unit=Unit.WORKLOADS,
    title="Mean queue depth in imported counts",
    definition=(
        "Jobs that waited, as the imported table counted them, on average over the time that is told."
    ),
    source="tables of `gpuledger import states`",
    sql=QUEUE_STATES,
    labels=DIMENSIONS,
    dimensions=DIMENSIONS,
    compute=mean("waiting_workloads", unit=1),
    windowed=True,
    exported=False,
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
