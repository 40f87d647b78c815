"""GPUs waited for in imported counts, as somebody else counted it."""

from analytics.queue_states import DIMENSIONS, QUEUE_STATES, quantiles
from domain.metric import Metric, Page, Unit
from domain.quantity import MICRO_PER_GPU

METRIC = Metric(
    name="queue_state_depth_gpus",
    unit=Unit.GPUS,
    title="GPUs waited for in imported counts",
    definition=(
        "GPUs that waiting jobs asked for, as the imported table counted them: what was not exceeded for"
        " half and for 99 % of the time that is told, and the most (quantile 1)."
    ),
    source="tables of `gpuledger import states`",
    sql=QUEUE_STATES,
    labels=DIMENSIONS,
    dimensions=DIMENSIONS,
    extra_labels=("quantile",),
    compute=quantiles("waiting_micro_gpus", unit=MICRO_PER_GPU),
    windowed=True,
    exported=False,
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
