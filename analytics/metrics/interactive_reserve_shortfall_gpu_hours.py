"""How far the interactive reserve fell short in a window."""

import polars as pl

from analytics.interactive.reserve import shortfall_over
from analytics.interactive.rows import POOL, STRETCHES, stretches_summed_over_pools
from domain.metric import Ask, Metric, Page, Unit
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_SECOND

_PER_GPU_HOUR = MICRO_PER_GPU * 3600 * MS_PER_SECOND


def _missing(stretches: pl.DataFrame, ask: Ask) -> float:
    return shortfall_over(stretches, ask.window, ask.policy) / _PER_GPU_HOUR


METRIC = Metric(
    name="interactive_reserve_shortfall_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Interactive reserve, shortfall in the window",
    definition=(
        "The shortfall of the interactive reserve summed over the window, pool by pool: a GPU missing for an"
        " hour is one GPU-hour, and room to spare at another time makes up for none of it."
    ),
    source="policy of the site",
    sql=STRETCHES,
    labels=POOL,
    dimensions=POOL,
    compute_frame=stretches_summed_over_pools(_missing),
    windowed=True,
    pages=(Page.POLICY,),
)
