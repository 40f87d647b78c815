"""Who waited in a window for a first placement, and how long: from a workload's row, or from its spans."""

import pytest

from analytics.waits import FIRST_WAITS
from store.embedded import Store
from tests.store.test_dimensions import CLUSTER, span, workload

# What came of it, its spans (state, start, end), and the row of [100, 200): entry, exit, placed.
WAITS: dict[str, tuple[dict[str, int], list[tuple[str, int, int | None]], tuple[int, int, bool] | None]] = {
    "placed inside": ({"first_placed_ms": 140, "ended_ms": 170}, [("queued", 110, 140)], (0, 30, True)),
    "placed, came before": ({"first_placed_ms": 150, "ended_ms": 190}, [("queued", 80, 150)], (20, 70, True)),
    "gave up inside": ({"ended_ms": 150}, [("queued", 110, 130), ("held", 130, 150)], (0, 20, False)),
    "gave up, came before": (
        {"ended_ms": 160},
        [("queued", 60, 90), ("held", 90, 140), ("queued", 140, 160)],
        (30, 50, False),
    ),
    "gives up later": ({"ended_ms": 250}, [("queued", 150, 250)], (0, 50, False)),
    "goes on": ({}, [("queued", 120, None)], (0, 80, False)),
    "goes on from before": (
        {},
        [("queued", 40, 70), ("held", 70, 130), ("queued", 130, None)],
        (30, 100, False),
    ),
    "was held only": ({"ended_ms": 150}, [("held", 110, 150)], None),
    "was over before": ({"ended_ms": 50}, [("queued", 10, 50)], None),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_first_wait_is_seen_at_either_end_of_the_window(store: Store, name: str) -> None:
    came, spans, expected = WAITS[name]
    rows = {
        "workload": [workload("w", submitted_ms=spans[0][1], **came)],
        "span": [span("w", *each, first=each[0] == "queued") for each in spans],
    }
    store.write_lives(CLUSTER, "w", rows, ("lives", 1))
    told = store.rows(FIRST_WAITS, {"window_start_ms": 100, "as_of_ms": 200})
    found = [(row["entry_ms"], row["exit_ms"], row["placed"]) for row in told]
    assert found == ([] if expected is None else [expected])
