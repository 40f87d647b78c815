"""How many jobs ran."""

from analytics.xdmod.figures import jobs
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_running_jobs",
    unit=Unit.JOBS,
    title="Jobs running, by Open XDMoD's rules",
    definition=(
        "Jobs, each a stay of a workload, that ran in some part of the window; also one that ended at its"
        " first instant, for Open XDMoD counts whole days. What MultiKueue gave to another cluster is one job"
        " of the cluster that manages it, in all figures by these rules."
    ),
    source="Open XDMoD, jobs realm: running_job_count",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=jobs("running"),
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
