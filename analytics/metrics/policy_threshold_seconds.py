"""Thresholds of the policy that are lengths of time."""

from analytics.thresholds import told
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="policy_threshold_seconds",
    unit=Unit.SECONDS,
    title="Policy thresholds, lengths",
    definition="Settings of the policy that are lengths of time, by name: the wait above which to buy.",
    source="settings of the site",
    sql="""\
-- One row per setting.
select rule
from (values ('buy_wait')) as setting (rule)
""",
    labels=("rule",),
    dimensions=("rule",),
    compute=told,
    pages=(Page.POLICY, Page.CAPACITY),
)
