"""How fast workloads come to the queue, leave it and are admitted."""

from datetime import timedelta

from analytics.flow import FLOWS, TURNS, per_second
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="queue_flow_per_second",
    unit=Unit.PER_SECOND,
    title="Flow through the queue",
    definition=(
        "Workloads per second in the window, by default the last hour. arrivals began to wait, departures"
        " stopped waiting, whether placed, held, evicted or cancelled, so that arrivals less departures are"
        " the change of the queue depth; admissions got past quota and checks. Work that no quota holds back"
        " is admitted as it comes."
    ),
    source="Kueue's admitted workloads and pending workloads, as rates",
    sql=TURNS,
    labels=("cluster", "queue"),
    dimensions=DIMENSIONS,
    extra_labels=("flow",),
    compute=per_second,
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
    adds=FLOWS,
)
