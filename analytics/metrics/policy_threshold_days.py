"""Thresholds of the policy that are numbers of days."""

from analytics.thresholds import told
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="policy_threshold_days",
    unit=Unit.DAYS,
    title="Policy thresholds, days",
    definition="Settings that are numbers of days, by name: on how many of how many to buy.",
    source="settings of the site",
    sql="""\
-- One row per setting.
select rule
from (values ('buy_days'), ('buy_of_days')) as setting (rule)
""",
    labels=("rule",),
    dimensions=("rule",),
    compute=told,
    exported=False,
    pages=(Page.POLICY, Page.CAPACITY),
)
