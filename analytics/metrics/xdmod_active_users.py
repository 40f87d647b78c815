"""How many users had jobs that ran."""

from analytics.xdmod.figures import active_users
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_active_users",
    unit=Unit.USERS,
    title="Active users, by Open XDMoD's rules",
    definition=(
        "Users of whom a job, a stay of a workload, ran in some part of the window; jobs of which nobody"
        " tells the user make a lower bound."
    ),
    source="Open XDMoD, jobs realm: active_person_count",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=active_users,
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    apart=("user_name",),
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
