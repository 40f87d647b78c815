"""How far the interactive reserve falls short now."""

from collections.abc import Sequence
from datetime import timedelta

from analytics.interactive.reserve import pool_now, shortfall
from analytics.interactive.rows import NOW, POOL, summed_over_pools
from domain.alert import AlertRule, Limit
from domain.metric import Ask, Metric, Page, Row, Unit
from domain.quantity import MICRO_PER_GPU


def _missing(rows: Sequence[Row], ask: Ask) -> float:
    room = pool_now([row for row in rows if row["what"] != "waiting"], ask.policy)
    return shortfall(room, ask.policy) / MICRO_PER_GPU


METRIC = Metric(
    name="interactive_reserve_shortfall_gpus",
    unit=Unit.GPUS,
    title="Interactive reserve, shortfall",
    definition=(
        "GPUs missing now from the interactive reserve: its part of the pool's GPUs that are schedulable or"
        " held (20 %, a setting), less those that interactive work holds, and the free and schedulable ones."
        " What interactive work could preempt counts only by setting. Summed over the pools of one model."
    ),
    source="policy of the site",
    sql=NOW,
    labels=POOL,
    dimensions=POOL,
    compute=summed_over_pools(_missing),
    pages=(Page.POLICY,),
    alerts=(
        AlertRule(
            name="GpuInteractiveReserveShort",
            summary="{value} {gpu_model} of {cluster} are missing from the interactive reserve",
            description="{value} GPUs are missing from what is kept for interactive work; expected {limit}.",
            link="cluster?cluster={cluster}&gpu_model={gpu_model}",
            limit=Limit(times=0.0),
            identity=("cluster", "gpu_model"),
            hold=timedelta(minutes=5),
        ),
    ),
)
