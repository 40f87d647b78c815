"""Alerts, in the shape of `api/openapi.py`."""

from typing import Any

Json = Any
NEVER = "no alert was evaluated yet: a running `gpuledger serve` does so"


def alert(at: str, **changes: Json) -> Json:
    return {
        "alert": "GpuQueueWaitTooLong", "state": "firing", "severity": "warning", "about": "work",
        "labels": {"cluster": "north", "queue": "nlp-batch", "service_class": "batch"},
        "metric": "starvation_index_seconds", "unit": "seconds", "value": 4200.0, "worst_value": 4300.0,
        "threshold": 3600.0, "coverage": 0.97, "active_at": at, "fired_at": at, "resolved_at": None,
        "value_at": at, "fine_since": None, "because": "", "inhibited_by": "",
        "summary": "batch in queue nlp-batch of north: somebody waits for 1h 10m 0s",
        "description": "The longest wait at this moment is 1h 10m 0s, the target of batch is 1h 0m 0s.",
        "dashboard_url": "https://gpu.example/tools/fair/queues?cluster=north&queue=nlp-batch",
        "runbook_url": "https://book.example/GpuQueueWaitTooLong.md",
    } | changes  # fmt: skip


def alerts(at: str) -> list[Json]:
    stale: Json = {
        "alert": "GpuledgerSourceStale", "severity": "critical", "about": "ledger", "metric": "",
        "labels": {"cluster": "north"}, "coverage": None,
        "summary": "cluster north has not been read for 5m 0s",
        "dashboard_url": "https://gpu.example/tools/fair/sources?cluster=north",
        "runbook_url": "docs/runbooks/GpuledgerSourceStale.md",
    }  # fmt: skip
    silent: Json = {"because": "cluster south is not read in time", "summary": "nobody knows of south"}
    pending: Json = {"state": "pending", "fired_at": None, "summary": "interactive waits for 6m 0s"}
    past: Json = {"state": "resolved", "resolved_at": at, "fired_at": "2026-03-02T09:00:00.000Z"}
    calm: Json = {"fine_since": at, "summary": "sweeps waited for 2d 0h 0m 0s"}
    return [
        alert(at, **stale),
        alert(at, inhibited_by="GpuledgerSourceStale"),
        alert(at, **silent),
        alert(at, **calm),
        alert(at, **pending),
        alert(at, **past, summary="batch in queue sweeps waited"),
    ]
