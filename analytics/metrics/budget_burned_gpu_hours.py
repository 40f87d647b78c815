"""What of a team's budget is burned."""

from analytics.budgets import HELD_SO_FAR, of_budgets
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_burned_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Budget burned",
    definition=(
        "GPU-hours that a team with a budget has held since its day, week or month began, in the billing"
        " zone, whichever the cluster and the model. A lower bound where the GPUs of a pod are not known."
    ),
    source="settings of the site",
    sql=HELD_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    scraped=False,
    compute=of_budgets(lambda budget: budget.burned),
    pages=(Page.CHARGEBACK,),
)
