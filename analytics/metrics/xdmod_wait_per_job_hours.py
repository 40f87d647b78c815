"""The mean wait of a job, and its standard error."""

from analytics.xdmod.figures import wait_per_job
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_wait_per_job_hours",
    unit=Unit.HOURS,
    title="Hours waited per job, by Open XDMoD's rules",
    definition=(
        "Hours waited, as in `xdmod_wait_hours`, over the jobs that started in the window. Label"
        " `statistic`: the mean, or its standard_error, the standard deviation of the population over the"
        " root of their number."
    ),
    source="Open XDMoD, jobs realm: avg_waitduration_hours and sem_avg_waitduration_hours",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    extra_labels=("statistic",),
    compute=wait_per_job,
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
