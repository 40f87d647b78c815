"""Why arranged workloads of the recordings wait, by `expected_reasons.yaml`."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tests.recordings.comparing import ground_truth
from tests.shared import shared

FILE = Path(__file__).parent / "expected_reasons.yaml"
IDLE = ("held", "queued", "checking", "placing", "starting", "backoff")
# What ends a wait happens within so many seconds before it is told: the stamps of objects are whole seconds.
SETTLES_SECONDS = 2.0


@dataclass(frozen=True)
class Expected:
    """The table of one recording, and the `expect` text of each of its workloads."""

    rows: list[dict[str, Any]]
    disagreements: list[dict[str, Any]]
    texts: Mapping[str, str]

    def reason(self, name: str, seconds: float, state: str | None = None) -> str:
        """What is expected of a workload at an instant; empty where nothing is arranged."""
        for row in self.of(name):
            if "reason" not in row or not row.get("from", 0) <= seconds <= row.get("until", 1e9):
                continue
            if state is None or state in row.get("states", IDLE):
                return str(row["reason"])
        return ""

    def of(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a workload: those that name it, else those of its text."""
        mine = [row for row in self.rows if row["expect"] == self.texts.get(name)]
        named = [row for row in mine if name in row.get("workloads", ())]
        yield from named or [row for row in mine if "workloads" not in row]

    def explained(self, name: str, seconds: float, found: str) -> bool:
        """Whether the table says why this is found instead."""
        return any(
            (one["workload"], one["found"]) == (name, found)
            and one.get("from", 0) <= seconds <= one.get("until", 1e9)
            for one in self.disagreements
        )


@lru_cache
def expected(recording: str) -> Expected:
    """The table of a recording."""
    table = yaml.safe_load(FILE.read_text())[recording]
    return Expected(table["rows"], table["disagreements"], texts(recording))


def texts(recording: str) -> dict[str, str]:
    """The `expect` text of each workload that has one."""
    found: dict[str, str] = {}
    with gzip.open(shared(f"data/recorded/{recording}/submit.jsonl.gz"), "rt") as lines:
        for line in lines:
            told = json.loads(line)
            if told.get("expect"):
                found[told["name"]] = told["expect"]
    for workload in ground_truth(recording).get("workloads") or ():
        if workload["expect"]:
            found[workload["name"]] = workload["expect"]
    return found
