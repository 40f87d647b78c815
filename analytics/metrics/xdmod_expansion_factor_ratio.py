"""How much longer jobs took than they ran."""

from analytics.xdmod.figures import expansion_factor
from analytics.xdmod.rows import DIMENSIONS, JOB_ADDS, JOBS, POPULATION
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="xdmod_expansion_factor_ratio",
    unit=Unit.RATIO,
    title="Expansion factor, by Open XDMoD's rules",
    definition=(
        "Wait and run over the run, of jobs that ended in the window and ran at all, each weighted by its"
        " node-hours in the window: 1 where nobody waited."
    ),
    source="Open XDMoD, jobs realm: expansion_factor",
    sql=JOBS,
    labels=("cluster",),
    dimensions=DIMENSIONS,
    compute=expansion_factor,
    windowed=True,
    exported=False,
    adds=JOB_ADDS,
    unless_asked=POPULATION,
    pages=(Page.QUEUES,),
)
