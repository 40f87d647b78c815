"""What the waits of single pods sum to."""

from analytics.member_waits import MEMBER_WAITS, gpu_hours
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="member_wait_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="GPU-hours of member waits",
    definition=(
        "GPU-hours for which single pods waited in the window: members lost after the placement of their"
        " workload, and later pods of a Job without a gang. Nobody held these GPUs; the queue wait does not"
        " count them. A lower bound where the GPUs of a pod are not known."
    ),
    source="definition of this product",
    sql=MEMBER_WAITS,
    labels=("cluster", "queue", "service_class"),
    compute=gpu_hours,
    windowed=True,
    pages=(Page.QUEUES,),
    shared_labels=("queue",),
)
