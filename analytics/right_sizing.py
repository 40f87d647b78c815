"""
Which smaller GPU would have held what a pod had in the memory of the one that it holds.

Only memory is looked at, as definitions say: a smaller device computes more slowly. Definitions leave
open which models a pod could have had: those of which its cluster has devices that pods hold, and the
instances into which its own card can be cut. NVIDIA, MIG User Guide, has the profiles.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from analytics.evaluate import grouped, whole
from domain.errors import DataError
from domain.metric import Ask, Row, Sample
from domain.quantity import MICRO_PER_GPU

HEADROOM: Final = 1.2
AS_IT_IS: Final = "as it is"
NOT_KNOWN: Final = "not known"
NOTHING_READ: Final = "no memory of a GPU that a pod holds now was read in the window"

# Memory of whole cards, GB, and of their instances by profile, the smallest first.
_PROFILES: Final[Mapping[tuple[str, int], tuple[tuple[int, str], ...]]] = {
    ("A30", 24): ((6, "1g.6gb"), (12, "2g.12gb")),
    ("A100", 40): ((5, "1g.5gb"), (10, "2g.10gb"), (20, "3g.20gb")),
    ("A100", 80): ((10, "1g.10gb"), (20, "2g.20gb"), (40, "3g.40gb")),
    ("A800", 80): ((10, "1g.10gb"), (20, "2g.20gb"), (40, "3g.40gb")),
    ("H100", 80): ((10, "1g.10gb"), (20, "2g.20gb"), (40, "3g.40gb")),
    ("H100", 94): ((12, "1g.12gb"), (24, "2g.24gb"), (47, "3g.47gb")),
    ("H100", 96): ((12, "1g.12gb"), (24, "2g.24gb"), (48, "3g.48gb")),
    ("H200", 141): ((18, "1g.18gb"), (35, "2g.35gb"), (71, "3g.71gb")),
    ("B200", 180): ((23, "1g.23gb"), (45, "2g.45gb"), (90, "3g.90gb")),
}
# How many answers there are beside the other models of a cluster.
OWN_ANSWERS: Final = max(map(len, _PROFILES.values())) + len((AS_IT_IS, NOT_KNOWN))
_MIB_PER_GIB: Final = 1024

MEMORY: Final = """\
-- One row per device of a pod that holds it just before $as_of_ms: the most of its memory that was in use in
-- [$window_start_ms, $as_of_ms), all of it, and for how much of the time it was held it was read.
select
    cluster,
    queue,
    service_class,
    priority_class,
    team,
    gpu_model,
    gang_size,
    user_name,
    max(micro_gpus) as micro_gpus,
    max(memory_mib) as peak_mib,
    max(memory_total_mib) as total_mib,
    sum(step_ms) as read_ms,
    $as_of_ms - greatest(bound_ms, $window_start_ms) as held_ms
from device_memory
where
    at_ms >= $window_start_ms
    and at_ms < $as_of_ms
    and coalesce(released_ms >= $as_of_ms, true)
    and open_until_ms >= $as_of_ms
group by
    cluster, queue, service_class, priority_class, team, gpu_model, gang_size, user_name, workload_uid,
    pod_uid, bound_ms, device
"""


class Size(NamedTuple):
    """A kind of device: its memory, MiB, and its name."""

    total_mib: float
    name: str


def instances(model: str, total_mib: float) -> list[Size]:
    """
    The instances of a card that are smaller than it.

    >>> [size.name for size in instances("NVIDIA-A100-SXM4-80GB", 81920.0)]
    ['1g.10gb', '2g.20gb', '3g.40gb']
    """
    for (product, gigabytes), profiles in _PROFILES.items():
        # Drivers tell a little less than the name says.
        if product in model and 0.93 * gigabytes <= total_mib / _MIB_PER_GIB <= 1.02 * gigabytes:
            part = total_mib / gigabytes
            return [Size(part * size, name) for size, name in profiles]
    return []


def smallest(peak_mib: float, own: Size, others: Iterable[Size]) -> str:
    """The smallest device with room for the peak and the headroom; of equal ones an instance of its card."""
    needed = peak_mib * HEADROOM
    smaller = [
        size for size in (*instances(own.name, own.total_mib), *others) if size.total_mib < own.total_mib
    ]
    fitting = [size for size in smaller if size.total_mib >= needed]
    return min(fitting, key=lambda size: size.total_mib).name if fitting else AS_IT_IS


def right_sizes(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPUs of each group by the smallest device that would do, with the label `fits`."""
    models: dict[object, set[Size]] = {}
    for row in rows:
        if row["total_mib"] is not None and row["micro_gpus"] == MICRO_PER_GPU:
            models.setdefault(row["cluster"], set()).add(Size(_real(row, "total_mib"), str(row["gpu_model"])))
    samples = []
    for labels, members in grouped(rows, ask.by):
        found: dict[str, int] = {}
        unknown = False
        for row in members:
            if row["micro_gpus"] is None:
                unknown = True
                continue
            fits = _fits(row, sorted(models.get(row["cluster"], ())), ask)
            found[fits] = found.get(fits, 0) + whole(row, "micro_gpus")
        samples += [
            Sample(labels={**labels, "fits": fits}, value=micro / MICRO_PER_GPU, lower_bound=unknown)
            for fits, micro in sorted(found.items())
        ]
    return samples or [Sample.undefined({}, NOTHING_READ)]


def _fits(row: Row, models: Sequence[Size], ask: Ask) -> str:
    if row["total_mib"] is None or whole(row, "read_ms") < ask.policy.least_samples * whole(row, "held_ms"):
        return NOT_KNOWN
    own = Size(_real(row, "total_mib"), str(row["gpu_model"]))
    return smallest(_real(row, "peak_mib"), own, models)


def _real(row: Row, column: str) -> float:
    value = row[column]
    if not isinstance(value, (int, float)):
        message = f"column {column} = {value!r}: expected a number; is it null in the metric's SQL?"
        raise DataError(message)
    return float(value)
