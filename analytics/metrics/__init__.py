"""
The metrics: one file each, with one declaration `METRIC`. A new file here is a new metric.

The API, the exporter, the alert rules, the pages and `docs/metrics.md` are made from `REGISTRY`.
"""

import importlib
import pkgutil
from collections.abc import Iterable

from domain.errors import PolicyError
from domain.metric import Metric


def registry_of(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """
    Metrics by name, in order of name.

    Raises:
        PolicyError: two have the same name, or say the same of what they mean.
    """
    registry: dict[str, Metric] = {}
    by_definition: dict[str, str] = {}
    for metric in sorted(metrics, key=lambda each: each.name):
        if metric.name in registry:
            message = f"metric {metric.name} is declared twice: rename one, or drop it"
            raise PolicyError(message)
        twin = by_definition.setdefault(metric.definition, metric.name)
        if twin != metric.name:
            message = (
                f"metrics {twin} and {metric.name} have the same definition: drop one, or say how they differ"
            )
            raise PolicyError(message)
        registry[metric.name] = metric
    return registry


def _declared() -> Iterable[Metric]:
    for module in pkgutil.iter_modules(__path__):
        metric = importlib.import_module(f"{__name__}.{module.name}").METRIC
        if metric.name != module.name:
            message = f"metric {metric.name} in {module.name}.py: expected the file to have the metric's name"
            raise PolicyError(message)
        yield metric


REGISTRY = registry_of(_declared())
