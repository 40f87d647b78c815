"""GPUs, CPUs and nodes in Slurm's lists of trackable resources, such as `cpu=12,gres/gpu:a100=4`."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from collector.imports.row import GPU, SHARES
from domain.errors import QuantityError
from domain.objects import Resources

_MOST: Final = 1_000_000
_COUNT: Final = re.compile(r"(\d{1,12})([KMGkmg]?)")
_TIMES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
# Where its GPUs are wired or which they are, such as `(S:0-1)` and `(IDX:0,2)`.
_WHICH: Final = re.compile(r"\([^)]*\)")
_MODEL: Final = re.compile(r"\w[\w.+ -]*")
# More than any machine holds, each of its GPUs cut into the most slices: `gpu:3090` is a model, not a count.
_MOST_OF_A_NODE: Final = 256


class Size(NamedTuple):
    """CPUs and nodes; None where nobody tells."""

    cpus: int | None
    nodes: int | None


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
def size_in_tres(text: str) -> Size:
    """
    The CPUs and nodes of a list of trackable resources; a count that is none is not told.

    >>> size_in_tres("billing=12,cpu=12,gres/gpu=2,node=1"), size_in_tres("node=2")
    (Size(cpus=12, nodes=1), Size(cpus=None, nodes=2))
    """
    told = dict(item.split("=", 1) for item in text.split(",") if "=" in item)
    return Size(cpus=told_count(told.get("cpu", "")), nodes=told_count(told.get("node", "")))


def told_count(text: str) -> int | None:
    """
    A count that need not be told; None for what is none.

    >>> told_count("12"), told_count("2K"), told_count(""), told_count("many")
    (12, 2048, None, None)
    """
    try:
        return _count(text, text)
    except QuantityError:
        return None


@lru_cache(maxsize=4096)
def gpus_in_gres(text: str, nodes: int | None) -> Gpus:
    """
    The GPUs of the older list of generic resources, which is per node; of None nobody tells how many nodes.

    Source: sbatch(1), --gres: name[[:type]:count], the count being one where it is not told.

    >>> gpus_in_gres("gpu:a100:4", 2)
    Gpus(resources={'nvidia.com/gpu': 8}, model='a100')

    Raises:
        QuantityError: what stands there of GPUs cannot be read, or its nodes are unknown.
    """
    total = 0
    used: list[str] = []
    for item in _WHICH.sub("", text).split(","):
        model, count = _of_a_node(item.strip())
        if count and nodes is None:
            message = f"{item[:80]!r}: GPUs of each node, and nobody tells how many nodes; export NNodes too"
            raise QuantityError(message)
        total += count * (nodes or 0)
        used += [model] if model and count else []
    return _gpus(total, 0, used)


def _of_a_node(item: str) -> tuple[str, int]:
    """
    The model, where one is told, and the count of a generic resource; none of what is no GPU.

    A model may begin with a digit; what is a count is none. These lists are gone since Slurm 21.08.
    """
    name, *rest = re.split("[:=]", item.removeprefix("gres/").removeprefix("gres:"))
    if name.lower() != "gpu":
        return "", 0
    count = _count(item, rest.pop() if rest and _COUNT.fullmatch(rest[-1]) else "1")
    model = ":".join(rest)
    if count > _MOST_OF_A_NODE or (rest and not _MODEL.fullmatch(model)):
        message = f"{item[:80]!r}: expected GPUs of one node, for example gpu:4 or gpu:a100:4"
        raise QuantityError(message)
    return model, count


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
