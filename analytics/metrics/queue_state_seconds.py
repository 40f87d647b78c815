"""Time by condition in imported counts, as somebody else counted it."""

from analytics.queue_states import DIMENSIONS, QUEUE_STATES, seconds
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_state_seconds",
    unit=Unit.SECONDS,
    title="Time by condition in imported counts",
    definition=(
        "For how long, by the imported table: it tells anything (told), jobs waited (waiting), without a"
        " break (longest_waiting), GPUs idled while others were waited for (idle_while_waiting), and more"
        " than 95 % (a setting) of the GPUs were held while jobs waited (full_while_waiting). Several"
        " queues are taken together."
    ),
    source="tables of `gpuledger import states`",
    sql=QUEUE_STATES,
    labels=DIMENSIONS,
    dimensions=DIMENSIONS,
    extra_labels=("condition",),
    compute=seconds,
    windowed=True,
    exported=False,
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
