"""Which nodes a pod may stand on: what it wants of them, against their labels and taints."""

from functools import lru_cache

import msgspec
from msgspec.structs import replace

from domain.placement import Placement

_PLACEMENT = msgspec.json.Decoder(Placement)
_LABELS = msgspec.json.Decoder(dict[str, str])
_TAINTS = msgspec.json.Decoder(tuple[str, ...])


def written(placement: Placement | None) -> str:
    """A placement as a row has it; empty where any untainted node will do."""
    return "" if placement is None else msgspec.json.encode(placement, order="sorted").decode()


def written_of_node(said: dict[str, str] | tuple[str, ...]) -> str:
    """A node's labels or taints as a row has them."""
    return msgspec.json.encode(said, order="sorted").decode()


@lru_cache(maxsize=65_536)
def allows(wants: str, of_flavor: str, node: str, labels: str, taints: str) -> bool:
    """
    Whether a pod may stand on a node.

    Args:
        wants: what the pod wants.
        of_flavor: what its Kueue flavor adds to that; empty without one.
        node: the node's name.
        labels: of the node; as `wants`, as rows have them.
        taints: of the node, as rows have them.
    """
    placement = _placement(wants)
    if of_flavor:
        flavor = _placement(of_flavor)
        placement = replace(placement, tolerations=placement.tolerations + flavor.tolerations)
        if any(_labels(labels).get(key) != value for key, value in flavor.labels.items()):
            return False
    return placement.allows(node, _labels(labels), _TAINTS.decode(taints))


@lru_cache(maxsize=4096)
def _placement(wants: str) -> Placement:
    return _PLACEMENT.decode(wants) if wants else Placement()


@lru_cache(maxsize=4096)
def _labels(text: str) -> dict[str, str]:
    return _LABELS.decode(text)
