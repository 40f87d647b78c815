"""The mean hours of a job, and their standard error."""

from analytics.xdmod.figures import used_per_job
from analytics.xdmod.rows import DIMENSIONS, POPULATION, USED, USED_ADDS
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_used_per_job_hours",
    unit=Unit.HOURS,
    title="Hours used per job, by Open XDMoD's rules",
    definition=(
        "Hours used, as in `xdmod_used_hours`, over the jobs that ran in the window. Label `statistic`:"
        " the mean, or its standard_error, of the jobs that ended. For the error a job that runs over the"
        " end of a month is cut there, as Open XDMoD's monthly sums are: so it counts once, with two"
        " smaller squares."
    ),
    source="Open XDMoD, jobs realm: avg_wallduration_hours and its like, and their sem_",
    sql=USED,
    labels=("cluster", "resource"),
    dimensions=(*DIMENSIONS, "resource"),
    extra_labels=("statistic",),
    compute=used_per_job,
    windowed=True,
    exported=False,
    adds=USED_ADDS,
    apart=("resource",),
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
