"""Part of the GPUs held in imported counts, as somebody else counted it."""

from analytics.queue_states import DIMENSIONS, QUEUE_STATES, held_ratio
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_state_held_ratio",
    unit=Unit.RATIO,
    title="Part of the GPUs held in imported counts",
    definition=(
        "GPU-hours held over the GPU-hours there were, by the imported table, while it tells both: an"
        " allocation, and not what the GPUs did."
    ),
    source="tables of `gpuledger import states`",
    sql=QUEUE_STATES,
    labels=DIMENSIONS,
    dimensions=DIMENSIONS,
    compute=held_ratio,
    windowed=True,
    exported=False,
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
