"""
What each metric must say of a set of workloads, by brute force from the truth.

A *part* is what one workload adds to a figure, with the labels under which it does so. A label
that is None keeps the part out of questions by that label.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from domain.metric import DIMENSIONS
from domain.policy import Policy
from domain.window import parse_instant
from tests.metamorphic.worlds import END_MS, held_now, members_asked, nodes, waits_now

POLICY = Policy()
EDGES = [f"{s}.0" for s in (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800)]
_GANGS = ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (32, "9-32"))
Labels = Mapping[str, str | None]
Part = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class Member:
    """
    A workload as the truth has it, with the labels under which it is counted.

    The stamps of objects are whole seconds, so that the product's waits are those of the truth
    within a second; `wait`, `to_running` and `again` are the product's, checked against it.
    """

    truth: Mapping[str, Any]
    labels: Mapping[str, str]
    wait: float
    to_running: float | None
    again: float
    age: float


def member(truth: Mapping[str, Any], listed: Mapping[str, Any]) -> Member:
    """A workload of the list with its truth; its waits must be those of the truth."""
    first, *later = truth["waits"] or [0.0]
    assert abs(listed["queue_wait_seconds"] - first) <= 1, truth["name"]
    assert abs(listed["requeue_wait_seconds"] - sum(later)) <= 1, truth["name"]
    assert (listed["time_to_running_seconds"] is None) == (truth["first_running"] is None)
    gang = members_asked().get(truth["uid"], 1)
    bucket = next((name for most, name in _GANGS if gang <= most), "33+")
    labels = {name: listed[name] for name in DIMENSIONS if name != "gang_size"} | {"gang_size": bucket}
    return Member(
        truth,
        labels,
        wait=listed["queue_wait_seconds"],
        to_running=listed["time_to_running_seconds"],
        again=listed["requeue_wait_seconds"],
        age=_age(listed),
    )


def _age(listed: Mapping[str, Any]) -> float:
    """Seconds from the submission to the first placement, to the end without one, or until now."""
    until = listed["first_placed_at"] or listed["ended_at"]
    until_ms = parse_instant(until) if until else END_MS
    return (until_ms - parse_instant(listed["submitted_at"])) / 1000


def matches(part: Labels, asked: Mapping[str, str]) -> bool:
    """Whether something with those labels belongs to a row."""
    return asked.items() <= part.items()


# ------------------------------------------------------------ sums


def _one(value: Callable[[Member], float], *, of: Callable[[Member], bool] | None = None) -> "Adds":
    def parts(one: Member, _: "Others") -> list[Part]:
        return [(one.labels, value(one))] if of is None or of(one) else []

    return parts


def _held(one: Member, _: "Others") -> list[Part]:
    return [({**one.labels, "gpu_model": None}, 0.0)] + [
        ({**one.labels, "gpu_model": nodes()[pod["node"]][0], "node": pod["node"]}, pod["gpus"])
        for pod in held_now(one.truth)
    ]


def _free(one: Member, _: "Others") -> list[Part]:
    return [
        (
            {"cluster": one.labels["cluster"], "gpu_model": nodes()[pod["node"]][0], "node": pod["node"]},
            -pod["gpus"],
        )
        for pod in held_now(one.truth)
    ]


def _reserved(one: Member, _: "Others") -> list[Part]:
    # A bare pod has no quota. In the sample whatever has quota at the end has its pods too.
    pods = held_now(one.truth) if one.truth["kind"] == "Job" else []
    return [(one.labels, 0.0), *(({**one.labels, "pool": nodes()[p["node"]][1]}, p["gpus"]) for p in pods)]


def _phantom(one: Member, others: "Others") -> list[Part]:
    return [(labels, 0.0) for labels, _ in _reserved(one, others)]


def _preempted(one: Member, others: "Others") -> list[Part]:
    victim = {**one.labels, "victim_class": one.truth["service_class"]}
    return [(victim, 0.0)] + [
        (
            victim
            | {
                "preemptor_class": others[preemption["preemptor"]]["service_class"],
                "mechanism": {"InClusterQueue": "kueue_in_cluster_queue"}[preemption["mechanism"]],
            },
            1.0,
        )
        for preemption in one.truth["preemptions"]
    ]


def _histogram(one: Member, _: "Others") -> list[Part]:
    if one.truth["bound"] is None:
        return []
    buckets = [({**one.labels, "le": edge}, float(one.wait <= float(edge))) for edge in EDGES]
    return [*buckets, ({**one.labels, "le": "+Inf"}, 1.0), ({**one.labels, "le": "sum"}, one.wait)]


def _target(one: Member) -> float:
    return POLICY.targets[one.truth["service_class"]].wait.total_seconds()


Others = Mapping[str, Mapping[str, Any]]
Adds = Callable[[Member, Others], list[Part]]
SUMS: Mapping[str, Adds] = {
    "queue_depth_workloads": _one(lambda one: waits_now(one.truth)),
    "queue_depth_gpus": _one(lambda one: one.truth["gpus"] * waits_now(one.truth)),
    "past_target_workloads": _one(lambda one: waits_now(one.truth) and one.wait > _target(one)),
    "held_gpus": _held,
    "free_gpus": _free,
    "reserved_gpus": _reserved,
    "phantom_reservation_gpus": _phantom,
    "phantom_reservation_gpu_seconds": _phantom,
    "preemptions_total": _preempted,
    "evictions_total": _one(lambda _: 0.0),
    "cancelled_while_waiting_workloads": _one(
        lambda one: one.truth["outcome"] == "cancelled" and one.truth["bound"] is None,
        of=lambda one: one.wait > 0 or one.again > 0,
    ),
    "first_placed_workloads": _one(
        lambda one: one.truth["bound"] is not None,
        of=lambda one: one.truth["bound"] is not None or one.wait > 0,
    ),
    "first_wait_seconds": _histogram,
}

# ------------------------------------------------------------ the greatest


def _episode(one: Member) -> float:
    return (one.again if one.truth["bound"] else one.wait) * waits_now(one.truth)


def _greatest(value: Callable[[Member], float]) -> "Greatest":
    return lambda members: max(map(value, members))


def _longest_ended(members: Sequence[Member]) -> float | None:
    return max((one.wait for one in members if one.truth["bound"] is not None), default=None)


def _cumulative(members: Sequence[Member]) -> float:
    longest = max(members, key=_episode)
    return (longest.wait + longest.again) * waits_now(longest.truth)


Greatest = Callable[[Sequence[Member]], float | None]
GREATEST: Mapping[str, Greatest] = {
    "longest_queue_wait_seconds": _longest_ended,
    "starvation_index_seconds": _greatest(_episode),
    "starvation_index_ratio": _greatest(lambda one: _episode(one) / _target(one)),
    "starvation_cumulative_seconds": _cumulative,
}


def counts(metric: str, one: Member) -> bool:
    """Whether a workload belongs to the population of a metric of waits."""
    if metric in {"queue_wait_seconds", "longest_queue_wait_seconds"}:
        return one.truth["bound"] is not None or one.wait > 0
    if metric == "time_to_running_seconds":
        return one.truth["first_running"] is not None or one.wait > 0
    if metric == "requeue_wait_seconds":
        return len(one.truth["waits"]) > 1
    return True


# ------------------------------------------------------------ percentiles


def ages(metric: str, members: Iterable[Member]) -> list[tuple[float, bool]]:
    """How long each waited, and whether that wait is over."""
    match metric:
        case "queue_wait_seconds":
            return [(one.wait, one.truth["bound"] is not None) for one in members]
        case "time_to_placement_seconds":
            return [(one.age, one.truth["bound"] is not None) for one in members]
        case "time_to_running_seconds":
            return [
                (one.wait if one.to_running is None else one.to_running, one.to_running is not None)
                for one in members
            ]
        case _:
            return [(one.again, not waits_now(one.truth)) for one in members]


def true_ages(metric: str, members: Iterable[Member]) -> list[float]:
    """The same of the waits that are over, to the millisecond, as the simulator knows them."""
    found: list[float] = []
    for one in members:
        told = one.truth
        if metric == "queue_wait_seconds" and told["bound"] is not None:
            found.append(told["waits"][0] if told["waits"] else 0.0)
        elif metric == "time_to_placement_seconds" and told["bound"] is not None:
            found.append(told["bound"] - told["submitted"])
        elif metric == "time_to_running_seconds" and told["first_running"] is not None:
            found.append(told["first_running"] - told["submitted"])
        elif metric == "requeue_wait_seconds" and not waits_now(told):
            found += told["waits"][1:]
    return found


def started(ended: Sequence[float], quantile: str) -> float | None:
    """The quantile by linear interpolation (type 7)."""
    if not ended:
        return None
    ordered = sorted(ended)
    place = (len(ordered) - 1) * Fraction(quantile)
    low, high = ordered[floor(place)], ordered[ceil(place)]
    return low + float(place - floor(place)) * (high - low)


def censored(waits: Sequence[tuple[float, bool]], quantile: str) -> tuple[float | None, bool, bool]:
    """The Kaplan-Meier quantile where all began inside the window, whether it is a lower bound, and few."""
    if not waits:
        return None, False, False
    still = Fraction(1)
    # Risk sets only shrink: the last one on the way is the smallest.
    for age in sorted({age for age, _ in waits}):
        at_risk = sum(other >= age for other, _ in waits)
        still *= 1 - Fraction(sum(over and other == age for other, over in waits), at_risk)
        if 1 - still >= Fraction(quantile):
            return age, False, at_risk < POLICY.few_below
    longest = max(age for age, _ in waits)
    return longest, True, sum(age == longest for age, _ in waits) < POLICY.few_below
