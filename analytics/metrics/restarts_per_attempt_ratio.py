"""How often work begins anew, for the attempts that it makes."""

from analytics.rates import ADDS, DONE, per_attempt
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="restarts_per_attempt_ratio",
    unit=Unit.RATIO,
    title="Restarts per attempt",
    definition=(
        "Attempts in the window that are not their workload's first, and further runs of a pod within its"
        " attempt, as after a crash, over the attempts started in the window. It exceeds 1 where pods crash"
        " in a loop."
    ),
    source="container restarts and requeues of Kubernetes and Kueue",
    sql=DONE,
    labels=("cluster", "service_class"),
    compute=per_attempt("restarts"),
    windowed=True,
    pages=(Page.QUEUES,),
    adds=ADDS,
)
