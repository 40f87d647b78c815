"""Nothing has happened a day after it was seen: when it was seen is used, and it is counted, once."""

import pytest

from collector.kube.pod import KIND
from domain.facts import Moment
from tests.collector.objects import POD, at, intake, pod, stamp
from tests.fakes import MemorySink

OF_THE_FUTURE = "a container of the future; when it was seen is used"
MOMENTS = {Moment.CONTAINER_STARTED, Moment.CONTAINER_ENDED, Moment.ENDED}


def ended(started: str, finished: str, version: int) -> dict[str, object]:
    run = {"exitCode": 0, "startedAt": started, "finishedAt": finished}
    containers = [{"name": "main", "state": {"terminated": run}}]
    return pod("p", version, status={"phase": "Succeeded", "containerStatuses": containers})


@pytest.mark.parametrize("finished", ["2026-03-03T09:01:41Z", "2100-01-01T00:00:00Z", "2262-01-01T00:00:00Z"])
@pytest.mark.parametrize("started", [stamp(10), "2100-01-01T00:00:00Z"])
def test_what_is_of_the_future_happened_until_it_was_seen(started: str, finished: str) -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("p", 1), at(50))
    for again in range(2):
        taking.see(POD, "MODIFIED", ended(started, finished, 2 + again), at(100 + again / 2))
        taking.flush()
        taking = intake(sink)  # as after a restart
    began = (at(10), None) if started == stamp(10) else (at(100), at(50))
    assert [
        (one.moment, one.at_ms, one.earliest_ms) for one in sink.transitions if one.moment in MOMENTS
    ] == [
        (Moment.CONTAINER_STARTED, *began),
        (Moment.CONTAINER_ENDED, at(100), at(50)),
        (Moment.ENDED, at(100), at(50)),
    ]
    assert [(one.source, one.because, one.count) for one in sink.set_aside] == [(KIND, OF_THE_FUTURE, 1)]


def test_clocks_may_differ_by_a_day() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", ended(stamp(10), "2026-03-03T09:01:40Z", 1), at(100))
    taking.flush()
    assert max(one.at_ms for one in sink.transitions) == at(100 + 86_400)
    assert not sink.set_aside
