"""How many jobs were submitted, of those that ran soon enough."""

from analytics.xdmod.figures import submitted
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_submitted_jobs",
    unit=Unit.JOBS,
    title="Jobs submitted, by Open XDMoD's rules",
    definition=(
        "Jobs, each a stay of a workload, that were submitted or queued again in the window. Open XDMoD"
        " keeps its sums per period, and counts a submission only where the job also ran in the same"
        " period: by day in a series, by calendar month in a total; both UTC. Label `period` says which,"
        " day or month."
    ),
    source="Open XDMoD, jobs realm: submitted_job_count",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    extra_labels=("period",),
    compute=submitted,
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
