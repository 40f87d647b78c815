"""How many CPUs a job has, as its hours are weighed."""

from analytics.xdmod.figures import weighted_size
from analytics.xdmod.rows import DIMENSIONS, POPULATION, USED, USED_ADDS
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_weighted_size_cpus",
    unit=Unit.CPUS,
    title="Job size weighted by hours, by Open XDMoD's rules",
    definition=(
        "The mean CPUs of jobs that ran in the window, each weighted by its hours of the resource, as in"
        " `xdmod_used_hours`. By GPU-hours too it is the CPUs that are averaged: so Open XDMoD computes"
        " it."
    ),
    source=(
        "Open XDMoD, jobs realm: avg_job_size_weighted_by_cpu_hours and avg_job_size_weighted_by_gpu_hours"
    ),
    sql=USED,
    labels=("cluster", "resource"),
    dimensions=(*DIMENSIONS, "resource"),
    compute=weighted_size,
    windowed=True,
    exported=False,
    adds=USED_ADDS,
    apart=("resource",),
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
