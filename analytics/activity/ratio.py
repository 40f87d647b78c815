"""Ratios of GPU-time: activity to what was seen, and what was seen to what was held."""

from collections.abc import Sequence
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole, wholes
from domain.metric import Ask, Row, Sample

NOTHING_SEEN: Final = "no activity of these GPUs was read in the window"
SHARED_ONLY: Final = "these GPUs are shared, and nobody knows whose the activity is"
NOTHING_HELD: Final = "no GPU was held in the window"
NOBODY_TELLS: Final = "GPU metrics of this cluster were never read, and are in no setting"
# Labels that a device has by itself; by any other one a figure is about pods.
OF_DEVICES: Final = frozenset({"cluster", "gpu_model", "node", "device"})


def utilisation(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """
    Activity over the GPU-time for which it is known.

    Args:
        rows: GPU-time per device and pod: `seen` and `active` of the device, `own_seen` and `own_active`
            of what is known to be the pod's own. `is_missing`: free GPUs of which nobody tells.
        ask: a question by labels of devices only is about devices, any other one about pods.
    """
    of_pods = bool({*ask.by, *ask.filters} - OF_DEVICES)
    seen, active = ("own_seen", "own_active") if of_pods else ("seen", "active")
    samples = []
    for labels, members in grouped(rows, ask.by):
        known = sum(whole(row, seen) for row in members)
        if known:
            value = sum(whole(row, active) for row in members) / known
            misses = any(row["is_missing"] for row in members) and not of_pods
            samples.append(Sample(labels=labels, value=min(value, 1.0), lower_bound=misses))
        else:
            shared = of_pods and any(whole(row, "seen") for row in members)
            samples.append(Sample.undefined(labels, SHARED_ONLY if shared else NOTHING_SEEN))
    return samples or [Sample.undefined({}, NOTHING_SEEN if rows else NOTHING_OBSERVED)]


def coverage(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """
    GPU-time that was seen over GPU-time held.

    Args:
        rows: columns `held` and `seen`, GPU-time; of a pod no more was seen than it held. `is_read`: GPU
            metrics of its cluster are read, or were, or should be.
        ask: which labels to keep apart.
    """
    samples = []
    for labels, members in grouped(rows, ask.by):
        held = sum(wholes(members, "held"))
        if held and any(row["is_read"] for row in members):
            samples.append(Sample(labels=labels, value=sum(wholes(members, "seen")) / held))
        else:
            samples.append(Sample.undefined(labels, NOBODY_TELLS if held else NOTHING_HELD))
    return samples or [Sample.undefined({}, NOTHING_HELD)]
