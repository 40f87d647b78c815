"""Comparing the lives that come of a schedule of trouble with those of the undisturbed run."""

from functools import cache
from typing import Any

import pytest

from domain.facts import Batch
from service.refresh import Refresher
from store.embedded import Store
from tests.collector_live.schedules import SCENES, Scene, batch_of, playing, undisturbed
from tests.recordings.comparing import TENANCY, rows

TROUBLES_PER_STEP = 2
# What is known of an instant that nobody stamped: it lies after this one. A list in between is one
# more sight of an object, so that with trouble we may know it closer.
EARLIEST = ("start_earliest_ms", "ended_earliest_ms", "bound_earliest_ms", "released_earliest_ms")
TABLES = {
    "workload": "select * from workload order by all",
    "span": "select * from span order by workload_uid, start_ms, end_ms, state",
    "attempt": "select * from attempt order by all",
    "holding": "select * from holding order by workload_uid, pod_uid, bound_ms, attempt",
    "run": "select * from run order by all",
    "eviction": "select * from eviction order by all",
    "member_wait": "select * from member_wait order by all",
    "reservation": "select * from reservation order by all",
    "member": "select * from member order by all",
    "node_span": "select * from node_span order by all",
    "queue_span": "select * from queue_span order by all",
}


def lives(batch: Batch) -> dict[str, list[dict[str, Any]]]:
    """All that is derived from these facts."""
    store = Store.open(None)
    store.append(batch)
    Refresher(store=store, tenancy=TENANCY).refresh()
    found = {name: rows(store, select) for name, select in TABLES.items()}
    store.close()
    return found


@cache
def lives_without_trouble(scene: Scene) -> dict[str, list[dict[str, Any]]]:
    return lives(undisturbed(scene))


def without_earliest(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{column: value for column, value in row.items() if column not in EARLIEST} for row in table]


def earlier_than_undisturbed(scene: Scene, found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Rows that know an instant less closely than without trouble."""
    return [
        row
        for table, expected in lives_without_trouble(scene).items()
        for row, usual in zip(found[table], expected, strict=True)
        for column in EARLIEST
        if usual.get(column) is not None and (row[column] is None or row[column] < usual[column])
    ]


def seeds(first: int, end: int) -> list[Any]:
    """Seeds of schedules; all but the first 30 are for the long run."""
    return [
        pytest.param(seed, marks=[pytest.mark.long] if seed >= first + 30 else [])
        for seed in range(first, end)
    ]


def play(seed: int) -> None:
    """Play the schedule of this seed; its lives are those of the undisturbed run."""
    scene = SCENES[seed % len(SCENES)]
    with playing(scene, seed) as (playing_now, sink):
        playing_now.run(scene, troubles_per_step=TROUBLES_PER_STEP)
    found = lives(batch_of(sink))
    for table, expected in lives_without_trouble(scene).items():
        assert without_earliest(found[table]) == without_earliest(expected), table
    assert earlier_than_undisturbed(scene, found) == []
