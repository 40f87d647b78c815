"""Quota that is reserved while no pod is there to use it."""

from analytics.reservations import RESERVATIONS, phantom_gpus
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="phantom_reservation_gpus",
    unit=Unit.GPUS,
    title="Phantom reservations",
    definition=(
        "GPUs reserved by workloads that hold none, and have held none for at least 30 minutes (a setting);"
        " label `pool` is the flavor."
    ),
    source="definition of this product",
    sql=RESERVATIONS,
    labels=("cluster", "queue", "pool"),
    dimensions=(*DIMENSIONS, "pool"),
    compute=phantom_gpus,
    pages=(Page.QUEUES,),
    # The pool of a reservation is a flavor, which tells of nobody.
    open_labels=("pool",),
    shared_labels=("queue",),
)
