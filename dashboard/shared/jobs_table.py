"""Workloads as a table, the same on every page."""

from collections.abc import Iterable

from dashboard.shared import filters, tables
from dashboard.shared import format as text
from dashboard.shared.data import Answer, Json
from dashboard.shared.tables import Cell, Column

COLUMNS = (
    Column(key="name", title="Workload"),
    Column(key="state", title="State", help="Where it stands, with the scheduler's reason."),
    Column(key="team", title="Team"),
    Column(key="queue", title="Queue"),
    Column(key="class", title="Class", help="Its service class: what it was promised."),
    Column(
        key="gpus", title="GPUs", help="Physical GPUs asked for, shares of a card as decimals.", number=True
    ),
    Column(
        key="wait",
        title="Queue wait",
        help="Time in waiting states before the first placement; ▲ past the target of its class.",
        number=True,
    ),
    Column(
        key="now",
        title="Waits now",
        help="The waiting that still goes on, since it was submitted or last lost its GPUs; "
        "▲ past the target of its class.",
        number=True,
    ),
    Column(
        key="again",
        title="Waited again",
        help="Waiting after the first placement: after preemptions, evictions and restarts.",
        number=True,
    ),
    Column(
        key="preemptions", title="Preempted", help="How often another workload took its place.", number=True
    ),
    Column(
        key="wasted",
        title="Wasted, GPU-h",
        help="What its holder could have spared, from its submission on; ≥ where some activity is unknown.",
        number=True,
    ),
    Column(key="submitted", title="Submitted", help="In UTC.", number=True),
)


def row(workload: dict[str, Json], target_seconds: float | None) -> dict[str, Cell | str]:
    """A workload's cells; `target_seconds` is what its class was promised."""
    wait, now = workload["queue_wait_seconds"], workload["waiting_seconds"]
    promise = f"target {text.target(target_seconds)}" if target_seconds else "no target"

    def waited(seconds: float | None) -> Cell:
        late = seconds is not None and target_seconds is not None and seconds > target_seconds
        return Cell(shown=text.duration(seconds), bad=late, note=promise)

    reason = workload["reason"]
    as_of = filters.from_url("as_of")
    return {
        "name": Cell(
            shown=f"{workload['namespace']}/{workload['name']}",
            href=filters.link("job", uid=workload["uid"], as_of=as_of),
            note=f"{workload['kind']} in cluster {workload['cluster']}",
        ),
        "state": Cell(
            shown=workload["state"] + (f" · {text.words(reason)}" if reason else ""), state=workload["state"]
        ),
        "team": Cell(shown=workload["team"], href=filters.link("jobs", team=workload["team"])),
        "queue": Cell(
            shown=workload["queue"] or text.NO_QUEUE,
            href=filters.link(
                "queues", queue=workload["queue"] or text.NO_QUEUE, cluster=workload["cluster"]
            ),
        ),
        "class": text.class_name(workload["service_class"]),
        "gpus": text.gpus(workload["requested_gpus"]),
        "wait": waited(wait),
        "now": "" if now is None else waited(now),
        "again": text.duration(workload["requeue_wait_seconds"]) if workload["requeue_wait_seconds"] else "",
        "preemptions": str(workload["preemptions"] or ""),
        "wasted": wasted(workload) if workload["wasted_gpu_hours"] is not None else "",
        "submitted": text.instant(text.parse_instant(workload["submitted_at"])),
    }


def wasted(workload: dict[str, Json]) -> str:
    """GPU-hours that a workload's holder wasted."""
    return text.bounded(workload["wasted_gpu_hours"], "gpu_hours", lower_bound=workload["wasted_lower_bound"])


def show(workloads: Iterable[dict[str, Json]], targets: Answer, *, caption: str) -> None:
    """Draw the table; `targets` is the metric `wait_target_seconds` by service class."""
    promised = {target.labels["service_class"]: target.value for target in targets.by("service_class")}
    rows = [row(workload, promised.get(workload["service_class"])) for workload in workloads]
    tables.show(COLUMNS, rows, caption=caption)
