"""
Fragmentation by the sizes that are usually asked: the ladder, and the fragment waste of FGD.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC 2023.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar

from analytics.fragmentation.inventory import Inventory

# GPU resource and devices that one pod asks.
Shape: TypeAlias = tuple[str, int]

POPULAR = Fraction(95, 100)


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


_T = TypeVar("_T", bound=_Ordered)


def ladder(free: Sequence[int], size: int) -> Fraction:
    """
    Frag(s): the part of the free devices that pods of `size` devices leave over; 0 when none is free.

    >>> [str(ladder([7] * 10, size)) for size in (1, 2, 4, 8)]
    ['0', '1/7', '3/7', '1']
    """
    total = sum(free)
    return Fraction(sum(each % size for each in free), total) if total else Fraction(0)


def popular(counts: Mapping[_T, int], share: Fraction = POPULAR) -> dict[_T, Fraction]:
    """
    The most frequent kinds that together cover the share, each with its part of those kept.

    Of kinds that are as frequent the smaller comes first, so that the cut is the same each time.
    """
    total = sum(counts.values())
    kept: dict[_T, int] = {}
    for kind in sorted(sorted(counts), key=lambda each: -counts[each]):
        if sum(kept.values()) >= share * total:
            break
        kept[kind] = counts[kind]
    covered = sum(kept.values())
    return {kind: Fraction(count, covered) for kind, count in kept.items()}


def unusable(
    inventory: Inventory, shapes: Mapping[Shape, Fraction], micro_gpus: Mapping[tuple[str, str], int]
) -> Fraction:
    """
    Micro-GPU that a pod of the usual shapes is expected to find unusable: FGD's F, over whole devices.

    Free devices of a node cannot be used by a shape when the node has too few of its resource, and
    those of other resources never.

    Args:
        inventory: free devices by node.
        shapes: the probability of each shape.
        micro_gpus: what the free devices of a node and resource are in micro-GPU.
    """
    by_node: dict[str, int] = {}
    for (node, _), micro in micro_gpus.items():
        by_node[node] = by_node.get(node, 0) + micro
    lost = Fraction(0)
    for (resource, size), share in shapes.items():
        lost += share * sum(
            by_node.get(node, 0)
            - (micro_gpus.get((node, resource), 0) if devices.get(resource, 0) >= size else 0)
            for node, devices in inventory.free.items()
        )
    return lost


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNode:
    """A node as the paper has it; free parts of its cards in thousandths of a GPU."""

    cpu_milli: int
    gpu_milli: tuple[int, ...]
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PaperTask:
    """
    What a task asks: `gpus` cards, or with one card a part of it in thousandths.

    `models` are those that it accepts, empty for any.
    """

    cpu_milli: int
    gpus: int
    gpu_milli: int = 1000
    models: tuple[str, ...] = ()


def fgd_paper(nodes: Iterable[PaperNode], tasks: Mapping[PaperTask, Fraction]) -> Fraction:
    """
    The expected fragments in thousandths of a GPU, literally as in the paper.

    For each task and node all that is free is a fragment when the node cannot run the task (CPU,
    GPUs, model), and for a task that asks no GPU; else the cards whose free part is too small for it.
    Memory is ignored, as the authors' simulator does.

    Args:
        nodes: the whole cluster.
        tasks: shapes with their probabilities, CPU-only ones included.
    """
    counted: dict[PaperNode, int] = {}
    for node in nodes:
        counted[node] = counted.get(node, 0) + 1
    return sum(
        (
            share * count * _fragments(node, task)
            for node, count in counted.items()
            for task, share in tasks.items()
        ),
        Fraction(0),
    )


def _fragments(node: PaperNode, task: PaperTask) -> int:
    least = task.gpu_milli if task.gpus == 1 else 1000
    usable = [free for free in node.gpu_milli if free >= least]
    runs = (
        task.gpus > 0
        and node.cpu_milli >= task.cpu_milli
        and len(usable) >= task.gpus
        and (not task.models or node.model in task.models)
    )
    return sum(node.gpu_milli) - (sum(usable) if runs else 0)
