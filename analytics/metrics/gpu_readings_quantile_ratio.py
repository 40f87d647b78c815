"""How busy GPUs were in the middle and at the top of what was read."""

from datetime import timedelta

from analytics.activity.readings import ADDS, APART, DIMENSIONS, READINGS, quantiles
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="gpu_readings_quantile_ratio",
    unit=Unit.RATIO,
    title="GPU utilisation, percentiles of readings",
    definition=(
        "Percentiles of the activity of GPUs over all readings in the window, by default the last hour;"
        " by linear interpolation, each reading of a device counts alike, so that a mean that hides long"
        " idleness is seen through. Readings without a value are left out. Single readings are kept as"
        " long as `store.retention` says: a window that begins earlier has no percentiles."
    ),
    source=(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE, else DCGM_FI_DEV_GPU_UTIL / 100, of dcgm-exporter;"
        " Hyndman and Fan 1996, type 7"
    ),
    sql=READINGS,
    labels=("cluster", "gpu_model"),
    dimensions=DIMENSIONS,
    extra_labels=("quantile",),
    compute=quantiles,
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.CLUSTER,),
    exported=False,
    rests_on_samples=True,
    adds=ADDS,
    apart=APART,
)
