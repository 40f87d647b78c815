"""
Why each GPU-second was held, by what the simulator knows; the words are those of the product's pages.

Written from the definitions alone, in the plainest way: intervals and sums.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from sample_data.fortnight.lives import Life, LivePod, Run
from sample_data.fortnight.usage import Load, Stretch, loads

Interval = tuple[int, int]

_MINUTE = 60_000
_STARTUP_LIMIT_MS = 5 * _MINUTE
_IDLE_AFTER_MS = 15 * _MINUTE
_ASSUMED_MS = 15 * _MINUTE
_SHORT_RUN_MS = 120 * _MINUTE
_LOST = {"failed": "crash_lost", "preempted": "preempted_lost", "infra_failed": "infra_lost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is not the workload's own: the end, dark exporters by node, other pods on a card."""

    seed: int
    end_ms: int
    dark: dict[str, list[Interval]]
    stays: dict[str, list[tuple[int, int, str]]]

    def unseen(self, pod: LivePod, uuid: str) -> list[Interval]:
        """When nobody can tell what this pod did on a card."""
        others = [(start, end) for start, end, uid in self.stays.get(uuid, ()) if uid != pod.uid]
        return joined([*self.dark.get(pod.node, ()), *others])


def held_by_cause(life: Life, around: Surroundings, micro_gpus: int) -> Counter[str]:
    """
    GPU-milliseconds of a workload by cause, in micro-GPU.

    Args:
        life: the workload.
        around: what is not its own.
        micro_gpus: of one of its devices.
    """
    held: Counter[str] = Counter()
    first_failure_ms = min(
        (end for pod in life.pods for _, end, kind in _cuts(life, pod, around) if kind == "crash_lost"),
        default=around.end_ms,
    )
    for pod in life.pods:
        if pod.bound_ms is None:
            continue
        for cause, start, end in _not_running(life, pod, around):
            held[cause] += (end - start) * micro_gpus * len(pod.devices)
        lost = [_loss(life, pod, cut, first_failure_ms) for cut in _cuts(life, pod, around)]
        for number, device in enumerate(pod.devices):
            for index, run in enumerate(pod.runs):
                start, end = _running(life, pod, run, around)
                seed = run_seed(around.seed, pod, index)
                work = loads(
                    life.request.work,
                    seed,
                    device=number,
                    start_ms=run.start_ms,
                    end_ms=run.end_ms or around.end_ms,
                )
                for cause, since, until in _used(work, (start, end), around.unseen(pod, device.uuid)):
                    part = until - since
                    if cause == "useful":
                        for kind, low, cut in lost:
                            gone = max(0, min(cut, until) - max(low, since))
                            held[kind] += gone * micro_gpus
                            part -= gone
                    held[cause] += part * micro_gpus
    return +held


def run_seed(seed: int, pod: LivePod, index: int) -> str:
    """What the loads of a pod's run are drawn from."""
    return f"{seed}/{pod.uid}/{index}"


def joined(intervals: list[Interval]) -> list[Interval]:
    """The same instants without overlap, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found


def _let_go_ms(pod: LivePod, around: Surroundings) -> int:
    return around.end_ms if pod.released_ms is None else pod.released_ms


def _drains_ms(pod: LivePod, around: Surroundings) -> int:
    return _let_go_ms(pod, around) if pod.drained_from_ms is None else pod.drained_from_ms


def _all_running_ms(life: Life, pod: LivePod, around: Surroundings) -> int:
    """When the last member of its attempt began to run."""
    members = [one for one in life.pods if one.attempt == pod.attempt]
    if not all(one.runs for one in members):
        return around.end_ms
    return max(one.runs[0].start_ms for one in members)


def _not_running(life: Life, pod: LivePod, around: Surroundings) -> list[tuple[str, int, int]]:
    assert pod.bound_ms is not None
    drains = _drains_ms(pod, around)
    complete = life.attempts[pod.attempt - 1].complete_ms
    complete = drains if complete is None else min(complete, drains)
    runs = min(_all_running_ms(life, pod, around), drains)
    limit = min(complete + _STARTUP_LIMIT_MS, runs)
    parts = [
        ("gang_hold", pod.bound_ms, complete),
        ("startup", complete, limit),
        ("startup_over_limit", limit, runs),
        ("draining", drains, _let_go_ms(pod, around)),
    ]
    ends = [run.end_ms for run in pod.runs if run.end_ms is not None]
    starts = [run.start_ms for run in pod.runs[1:]]
    for end, following in zip(ends, [*starts, drains], strict=False):
        parts.append(("backoff", min(end, drains), min(following, drains)))
    return [(cause, start, end) for cause, start, end in parts if start < end]


def _running(life: Life, pod: LivePod, run: Run, around: Surroundings) -> Interval:
    drains = _drains_ms(pod, around)
    start = max(run.start_ms, _all_running_ms(life, pod, around))
    return start, max(start, min(run.end_ms or around.end_ms, drains))


def _cuts(life: Life, pod: LivePod, around: Surroundings) -> list[tuple[int, int, str]]:
    """Runs of the pod that were cut short: from, to, and the kind of loss."""
    found = []
    for index, run in enumerate(pod.runs):
        start, end = _running(life, pod, run, around)
        crashed_in_place = (
            run.exit_code == 1 and run.end_ms is not None and run.end_ms < _let_go_ms(pod, around)
        )
        kind = "crash_lost" if crashed_in_place else ""
        last = index == len(pod.runs) - 1
        if not kind and last and pod.released_ms is not None:
            kind = _LOST.get(life.attempts[pod.attempt - 1].outcome, "")
        if kind and start < end:
            found.append((start, end, kind))
    return found


def _loss(life: Life, pod: LivePod, cut: tuple[int, int, str], first_failure_ms: int) -> tuple[str, int, int]:
    """The kind of loss, and what is surely lost of a cut run."""
    start, end, kind = cut
    saved = [at for at in life.checkpoints_ms if at <= (pod.released_ms or end)]
    if saved:
        return kind, min(max(*saved, start), end), end
    again = kind == "crash_lost" and first_failure_ms <= start
    if again and end - start <= _SHORT_RUN_MS:
        return kind, start, end
    return kind, max(start, end - _ASSUMED_MS), end


def _used(work: list[Stretch], running: Interval, unseen: list[Interval]) -> list[tuple[str, int, int]]:
    """A run's time on one device, by activity."""
    pieces = _seen(work, running, unseen)
    found: list[tuple[str, int, int]] = []
    at = 0
    while at < len(pieces):
        start, end, load = pieces[at]
        if load is not None and not load.is_low:
            found.append(("useful", start, end))
            at += 1
            continue
        quiet = at
        while quiet < len(pieces) and (pieces[quiet][2] is None or pieces[quiet][2].is_low):  # type: ignore[union-attr]
            quiet += 1
        found += _quiet(pieces[at:quiet])
        at = quiet
    return found


def _quiet(pieces: list[tuple[int, int, Load | None]]) -> list[tuple[str, int, int]]:
    """A stretch without activity: work that pauses, or idleness, or nobody can tell."""
    if pieces[-1][1] - pieces[0][0] < _IDLE_AFTER_MS:
        return [("unknown" if load is None else "useful", start, end) for start, end, load in pieces]
    found = []
    at = 0
    while at < len(pieces):
        if pieces[at][2] is None:
            found.append(("unknown", pieces[at][0], pieces[at][1]))
            at += 1
            continue
        until = at
        while until < len(pieces) and pieces[until][2] is not None:
            until += 1
        long = pieces[until - 1][1] - pieces[at][0] >= _IDLE_AFTER_MS
        for start, end, load in pieces[at:until]:
            idle = "resident_idle" if load is Load.RESIDENT else "idle"
            found.append((idle if long else "unknown", start, end))
        at = until
    return found


def _seen(
    work: list[Stretch], running: Interval, unseen: list[Interval]
) -> list[tuple[int, int, Load | None]]:
    """The loads within the running time; None where nobody sees them."""
    edges = {at for start, end, _ in work for at in (start, end)} | {at for pair in unseen for at in pair}
    inside = sorted(at for at in edges | set(running) if running[0] <= at <= running[1])
    found: list[tuple[int, int, Load | None]] = []
    for start, end in pairwise(inside):
        dark = any(since <= start < until for since, until in unseen)
        load = None if dark else next(kind for since, until, kind in work if since <= start < until)
        if found and found[-1][2] is load:
            found[-1] = (found[-1][0], end, load)
        else:
            found.append((start, end, load))
    return found
