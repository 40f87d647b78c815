"""A pool as the FGD paper sees it: nodes with free cards, and tasks by how many cards they ask."""

from fractions import Fraction
from typing import Final

from analytics.fragmentation.pools import Pool
from analytics.fragmentation.waste import PaperNode, PaperTask, fgd_paper, popular

_WHOLE: Final = "nvidia.com/gpu"
_CARD: Final = 1000


def of_pool(pool: Pool) -> tuple[Fraction, int] | None:
    """
    The expected fragments and all cards of a pool, thousandths of a GPU; None where nothing was asked.

    The paper knows neither MIG nor cards that are sliced by time: they are left out. Its CPU condition
    cannot be asked, for CPUs of Kubernetes' nodes are not collected: every node has enough.
    """
    nodes: list[PaperNode] = []
    total = 0
    for (node, resource), count in pool.capacity.items():
        if resource == _WHOLE and pool.cuts[node, resource][1] == 1:
            total += count * _CARD
            free = pool.inventory.free.get(node, {}).get(resource, 0)
            nodes.append(PaperNode(cpu_milli=0, gpu_milli=(_CARD,) * free))
    asked = {
        PaperTask(cpu_milli=0, gpus=devices): pods
        for (resource, devices), pods in pool.asked.items()
        if resource == _WHOLE
    }
    if pool.plain:
        asked[PaperTask(cpu_milli=0, gpus=0)] = pool.plain
    return (fgd_paper(nodes, popular(asked)), total) if asked and total else None
