"""How many jobs started."""

from analytics.xdmod.figures import jobs
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_started_jobs",
    unit=Unit.JOBS,
    title="Jobs started, by Open XDMoD's rules",
    definition=("Jobs, each a stay of a workload, that started in the window."),
    source="Open XDMoD, jobs realm: started_job_count",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=jobs("started"),
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
