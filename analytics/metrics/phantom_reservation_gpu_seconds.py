"""What phantom reservations have cost so far."""

from analytics.reservations import RESERVATIONS, phantom_gpu_seconds
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="phantom_reservation_gpu_seconds",
    unit=Unit.SECONDS,
    title="GPU-seconds of phantom reservations",
    definition=(
        "GPU-seconds of the present phantom reservations, each since its start or its last pod's end."
    ),
    source="definition of this product",
    sql=RESERVATIONS,
    labels=("cluster", "queue", "pool"),
    scraped=False,
    dimensions=(*DIMENSIONS, "pool"),
    compute=phantom_gpu_seconds,
    # The pool of a reservation is a flavor, which tells of nobody.
    open_labels=("pool",),
    shared_labels=("queue",),
    pages=(Page.QUEUES,),
)
