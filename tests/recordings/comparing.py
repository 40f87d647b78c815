"""Comparing what the product says of a recording with the recording's ground truth."""

import gzip
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from collector.recording import import_recording
from domain.tenant import Rule, Tenancy
from service.refresh import Refresher
from store.embedded import Store
from tests.shared import shared

# Stamps are whole seconds, cut off: the truth lies up to a second later. Its own two clocks
# differ by up to 0.12 s ("bound diff" in the recordings' README).
RESOLUTION_SECONDS = 1.0
CLOCKS_SECONDS = 0.15

TENANCY = Tenancy(
    teams=(Rule(from_namespace_label="team"),),
    users=(Rule(from_label="user"),),
    service_classes=(
        Rule(priority_class="interactive", value="interactive"),
        Rule(priority_class="training", value="batch"),
        Rule(priority_class="batch*", value="best_effort"),
    ),
)


@dataclass
class Comparison:
    """How many values of one kind were compared, and how far the worst one lies off."""

    name: str
    differences: list[tuple[float, str]] = field(default_factory=list)

    def compare(self, ours: Any, truth: float, whose: str) -> None:
        """Note truth less ours, in the unit of both; a value that is missing is infinitely far off."""
        self.differences.append((float("inf") if ours is None else truth - ours, whose))

    @property
    def count(self) -> int:
        """Values compared."""
        return len(self.differences)

    @property
    def worst(self) -> tuple[float, str]:
        """The difference farthest from none, and whose it is."""
        return max(self.differences, key=lambda item: abs(item[0]), default=(0.0, ""))

    def outside(self, low: float, high: float) -> list[tuple[float, str]]:
        """Differences outside [low, high]."""
        return [item for item in self.differences if not low <= item[0] <= high]

    @override
    def __str__(self) -> str:
        worst, whose = self.worst
        return f"{self.name:<28} compared {self.count:>5}   worst {worst:+.3f}  {whose}"


def stamps_agree(comparison: Comparison) -> bool:
    """Whether all lie within the resolution of the stamps."""
    return not comparison.outside(-CLOCKS_SECONDS, RESOLUTION_SECONDS + CLOCKS_SECONDS)


def imported(name: str) -> Store:
    """A store that holds that recording."""
    store = Store.open(None)
    import_recording(shared(f"data/recorded/{name}"), cluster=name, sink=store)
    Refresher(store=store, tenancy=TENANCY).refresh()
    return store


def ground_truth(name: str) -> dict[str, Any]:
    """The recording's ground truth."""
    path: Path = shared(f"data/recorded/{name}") / "ground_truth.json.gz"
    with gzip.open(path) as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


def show(*lines: object, sep: str = " ", end: str = "\n") -> None:
    """Print what was compared: the figures are part of the test's answer (pytest -s, or CI's log)."""
    sys.stdout.write(sep.join(map(str, lines)) + end)


def rows(store: Store, sql: str, **params: object) -> list[dict[str, Any]]:
    """Rows of the store; a test knows what is in their columns."""
    return [dict(row) for row in store.rows(sql, params)]


def by(found: Iterable[dict[str, Any]], *keys: str) -> dict[Any, dict[str, Any]]:
    """Rows by one column, or by a tuple of columns."""
    return {(row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys)): row for row in found}
