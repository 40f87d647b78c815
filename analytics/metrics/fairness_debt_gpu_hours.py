"""GPU-hours that the cluster owes."""

from datetime import timedelta

from analytics.fairness.shares import DEBTS_NOW, DIMENSIONS, LABELS, debts
from domain.alert import AlertRule, Limit
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="fairness_debt_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Fairness debt",
    definition=(
        "GPU-hours that an entity should have had and did not, less those that it had beyond: positive when"
        " the cluster owes. Half of it is forgiven in every half-life (7 d, a setting) of real time. Debts"
        " of pools with different GPU models are not added."
    ),
    source="decayed usage as in Slurm multifactor and Kueue admission fair sharing",
    sql=DEBTS_NOW,
    labels=LABELS,
    dimensions=DIMENSIONS,
    compute=debts,
    pages=(Page.FAIRNESS,),
    alerts=(
        AlertRule(
            name="GpuFairnessDebt",
            summary="pool {pool} of {cluster} owes {value} GPU-hours to {team} in queue {queue}",
            description=(
                "The debt is {value} GPU-hours; {limit} is what a tenth of the pool gives in a day."
            ),
            link="fairness?cluster={cluster}&pool={pool}",
            limit=Limit(times=2.4, gauge="pool_capacity_gpus", on=("cluster", "pool")),
            identity=("cluster", "pool", "queue", "team"),
            hold=timedelta(minutes=15),
        ),
    ),
    shared_labels=("queue", "pool"),
)
