"""Workloads as they stood at an instant: rows of the list, and the whole life of one."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from api.answers import Listing, ListQuestion, Record
from api.parameters import nearest
from domain.errors import UsageError
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_SECOND, format_instant
from domain.workload import Outcome
from service import fault_rows, listed_sql, positions, workload_sql, workload_waste
from service.denials import denials_of
from store.embedded import Store

SKEWED_SOURCE: Final = "skewed stamps"

# Columns that a list may be ordered by, as the API spells them -> as the query does.
_SORTS: Final = {
    **{
        name: name
        for name in ("name", "namespace", "team", "user", "queue", "cluster", "state", "reason", "outcome")
    },
    **{name: name for name in ("priority_class", "service_class", "gpu_model", "preemptions", "evictions")},
    "uid": "uid",
    "kind": "kind",
    "gpu_seconds": "gpu_seconds",
    "wasted_gpu_hours": "wasted_amount",
    "requested_gpus": "requested_micro_gpus",
    "submitted_at": "submitted_ms",
    "first_placed_at": "first_placed_ms",
    "first_running_at": "first_running_ms",
    "ended_at": "ended_ms",
    "queue_wait_seconds": "queue_wait_ms",
    "time_to_running_seconds": "time_to_running_ms",
    "requeue_wait_seconds": "requeue_wait_ms",
    "waiting_seconds": "waiting_ms",
}
_BY_HOW_MUCH: Final = re.compile(r" [0-9.e+]+ s(?= before )")


def listing(store: Store, question: ListQuestion, as_of_ms: int) -> Listing:
    """
    A page of the workloads that ask GPUs; records set aside for skewed stamps are not among them.

    Raises:
        UsageError: the column to sort by does not exist.
    """
    column = question.sort.removeprefix("-")
    if column not in _SORTS:
        message = f"sort {question.sort!r}: {nearest(column, list(_SORTS))}"
        raise UsageError(message)
    descending = question.sort.startswith("-")
    shown = {"states": list(question.states)} if question.states else {}
    given: dict[str, object] = {name: list(values) for name, values in question.filters.items()}
    given |= {"as_of_ms": as_of_ms, "window_start_ms": 0, **shown}
    counted = listed_sql.count(question.filters, by_state=bool(shown))
    asked = listed_sql.page(
        question.filters, by_state=bool(shown), sort=_SORTS[column], descending=descending
    )
    skipped = (question.page - 1) * question.page_size
    ((total),) = [row["total"] for row in store.rows(counted, given)]
    keys = store.frame(asked, given | {"page_size": question.page_size, "skipped": skipped})
    page = keys.join(
        as_they_stood(store, keys["uid"].to_list(), as_of_ms),
        on=["cluster", "uid"],
        how="left",
        maintain_order="left",
    )
    return Listing(
        as_of_ms=as_of_ms,
        rows=_records(store, page, as_of_ms),
        total=int(str(total)),
        page=question.page,
        page_size=question.page_size,
    )


def detail(store: Store, uid: str, as_of_ms: int) -> Record | None:
    """One workload with its spans, attempts and pods; None if it was not submitted by then."""
    frame = as_they_stood(store, [uid], as_of_ms)
    if frame.is_empty():
        return None
    row = frame.row(0, named=True)
    place = {"cluster": row["cluster"], "uid": uid, "as_of_ms": as_of_ms}
    pods = store.rows(workload_sql.PODS, place)
    return {
        "as_of": format_instant(as_of_ms),
        **_records(store, frame, as_of_ms)[0],
        "gpu_time_by_cause": workload_waste.by_cause(store, row, as_of_ms),
        "skewed": row["skewed"],
        "spans": [_span(span, as_of_ms) for span in store.rows(workload_sql.SPANS, place)],
        "attempts": [
            _attempt(attempt, pods, as_of_ms) for attempt in store.rows(workload_sql.ATTEMPTS, place)
        ],
        "member_waits": [
            _member_wait(wait, as_of_ms) for wait in store.rows(workload_sql.MEMBER_WAITS, place)
        ],
        "denials": denials_of(store, row["cluster"], uid, as_of_ms),
        "queue_position": positions.of_workload(store, row, as_of_ms),
        "gpu_faults": fault_rows.rows_of(store, as_of_ms, uid=uid),
        "checkpoints": [_checkpoint(row) for row in store.rows(workload_sql.CHECKPOINTS, place)],
    }


def skewed(store: Store, as_of_ms: int) -> list[dict[str, Any]]:
    """How many workloads contradicting stamps keep out of lists and figures, as `Store.set_aside_counts`."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in store.rows(workload_sql.SKEWED, {"as_of_ms": as_of_ms}):
        counts[str(row["cluster"]), _kind_of_skew(str(row["skewed"]))] += int(str(row["count"]))
    return [
        {"cluster": cluster, "source": SKEWED_SOURCE, "because": because, "count": count}
        for (cluster, because), count in counts.items()
    ]


def _kind_of_skew(told: str) -> str:
    """
    Which stamps, without by how much each.

    >>> _kind_of_skew("bound 61.5 s before the submission; bound 70 s before the submission")
    'bound before the submission'
    """
    kinds = (_BY_HOW_MUCH.sub("", part) for part in told.split("; "))
    return "; ".join(dict.fromkeys(kinds))


def as_they_stood(store: Store, uids: Sequence[str], as_of_ms: int, *, listed: bool = False) -> pl.DataFrame:
    """
    Workloads of these uids that were submitted by then, as they stood, in the order of their submission.

    Where they are to be `listed`, only those that the list has too.
    """
    return store.frame(listed_sql.ROWS, {"as_of_ms": as_of_ms, "uids": list(uids), "listed": listed})


def _records(store: Store, page: pl.DataFrame, as_of_ms: int) -> list[Record]:
    """The rows of a page; only for them it is summed what they wasted."""
    wasted = workload_waste.wasted(store, page["uid"].to_list(), as_of_ms)
    nothing = workload_waste.columns(None)
    return [
        _record(row) | wasted.get((row["cluster"], row["uid"]), nothing) for row in page.iter_rows(named=True)
    ]


def _record(row: Mapping[str, Any]) -> Record:
    texts = ("uid", "cluster", "kind", "namespace", "name", "team", "user", "queue", "priority_class")
    return {
        **{name: row[name] for name in (*texts, "service_class", "gpu_model", "state", "reason")},
        "requested_gpus": _gpus(row["requested_micro_gpus"]),
        "submitted_at": format_instant(row["submitted_ms"]),
        "first_placed_at": _instant(row["first_placed_ms"]),
        "first_running_at": _instant(row["first_running_ms"]),
        **_bounded("ended_at", row["ended_ms"], row["ended_earliest_ms"]),
        "outcome": row["outcome"],
        **{
            # Stamps that contradict each other tell no wait.
            f"{name}_seconds": None if row["skewed"] else _seconds(row[f"{name}_ms"])
            for name in ("queue_wait", "time_to_running", "requeue_wait", "waiting")
        },
        **{name: row[name] for name in ("preemptions", "evictions", "missed_evictions", "gpu_seconds")},
    }


def _member_wait(row: Mapping[str, Any], as_of_ms: int) -> Record:
    return {
        "pod_uid": row["pod_uid"],
        "start_at": format_instant(row["start_ms"]),
        "end_at": _instant(_before(row["end_ms"], as_of_ms)),
        "gpus": _gpus(row["micro_gpus"]),
    }


def _checkpoint(row: Mapping[str, Any]) -> Record:
    return {
        "at": format_instant(row["at_ms"]),
        "step": row["step"],
        "detail": row["detail"],
        "told_by": row["by"] or "annotation",
    }


def _span(row: Mapping[str, Any], as_of_ms: int) -> Record:
    return {
        "state": row["state"],
        **_bounded("start_at", row["start_ms"], row["start_earliest_ms"]),
        "end_at": _instant(_before(row["end_ms"], as_of_ms)),
        "reason": row["reason"],
    }


def _attempt(row: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], as_of_ms: int) -> Record:
    end_ms = _before(row["end_ms"], as_of_ms)
    over = end_ms is not None
    return {
        "number": row["number"],
        "start_at": format_instant(row["start_ms"]),
        "end_at": _instant(end_ms),
        "outcome": row["outcome"] if over else str(Outcome.OPEN),
        "reason": row["reason"] if over else "",
        **{
            name: row[name] if over else ""
            for name in ("preempted_by", "preempted_by_name", "preempted_by_workload")
        },
        "source": row["source"],
        "pods": [_pod(pod, as_of_ms) for pod in pods if pod["attempt"] == row["number"]],
    }


def _pod(row: Mapping[str, Any], as_of_ms: int) -> Record:
    released_ms = _before(row["released_ms"], as_of_ms)
    held_ms = (as_of_ms if released_ms is None else released_ms) - row["bound_ms"]
    micro_gpus = row["micro_gpus"]
    return {
        "uid": row["pod_uid"],
        "name": row["pod_name"],
        "node": row["node"],
        "gpu_model": row["gpu_model"],
        "gpus": _gpus(micro_gpus),
        **_bounded("bound_at", row["bound_ms"], row["bound_earliest_ms"]),
        "started_at": _instant(_before(row["started_ms"], as_of_ms)),
        **_bounded("released_at", released_ms, row["released_earliest_ms"]),
        "restarts": row["restarts"],
        "gpu_seconds": None if micro_gpus is None else micro_gpus * held_ms / (MICRO_PER_GPU * MS_PER_SECOND),
    }


def _bounded(name: str, at_ms: int | None, earliest_ms: int | None) -> Record:
    """An instant; one that is only known within limits has both beside it."""
    if at_ms is None or earliest_ms is None:
        return {name: _instant(at_ms)}
    latest = format_instant(at_ms)
    return {name: latest, f"{name}_earliest": format_instant(earliest_ms), f"{name}_latest": latest}


def _before(at_ms: int | None, as_of_ms: int) -> int | None:
    return at_ms if at_ms is not None and at_ms < as_of_ms else None


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)


def _seconds(length_ms: int | None) -> float | None:
    return None if length_ms is None else length_ms / MS_PER_SECOND


def _gpus(micro_gpus: int | None) -> float | None:
    return None if micro_gpus is None else micro_gpus / MICRO_PER_GPU
