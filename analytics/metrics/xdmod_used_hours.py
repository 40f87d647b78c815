"""Hours that jobs ran, by the clock and times what they had."""

from analytics.xdmod.figures import used_hours
from analytics.xdmod.rows import DIMENSIONS, POPULATION, USED, USED_ADDS
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_used_hours",
    unit=Unit.HOURS,
    title="Hours used, by Open XDMoD's rules",
    definition=(
        "Hours of the window in which jobs ran, each from its start to its end, by resource: by the clock"
        " (wall), and times the GPUs, CPUs and nodes of the job. Hours are split between windows by"
        " overlap, and resources are never added up. A job has what all its pods have but those that were"
        " lost while the others went on, those of MultiKueue's copies included; CPUs are those that"
        " pods request, or that an imported table tells."
    ),
    source=(
        "Open XDMoD, jobs realm: total_wallduration_hours, total_gpu_hours, total_cpu_hours, total_node_hours"
    ),
    sql=USED,
    labels=("cluster", "resource"),
    dimensions=(*DIMENSIONS, "resource"),
    compute=used_hours,
    windowed=True,
    exported=False,
    adds=USED_ADDS,
    apart=("resource",),
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
