"""How many series a site's `/metrics` has: a formula per metric, from the sizes of its labels."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from alerts.budget import MOST, OWN, Budget
from alerts.declared import declared, limit_gauges
from alerts.exporter import PREFIX
from alerts.whose import added_labels
from analytics.denials import Denier
from analytics.flow import FLOWS
from analytics.lint.rules import Rule
from analytics.metrics import REGISTRY
from analytics.metrics.first_wait_seconds import EDGES_SECONDS
from analytics.node_changes import CAPACITY_TYPES, CHANGES
from analytics.right_sizing import OWN_ANSWERS
from analytics.waits import COMPONENTS, QUANTILES
from analytics.wastage.causes import Cause
from analytics.wastage.lost import LossKind
from analytics.why.reason import Reason
from domain import calendar
from domain.metric import Metric, MetricKind
from domain.workload import Mechanism, ServiceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    How large a site is, for the number of its series: all that the code itself does not limit.

    The number of GPUs is no part of it.

    Args:
        teams_per_queue: teams that have work in the same queue.
        pools_per_queue: flavors in the quota of a queue.
        models_per_team: GPU models on which a team has work.
        sizes: numbers of devices that pods ask.
        evictions: reasons of evictions that are no preemptions.
        xids: kinds of errors that GPUs had.
    """

    clusters: int = 1
    queues: int = 200
    teams: int = 50
    models: int = 4
    pools: int = 8
    teams_per_queue: int = 2
    pools_per_queue: int = 2
    models_per_team: int = 2
    sizes: int = 8
    evictions: int = 12
    xids: int = 20


_CLASSES: Final = len(ServiceClass)
# Labels whose values are a closed set, as the code has them.
_CLOSED: Final[Mapping[str, int]] = {
    "service_class": _CLASSES,
    "victim_class": _CLASSES,
    # It may be unknown.
    "preemptor_class": _CLASSES + 1,
    "mechanism": len(Mechanism),
    "component": len(COMPONENTS),
    "flow": len(FLOWS),
    "change": len(CHANGES),
    "capacity_type": len(CAPACITY_TYPES),
    "period": len(calendar.Unit),
    "quantile": len(QUANTILES),
    "estimator": 2,
    # Beside the edges all, their sum and their count.
    "le": len(EDGES_SECONDS) + 3,
}
# Labels that mean something else in each metric. A reason may not be known yet.
_BY_REASON: Final = {"reason": len(Reason) + 1}
_OF_METRIC: Final[Mapping[str, Mapping[str, int]]] = {
    "held_gpu_hours": {"cause": len(Cause)},
    "work_lost_gpu_hours": {"cause": len(LossKind)},
    "pod_denials_total": {"cause": len(Denier)},
    "lint_findings_workloads": {"rule": len(Rule)},
    "queue_depth_by_reason_gpus": _BY_REASON,
    "queue_depth_by_reason_workloads": _BY_REASON,
    "wait_reason_hours": _BY_REASON,
}
_LIMITS: Final = limit_gauges(declared(REGISTRY))
_SETTING: Final = re.compile(r"\('\w+'\)")


def factors(metric: Metric, site: Site) -> list[tuple[str, int]]:
    """
    The factors whose product is the number of a metric's values, each with what it counts.

    Labels that go together are one factor: a queue has few teams and pools, a team few models.

    Raises:
        KeyError: nobody knows how many values a label has.
    """
    labels = [*metric.labels, *metric.extra_labels]
    with_queue, with_team = "queue" in labels, "team" in labels
    sizes = {
        "cluster": site.clusters,
        "queue": site.queues,
        "team": site.teams_per_queue if with_queue else site.teams,
        "pool": site.pools_per_queue if with_queue else site.pools,
        "gpu_model": site.models_per_team if with_team else site.models,
        "size": site.sizes,
        "reason": site.evictions,
        "xid": site.xids,
        "fits": OWN_ANSWERS + site.models - 1,
        # Of thresholds, those that its query names.
        "rule": len(_SETTING.findall(metric.sql)),
        **_CLOSED,
        **_OF_METRIC.get(metric.name, {}),
        **{name: len(values) for name, values in metric.scraped_where.items()},
    }
    together = {"team": with_queue, "pool": with_queue, "gpu_model": with_team}
    declared_ones = [
        (f"{name} per {'queue' if with_queue else 'team'}" if together.get(name) else name, sizes[name])
        for name in labels
    ]
    return [*declared_ones, *((name, sizes[name]) for name in added_labels(metric, _LIMITS) if name in sizes)]


def most_values(metric: Metric, site: Site) -> int:
    """The number of a metric's values at a site; 0 where it is not scraped."""
    return prod(size for _, size in factors(metric, site)) if metric.exported and metric.scraped else 0


def most_series(metric: Metric, site: Site) -> int:
    """The number of its series where each value that can be a lower bound is one, and has its mark."""
    values = most_values(metric, site)
    return values if metric.kind is MetricKind.HISTOGRAM else 2 * values


def page(registry: Mapping[str, Metric], site: Site) -> str:
    """The page, Markdown: what is never passed, what goes first, and the formula of each metric."""
    values = {name: most_values(metric, site) for name, metric in registry.items()}
    watched = Budget(metrics=registry, alerts=declared(registry)).watched
    read = sum(most_series(registry[name], site) for name in watched)
    limit = (
        f"`/metrics` has at most **{MOST:,}** series, whatever the site: what is more is left out."
        f" Of them {OWN:,} are kept for what the ledger tells of itself. The number of GPUs, nodes, jobs and"
        " users makes no difference: none of them is a label. What is not shown there, the API, the pages and"
        " `gpuledger metrics` tell."
    )
    first = (
        "What alerts or autoscalers read goes first: what breaches, and for five minutes what did, then what"
        " is unknown, then the worst values. All other metrics share the rest, each in the order of its"
        " labels; those with the most series lose first. What is left out is counted in"
        " `gpuledger_undefined`, and the alarm `series_left_out` sounds, which is an alert. Where something"
        " that breaches, or is unknown, is left out of a metric, its alerts are kept as they are"
        " (`gpuledger_incomplete`); what is left out of"
        " others breaches nothing. What is of no cluster has the label `ledger`; a limit is told once for"
        " each cluster. Of the series about the ledger itself `gpuledger_own_series_left_out` counts those"
        " that are not shown."
    )
    large = (
        f"A site of {site.teams} teams and {site.queues} queues can have {sum(values.values()):,} values, if"
        f" each queue has work of all {_CLASSES} service classes and so on: more than are shown. A value that"
        " is only a lower bound has a mark beside it, which is a series too; an undefined one that an alert"
        f" reads has a mark instead. What goes first is {read:,} series at most, marks among them: it is"
        " never left out there."
    )
    counted = (
        f"Counted with {site.clusters} cluster, {site.models} GPU models and {site.pools} pools; a queue has"
        f" quota in {site.pools_per_queue} pools and work of {site.teams_per_queue} teams, a team has work on"
        f" {site.models_per_team} models. Labels whose values the code knows are counted with all of them."
    )
    table = ["| metric | values | formula | goes first |", "|---|---|---|---|"]
    rows = _rows(registry, site, values, watched)
    return (
        "\n".join(["# How many series", "", limit, "", first, "", large, "", counted, "", *table, *rows])
        + "\n"
    )


def _rows(
    registry: Mapping[str, Metric], site: Site, values: Mapping[str, int], watched: frozenset[str]
) -> Iterator[str]:
    for name, number in sorted(values.items(), key=lambda item: (-item[1], item[0])):
        if number:
            metric = registry[name]
            formula = " x ".join(f"{size} {label}" for label, size in factors(metric, site) if size > 1)
            read = "yes" if name in watched else ""
            yield f"| `{PREFIX}{metric.series}` | {number:,} | {formula or '1'} | {read} |"
