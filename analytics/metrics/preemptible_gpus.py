"""GPUs that interactive work could take from others."""

from collections.abc import Sequence

from analytics.interactive.reserve import pool_now
from analytics.interactive.rows import NOW, POOL, summed_over_pools
from domain.metric import Ask, Metric, Page, Row, Unit
from domain.quantity import MICRO_PER_GPU


def _preemptible(rows: Sequence[Row], ask: Ask) -> float:
    room = pool_now([row for row in rows if row["what"] != "waiting"], ask.policy)
    return room.preemptible / MICRO_PER_GPU


METRIC = Metric(
    name="preemptible_gpus",
    unit=Unit.GPUS,
    title="GPUs preemptible",
    definition=(
        "GPUs held by work of the preemptible classes (batch and best-effort, a setting), which interactive"
        " work may take. They stand beside the reserve, and count into it only by setting."
    ),
    source="policy of the site",
    sql=NOW,
    labels=POOL,
    dimensions=POOL,
    compute=summed_over_pools(_preemptible),
    pages=(Page.POLICY,),
)
