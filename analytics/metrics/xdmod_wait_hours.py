"""Hours that jobs waited, booked on their start."""

from analytics.xdmod.figures import wait_hours
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_wait_hours",
    unit=Unit.HOURS,
    title="Hours waited, by Open XDMoD's rules",
    definition=(
        "Hours from submission or re-queueing to the start, of jobs that started in the window: all of a"
        " wait is booked on its end, and time in which its owner held the job back counts."
    ),
    source="Open XDMoD, jobs realm: total_waitduration_hours",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=wait_hours,
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
