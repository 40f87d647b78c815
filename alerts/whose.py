"""
Whose a series is: each says its cluster, and what is of no cluster its ledger.

Without it two ledgers below one Prometheus could not be told apart. See docs/adr/0062.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from domain.metric import Metric, Sample

CLUSTER: Final = "cluster"
# By which one ledger is told from another; what is of a cluster does not have it.
LEDGER_LABEL: Final = "ledger"


def added_labels(metric: Metric, limits: Collection[str]) -> tuple[str, ...]:
    """
    The labels of a metric's series beyond those that it declares.

    A limit is repeated for each cluster, so that it is held against values of its own ledger only.

    Args:
        limits: the metrics that are limits of values of a cluster.
    """
    if CLUSTER in metric.labels:
        return ()
    return (CLUSTER,) if metric.name in limits else (LEDGER_LABEL,)


def of_ledger(samples: Iterable[Sample], ledger: str) -> list[Sample]:
    """The same values; those of no cluster with the ledger's name."""
    return [
        one if CLUSTER in one.labels else replace(one, labels={**one.labels, LEDGER_LABEL: ledger})
        for one in samples
    ]


def of_clusters(samples: Sequence[Sample], clusters: Iterable[str]) -> list[Sample]:
    """The same values once for each cluster."""
    return [
        replace(one, labels={**one.labels, CLUSTER: name}) for name in sorted(clusters) for one in samples
    ]
