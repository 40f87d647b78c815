"""What the GPU-time of single workloads was for, over their lives until an instant."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from analytics.wastage.asked import HELD_HOURS, WASTED_HOURS
from analytics.wastage.of_workloads import WORKLOAD_TIME
from api.answers import Record
from domain.metric import Ask, Row, Sample
from domain.window import Window
from store.embedded import Store

_KEY: Final = ("cluster", "workload_uid")


def wasted(store: Store, uids: Collection[str], as_of_ms: int) -> Mapping[tuple[str, str], Record]:
    """By cluster and uid the columns of waste, as the metric `wasted_gpu_hours` counts it."""
    told = WASTED_HOURS(_rows(store, uids, as_of_ms), _ask(as_of_ms, *_KEY))
    return {(one.labels["cluster"], one.labels["workload_uid"]): columns(one) for one in told if one.labels}


def columns(told: Sample | None) -> Record:
    """The columns of waste; without a GPU held there is none, which is not 0."""
    return {
        "wasted_gpu_hours": None if told is None else told.value,
        "wasted_lower_bound": told is not None and told.lower_bound,
    }


def by_cause(store: Store, workload: Mapping[str, Any], as_of_ms: int) -> list[Record]:
    """GPU-hours of one workload by cause, most first, and what of them is charged to its holder."""
    rows = [row for row in _rows(store, [workload["uid"]], as_of_ms) if row["cluster"] == workload["cluster"]]
    ask = _ask(as_of_ms, "cause")
    charged = {one.labels["cause"]: one.value for one in WASTED_HOURS(rows, ask) if one.labels}
    held = [one for one in HELD_HOURS(rows, ask) if one.labels]
    return [
        {
            "cause": one.labels["cause"],
            "gpu_hours": one.value,
            "charged_gpu_hours": charged[one.labels["cause"]],
            "lower_bound": one.lower_bound,
        }
        for one in sorted(held, key=lambda one: (-(one.value or 0), one.labels["cause"]))
    ]


def _rows(store: Store, uids: Collection[str], as_of_ms: int) -> list[Row]:
    asked = {"as_of_ms": as_of_ms, "window_start_ms": 0, "uids": list(uids)}
    return [*store.rows(WORKLOAD_TIME, asked)]


def _ask(as_of_ms: int, *by: str) -> Ask:
    return Ask(window=Window(start_ms=0, end_ms=as_of_ms), by=by)
