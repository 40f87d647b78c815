"""Queue depth by reason, in workloads."""

from analytics.waiting import counted
from analytics.why.depth import DIMENSIONS, LABELS, WAITING_BY_REASON
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="queue_depth_by_reason_workloads",
    unit=Unit.WORKLOADS,
    title="Queue depth by reason",
    definition=(
        "Workloads that wait now, by the primary reason that the last look found, at most some minutes ago."
        " NOT_EVALUATED: nobody has looked since it began to wait. A reason that nobody waits for has no"
        " series."
    ),
    source="schedulers' messages, and our search for places and quota; see `gpuledger why`",
    sql=WAITING_BY_REASON,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=counted(lambda _row, _policy: True),
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
