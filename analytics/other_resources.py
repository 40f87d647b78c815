"""What pods ask and nodes have beside GPUs: as a scheduler counts it, and as rows have it."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from msgspec import UnsetType

from domain import objects
from domain.quantity import CPU, MEMORY, as_scheduled

# Amounts in thousandths, where somebody tells.
Told: TypeAlias = objects.Resources | UnsetType | None


class Asked(NamedTuple):
    """What a pod asks beside GPUs, in the columns of `holding`; None and empty where nobody tells."""

    milli_cpus: int | None = None
    memory_bytes: int | None = None
    other_asks: str = ""


def asked_by(body: objects.Pod | None) -> Asked:
    """
    What a pod asks.

    Of a job that a table of another scheduler tells of, CPUs may be known alone.
    """
    if body is None:
        return Asked()
    if not isinstance(body.other_requests, dict):
        return Asked(None if isinstance(body.milli_cpus, UnsetType) else body.milli_cpus)
    amounts = as_scheduled(body.other_requests)
    cpu, memory = amounts.pop(CPU, 0), amounts.pop(MEMORY, 0)
    return Asked(cpu, memory, _text(amounts))


def written(milli: Told) -> str:
    """
    Amounts as JSON by resource name; empty where nobody tells.

    >>> written({"memory": 2_000_000, "cpu": 500}), written({}), written(None)
    ('{"cpu":500,"memory":2000}', '{}', '')
    """
    return _text(as_scheduled(milli)) if isinstance(milli, dict) else ""


@lru_cache(maxsize=16_384)
def read(text: str) -> Mapping[str, int]:
    """The same as rows have it; nothing where nobody tells."""
    amounts: dict[str, int] = json.loads(text) if text else {}
    return amounts


def _text(amounts: Mapping[str, int]) -> str:
    return json.dumps(amounts, sort_keys=True, separators=(",", ":"))
