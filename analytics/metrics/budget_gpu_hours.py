"""What a team may hold in a day, week or month."""

from analytics.budgets import HELD_SO_FAR, agreed
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="Budget of GPU-hours",
    definition=(
        "GPU-hours that a team has agreed to hold in a day, week or month of the billing zone: a setting."
        " Teams without a budget have no figure."
    ),
    source="settings of the site",
    sql=HELD_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    compute=agreed,
    pages=(Page.CHARGEBACK,),
)
