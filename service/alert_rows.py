"""Alerts as the store keeps them, and back."""

import json
from collections.abc import Mapping
from typing import Any, Final

from alerts.evaluation import Alert
from alerts.standing import Standing, State
from analytics.metrics import REGISTRY

EXAMPLES: Final = frozenset(
    rule.example for metric in REGISTRY.values() for rule in metric.alerts if rule.example
)


def state_row(alert: Alert) -> dict[str, object]:
    """Columns of `alert_state`."""
    standing = alert.standing
    return {
        "labels": text(alert.labels),
        "annotations": _without_names(alert),
        "state": str(standing.state),
        "active_ms": standing.active_ms,
        "heard_ms": standing.heard_ms,
        "breaches": standing.breaches,
        "fired_ms": standing.fired_ms,
        "fine_ms": standing.fine_ms,
        "resolved_ms": standing.resolved_ms,
        "starts_ms": alert.starts_ms,
        "ends_ms": alert.ends_ms,
        "metric": alert.metric,
        "value": alert.value,
        "worst_value": alert.worst_value,
        "threshold": alert.limit,
        "coverage": alert.coverage,
        "because": alert.because,
    }


def alert_of(row: Mapping[str, Any]) -> Alert:
    """The alert of such a row."""
    times = ("active_ms", "heard_ms", "breaches", "fired_ms", "fine_ms", "resolved_ms")
    return Alert(
        labels=json.loads(row["labels"]),
        annotations=json.loads(row["annotations"]),
        standing=Standing(state=State(row["state"]), **{name: row[name] for name in times}),
        metric=row["metric"],
        value=row["value"],
        worst_value=row["worst_value"],
        limit=row["threshold"],
        coverage=row["coverage"],
        because=row["because"],
        starts_ms=row["starts_ms"],
        ends_ms=row["ends_ms"],
    )


def firing_row(alert: Alert) -> dict[str, object]:
    """Columns of `alert_firing`, of one that fires from now on."""
    return {
        "labels": text(alert.labels),
        "annotations": _without_names(alert),
        "active_ms": alert.standing.active_ms,
        "fired_ms": alert.standing.fired_ms,
        "resolved_ms": None,
        "metric": alert.metric,
        "value": alert.value,
        "worst_value": None,
        "threshold": alert.limit,
        "coverage": alert.coverage,
        "because": alert.because,
    }


def ended_row(alert: Alert) -> dict[str, object]:
    """What the store is told of an alert that fires no more."""
    return {
        "labels": text(alert.labels),
        "fired_ms": alert.standing.fired_ms,
        "resolved_ms": alert.standing.resolved_ms,
        "worst_value": alert.worst_value,
        "because": alert.because,
    }


def _without_names(alert: Alert) -> str:
    """The annotations but for who it is about, whose name may have to be forgotten, and is told anew soon."""
    return text({name: said for name, said in alert.annotations.items() if name not in EXAMPLES})


def text(labels: Mapping[str, str]) -> str:
    """Labels as JSON, names sorted: equal labels are equal texts."""
    return json.dumps(dict(labels), sort_keys=True)
