"""
What KAI reads from a pod's labels and annotations, where others read requests.

A pod with a part of a GPU asks for no GPU resource. KAI keeps the card for it by a pod of its own,
which must not be counted: its card would be there twice.
"""

from collections.abc import Mapping
from decimal import Decimal

from domain.errors import FactError, QuantityError
from domain.objects import Resources
from domain.quantity import GPU_MEMORY, MICRO_GPU, MICRO_PER_GPU, parse_quantity

_FRACTION, _MEMORY, _DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
_QUEUES = ("kai.scheduler/queue", "runai/queue")
_RESERVATIONS = frozenset({"kai-resource-reservation", "runai-reservation"})


def kai_queue(labels: Mapping[str, str]) -> str:
    """The queue that the pod names; empty without one."""
    for key in _QUEUES:
        if queue := labels.get(key):
            return queue
    return ""


def kai_pod_group(annotations: Mapping[str, str]) -> str:
    """The name of its PodGroup; empty without one."""
    return annotations.get("pod-group-name", "")


def kai_requests(namespace: str, annotations: Mapping[str, str], requests: Resources) -> Resources:
    """
    The GPU requests of a pod with KAI's parts of GPUs; none of a pod that keeps a card for others.

    Raises:
        FactError: a part that is none.
    """
    if namespace in _RESERVATIONS:
        return {}
    if annotations.get(_FRACTION):
        part = _number(annotations, _FRACTION)
        return requests | {MICRO_GPU: int(part * MICRO_PER_GPU) * _devices(annotations)}
    if annotations.get(_MEMORY):
        return requests | {GPU_MEMORY: int(_number(annotations, _MEMORY)) * _devices(annotations)}
    return requests


def _devices(annotations: Mapping[str, str]) -> int:
    return int(_number(annotations, _DEVICES)) if annotations.get(_DEVICES) else 1


def _number(annotations: Mapping[str, str], key: str) -> Decimal:
    try:
        value = parse_quantity(annotations[key])
    except QuantityError as cause:
        message = f"annotation {key} = {annotations[key]!r}: expected a number"
        raise FactError(message) from cause
    if not 0 < value <= MICRO_PER_GPU:
        message = f"annotation {key} = {annotations[key]!r}: expected more than 0 and at most {MICRO_PER_GPU}"
        raise FactError(message)
    return value
