"""What of a team's budget of money is burned."""

from analytics.budgets import MONEY, SPENT_SO_FAR, of_budgets
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="budget_burned_money",
    unit=Unit.MONEY,
    title="Money burned",
    definition=(
        "Effective cost of what a team with a budget of money has held since its day, week or month began, in"
        " the currency of the statement and the billing zone, by the price of each node; without what it"
        " bears of idle capacity. A lower bound where a node has no price or a pod's GPUs are not known."
    ),
    source="settings of the site",
    sql=SPENT_SO_FAR,
    labels=("team",),
    dimensions=("team",),
    extra_labels=("period",),
    scraped=False,
    compute=of_budgets(lambda budget: budget.burned, kind=MONEY),
    pages=(Page.CHARGEBACK,),
)
