"""How often a GPU was found doing nothing."""

from datetime import timedelta

from analytics.activity.readings import ADDS, APART, DIMENSIONS, READINGS, inactive
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="gpu_readings_inactive_ratio",
    unit=Unit.RATIO,
    title="Readings without activity",
    definition=(
        "Readings of GPUs in the window, by default the last hour, that say an activity of exactly 0,"
        " over all readings with a value. Unlike idle time it needs no stretch of some length, and it"
        " accuses nobody: a busy service may be read between two requests."
    ),
    source="DCGM_FI_PROF_GR_ENGINE_ACTIVE, else DCGM_FI_DEV_GPU_UTIL / 100, of dcgm-exporter",
    sql=READINGS,
    labels=("cluster", "gpu_model"),
    dimensions=DIMENSIONS,
    compute=inactive,
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.CLUSTER,),
    exported=False,
    rests_on_samples=True,
    adds=ADDS,
    apart=APART,
)
