"""How many series a site's `/metrics` has: a formula per metric, from the sizes of its labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from alerts.exporter import PREFIX, SERIES_BUDGET
from analytics.why.reason import Reason
from domain.metric import Metric

# What Prometheus should bear of one exporter; the acceptance of the site below.
MOST: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    How large a site is, for the number of its series. The number of GPUs is no part of it.

    Args:
        teams_per_queue: teams that have work in the same queue.
        pools_per_queue: flavors in the quota of a queue.
        models_per_team: GPU models on which a team has work.
        classes_per_team: service classes in which a team has work at the same time.
    """

    clusters: int = 1
    queues: int = 200
    teams: int = 50
    service_classes: int = 3
    models: int = 4
    pools: int = 8
    teams_per_queue: int = 2
    pools_per_queue: int = 2
    models_per_team: int = 2
    classes_per_team: int = 2


# How many values the other labels have: those of enumerations, or of what a site sets.
_OTHERS: Final[Mapping[str, int]] = {
    "cause": 12, "reason": 8, "mechanism": 6, "victim_class": 3, "preemptor_class": 4, "quantile": 3,
    "estimator": 2, "rule": 8, "size": 8, "xid": 20, "component": 3, "flow": 3, "change": 3,
    "capacity_type": 2, "period": 3, "fits": 4, "le": 15,
}  # fmt: skip
# Those of one metric only.
_BY_REASON: Final = ("queue_depth_by_reason_gpus", "queue_depth_by_reason_workloads", "wait_reason_hours")
_OF_METRIC: Final[Mapping[str, Mapping[str, int]]] = {
    "work_lost_gpu_hours": {"cause": 3},
    **{name: {"reason": len(Reason) + 1} for name in _BY_REASON},
}


def factors(metric: Metric, site: Site) -> list[tuple[str, int]]:
    """
    The factors whose product is the number of a metric's series, each with what it counts.

    Labels that go together are one factor: a queue has few teams and pools, a team few models.
    """
    labels = [*metric.labels, *metric.extra_labels]
    with_queue, with_team = "queue" in labels, "team" in labels
    sizes = {
        "cluster": site.clusters,
        "queue": site.queues,
        "team": site.teams_per_queue if with_queue else site.teams,
        "pool": site.pools_per_queue if with_queue else site.pools,
        "gpu_model": site.models_per_team if with_team else site.models,
        "service_class": site.classes_per_team if with_team and not with_queue else site.service_classes,
        **_OTHERS,
        **_OF_METRIC.get(metric.name, {}),
        **{name: len(values) for name, values in metric.scraped_where.items()},
    }
    together = {"team": with_queue, "pool": with_queue, "gpu_model": with_team,
                "service_class": with_team and not with_queue}  # fmt: skip
    return [
        (f"{name} per {'queue' if with_queue else 'team'}" if together.get(name) else name, sizes[name])
        for name in labels
    ]


def most_series(metric: Metric, site: Site) -> int:
    """The number of a metric's series at a site, lower bounds left out; 0 where it is not scraped."""
    return prod(size for _, size in factors(metric, site)) if metric.exported and metric.scraped else 0


def page(registry: Mapping[str, Metric], site: Site) -> str:
    """The page, Markdown: the formula of each metric, and the sum."""
    numbers = {name: most_series(metric, site) for name, metric in registry.items()}
    size = (
        f"A site of {site.teams} teams, {site.queues} queues and {site.service_classes} service classes has"
        f" at most **{sum(numbers.values()):,}** series on `/metrics`, and one more for each value that is"
        f" only a lower bound. Prometheus should not get more than {MOST:,} of one exporter. The number of"
        " GPUs, nodes, jobs and users makes no difference: none of them is a label. What is not shown there,"
        " the API, the pages and `gpuledger metrics` tell."
    )
    counted = (
        f"Counted with {site.clusters} cluster, {site.models} GPU models and {site.pools} pools; a queue has"
        f" quota in {site.pools_per_queue} pools and work of {site.teams_per_queue} teams, a team has work in"
        f" {site.classes_per_team} classes on {site.models_per_team} models. Of a metric with more than"
        f" {SERIES_BUDGET:,} the rest is left out and counted in `gpuledger_undefined`."
    )
    table = ["| metric | series | formula |", "|---|---|---|", *_rows(registry, site, numbers)]
    lines = ["# How many series", "", size, "", counted, "", *table]
    return "\n".join(lines) + "\n"


def _rows(registry: Mapping[str, Metric], site: Site, numbers: Mapping[str, int]) -> Iterator[str]:
    for name, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0])):
        if number:
            metric = registry[name]
            formula = " x ".join(f"{size} {label}" for label, size in factors(metric, site) if size > 1)
            yield f"| `{PREFIX}{metric.series}` | {number:,} | {formula or '1'} |"
