"""GPUs by the smallest device that would hold what is in their memory."""

from datetime import timedelta

from analytics.right_sizing import MEMORY, right_sizes
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="right_size_gpus",
    unit=Unit.GPUS,
    title="GPUs by the size that would do",
    definition=(
        "GPUs held now, by the smallest device that has room for the most of their memory that was in use"
        " in the window, by default the last hour, and 20 % more: an instance of the own card by its MIG"
        " profile, a smaller model of the cluster, or `as it is`. `not known` where less than four fifths of"
        " the time (a setting) were read. Memory only: a smaller device computes more slowly. Devices that"
        " pods share are left out."
    ),
    source="DCGM_FI_DEV_FB_USED of dcgm-exporter; NVIDIA MIG User Guide",
    sql=MEMORY,
    labels=("cluster", "team", "gpu_model"),
    dimensions=(*DIMENSIONS, "user_name"),
    extra_labels=("fits",),
    compute=right_sizes,
    windowed=True,
    window=timedelta(hours=1),
    pages=(Page.WASTE,),
    rests_on_samples=True,
)
