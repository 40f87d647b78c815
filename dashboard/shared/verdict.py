"""A workload, the cluster or its alerts in a sentence: what a person would say who looked at them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from dashboard.shared import format as text
from dashboard.shared.charts import Bar
from dashboard.shared.data import Answer

Record: TypeAlias = dict[str, Any]
_WAITING = ("queued", "checking", "placing")
_NODES_NAMED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The sentence, and whether it tells of a promise that is broken now."""

    sentence: str
    late: bool = False


def of_cluster(waits: Answer, starving: Answer, promised: Mapping[str, float]) -> tuple[str, bool]:
    """
    The cluster in a sentence, and whether a class is past its target.

    Args:
        waits: queue wait by class; the censored p99 counts.
        starving: longest current wait by class.
        promised: target by class, seconds.
    """
    late = []
    for service_class in text.CLASSES:
        target = promised.get(service_class)
        p99 = waits.where(service_class=service_class, quantile="0.99", estimator="censored")
        longest = starving.where(service_class=service_class)
        broken = [
            what
            for what, row in (("p99", p99), ("longest wait", longest))
            if target is not None and row is not None and row.value is not None and row.value > target
        ]
        if broken:
            late.append(f"{text.class_name(service_class)} ({' and '.join(broken)})")
    if late:
        return f"Past target: {', '.join(late)}.", True
    return "Every class is within its target.", False


def of_alerts(firing: Sequence[Record], pending: Sequence[Record]) -> str:
    """What fires and what may follow, in a sentence."""
    waiting = f" {len(pending):,} more may follow." if pending else ""
    if not firing:
        return f"No alert fires.{waiting}"
    critical = sum(row["severity"] == "critical" for row in firing)
    urgent = f", {critical} of them critical" if critical else ""
    unknown = sum(bool(row["because"]) for row in firing)
    kept = f" Of {unknown} nobody knows how it is now, so they stay." if unknown else ""
    quiet = sum(bool(row["inhibited_by"]) for row in firing)
    said = (
        f" {quiet} of them {'is' if quiet == 1 else 'are'} not told, as another one says it." if quiet else ""
    )
    fires = "alert fires" if len(firing) == 1 else "alerts fire"
    return f"{len(firing):,} {fires}{urgent}.{said}{kept}{waiting}"


def seconds_between(start: str, end: str | None, as_of: datetime) -> float:
    """Seconds of an interval; one without an end lasts until `as_of`."""
    until = text.parse_instant(end) if end else as_of
    return max(0.0, (until - text.parse_instant(start)) / timedelta(seconds=1))


def time_in(spans: Sequence[Record], states: tuple[str, ...], as_of: datetime) -> float:
    """Seconds spent in those states."""
    return sum(seconds_between(s["start_at"], s["end_at"], as_of) for s in spans if s["state"] in states)


def nodes(workload: Record) -> str:
    """Where the last attempt ran: its nodes by name, or their number."""
    attempts = workload["attempts"]
    names = sorted({pod["node"] for pod in attempts[-1]["pods"] if pod["node"]}) if attempts else []
    if not names:
        return ""
    if len(names) <= _NODES_NAMED:
        return " on " + " and ".join(names)
    return f" on {len(names)} nodes"


def judge(workload: Record, *, as_of: datetime, target_seconds: float | None) -> Verdict:
    """
    The verdict of a workload at `as_of`.

    Args:
        workload: as the API gives it, with spans and attempts.
        target_seconds: what its class was promised, None where nothing was.
    """
    state = workload["state"]
    if state in _WAITING:
        return _waiting(workload, target_seconds=target_seconds)
    return Verdict(sentence=_past_the_queue(workload, state, as_of) + _again(workload))


def _for_what(workload: Record) -> str:
    queue = workload["queue"]
    in_queue = f" in queue {queue}" if queue else ""
    return {
        "queued": f"for quota{in_queue}" if queue else "to be scheduled",
        "checking": f"for admission checks{in_queue}",
        "placing": "for GPUs on nodes" + (f", admitted{in_queue}" if queue else ""),
    }[workload["state"]]


def _waiting(workload: Record, *, target_seconds: float | None) -> Verdict:
    waited = workload["waiting_seconds"]
    again = " again" if workload["first_placed_at"] else ""
    if waited is None:
        # Set aside for skewed stamps, or it asks no GPU: no figure counts its wait.
        return Verdict(sentence=f"Waiting{again} {_for_what(workload)}.{_again(workload)}")
    sentence = f"Waiting{again} for {text.duration(waited)} {_for_what(workload)}"
    if target_seconds is None:
        return Verdict(sentence=f"{sentence}.{_again(workload)}")
    name = text.class_name(workload["service_class"])
    promise = f"; target of {name} is {text.target(target_seconds)}: "
    late = waited > target_seconds
    rest = text.duration(abs(waited - target_seconds))
    promise += f"past it by {rest}." if late else f"{rest} left."
    return Verdict(sentence=sentence + promise + _again(workload), late=late)


def _waited(workload: Record) -> str:
    wait = workload["queue_wait_seconds"]
    if wait is None:
        return "Queue wait unknown"
    return "Placed at once" if wait == 0 else f"Waited {text.duration(wait)} for placement"


def _past_the_queue(workload: Record, state: str, as_of: datetime) -> str:
    spans = workload["spans"]
    ran = time_in(spans, ("running",), as_of)
    here = text.duration(seconds_between(spans[-1]["start_at"], spans[-1]["end_at"], as_of)) if spans else ""
    placed = workload["first_placed_at"] is not None
    if state == "ended":
        outcome = text.words(workload["outcome"])
        if not placed:
            waited = text.duration(time_in(spans, _WAITING, as_of))
            return f"Never placed: it waited {waited} and ended {outcome}."
        if ran == 0:
            return f"{_waited(workload)}, never ran{nodes(workload)}; ended {outcome}."
        return f"{_waited(workload)}, then ran {text.duration(ran)}{nodes(workload)}; {outcome}."
    if state == "running":
        return f"{_waited(workload)}, now running for {here}{nodes(workload)}."
    if state == "starting":
        return f"{_waited(workload)}, starting for {here}{nodes(workload)} (image pull, init containers)."
    if state == "draining":
        return f"{_waited(workload)}, ran {text.duration(ran)}; its pods have been ending for {here}."
    if state == "backoff":
        return f"Pausing for {here} before it is queued again; it ran {text.duration(ran)} so far."
    return f"Held back by its owner for {here}; this does not count as waiting."


def _again(workload: Record) -> str:
    parts = []
    if workload["preemptions"]:
        parts.append(f"preempted {_times(workload['preemptions'])}")
    if workload["evictions"]:
        parts.append(f"evicted {_times(workload['evictions'])} for other reasons")
    if not parts:
        return ""
    waited = workload["requeue_wait_seconds"]
    cost = f", which cost {text.duration(waited)} of waiting again" if waited else ""
    told = " and ".join(parts)
    return f" {told[0].upper()}{told[1:]}{cost}."


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def bars(workload: Record, as_of: datetime) -> list[Bar]:
    """The timeline: the workload's spans on the first line, then each attempt's pods."""
    end_of_life = text.parse_instant(workload["ended_at"]) if workload["ended_at"] else as_of
    found = [
        Bar(
            line="workload",
            state=span["state"],
            start_at=text.parse_instant(span["start_at"]),
            end_at=text.parse_instant(span["end_at"]) if span["end_at"] else as_of,
            note=span["reason"],
        )
        for span in workload["spans"]
        if span["state"] != "ended"
    ]
    for attempt in workload["attempts"]:
        for pod in attempt["pods"]:
            found += _pod_bars(attempt["number"], pod, max(as_of, end_of_life))
    return found


def _pod_bars(attempt: int, pod: Record, as_of: datetime) -> list[Bar]:
    line = f"{attempt} · {pod['name']}"
    bound = text.parse_instant(pod["bound_at"])
    released = text.parse_instant(pod["released_at"]) if pod["released_at"] else as_of
    started = text.parse_instant(pod["started_at"]) if pod["started_at"] else released
    note = f"attempt {attempt} on {pod['node']}, {text.gpus(pod['gpus'])} GPUs"
    pieces = [("starting", bound, started), ("running", started, released)]
    return [
        Bar(line=line, state=state, start_at=start, end_at=end, note=note)
        for state, start, end in pieces
        if end > start
    ]
