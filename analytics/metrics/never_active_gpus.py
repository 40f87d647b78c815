"""GPUs that running workloads hold and have never used."""

from analytics.wastage.asked import WASTE_DIMENSIONS
from analytics.wastage.never_active import DEVICES, never_active
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="never_active_gpus",
    unit=Unit.GPUS,
    title="GPUs never active",
    definition=(
        "GPUs held now on which no activity was seen since their pod started, although at least a quarter of"
        " an hour and four fifths of its running time were seen: a workload that asks fewer would do the"
        " same. Those of pods that are over are not in it: lint_findings_workloads counts under over_request"
        " the workloads of the last 7 days with such a GPU."
    ),
    source="DCGM exporters, directly or through Prometheus",
    sql=DEVICES,
    labels=("cluster", "team"),
    dimensions=WASTE_DIMENSIONS,
    compute=never_active,
    pages=(Page.WASTE,),
    rests_on_samples=True,
)
