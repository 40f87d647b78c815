"""Quota that is reserved while no pod is there to use it."""

from datetime import timedelta

from analytics.reservations import RESERVATIONS, phantom_gpus
from domain.alert import AlertRule, Limit
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
    alerts=(
        AlertRule(
            name="GpuPhantomReservation",
            summary="queue {queue} of {cluster} keeps quota of {value} GPUs for work without pods",
            description=(
                "{value} GPUs of quota are reserved for longer than the limit in the settings, and no pod"
                " has come; expected {limit}."
            ),
            link="jobs?cluster={cluster}&queue={queue}",
            limit=Limit(times=0.0),
            identity=("cluster", "queue"),
            # Without any there is no series: missing is the usual end.
            window=timedelta(minutes=5),
        ),
    ),
    # The pool of a reservation is a flavor, which tells of nobody.
    open_labels=("pool",),
    shared_labels=("queue",),
)
