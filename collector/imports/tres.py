"""GPUs in Slurm's lists of trackable resources, such as `billing=12,cpu=12,gres/gpu:a100=4`."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from collector.imports.row import GPU, SHARES
from domain.errors import QuantityError
from domain.objects import Resources

_MOST: Final = 1_000_000
_COUNT: Final = re.compile(r"(\d{1,12})([KMGkmg]?)")
_TIMES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_NODES: Final = re.compile(r"(?:^|,)node=(\d{1,7})(?:,|$)")
# AllocGRES and ReqGRES, gone since Slurm 21.08: `gpu:4`, `gpu:a100:4(S:0-1)` per node.
_GRES: Final = re.compile(r"gpu(?::(?P<model>[A-Za-z][^:(,]*))?(?::(?P<count>\d{1,9}))?(?:\(.*\))?")


class Gpus(NamedTuple):
    """GPU resources, and their model where all are of one."""

    resources: Resources
    model: str


@lru_cache(maxsize=4096)
def gpus_in_tres(text: str) -> Gpus:
    """
    The GPUs of a list of trackable resources.

    `gres/gpu` counts all, `gres/gpu:MODEL` those of a model: they are never added up. Shards and MPS
    shares are parts of GPUs of which nobody says how large they are.

    Source: slurm.conf(5), AccountingStorageTRES.

    >>> gpus_in_tres("cpu=8,gres/gpu=4,gres/gpu:a100=4"), gpus_in_tres("cpu=8").resources
    (Gpus(resources={'nvidia.com/gpu': 4}, model='a100'), {})

    Raises:
        QuantityError: a count of GPUs is none.
    """
    total, shares = None, 0
    models: dict[str, int] = {}
    for item in text.split(","):
        name, _, count = item.partition("=")
        if name == "gres/gpu":
            total = _count(item, count)
        elif name.startswith("gres/gpu:"):
            model = name.removeprefix("gres/gpu:")
            models[model] = models.get(model, 0) + _count(item, count)
        elif name in {"gres/shard", "gres/mps"} or name.startswith(("gres/shard:", "gres/mps:")):
            shares = max(shares, _count(item, count))
    used = [model for model, count in models.items() if count]
    return _gpus(sum(models.values()) if total is None else total, shares, used)


@lru_cache(maxsize=4096)
def gpus_in_gres(text: str, nodes: int) -> Gpus:
    """
    The GPUs of the older list of generic resources, which is per node.

    >>> gpus_in_gres("gpu:a100:4", 2)
    Gpus(resources={'nvidia.com/gpu': 8}, model='a100')
    """
    total = 0
    used: list[str] = []
    for item in re.split(r",(?![^(]*\))", text):
        found = _GRES.fullmatch(item.strip())
        if found is not None:
            total += int(found["count"] or 1) * max(nodes, 1)
            used += [found["model"]] if found["model"] else []
    return _gpus(total, 0, used)


@lru_cache(maxsize=4096)
def nodes_in_tres(text: str) -> int:
    """
    The nodes of a list of trackable resources; 0 where it tells none.

    >>> nodes_in_tres("cpu=8,node=2"), nodes_in_tres("cpu=8")
    (2, 0)
    """
    found = _NODES.search(text)
    return int(found[1]) if found else 0


def _gpus(total: int, shares: int, models: list[str]) -> Gpus:
    if total > _MOST:
        message = f"{total} GPUs: expected at most {_MOST:,}"
        raise QuantityError(message)
    model = models[0] if len(set(models)) == 1 else ""
    if total:
        return Gpus({GPU: total}, model)
    return Gpus({SHARES: shares} if shares else {}, model)


def _count(item: str, count: str) -> int:
    found = _COUNT.fullmatch(count)
    if found is None:
        message = f"{item[:80]!r}: expected a count, for example gres/gpu=4"
        raise QuantityError(message)
    return int(found[1]) * _TIMES[found[2].upper()]
