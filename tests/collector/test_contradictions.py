"""Readings that contradict what is known already."""

from domain.facts import Moment, ObjectKind
from tests.collector.objects import NAMESPACE, POD, at, intake, metadata, pod
from tests.fakes import MemorySink

NAMESPACE_READ = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata("a", 2, name="red")}


def test_a_change_that_was_seen_before_the_last_sight_has_no_bounds_that_cross() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 5), at(10))
    # Somebody set the clock back.
    taking.see(POD, "MODIFIED", pod("a", 6, nodeName="n1"), at(4))
    taking.flush()
    (bound,) = [one for one in sink.transitions if one.moment is Moment.BOUND]
    assert (bound.earliest_ms, bound.at_ms) == (at(4), at(4))


def test_a_malformed_object_with_the_uid_of_another_kind_changes_nothing() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(NAMESPACE, "ADDED", NAMESPACE_READ, at(1))
    taking.see(POD, "DELETED", {**pod("a", 9), "spec": []}, at(5))
    taking.flush()
    assert all(one.moment is not Moment.GONE for one in sink.transitions)
    assert (sink.objects["a"].kind, sink.objects["a"].resource_version) == (ObjectKind.NAMESPACE, "2")
    assert len(sink.set_aside) == 1
