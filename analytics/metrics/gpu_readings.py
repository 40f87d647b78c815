"""On how many readings figures of activity rest."""

from datetime import timedelta

from analytics.activity.readings import ADDS, APART, DIMENSIONS, READINGS, counted
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="gpu_readings",
    unit=Unit.READINGS,
    title="Readings of GPUs",
    definition=(
        "Readings of the activity of GPUs in the window, by default the last hour, that have a value: one"
        " per device and instant, however many sources told it. What is no longer kept is not counted, and"
        " makes a lower bound."
    ),
    source="Samples of dcgm-exporter",
    sql=READINGS,
    labels=("cluster", "gpu_model"),
    dimensions=DIMENSIONS,
    compute=counted,
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.SOURCES,),
    exported=False,
    rests_on_samples=True,
    adds=ADDS,
    apart=APART,
)
