"""A clock that was ahead and is set right: what is read now is read now, whatever was stamped before."""

import json
from pathlib import Path

import pytest

from collector.intake import Intake
from collector.journal import Journal, JournaledIntake, JournalFirst
from collector.replay import replay
from domain.facts import Moment, ObjectKind
from tests.collector.objects import POD, at, pod
from tests.fakes import MemorySink


def test_live_readings_go_on_where_a_clock_that_was_set_right_says() -> None:
    sink = MemorySink()
    taking = Intake("c", sink, sink.known("c"))
    taking.relisted(POD, [pod("a", 5)], "10", at(3600))
    taking.flush()
    taking = Intake("c", sink, sink.known("c"), live=True)
    taking.relisted(POD, [pod("a", 5)], "10", at(60))
    taking.flush()
    # What was seen before lies an hour ahead, and now it is a minute.
    assert (sink.marks[ObjectKind.POD].seen_ms, sink.objects["a"].seen_ms) == (at(60), at(60))
    taking.see(POD, "BOOKMARK", {"metadata": {"resourceVersion": "11"}}, at(70))
    taking.troubled(POD, "410 Expired", at(80))
    taking.accepted(POD, at(75))
    taking.relisted(POD, [], "12", at(90))
    taking.flush()
    assert [(one.earliest_ms, one.at_ms) for one in sink.transitions if one.moment is Moment.GONE] == [
        (at(70), at(90))
    ]
    assert sink.marks[ObjectKind.POD].last_error == ""


def test_a_trouble_that_ended_ended_also_by_a_clock_that_was_set_right() -> None:
    sink = MemorySink()
    taking = Intake("c", sink, sink.known("c"), live=True)
    taking.relisted(POD, [pod("a", 5)], "10", at(3600))
    for taken_up in (taking.accepted, lambda kind, at_ms: taking.troubled(kind, "", at_ms)):
        taking.troubled(POD, "410 Expired", at(60))
        taken_up(POD, at(70))
        taking.flush()
        assert sink.marks[ObjectKind.POD].last_error == ""
    assert sink.marks[ObjectKind.POD].seen_ms == at(70)


@pytest.mark.parametrize(("live", "earliest_ms"), [(True, at(0)), (False, at(60))])
def test_a_sight_of_the_future_bounds_no_change(*, live: bool, earliest_ms: int) -> None:
    sink = MemorySink()
    taking = Intake("c", sink, sink.known("c"), live=live)
    taking.see(POD, "ADDED", pod("a", 5), at(3600))
    taking.see(POD, "MODIFIED", pod("a", 6, gpus=2, nodeName="n1"), at(60))
    taking.flush()
    (bound,) = [one for one in sink.transitions if one.moment is Moment.BOUND]
    # Of a live reading only the creation is to be believed; a replay may be in any order.
    assert (bound.earliest_ms, bound.at_ms) == (earliest_ms, at(60))
    assert (sink.descriptions[1].earliest_ms or 0) <= sink.descriptions[1].from_ms == at(60)


def test_a_journal_of_before_and_after_gives_the_same_facts(tmp_path: Path) -> None:
    told, again = MemorySink(), MemorySink()
    # Ahead; set right, and a delete was missed; the cluster was restored, and the clock was ahead once more.
    lists = ((3600, "10", ("a", "b")), (60, "20", ("b",)), (7200, "15", ()), (90, "30", ()))
    for seconds, version, pods in lists:
        journal = Journal(tmp_path, most_bytes=1 << 20)
        sink = JournalFirst(told, journal)
        taking = JournaledIntake(Intake("c", sink, sink.known("c"), live=True), journal)
        taking.relisted(POD, [json.dumps(pod(uid, 5)).encode() for uid in pods], version, at(seconds))
        taking.flush()
    replay(tmp_path, "c", again)
    assert again.transitions == told.transitions
    assert (again.objects, again.marks) == (told.objects, told.marks)
    assert [one.uid for one in told.transitions if one.moment is Moment.GONE] == ["a", "b"]
    assert told.marks[ObjectKind.POD].seen_ms == at(90)
