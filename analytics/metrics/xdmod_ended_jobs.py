"""How many jobs ended."""

from analytics.xdmod.figures import jobs
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_ended_jobs",
    unit=Unit.JOBS,
    title="Jobs ended, by Open XDMoD's rules",
    definition=(
        "Jobs that ended in the window. Here and in the other figures for comparison with Open XDMoD a"
        " job is one stay of a workload, from its submission or re-queueing to its end, and one that never"
        " started is none."
    ),
    source="Open XDMoD, jobs realm: job_count",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=jobs("ended"),
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
