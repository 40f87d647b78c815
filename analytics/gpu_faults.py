"""Faults of GPUs as the cause of an attempt's end."""

from collections.abc import Iterable
from typing import Final

from analytics.pods import PodCourse
from domain.facts import Transition
from domain.gpu_fault import FaultKind, is_of_the_machine

# An exporter reads its GPUs each half minute, and is read each half minute: what killed a pod may be told
# a little later than its death.
_TOLD_LATE_MS: Final = 90_000


def broken_gpu(pods: Iterable[PodCourse]) -> str:
    """
    What broke under the pods of an attempt that failed, in words; empty where no GPU did.

    A fault counts where it was the machine's own, and happened while the pod held the GPU.
    """
    found = [fault for pod in pods for fault in pod.faults if _is_cause(fault, pod)]
    if not found:
        return ""
    first = min(found, key=lambda fault: fault.at_ms)
    what = f"XID {first.amount}" if first.state == FaultKind.XID else "a row could not be remapped"
    return f"{what} on {first.subject}" + (f": {first.detail}" if first.detail else "")


def _is_cause(fault: Transition, pod: PodCourse) -> bool:
    if pod.bound is None or fault.at_ms < pod.bound.at_ms:
        return False
    end_ms = pod.ended_ms if pod.ended_ms is not None else pod.released.at_ms if pod.released else None
    in_time = end_ms is None or fault.at_ms <= end_ms + _TOLD_LATE_MS
    return in_time and is_of_the_machine(fault.state, fault.amount or 0)
