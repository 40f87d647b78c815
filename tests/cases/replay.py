"""Feeding the objects of a case through the product: collector, store, lifecycle."""

import json
from pathlib import Path
from typing import Any

from collector.intake import Intake
from collector.translator import find
from domain.window import parse_instant
from service.refresh import Refresher
from store.embedded import Store
from tests.shared import shared

Json = dict[str, Any]


def case(name: str) -> tuple[Json, Json]:
    """The input and the expected answer of a case."""
    folder = shared(f"data/cases/{name}")
    return json.loads((folder / "input.json").read_text()), json.loads((folder / "expected.json").read_text())


def lines(name: str) -> list[Json]:
    """The lines of the case's stream."""
    path: Path = shared(f"data/cases/{name}") / "input.ndjson"
    return [json.loads(line) for line in path.read_text().splitlines()]


def replay(readings: list[tuple[str, Json, str]]) -> Store:
    """A store in which these (event type, object, observed at) were taken in and cut into lives."""
    store = Store.open(None)
    intake = Intake("c", store, store.known("c"))
    for event_type, read, observed_at in readings:
        group, _, _ = read["apiVersion"].rpartition("/")
        translator = find(group, read["kind"])
        assert translator is not None
        intake.see(translator, event_type, read, parse_instant(observed_at))
    intake.flush()
    Refresher(store=store).refresh()
    return store


def seconds(store: Store, as_of: str) -> list[tuple[str, bool, float]]:
    """Spans up to an instant as (state, whether the first wait, seconds), in order."""
    rows: list[Json] = [dict(row) for row in store.rows("select * from span order by start_ms")]
    end_ms = parse_instant(as_of)
    return [
        (row["state"], row["first_wait"], (min(row["end_ms"] or end_ms, end_ms) - row["start_ms"]) / 1000)
        for row in rows
        if row["start_ms"] < end_ms
    ]
