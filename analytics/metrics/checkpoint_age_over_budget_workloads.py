"""Workloads whose last checkpoint is older than the policy allows."""

from datetime import timedelta

from analytics.wastage.at_risk import RUNNING, over_budget
from domain.alert import AlertRule, Limit
from domain.metric import DIMENSIONS, Metric, Page, Unit

METRIC = Metric(
    name="checkpoint_age_over_budget_workloads",
    unit=Unit.WORKLOADS,
    title="Workloads past their checkpoint budget",
    definition=(
        "Running workloads of a preemptible class that publish checkpoints and have let the last one, or the"
        " start of their run, grow older than their budget: by priority class or service class, and never"
        " longer than the budget of long runs once a run is long. Those that publish none are not counted."
    ),
    source="policy of the site; annotation gpuledger.io/last-checkpoint-time",
    sql=RUNNING,
    labels=("cluster", "team", "service_class"),
    dimensions=(*DIMENSIONS, "user_name"),
    compute=over_budget,
    pages=(Page.WASTE, Page.POLICY),
    alerts=(
        AlertRule(
            name="GpuCheckpointOverdue",
            summary="{service_class} workloads of {team} in {cluster} past their checkpoint budget: {value}",
            description=(
                "Workloads that have not saved their work for longer than was agreed: {value}; expected"
                " {limit}. What they would lose if they were stopped now is `at_risk_gpu_hours`."
            ),
            link="waste?cluster={cluster}&team={team}",
            limit=Limit(times=0.0),
            identity=("cluster", "team", "service_class"),
            hold=timedelta(minutes=5),
        ),
    ),
)
