"""When an Event first and last happened and how often, in each form that recorders write."""

import pytest

from tests.collector.objects import EVENT, at, intake, metadata, stamp
from tests.fakes import MemorySink

EVENT_TIMES: dict[str, tuple[dict[str, object], tuple[int, int, int]]] = {
    "of the old recorder": ({"firstTimestamp": stamp(1), "lastTimestamp": stamp(9), "count": 4}, (1, 9, 4)),
    "of the new one": ({"eventTime": stamp(1)}, (1, 1, 1)),
    "of a series": (
        {"eventTime": stamp(1), "series": {"count": 5, "lastObservedTime": stamp(30)}, "lastTimestamp": None},
        (1, 30, 5),
    ),
    "of the old one in the new view": (
        {"deprecatedFirstTimestamp": stamp(2), "deprecatedLastTimestamp": stamp(7), "deprecatedCount": 3},
        (2, 7, 3),
    ),
}


@pytest.mark.parametrize("what", EVENT_TIMES)
def test_an_event_tells_when_it_last_happened_and_how_often(what: str) -> None:
    written, (first, last, count) = EVENT_TIMES[what]
    sink = MemorySink()
    taking = intake(sink)
    read = {"apiVersion": "v1", "kind": "Event", "metadata": metadata("e", 5), **written}
    taking.see(EVENT, "ADDED", read, at(60))
    taking.flush()
    assert [(one.first_ms, one.last_ms, one.count) for one in sink.events] == [(at(first), at(last), count)]
