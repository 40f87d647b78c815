"""The cards of a node: what it offers of them, and slices of MIG cards that no instance covers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from analytics.history import PRODUCT_LABEL
from domain.objects import Resources
from domain.quantity import MICRO_PER_GPU, card_share, is_gpu_resource, offered_micro_gpus

COUNT_LABEL = "nvidia.com/gpu.count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """
    A node's cards in micro-GPU; None where a share of a card is not known.

    `capacity` are whole cards: what is `allocatable`, what is sick, and what is `unpartitioned`.
    """

    capacity: int | None
    allocatable: int | None
    unpartitioned: int

    @classmethod
    def of(
        cls,
        capacity: Resources,
        allocatable: Resources,
        *,
        product: str,
        replicas: int,
        count: int | None = None,
    ) -> "Cards":
        """
        The cards of a node.

        Args:
            capacity: units by resource, sick ones included.
            allocatable: units by resource that may be given out.
            product: as in `domain.quantity.card_share`.
            replicas: as in `domain.quantity.card_share`.
            count: physical cards of the node; None where nobody tells, then MIG instances lie on as few
                cards as can hold them.

        >>> Cards.of({"nvidia.com/mig-3g.40gb": 2}, {}, product="", replicas=1)
        Cards(capacity=1000000, allocatable=0, unpartitioned=142857)
        """
        offered = offered_micro_gpus(capacity, product=product, replicas=replicas)
        free = offered_micro_gpus(allocatable, product=product, replicas=replicas)
        if offered is None:
            return cls(capacity=None, allocatable=free, unpartitioned=0)
        cut, whole = _parts(capacity, product, replicas)
        least = math.ceil(cut)
        # A count that cannot be is none.
        cards = least if not cut or count is None else max(count - math.ceil(whole), least)
        left = cards * MICRO_PER_GPU - (offered - math.floor(whole * MICRO_PER_GPU)) if cut else 0
        return cls(capacity=offered + left, allocatable=free, unpartitioned=left)


def count_of(labels: Mapping[str, str]) -> int | None:
    """
    Physical cards by a node's label; None where it is missing, unreadable, or counts instances of MIG.

    >>> [count_of({COUNT_LABEL: text}) for text in ("8", "", "²")]
    [8, None, None]
    """
    text = labels.get(COUNT_LABEL, "")
    counts_instances = "-MIG-" in labels.get(PRODUCT_LABEL, "")
    return int(text) if text.isdecimal() and not counts_instances else None


def _parts(resources: Resources, product: str, replicas: int) -> tuple[Fraction, Fraction]:
    """Cards that MIG instances make up, and all others."""
    cut = whole = Fraction(0)
    for name, count in resources.items():
        share = card_share(name, product=product, replicas=replicas) or Fraction(0)
        if name.startswith("nvidia.com/mig-") or "-MIG-" in product:
            cut += share * count
        elif is_gpu_resource(name):
            whole += share * count
    return cut, whole
