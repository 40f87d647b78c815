"""Amounts, resources and lists of names, as a sentence has them."""

from collections.abc import Mapping
from typing import Final

from analytics.why.reason import Finding, Value

# Of a list so many are named.
NAMED: Final = 3
_GPU: Final = "nvidia.com/gpu"
MEMORY: Final = "memory"
_STORAGE: Final = "ephemeral-storage"
UNITS: Final[Mapping[str, str]] = {
    _GPU: "GPUs", "cpu": "CPUs", MEMORY: "GiB of memory", _STORAGE: "GiB of local storage",
    "pods": "places for pods",
}  # fmt: skip
LACKING: Final[Mapping[str, str]] = {"cpu": "CPUs", _STORAGE: "local storage", "pods": "places for pods"}


def gib(number: float) -> int | float:
    """
    Bytes in GiB, as far as one reads them.

    >>> gib(2**35), gib(1.5 * 2**30)
    (32, 1.5)
    """
    found = round(number / 2**30, 1)
    return int(found) if found == int(found) else found


def unit(finding: Finding) -> str:
    """What its numbers count; GPUs where it does not say."""
    of = str(finding.evidence.get("resource", _GPU))
    return UNITS.get(of, of)


def amount(number: Value, counted: str) -> str:
    """
    So many of what is counted.

    >>> amount(1, "GPUs"), amount(3, "GPUs"), amount(1, "nvidia.com/mig-1g.5gb")
    ('1 GPU', '3 GPUs', '1 nvidia.com/mig-1g.5gb')
    """
    return f"{number} {'GPU' if (number, counted) == (1, 'GPUs') else counted}"


def flavor(said: Mapping[str, Value]) -> str:
    """Of which flavor the numbers are; empty where that is not told."""
    return f" of flavor {said['flavor']}" if "flavor" in said else ""


def names(told: object) -> str:
    """
    A few names, and how many more.

    >>> names(("a", "b", "c", "d"))
    'a, b, c and 1 more'
    """
    listed = [str(name) for name in told] if isinstance(told, tuple | list) else [str(told)]
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def resource(key: str) -> str:
    """
    What a ResourceQuota limits, as one reads it.

    >>> resource("requests.nvidia.com/gpu"), resource("pods")
    ('GPUs', 'pods')
    """
    name = key.removeprefix("requests.")
    return "GPUs" if name == _GPU else name


def beside(said: Mapping[str, Value], name: str) -> str:
    """An amount of what is short, with its unit."""
    counted = UNITS.get(str(said["short_of"]), str(said["short_of"]))
    return f"{bare(said, name)} {'CPU' if (said[name], counted) == (1, 'CPUs') else counted}"


def bare(said: Mapping[str, Value], name: str) -> str:
    """The same without."""
    value = said[name]
    if said["short_of"] in {MEMORY, _STORAGE} and isinstance(value, int | float):
        return f"{gib(value)}"
    return f"{value}"


def little_of(resources: Value) -> str:
    """
    Resources of which there is too little.

    >>> little_of(("cpu",)), little_of(("memory",)), little_of(("cpu", "memory"))
    ('few CPUs', 'little memory', 'few CPUs or too little memory')
    """
    listed = resources if isinstance(resources, tuple) else (str(resources),)
    words = [LACKING.get(name, name) for name in listed]
    return " or too ".join(f"{'few' if word.endswith('s') else 'little'} {word}" for word in words)
