"""Where a workload that waits stands in its queue, and which Workloads were set aside."""

from typing import Any

SET_ASIDE = [{"because": "quantity '8x': expected a number", "count": 2}]


def place(age_seconds: float | None, because: str = "") -> dict[str, Any]:
    """Three wait before it in Kueue's order, if Kueue was asked; and four in ours."""
    told = age_seconds is not None
    return {
        "ahead": 3 if told else None,
        "ahead_in_local_queue": 1 if told else None,
        "told_at": "2026-03-02T09:00:00.000Z" if told else None,
        "age_seconds": age_seconds,
        "because": because,
        "ahead_by_our_order": 4,
    }
