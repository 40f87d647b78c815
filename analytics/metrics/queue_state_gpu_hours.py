"""GPU-hours in imported counts, as somebody else counted it."""

from analytics.queue_states import DIMENSIONS, QUEUE_STATES, gpu_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_state_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="GPU-hours in imported counts",
    definition=(
        "GPU-hours by the imported table: there were (total), held, idle, waited for (waiting), and idle"
        " at times at which GPUs were waited for (idle_while_waiting). Several queues are taken together."
    ),
    source="tables of `gpuledger import states`",
    sql=QUEUE_STATES,
    labels=DIMENSIONS,
    dimensions=DIMENSIONS,
    extra_labels=("condition",),
    compute=gpu_hours,
    windowed=True,
    exported=False,
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
