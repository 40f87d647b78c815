"""
What Kueue says of its own queues, beside what we say of them.

A check, and nothing else: no figure of ours is made of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

Labelled: TypeAlias = tuple[str, Mapping[str, str], float]
# Queue and flavor; the flavor is empty where a figure has none.
Key: TypeAlias = tuple[str, str]

PENDING: Final = "kueue_pending_workloads"
RESERVED: Final = "kueue_cluster_queue_resource_reservation"
USED: Final = "kueue_cluster_queue_resource_usage"
WAIT_SUM: Final = "kueue_admission_wait_time_seconds_sum"
WAIT_COUNT: Final = "kueue_admission_wait_time_seconds_count"
FAMILIES: Final = frozenset({PENDING, RESERVED, USED, WAIT_SUM, WAIT_COUNT})
_GPU: Final = "nvidia.com/gpu"


class Figure(StrEnum):
    """What is compared, and what is shown beside it for want of a like."""

    PENDING = "pending workloads"
    RESERVED = "GPUs reserved"
    ADMISSION_WAIT = "mean admission wait, seconds"


# The wait by Kueue's clock begins anew with each requeueing and may hold time in which the workload ran,
# so that the two are shown and not judged.
JUDGED: Final = frozenset({Figure.PENDING, Figure.RESERVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure of one queue, theirs and ours; None where one of the two does not tell it."""

    figure: Figure
    queue: str
    flavor: str
    theirs: float | None
    ours: float | None

    def differs(self, *, tolerated: float, tolerated_ratio: float) -> bool:
        """Whether they lie further apart than is tolerated, absolutely and as a share of the larger one."""
        if self.figure not in JUDGED or self.theirs is None:
            return False
        ours = self.ours or 0.0
        return abs(self.theirs - ours) > max(tolerated, tolerated_ratio * max(self.theirs, ours))


def theirs_of(series: Iterable[Labelled]) -> dict[Figure, dict[Key, float]]:
    """
    Kueue's figures by queue and flavor.

    Replicas of Kueue tell the same gauge each: the greatest of them counts. Waiting workloads are those that
    it tries and those that it does not. Of reserved resources only whole GPUs are comparable. A release
    that tells no reservation tells what is in use, which is less by what waits for checks.
    """
    greatest: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for name, labels, value in series:
        if name not in FAMILIES or value != value:  # noqa: PLR0124 (NaN is the one value that differs from itself)
            continue
        rest = {key: said for key, said in labels.items() if key in _TELLING}
        key = (name, tuple(sorted(rest.items())))
        greatest[key] = max(greatest.get(key, value), value)
    sums: dict[str, dict[Key, float]] = {name: {} for name in FAMILIES}
    for (name, labelled), value in greatest.items():
        said = dict(labelled)
        if name in {RESERVED, USED} and said.get("resource") != _GPU:
            continue
        place = (said.get("cluster_queue", ""), said.get("flavor", ""))
        sums[name][place] = sums[name].get(place, 0.0) + value
    counts = sums[WAIT_COUNT]
    waits = {place: total / counts[place] for place, total in sums[WAIT_SUM].items() if counts.get(place)}
    reserved = sums[RESERVED] or sums[USED]
    return {Figure.PENDING: sums[PENDING], Figure.RESERVED: reserved, Figure.ADMISSION_WAIT: waits}


def compared(
    theirs: Mapping[Figure, Mapping[Key, float]], ours: Mapping[Figure, Mapping[Key, float]]
) -> list[Compared]:
    """Each figure of each queue that Kueue tells of, in order; of other queues it knows nothing."""
    return [
        Compared(
            figure=figure,
            queue=queue,
            flavor=flavor,
            theirs=value,
            ours=ours.get(figure, {}).get((queue, flavor)),
        )
        for figure in Figure
        for (queue, flavor), value in sorted(theirs.get(figure, {}).items())
    ]


_TELLING: Final = frozenset({"cluster_queue", "flavor", "resource", "status", "priority_class"})
