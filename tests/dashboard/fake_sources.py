"""What is read, per kind, in the shape of `api/openapi.py`."""

from datetime import datetime, timedelta
from typing import Any

from tests.dashboard import fake_positions

Json = Any


def rows(as_of: datetime, *, stale: bool) -> list[Json]:
    """Five kinds of a cluster; of Pods something failed once, of Workloads two were set aside."""
    seen_at = as_of - timedelta(seconds=4000 if stale else 6)
    return [
        {
            "cluster": "north",
            "kind": kind,
            "source": "",
            "state": "stale" if stale else "read",
            "seen_at": seen_at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "lag_seconds": (as_of - seen_at).total_seconds(),
            "stale": stale,
            "epoch": 1,
            "restarts": 3 if kind == "Pod" else 0,
            "last_error": "410 Gone" if kind == "Pod" else "",
            "missing": "what it tells is unknown" if stale else "",
            "remedy": "nothing to do",
            "set_aside": 2 if kind == "Workload" else 0,
            "set_aside_causes": fake_positions.SET_ASIDE if kind == "Workload" else [],
        }
        for kind in ("Pod", "Node", "Workload", "ClusterQueue", "Event")
    ]
