"""Figures that the oracle does not give, and the tests that hold each of them."""

from collections.abc import Mapping

_OF_FAIRNESS = dict.fromkeys(
    (
        "entitled_gpus",
        "demanded_gpus",
        "received_gpus",
        "quota_gpus",
        "lent_gpus",
        "borrowed_gpus",
        "over_quota_gpus",
        "pool_capacity_gpus",
        "capacity_without_quota_gpus",
        "from_unassigned_gpus",
        "fairness_error_ratio",
        "jains_index_ratio",
        "fairness_debt_gpu_hours",
        "entitled_gpu_hours",
        "received_gpu_hours",
        "forgiven_gpu_hours",
    ),
    "tests/service/test_fairness.py",
)
_OF_CAPACITY = {
    **dict.fromkeys(
        ("capacity_gpus", "cordoned_gpus", "overcommitted_gpus", "unhealthy_gpus", "unpartitioned_gpus"),
        "tests/analytics/fragmentation/test_nodes.py",
    ),
    **dict.fromkeys(
        ("fragmented_gpus", "reclaimable_gpus"), "tests/analytics/fragmentation/test_inventory.py"
    ),
    **dict.fromkeys(
        ("fragment_waste_ratio", "fragmentation_ratio"), "tests/analytics/fragmentation/test_waste.py"
    ),
    **dict.fromkeys(
        (
            "interactive_domination_ratio",
            "interactive_domination_users",
            "interactive_reserve_shortfall_gpu_hours",
            "interactive_reserve_shortfall_gpus",
            "preemptible_gpus",
        ),
        "tests/analytics/interactive/test_reserve.py",
    ),
    **dict.fromkeys(
        ("queue_cap_ratio", "queue_cap_seconds", "submitted_workloads"),
        "tests/analytics/test_backpressure.py",
    ),
    **dict.fromkeys(
        ("capacity_held_ratio", "capacity_productive_ratio"), "tests/analytics/capacity/test_ratios.py"
    ),
    "buying_days": "tests/analytics/capacity/test_days.py",
    "lint_findings_workloads": "tests/analytics/lint/test_rules.py",
    **dict.fromkeys(
        ("policy_threshold_days", "policy_threshold_ratio", "policy_threshold_seconds"),
        "tests/analytics/test_thresholds.py",
    ),
}

_OF_WASTAGE = dict.fromkeys(
    (
        "held_gpu_hours",
        "wasted_gpu_hours",
        "wastage_ratio",
        "hell_ratio",
        "goodput_ratio",
        "activity_known_ratio",
        "work_lost_gpu_hours",
        "work_lost_at_most_gpu_hours",
        "at_risk_gpu_hours",
        "checkpoint_age_over_budget_workloads",
        "never_active_gpus",
    ),
    "tests/service/test_wastage.py",
)

_OF_ACTIVITY = {
    **dict.fromkeys(
        ("gpu_activity_ratio", "gpu_sample_coverage_ratio"), "tests/service/test_activity_metrics.py"
    ),
    **dict.fromkeys(
        ("gpu_readings", "gpu_readings_inactive_ratio", "gpu_readings_quantile_ratio"),
        "tests/analytics/test_readings.py",
    ),
}

_OF_QUEUE_STATES = dict.fromkeys(
    (
        "queue_state_depth_gpus",
        "queue_state_depth_workloads",
        "queue_state_gpu_hours",
        "queue_state_held_ratio",
        "queue_state_mean_depth_workloads",
        "queue_state_seconds",
    ),
    "tests/analytics/test_queue_states.py",
)

# Figures in which workloads are coupled, so that one cannot be taken out by its own part: each with
# the tests that hold it against brute force or a law.
ELSEWHERE: Mapping[str, str] = {
    **_OF_CAPACITY,
    **_OF_FAIRNESS,
    **_OF_WASTAGE,
    **_OF_ACTIVITY,
    **_OF_QUEUE_STATES,
    **dict.fromkeys(
        ("gpu_xid_errors_total", "gpu_row_remap_failures_total"), "tests/service/test_gpu_faults.py"
    ),
    "pod_denials_total": "tests/service/test_denials.py",
    "typical_wait_seconds": "tests/analytics/test_typical_wait.py",
    # What is told of one rests on the waits of others.
    "eta_coverage_ratio": "tests/service/test_eta.py",
    # Why one waits depends on all others.
    **dict.fromkeys(
        ("queue_depth_by_reason_gpus", "queue_depth_by_reason_workloads", "wait_reason_hours"),
        "tests/service/test_wait_reasons.py",
    ),
    # Attempts are coupled with the instants of a window, and slowdowns with each other.
    "bounded_slowdown_ratio": "tests/analytics/test_slowdown.py",
    **dict.fromkeys(
        (
            "xdmod_active_users",
            "xdmod_ended_jobs",
            "xdmod_expansion_factor_ratio",
            "xdmod_running_jobs",
            "xdmod_started_jobs",
            "xdmod_submitted_jobs",
            "xdmod_used_hours",
            "xdmod_used_per_job_hours",
            "xdmod_wait_hours",
            "xdmod_wait_per_job_hours",
            "xdmod_weighted_size_cpus",
        ),
        "tests/analytics/xdmod/test_bookings.py",
    ),
    "dominant_entitled_gpus": "tests/analytics/fairness/test_dominant.py",
    "kueue_weighted_share_permille": "tests/analytics/fairness/test_kueue_share.py",
    **dict.fromkeys(
        (
            "queue_wait_component_seconds",
            "queue_flow_per_second",
            "admission_check_seconds",
            "cancelled_while_waiting_ratio",
            "member_wait_gpu_hours",
            "member_wait_seconds",
            "preemptions_per_1000_gpu_hours",
            "preemptions_per_attempt_ratio",
            "restarts_per_1000_gpu_hours",
            "restarts_per_attempt_ratio",
            "protection_broken_preemptions",
            "tier_rule_broken_preemptions",
        ),
        "tests/analytics/test_laws_of_waiting.py",
    ),
    "queue_wait_interval_seconds": "tests/analytics/test_confidence.py",
    "scheduler_stalled_workloads": "tests/analytics/test_stalled.py",
    **dict.fromkeys(
        (
            "budget_gpu_hours",
            "budget_burned_gpu_hours",
            "budget_burned_ratio",
            "budget_forecast_ratio",
            "budget_money",
            "budget_burned_money",
            "budget_money_burned_ratio",
            "budget_money_forecast_ratio",
        ),
        "tests/analytics/test_budgets.py",
    ),
    "right_size_gpus": "tests/analytics/test_right_sizing.py",
    "fgd_paper_ratio": "tests/traces/test_fgd.py",
    **dict.fromkeys(("node_changes_nodes", "node_loss_gpu_hours"), "tests/analytics/test_node_changes.py"),
    # Of nodes, whoever works there.
    **dict.fromkeys(("gpu_node_lag_seconds", "late_gpu_nodes"), "tests/service/test_node_lag.py"),
}
