"""The rules, and the scrape, as objects for clusters with the Prometheus operator."""

from typing import Any, Final

import yaml

_LABELS: Final = {"app.kubernetes.io/name": "gpuledger"}


def prometheus_rule(rules: str) -> str:
    """
    A PrometheusRule with the groups of a rule file.

    Args:
        rules: the file, YAML, as `rules_file` writes it.
    """
    return _head(rules) + _written("PrometheusRule", yaml.safe_load(rules))


def service_monitor() -> str:
    """A ServiceMonitor for the Service of `serve`, which answers `/metrics` on its port `api`."""
    endpoint = {
        "port": "api",
        "path": "/metrics",
        "interval": "15s",
        "scrapeTimeout": "10s",
        # Labels of the series are the workload's own, not those of the pod that tells of it.
        "honorLabels": True,
        # The service token of `auth.token_file`; leave it out where there is none.
        "authorization": {"credentials": {"name": "gpuledger-scrape", "key": "token"}},
    }
    return _written("ServiceMonitor", {"selector": {"matchLabels": _LABELS}, "endpoints": [endpoint]})


def _head(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))


def _written(kind: str, spec: dict[str, Any]) -> str:
    content = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": kind,
        # A copy: one object in two places would be written as an anchor and an alias.
        "metadata": {"name": "gpuledger", "labels": dict(_LABELS)},
        "spec": spec,
    }
    return yaml.safe_dump(content, sort_keys=False, width=110)
