"""Queue depth in imported counts, as somebody else counted it."""

from analytics.queue_states import DIMENSIONS, QUEUE_STATES, quantiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_state_depth_workloads",
    unit=Unit.WORKLOADS,
    title="Queue depth in imported counts",
    definition=(
        "Jobs that waited, as the imported table counted them: what was not exceeded for half and for 99"
        " % of the time that is told, and the most (quantile 1). Several queues are taken together,"
        " instant by instant."
    ),
    source="tables of `gpuledger import states`",
    sql=QUEUE_STATES,
    labels=DIMENSIONS,
    dimensions=DIMENSIONS,
    extra_labels=("quantile",),
    compute=quantiles("waiting_workloads", unit=1),
    windowed=True,
    exported=False,
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
