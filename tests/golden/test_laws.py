"""
Laws that every metric keeps, on its own golden cases: of each law the metrics that it does not bind, and why.

The laws of what comes later and of random lives are in tests/analytics/test_metric_laws.py.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from analytics.metrics import REGISTRY
from domain.metric import Unit
from tests.golden.laws import (
    DAY_MS,
    Case,
    cases_of,
    factor_of,
    halves,
    renamed,
    said,
    scaled,
    shifted,
    teams_of,
    values,
    without_quantities,
    without_waiting,
)

NAMES = sorted(REGISTRY)
FACTOR, LATER_MS = 2, 28 * DAY_MS
# A sum of parts, and of the halves of a window; what people see of the rest lies between those of its parts.
SUMMED = frozenset({
    Unit.GPUS, Unit.GPU_HOURS, Unit.WORKLOADS, Unit.TOTAL, Unit.PREEMPTIONS, Unit.NODES, Unit.PER_SECOND,
    Unit.JOBS, Unit.HOURS, Unit.READINGS, Unit.MONEY,
})  # fmt: skip
NOT_SCALED = {
    "dominant_entitled_gpus": "quotas and asks are texts with other resources, of which there are not more",
    "fragmented_gpus": "pods of twice the size fit otherwise",
    "reclaimable_gpus": "pods of twice the size fit otherwise",
    "right_size_gpus": "what fits is told by memory",
}
NOT_SHIFTED = dict.fromkeys(
    (
        "budget_burned_gpu_hours",
        "budget_burned_ratio",
        "budget_forecast_ratio",
        "budget_burned_money",
        "budget_money_burned_ratio",
        "budget_money_forecast_ratio",
    ),
    "the month, and with it what is burned, began elsewhere",
)
_MEAN = "a mean, which lies between its parts"
NOT_SUMMED = {
    "xdmod_used_per_job_hours": _MEAN,
    "xdmod_wait_per_job_hours": _MEAN,
}
# Sums though their unit is not one of amounts.
SUMMED_TOO = frozenset({
    "queue_wait_component_seconds", "phantom_reservation_gpu_seconds", "first_wait_seconds",
})  # fmt: skip
_OTHER_KIND = "hours of different resources are not added"
NOT_APART = {
    ("xdmod_used_hours", "resource"): _OTHER_KIND,
    ("xdmod_used_per_job_hours", "resource"): _OTHER_KIND,
    ("xdmod_used_per_job_hours", "gpu_count"): "a standard error is of the spread between parts too",
    ("xdmod_used_per_job_hours", "team"): "a standard error is of the spread between parts too",
    ("xdmod_weighted_size_cpus", "resource"): _OTHER_KIND,
}
NOT_BETWEEN = {
    "xdmod_active_users": "each user counts once: more than in any part, and less than in all of them",
    "gpu_activity_ratio": "by labels of pods it is of what pods held, else of all GPUs",
    **dict.fromkeys(
        ("admission_check_seconds", "queue_wait_seconds", "queue_wait_interval_seconds"),
        "the estimate for all goes on beyond where that of a part ends as a lower bound",
    ),
}
# Over two halves: their mean; between them; no less than one and no more than both; or none of these.
MEANS = frozenset({"node_changes_nodes", "queue_flow_per_second", "queue_state_mean_depth_workloads"})
BETWEEN_HALVES = frozenset({
    "queue_state_depth_gpus", "queue_state_depth_workloads", "xdmod_wait_per_job_hours",
})  # fmt: skip
# What reaches over the middle is seen in both halves; a mean of such is no less than the lesser of them.
SEEN_TWICE = {"queue_state_seconds": max, "xdmod_running_jobs": max, "xdmod_used_per_job_hours": min}
NOT_SPLIT = {
    "right_size_gpus": "by the most memory of the window",
    "lint_findings_workloads": "what is submitted in one half is judged by both",
}
# Where nobody waits these are 0, or there is nothing to tell; the two ratios are 1.
OF_WAITING = {
    **dict.fromkeys(
        (
            "admission_check_seconds", "cancelled_while_waiting_workloads", "first_wait_seconds",
            "fragmented_gpus", "longest_queue_wait_seconds", "member_wait_gpu_hours", "member_wait_seconds",
            "past_target_workloads", "queue_cap_ratio", "queue_depth_by_reason_gpus",
            "queue_depth_by_reason_workloads", "queue_depth_gpus", "queue_depth_workloads",
            "queue_state_depth_gpus", "queue_state_depth_workloads", "queue_state_mean_depth_workloads",
            "queue_wait_component_seconds", "queue_wait_seconds", "requeue_wait_seconds",
            "scheduler_stalled_workloads", "starvation_cumulative_seconds", "starvation_index_ratio",
            "starvation_index_seconds", "wait_reason_hours", "xdmod_wait_hours",
            "xdmod_wait_per_job_hours",
        ),
        0,
    ),
    "bounded_slowdown_ratio": 1,
    "xdmod_expansion_factor_ratio": 1,
}  # fmt: skip
OF_SETTINGS = {
    "policy_threshold_days",
    "policy_threshold_ratio",
    "policy_threshold_seconds",
    "wait_target_seconds",
}


def some(names: Iterable[str]) -> list[Any]:
    """Every tenth of these metrics in each run of the tests, the others in the long one."""
    return [
        pytest.param(name, marks=[pytest.mark.long] if place % 10 else [])
        for place, name in enumerate(sorted(names))
    ]


def swapped(case: Case) -> tuple[Case, dict[str, str]]:
    """The case with every team under the next one's name, and the names."""
    teams = teams_of(case["given"])
    others = [*teams[1:], teams[0]] if len(teams) > 1 else ["elsewhere"]
    names = dict(zip(teams, others, strict=False))
    filters = {
        label: [names.get(value, value) for value in wanted] if label == "team" else wanted
        for label, wanted in case.get("filters", {}).items()
    }
    policy = _with_budgets(case, lambda team, hours: (names.get(team, team), hours))
    return {**case, "given": renamed(case["given"], names), "filters": filters, "policy": policy}, names


def larger(case: Case) -> Case:
    """The case with twice the GPUs, and twice the budgets."""
    policy = _with_budgets(case, lambda team, hours: (team, {span: FACTOR * n for span, n in hours.items()}))
    return {**case, "given": scaled(case["given"], FACTOR), "policy": policy}


def _with_budgets(case: Case, change: Any) -> dict[str, Any]:
    policy = dict(case.get("policy", {}))
    for kind in {"gpu_hour_budgets", "money_budgets"} & policy.keys():
        policy[kind] = dict(change(*item) for item in policy[kind].items())
    return policy


def by_others(labels: Iterable[tuple[str, str]], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Labels with the teams' new names, also of several that share something."""

    def called(team: str) -> str:
        start, several, teams = team.partition("shared by ")
        return (
            start + several + ", ".join(sorted(names.get(one, one) for one in teams.split(", ")))
            if several
            else names.get(team, team)
        )

    return tuple(sorted((label, called(value) if label == "team" else value) for label, value in labels))


def figures(rows: Mapping[Any, Mapping[str, Any]]) -> dict[Any, Any]:
    """Figures with their flags, to be compared: rounding in the last place does not count."""
    return {
        labels: {**row, "value": pytest.approx(row["value"], rel=1e-9, abs=1e-12)} if "value" in row else row
        for labels, row in rows.items()
    }


@pytest.mark.parametrize("name", some(NAMES))
def test_a_case_told_of_other_teams_with_twice_the_gpus_four_weeks_later_is_the_same(name: str) -> None:
    # All at once, so that it costs little; each by itself, on every case, below.
    case, *_ = cases_of(name)
    told, changed = said(case, name), case
    changed, names = swapped(changed)
    changed = changed if name in NOT_SCALED else larger(changed)
    changed = changed if name in NOT_SHIFTED else shifted(changed, LATER_MS)
    expected = {
        by_others(labels, names): row
        | (
            {"value": row["value"] * _factor(name, labels)}
            if "value" in row and name not in NOT_SCALED
            else {}
        )
        for labels, row in told.items()
    }
    assert said(changed, name) == figures(expected)


def _factor(name: str, labels: Iterable[tuple[str, str]]) -> float:
    return factor_of(name, dict(labels), FACTOR)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_teams_that_swap_names_swap_figures_in_every_case(name: str) -> None:
    for case in cases_of(name):
        changed, names = swapped(case)
        expected = {by_others(labels, names): row for labels, row in said(case, name).items()}
        assert said(changed, name) == figures(expected), case["shows"]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*NAMES} - NOT_SCALED.keys()))
def test_twice_the_gpus_are_twice_the_amounts_and_the_same_ratios_and_waits(name: str) -> None:
    for case in cases_of(name):
        expected = {
            labels: row | ({"value": row["value"] * _factor(name, labels)} if "value" in row else {})
            for labels, row in said(case, name).items()
        }
        assert said(larger(case), name) == figures(expected), case["shows"]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*NAMES} - NOT_SHIFTED.keys()))
def test_four_weeks_later_everything_is_the_same(name: str) -> None:
    for case in cases_of(name):
        assert said(shifted(case, LATER_MS), name) == figures(said(case, name)), case["shows"]


def check_parts(name: str, labels: Iterable[str], case: Case) -> None:
    """What a metric says of all against what it says of its parts, by each of these labels."""
    summed = name in SUMMED_TOO or (REGISTRY[name].unit in SUMMED and name not in NOT_SUMMED)
    whole = values(said(case, name, by=()))
    for label in labels:
        parts: dict[Any, list[float | None]] = defaultdict(list)
        for own, row in said(case, name, by=(label,)).items():
            parts[tuple(pair for pair in own if pair[0] != label)].append(row.get("value"))
        for own, value in whole.items():
            known = [part for part in parts[own] if part is not None]
            if summed:
                assert sum(known) == pytest.approx(value), (label, own)
            elif known and name not in NOT_BETWEEN and len(known) == len(parts[own]):
                assert min(known) - 1e-9 <= value <= max(known) + 1e-9, (label, own)


def apart(name: str) -> list[str]:
    """Labels by which a metric's figures are parts."""
    metric = REGISTRY[name]
    return [
        one for one in metric.dimensions if one not in metric.unless_asked and (name, one) not in NOT_APART
    ]


@pytest.mark.parametrize("name", some(name for name in NAMES if apart(name)))
def test_parts_sum_to_the_whole_or_lie_around_it(name: str) -> None:
    case, *_ = cases_of(name)
    labels = apart(name)
    check_parts(name, ["team" if "team" in labels else labels[0]], case)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if apart(name)])
def test_parts_by_every_label_sum_to_the_whole_or_lie_around_it(name: str) -> None:
    for case in cases_of(name)[:3]:
        check_parts(name, apart(name), case)


@pytest.mark.parametrize(
    "name", some(name for name in NAMES if REGISTRY[name].windowed and REGISTRY[name].unit in SUMMED)
)
def test_a_window_has_what_its_halves_have(name: str) -> None:
    if name in NOT_SPLIT:
        pytest.skip(NOT_SPLIT[name])
    case, *_ = cases_of(name)
    halved: defaultdict[Any, list[float]] = defaultdict(list)
    for half in halves(case):
        for labels, value in values(said(case, name, by=(), **half)).items():
            halved[labels].append(value)
    for labels, whole in values(said(case, name, by=())).items():
        parts = halved[labels]
        # A standard error is of the spread between halves too.
        if ("statistic", "standard_error") in labels:
            continue
        if name in SEEN_TWICE:
            assert SEEN_TWICE[name](parts) - 1e-9 <= whole <= sum(parts) + 1e-9, labels
        elif name in BETWEEN_HALVES:
            assert min(parts) <= whole <= max(parts), labels
        else:
            assert sum(parts) / (2 if name in MEANS else 1) == pytest.approx(whole), labels


@pytest.mark.parametrize("name", some(OF_WAITING))
def test_where_nobody_waits_no_figure_says_that_somebody_did(name: str) -> None:
    waited = 0
    for case in cases_of(name)[:2]:
        before = values(said(case, name))
        waited += any(value != OF_WAITING[name] for value in before.values())
        found = values(said(case, name, given=without_waiting(case["given"])))
        assert {
            labels: value
            for labels, value in found.items()
            if value != OF_WAITING[name] and dict(labels).get("le", "sum") == "sum"
        } == {}, case["shows"]
    assert waited


@pytest.mark.parametrize("name", some(NAMES))
def test_where_nothing_is_known_nothing_is_said(name: str) -> None:
    found = said({**cases_of(name)[0], "given": {}}, name)
    assert bool(values(found)) == (name in OF_SETTINGS)
    assert all(row.get("undefined_because") or "value" in row for row in found.values())


@pytest.mark.parametrize("name", some(NAMES))
def test_an_amount_that_nobody_knows_is_not_0(name: str) -> None:
    case, *_ = cases_of(name)
    before = said(case, name)
    for labels, row in said(case, name, given=without_quantities(case["given"])).items():
        was = before.get(labels, {})
        if row.get("value") == 0 and was.get("value"):
            assert row.get("lower_bound"), labels


def test_what_a_law_does_not_bind_is_there() -> None:
    for names in (
        NOT_SCALED,
        NOT_SHIFTED,
        NOT_SUMMED,
        NOT_BETWEEN,
        NOT_SPLIT,
        OF_WAITING,
        OF_SETTINGS,
        MEANS,
    ):
        assert {*names} <= REGISTRY.keys()
