"""A kind that the cluster serves no more takes its objects along."""

from domain.facts import Moment
from tests.collector.objects import POD, WORKLOAD, at, intake, pod
from tests.fakes import MemorySink


def test_a_kind_that_is_removed_takes_its_objects_along_also_after_the_cluster_was_made_anew() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.relisted(POD, [pod("a", 5)], "10", at(10))
    taking.identify("one")
    taking.identify("two")
    for seconds in (20, 30):
        taking.removed(POD, at(seconds))
    taking.removed(WORKLOAD, at(30))  # it was never read
    taking.flush()
    assert [
        (one.uid, one.earliest_ms, one.at_ms) for one in sink.transitions if one.moment is Moment.GONE
    ] == [("a", at(10), at(20))]
