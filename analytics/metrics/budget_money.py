"""What a team may spend in a day, week or month."""

from analytics.budgets import SPENT_SO_FAR, agreed_money
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_money",
    unit=Unit.MONEY,
    title="Budget of money",
    definition=(
        "Money that a team has agreed to spend in a day, week or month of the billing zone, in the currency"
        " of the statement: a setting. Teams without a budget have no figure."
    ),
    source="settings of the site",
    sql=SPENT_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    compute=agreed_money,
    pages=(Page.CHARGEBACK,),
)
