"""How often an attempt ends in a preemption."""

from analytics.rates import ADDS, DONE, per_attempt
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="preemptions_per_attempt_ratio",
    unit=Unit.RATIO,
    title="Preemptions per attempt",
    definition=(
        "Preemptions in the window, of whichever class and mechanism, over the attempts started in it, by"
        " class of the victim. It exceeds 1 where attempts of before are preempted."
    ),
    source="Kueue preempted workloads over admitted workloads",
    sql=DONE,
    labels=("cluster", "service_class"),
    compute=per_attempt("preemptions"),
    windowed=True,
    pages=(Page.QUEUES,),
    adds=ADDS,
)
