"""Thresholds of the policy that are parts of something."""

from analytics.thresholds import told
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="policy_threshold_ratio",
    unit=Unit.RATIO,
    title="Policy thresholds, ratios",
    definition="Settings that are ratios, by name: reserve, domination, lint, queue cap, buying.",
    source="settings of the site",
    sql="""\
-- One row per setting.
select rule
from (values
    ('interactive_reserve_ratio'),
    ('domination_ratio'),
    ('lint_one_class_ratio'),
    ('queue_cap_warn_ratio'),
    ('buy_held_ratio'),
    ('buy_productive_ratio'),
    ('erosion_from_ratio')
) as setting (rule)
""",
    labels=("rule",),
    dimensions=("rule",),
    compute=told,
    pages=(Page.POLICY, Page.CAPACITY),
)
