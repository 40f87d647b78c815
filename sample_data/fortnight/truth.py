"""The truth that is left of a played fortnight: from the simulator's own state, in seconds."""

from collections.abc import Iterable
from typing import Any

from sample_data.fortnight.balance import balances
from sample_data.fortnight.causes import Interval, Surroundings, held_by_cause, joined, run_seed
from sample_data.fortnight.lives import Attempt, Json, Life, LivePod
from sample_data.fortnight.site import SERVICE_CLASSES, Site
from sample_data.fortnight.stories import Stories
from sample_data.fortnight.usage import loads

_MICRO_MS_PER_SECOND = 1_000_000 * 1000


def truth_of(
    lives: list[Life], stories: Stories, site: Site, *, seed: int, start_ms: int, end_ms: int
) -> dict[str, Any]:
    """
    What happened.

    `workloads`: waits, attempts, pods with devices and loads, GPU-seconds by cause. `quotas`, `nodes`
    and `dark`: what was written, offered and not seen when. `devices`: what exporters told of, a shared
    card once. `balances`: how every queue stood in every pool each twelve hours.
    """
    dark: dict[str, list[Interval]] = {}
    for row in stories.dark:
        dark.setdefault(row["node"], []).append((round(row["from"] * 1000), round(row["to"] * 1000)))
    stays: dict[str, list[tuple[int, int, str]]] = {}
    for life in lives:
        for pod in life.pods:
            for device in pod.devices if pod.bound_ms is not None else ():
                if "shared" in device.resource:
                    until_ms = end_ms if pod.released_ms is None else pod.released_ms
                    stays.setdefault(device.uuid, []).append((pod.bound_ms or 0, until_ms, pod.uid))
    around = Surroundings(
        seed=seed, end_ms=end_ms, dark={node: joined(gaps) for node, gaps in dark.items()}, stays=stays
    )
    quotas = stories.jobs.quotas
    never = {life.uid for life in lives if life.queue and life.request.total > quotas.most(life)}
    return {
        "seed": seed,
        "start": start_ms / 1000,
        "end": end_ms / 1000,
        "workloads": [_workload(life, site, around) for life in lives],
        "quotas": stories.quotas,
        "nodes": stories.capacity,
        "dark": stories.dark,
        "devices": [
            {
                "node": device.node,
                "uuid": device.uuid,
                "instance": device.instance,
                "profile": device.profile,
                "until": _seconds(stories.fallen_ms.get(device.uuid)),
            }
            for device in stories.kubelets.machines.devices
            if not device.slice_number
        ],
        "balances": balances(
            lives,
            site=site,
            quotas=stories.quotas,
            capacity=stories.capacity,
            never_fits=never,
            start_ms=start_ms,
            end_ms=end_ms,
        ),
    }


def _workload(life: Life, site: Site, around: Surroundings) -> Json:
    request = life.request
    micro_gpus = site.flavors[request.flavor].micro_gpus(request.resource)
    causes = held_by_cause(life, around, micro_gpus)
    return {
        "uid": life.uid,
        "namespace": request.namespace,
        "name": request.name,
        "kind": "Pod" if life.bare else "Job",
        "team": life.team,
        "user": request.user,
        "queue": life.queue,
        "priority_class": request.priority_class,
        "service_class": SERVICE_CLASSES[request.priority_class],
        "flavor": request.flavor,
        "mark": request.mark,
        "gpus": request.total * micro_gpus / 1_000_000,
        "submitted": life.submitted_ms / 1000,
        "first_running": _seconds(life.first_running_ms),
        "ended": _seconds(life.ended_ms),
        "outcome": life.outcome,
        "waits": [[start / 1000, _seconds(end)] for start, end in life.waits],
        "attempts": list(_attempts(life)),
        "preemptions": life.preemptions,
        "checkpoints": [at // 1000 for at in life.checkpoints_ms],
        "gpu_seconds": {
            cause: round(held / _MICRO_MS_PER_SECOND, 3) for cause, held in sorted(causes.items())
        },
        "pods": [_pod(life, pod, micro_gpus, around) for pod in life.pods if pod.bound_ms is not None],
    }


def _attempts(life: Life) -> Iterable[Json]:
    for attempt in life.attempts:
        stays = [pod for pod in life.pods if pod.attempt == attempt.number and pod.bound_ms is not None]
        if stays:
            yield _attempt(attempt, stays)


def _attempt(attempt: Attempt, stays: list[LivePod]) -> Json:
    ends = [pod.released_ms for pod in stays]
    over = None if None in ends else max(end for end in ends if end is not None)
    return {
        "start": min(pod.bound_ms or 0 for pod in stays) / 1000,
        "end": _seconds(over),
        "outcome": attempt.outcome,
    }


def _pod(life: Life, pod: LivePod, micro_gpus: int, around: Surroundings) -> Json:
    """One pod; `loads` are, by run and device, offsets in seconds from the run's start with a letter each."""
    return {
        "uid": pod.uid,
        "name": pod.name,
        "node": pod.node,
        "micro_gpus": micro_gpus,
        "devices": [
            f"{device.uuid}/{device.instance}" if device.instance else device.uuid for device in pod.devices
        ],
        "profile": pod.devices[0].profile,
        "bound": _seconds(pod.bound_ms),
        "released": _seconds(pod.released_ms),
        "restarts": pod.restarts,
        "runs": [
            [run.start_ms / 1000, _seconds(run.end_ms), run.exit_code, _loads(life, pod, index, around)]
            for index, run in enumerate(pod.runs)
        ],
    }


def _loads(life: Life, pod: LivePod, index: int, around: Surroundings) -> list[str]:
    """A text for each device that does something else than the one before: `0N 180T 9000N`."""
    run = pod.runs[index]
    found: list[str] = []
    for device in range(len(pod.devices)):
        stretches = loads(
            life.request.work,
            run_seed(around.seed, pod, index),
            device=device,
            start_ms=run.start_ms,
            end_ms=run.end_ms or around.end_ms,
        )
        found.append(" ".join(f"{(start - run.start_ms) // 1000}{load}" for start, _, load in stretches))
    return found[:1] if len(set(found)) == 1 else found


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / 1000
