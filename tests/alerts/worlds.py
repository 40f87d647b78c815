"""
Small worlds in which something goes wrong and right again, played for the exporter: `worlds/<alert>.yaml`.

A world has rows of the derived tables, as golden cases have, with minutes from its start for instants
(`..._min`). It is measured every `step`, as far as its alert needs, and scraped. `states` has a letter per
evaluation: a dot where the alert is silent, `!` where it fires. `text` is what it says at one of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from alerts.declared import Declared, declared, read_by
from alerts.exporter import Exporter
from analytics.evaluate import evaluate, exported_asks, parameters
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.window import parse_duration, parse_instant
from store.embedded import Store
from tests.golden.cases import _once_more, read

FOLDER = Path(__file__).parent / "worlds"
START_MS = parse_instant("2026-01-02T00:00:00Z")
_MINUTE_MS = 60_000
BY_NAME: Mapping[str, Declared] = {each.rule.name: each for each in declared(REGISTRY)}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world as it is written."""

    alert: Declared
    step: timedelta
    states: str
    text: Mapping[str, Any]
    given: Mapping[str, list[dict[str, Any]]]
    policy: Policy

    @classmethod
    def read(cls, file: Path) -> "World":
        """The world of a file."""
        content = read(file)
        return cls(
            alert=BY_NAME[file.stem],
            step=parse_duration(content["step"]),
            states=content["states"].replace(" ", ""),
            text=content["text"],
            given={table: [_with_instants(row) for row in rows] for table, rows in content["given"].items()},
            policy=Policy(**content.get("policy", {})),
        )

    def seconds(self, place: int) -> int:
        """When an evaluation is, from the start."""
        return round(place * self.step.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one measurement gave: the samples by metric, and the text of the scrape."""

    samples: Mapping[str, Sequence[Sample]]
    scrape: str


@dataclass(slots=True)
class _Moving:
    """A clock that stands where it is put; promtool's begins at 0."""

    at_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms


def files() -> list[Path]:
    """All worlds."""
    return sorted(FOLDER.glob("*.yaml"))


def play(world: World, places: Iterable[int]) -> list[Played]:
    """A measurement and a scrape at each of these evaluations."""
    registry = {name: REGISTRY[name] for name in read_by(world.alert)}
    clock = _Moving()
    exporter = Exporter(registry, clock)
    played = []
    with _once_more(world.given) as store:
        for place in places:
            clock.at_ms = world.seconds(place) * 1000
            as_of_ms = START_MS + clock.at_ms
            found = {name: _measured(store, name, as_of_ms, world.policy) for name in registry}
            exporter.publish(
                [
                    Measurement(metric=name, as_of_ms=as_of_ms, sample=sample)
                    for name, samples in found.items()
                    for sample in samples
                ],
                as_of_ms,
            )
            played.append(Played(samples=found, scrape=exporter.text().decode()))
    return played


def _measured(store: Store, name: str, as_of_ms: int, policy: Policy) -> list[Sample]:
    metric = REGISTRY[name]
    return [
        sample
        for ask in exported_asks(metric, as_of_ms, policy)
        for sample in evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    ]


def _with_instants(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        (f"{name.removesuffix('_min')}_ms" if name.endswith("_min") else name): (
            START_MS + value * _MINUTE_MS if name.endswith("_min") and value is not None else value
        )
        for name, value in row.items()
    }
