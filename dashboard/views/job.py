"""Job: one workload, its verdict first, then the evidence."""

from datetime import datetime

import streamlit as st

from dashboard.shared import charts, data, filters, frame, gpu_faults, gpu_time, tables, verdict, why
from dashboard.shared import format as text
from dashboard.shared.data import Json, MetricInfo
from dashboard.shared.tables import Cell, Column

SHOWN_PODS = 200


def main() -> None:
    """Draw the page."""
    uid = filters.from_url("uid")
    if uid:
        frame.page("", "", lambda: _draw(uid))
    else:
        frame.page("Job", "", _choose)


def _choose() -> None:
    st.info("Choose a job: this page needs `?uid=` in its address.")
    st.page_link("views/jobs.py", label="To the list of jobs")


def _draw(uid: str) -> None:
    workload = data.workload(uid, as_of=filters.from_url("as_of"))
    targets = data.metric("wait_target_seconds", by=("service_class",), asked=filters.asked())
    target = targets.where(service_class=workload["service_class"])
    as_of = text.parse_instant(workload["as_of"])
    _verdict(workload, as_of, target.value if target else None)
    if workload["skewed"]:
        st.warning(
            f"**Its time stamps contradict each other**, so no figure counts it and its waits are not known: "
            f"{text.literal(workload['skewed'])}."
        )
    if workload["state"] in why.STATES:
        why.show(data.why(uid, as_of=filters.from_url("as_of")))
    _denials(workload)
    _position(workload["queue_position"])
    _facts(workload, data.registry())
    gpu_time.show(workload)
    _timeline(workload, as_of)
    _attempts(workload, as_of)
    _member_waits(workload, as_of)
    gpu_faults.show(workload["gpu_faults"])
    _checkpoints(workload, as_of)
    _spans(workload, as_of)
    st.caption(f"{text.age(as_of, data.now())} · uid {uid}")


def _verdict(workload: dict[str, Json], as_of: datetime, target_seconds: float | None) -> None:
    found = verdict.judge(workload, as_of=as_of, target_seconds=target_seconds)
    st.title(text.literal(f"{workload['namespace']}/{workload['name']}"), anchor=False)
    (st.error if found.late else st.info)(text.literal(found.sentence))


def _denials(workload: dict[str, Json]) -> None:
    for one in workload["denials"]:
        named = f"{one['denied_by']} {one['rule']}".strip()
        last = text.instant(text.parse_instant(one["last_at"]))
        often = text.count(one["count"], "time")
        st.info(
            f"**Pods were refused** {often}, last at {last}, by {text.literal(named)}: "
            f"{text.literal(one['text'])}"
        )


def _position(place: dict[str, Json] | None) -> None:
    if place is None:
        return
    ours = f"by our order (priority, then submission) {place['ahead_by_our_order']:,}"
    if place["ahead"] is None:
        st.info(
            f"**Workloads before it in its queue:** {ours}. "
            f"Kueue's own order: {text.literal(place['because'])}."
        )
        return
    old = f" ({text.literal(place['because'])})" if place["because"] else ""
    st.info(
        f"**Workloads before it in its queue:** {place['ahead']:,} by Kueue's own order, "
        f"as it was {text.duration(place['age_seconds'])} ago{old}; {ours}."
    )


def _facts(workload: dict[str, Json], registry: dict[str, MetricInfo]) -> None:
    tiles = st.columns(6)
    waits = (
        ("Queue wait", "queue_wait_seconds"),
        ("Time to running", "time_to_running_seconds"),
        ("Waited again", "requeue_wait_seconds"),
    )
    for tile, (label, name) in zip(tiles, waits, strict=False):
        tile.metric(label, text.duration(workload[name]), help=frame.help_of(registry, name), border=True)
    tiles[3].metric("GPUs asked", text.gpus(workload["requested_gpus"]), border=True)
    tiles[4].metric(
        "Preempted, times",
        str(workload["preemptions"]),
        help=f"{frame.help_of(registry, 'preemptions_total')}\n\n"
        f"Evicted for other reasons: {workload['evictions']}.",
        border=True,
    )
    gpu_seconds = workload["gpu_seconds"]
    tiles[5].metric(
        "GPU time, GPU-h",
        text.UNDEFINED if gpu_seconds is None else f"{gpu_seconds / 3600:,.2f}",
        help="GPUs held times how long they were held, over all attempts.",
        border=True,
    )
    facts = {
        "Team": Cell(shown=workload["team"], href=filters.link("jobs", team=workload["team"])),
        "User": workload["user"] or text.UNDEFINED,
        "Queue": Cell(
            shown=workload["queue"] or text.NO_QUEUE,
            href=filters.link(
                "queues", queue=workload["queue"] or text.NO_QUEUE, cluster=workload["cluster"]
            ),
        ),
        "Class": text.class_name(workload["service_class"]),
        "Priority class": workload["priority_class"] or text.UNDEFINED,
        "State": Cell(shown=workload["state"], state=workload["state"], note=workload["reason"]),
        "Submitted": text.instant(text.parse_instant(workload["submitted_at"])),
        "Cluster": workload["cluster"],
        "Kind": workload["kind"],
    }
    tables.show([Column(key=key, title=key) for key in facts], [facts], caption="facts of this workload")
    missed = workload.get("missed_evictions")
    if missed:
        st.caption(
            f"The scheduler's own counter tells of {text.count(missed, 'further eviction')} that nobody saw."
        )


def _timeline(workload: dict[str, Json], as_of: datetime) -> None:
    st.subheader("Timeline", anchor=False)
    bars = verdict.bars(workload, as_of)
    if not bars:
        st.info("Nothing is known of its course yet.")
        return
    lines = list(dict.fromkeys(bar.line for bar in bars))
    if len(lines) > SHOWN_PODS:
        kept = set(lines[:SHOWN_PODS])
        bars = [bar for bar in bars if bar.line in kept]
        st.caption(f"The first {SHOWN_PODS} of {len(lines) - 1} pod lines.")
    st.plotly_chart(
        charts.timeline(bars),
        config=charts.CONFIG,
        alt="The workload's states over time, and below them its pods by attempt",
    )


def _attempts(workload: dict[str, Json], as_of: datetime) -> None:
    attempts = workload["attempts"]
    st.subheader(f"Attempts: {len(attempts)}", anchor=False)
    if not attempts:
        st.info("It has held no GPUs so far.")
        return
    columns = [
        Column(key="number", title="#", number=True),
        Column(key="outcome", title="Outcome", help="How this stay on GPUs ended."),
        Column(key="preempted_by", title="Preempted by", help="Empty where you may not see who it was."),
        Column(key="start", title="From", help="First pod bound, UTC.", number=True),
        Column(key="end", title="To", help="Last pod released, UTC.", number=True),
        Column(key="lasted", title="Lasted", number=True),
        Column(key="pods", title="Pods", number=True),
        Column(key="nodes", title="Nodes"),
        Column(key="restarts", title="Restarts", help="Of its pods' main containers.", number=True),
        Column(key="gpu_hours", title="GPU-h", number=True),
    ]
    tables.show(columns, [_attempt(attempt, as_of) for attempt in attempts], caption="attempts")


def _attempt(attempt: dict[str, Json], as_of: datetime) -> dict[str, Cell | str]:
    pods = attempt["pods"]
    names = sorted({pod["node"] for pod in pods if pod["node"]})
    known = [pod["gpu_seconds"] for pod in pods if pod["gpu_seconds"] is not None]
    by, uid = attempt["preempted_by_name"] or attempt["preempted_by"], attempt["preempted_by_workload"]
    return {
        "number": str(attempt["number"]),
        "outcome": Cell(shown=text.words(attempt["outcome"]), note=attempt["reason"]),
        "preempted_by": Cell(
            shown=by,
            href=filters.link("job", uid=uid) if uid else "",
            note=f"uid {attempt['preempted_by']}" if by else "",
        ),
        "start": text.instant(text.parse_instant(attempt["start_at"])),
        "end": text.instant(text.parse_instant(attempt["end_at"])) if attempt["end_at"] else "still holds",
        "lasted": text.duration(verdict.seconds_between(attempt["start_at"], attempt["end_at"], as_of)),
        "pods": str(len(pods)),
        "nodes": Cell(
            shown=", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
            note=", ".join(names),
        ),
        "restarts": str(sum(pod["restarts"] for pod in pods)),
        "gpu_hours": f"{sum(known) / 3600:,.2f}" if len(known) == len(pods) else text.UNDEFINED,
    }


def _member_waits(workload: dict[str, Json], as_of: datetime) -> None:
    waits = workload["member_waits"]
    if not waits:
        return
    st.subheader(f"Waits of single pods: {len(waits)}", anchor=False)
    st.caption("Pods that were lost or came later, and waited while the rest of the workload held GPUs.")
    columns = [
        Column(key="pod", title="Pod, uid"),
        Column(key="from", title="From, UTC", number=True),
        Column(key="to", title="To, UTC", number=True),
        Column(key="lasted", title="Waited", number=True),
        Column(key="gpus", title="GPUs asked", number=True),
    ]
    rows: list[dict[str, Cell | str]] = [
        {
            "pod": wait["pod_uid"],
            "from": text.instant(text.parse_instant(wait["start_at"])),
            "to": text.instant(text.parse_instant(wait["end_at"])) if wait["end_at"] else "still waits",
            "lasted": text.duration(verdict.seconds_between(wait["start_at"], wait["end_at"], as_of)),
            "gpus": text.gpus(wait["gpus"]),
        }
        for wait in waits
    ]
    tables.show(columns, rows, caption="waits of single pods")


def _checkpoints(workload: dict[str, Json], as_of: datetime) -> None:
    told = workload["checkpoints"]
    if not told:
        return
    newest = told[0]
    step = "" if newest["step"] is None else f", step {newest['step']:,}"
    detail = f", {newest['detail']}" if newest["detail"] else ""
    age = text.duration(verdict.seconds_between(newest["at"], None, as_of))
    st.caption(
        f"Last checkpoint {age} ago{step}{text.literal(detail)}, told by {text.literal(newest['told_by'])}; "
        f"{text.count(len(told), 'checkpoint')} in all. What runs since then is at risk."
    )


def _spans(workload: dict[str, Json], as_of: datetime) -> None:
    with st.expander(f"{text.count(len(workload['spans']), 'span')} as a table"):
        columns = [
            Column(key="state", title="State"),
            Column(key="from", title="From, UTC", number=True),
            Column(key="lasted", title="Lasted", number=True),
            Column(key="reason", title="Reason, in the scheduler's words"),
        ]
        rows = [
            {
                "state": Cell(shown=span["state"], state=span["state"]),
                "from": text.instant(text.parse_instant(span["start_at"])),
                "lasted": ""
                if span["state"] == "ended"
                else text.duration(verdict.seconds_between(span["start_at"], span["end_at"], as_of)),
                "reason": span["reason"],
            }
            for span in workload["spans"]
        ]
        tables.show(columns, rows, caption="spans")


if __name__ == "__main__":
    main()
