"""Readings become facts once, in whatever order and however often they come."""

import json

import pytest

from collector.intake import Intake
from domain.facts import Moment, ObjectKind, Transition
from tests.collector.objects import (
    EVENT,
    NAMESPACE,
    POD,
    POD_GROUP,
    WORKLOAD,
    at,
    condition,
    intake,
    metadata,
    pod,
    stamp,
    workload,
)
from tests.fakes import MemorySink


def of(sink: MemorySink, moment: Moment, subject: str = "") -> list[Transition]:
    return [one for one in sink.transitions if one.moment is moment and subject in ("", one.subject)]


def test_a_replayed_reading_changes_nothing() -> None:
    sink = MemorySink()
    taking = intake(sink)
    for _ in range(2):
        taking.see(POD, "ADDED", pod("a", 5), at(1))
        taking.see(POD, "MODIFIED", pod("a", 7, nodeName="n1"), at(2))
        taking.flush()
    assert [one.moment for one in sink.transitions] == [Moment.CREATED, Moment.BOUND]
    assert len(sink.descriptions) == 1


def test_a_replay_in_a_new_process_changes_nothing() -> None:
    sink = MemorySink()
    for _ in range(2):
        taking = intake(sink)
        taking.see(POD, "ADDED", pod("a", 5), at(1))
        taking.see(POD, "DELETED", pod("a", 7, nodeName="n1"), at(2))
        taking.flush()
    assert [one.moment for one in sink.transitions] == [Moment.CREATED, Moment.BOUND, Moment.GONE]


def test_versions_are_compared_as_numbers() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 100, nodeName="n1"), at(1))
    taking.see(POD, "MODIFIED", pod("a", 99), at(2))
    taking.flush()
    assert len(sink.descriptions) == 1


def test_a_deleted_object_says_its_last_words_first() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 5), at(1))
    ended = {"phase": "Failed", "reason": "Evicted"}
    taking.see(POD, "DELETED", pod("a", 6, status=ended), at(9))
    taking.flush()
    assert [(one.moment, one.at_ms) for one in sink.transitions[1:]] == [
        (Moment.ENDED, at(9)),
        (Moment.GONE, at(9)),
    ]
    assert sink.objects["a"].gone_ms == at(9)


def test_a_change_without_a_stamp_lies_after_the_last_sight() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 5), at(10))
    taking.see(POD, "MODIFIED", pod("a", 6, nodeName="n1"), at(20))
    taking.see(POD, "MODIFIED", pod("a", 7, nodeName="n1", priority=3), at(30))
    taking.flush()
    (bound,) = of(sink, Moment.BOUND)
    assert (bound.earliest_ms, bound.at_ms, bound.subject) == (at(10), at(20), "n1")
    assert [(one.from_ms, one.earliest_ms) for one in sink.descriptions] == [
        (at(0), None),
        (at(30), at(20)),
    ]


def test_the_first_request_for_deletion_counts() -> None:
    sink = MemorySink()
    taking = intake(sink)
    for version, deadline, grace in ((5, 60, 30), (6, 40, 0)):
        read = pod("a", version)
        read["metadata"] |= {"deletionTimestamp": stamp(deadline), "deletionGracePeriodSeconds": grace}
        taking.see(POD, "MODIFIED", read, at(31))
    taking.flush()
    assert [one.at_ms for one in of(sink, Moment.DELETE_REQUESTED)] == [at(30)]


def test_a_phase_that_comes_back_is_a_new_transition() -> None:
    sink = MemorySink()
    taking = intake(sink)
    for version, phase in enumerate(("Inqueue", "Inqueue", "Running", "Inqueue"), start=1):
        read = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": metadata("g", version),
            "status": {"phase": phase},
        }
        taking.see(POD_GROUP, "MODIFIED", read, at(version))
        taking.flush()
        taking = intake(sink)  # a restart between all readings
    assert [(one.state, one.at_ms) for one in of(sink, Moment.PHASE)] == [
        ("Inqueue", at(1)),
        ("Running", at(3)),
        ("Inqueue", at(4)),
    ]


def test_restarts_only_grow() -> None:
    sink = MemorySink()
    taking = intake(sink)
    for version, count in enumerate((0, 2, 1, 2, 3), start=1):
        status = {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": count}]}
        taking.see(POD, "MODIFIED", pod("a", version, status=status), at(version))
    taking.flush()
    assert [one.amount for one in of(sink, Moment.RESTARTS)] == [2, 3]


def test_a_second_eviction_behind_the_same_stamp_is_told_by_its_count() -> None:
    sink = MemorySink()
    taking = intake(sink)
    evicted = condition("Evicted", "True", 60, reason="Preempted")
    for version, evictions, seconds in ((1, 1, 61), (2, 1, 70), (3, 2, 80)):
        taking.see(
            WORKLOAD,
            "MODIFIED",
            workload("w", version, conditions=[evicted], evictions=evictions),
            at(seconds),
        )
    taking.flush()
    assert [(one.amount, one.at_ms, one.earliest_ms) for one in of(sink, Moment.CONDITION)] == [
        (1, at(60), None),
        (2, at(80), at(70)),
    ]


def test_another_reason_under_the_same_stamp_happened_when_we_saw_it() -> None:
    sink = MemorySink()
    taking = intake(sink)
    for version, reason, seconds in ((1, "Pending", 11), (2, "Inadmissible", 20), (3, "Pending", 30)):
        read = workload("w", version, conditions=[condition("QuotaReserved", "False", 10, reason=reason)])
        taking.see(WORKLOAD, "MODIFIED", read, at(seconds))
    taking.flush()
    assert [(one.reason, one.at_ms, one.earliest_ms) for one in of(sink, Moment.CONDITION)] == [
        ("Pending", at(10), None),
        ("Inadmissible", at(20), at(11)),
        ("Pending", at(30), at(20)),
    ]


def test_another_message_is_no_transition() -> None:
    sink = MemorySink()
    taking = intake(sink)
    for version, message in ((1, "1 more needed"), (2, "2 more needed")):
        read = workload("w", version, conditions=[condition("QuotaReserved", "False", 10, message=message)])
        taking.see(WORKLOAD, "MODIFIED", read, at(10 + version))
    taking.flush()
    assert len(of(sink, Moment.CONDITION)) == 1
    assert len(sink.descriptions) == 1


def test_the_same_stamp_again_on_a_relist_is_a_sight() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.relisted(POD, [json.dumps(pod("a", 5)).encode()], "10", at(10))
    taking.relisted(POD, [json.dumps(pod("a", 5)).encode()], "20", at(20))
    taking.see(POD, "MODIFIED", pod("a", 21, nodeName="n1"), at(25))
    taking.flush()
    assert [one.earliest_ms for one in of(sink, Moment.BOUND)] == [at(20)]


def test_what_is_missing_in_a_new_list_went_between_the_last_good_reading_and_now() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.relisted(POD, [pod("a", 5), pod("b", 6)], "10", at(10))
    taking.see(POD, "BOOKMARK", {"metadata": {"resourceVersion": "18"}}, at(60))
    taking.see(POD, "ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}, at(70))
    taking.relisted(POD, [pod("b", 6)], "50", at(90))
    taking.flush()
    assert [(one.uid, one.earliest_ms, one.at_ms) for one in of(sink, Moment.GONE)] == [("a", at(60), at(90))]


def test_an_error_is_noted_until_the_next_good_reading() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 5), at(1))
    taking.see(POD, "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "status": "Failure"}, at(2))
    taking.flush()
    assert sink.marks[ObjectKind.POD].last_error.startswith("410 Expired")
    assert sink.marks[ObjectKind.POD].seen_ms == at(1)
    taking.see(POD, "BOOKMARK", {"metadata": {"resourceVersion": "9"}}, at(3))
    taking.flush()
    assert (sink.marks[ObjectKind.POD].last_error, sink.marks[ObjectKind.POD].resource_version) == ("", "9")
    # What is well again was no further restart.
    taking.troubled(POD, "", at(4))
    taking.flush()
    assert (sink.marks[ObjectKind.POD].restarts, sink.marks[ObjectKind.POD].seen_ms) == (1, at(4))


def test_a_restored_cluster_opens_a_new_epoch_in_which_old_versions_do_not_count() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.relisted(POD, [pod("a", 900), pod("b", 901)], "1000", at(10))
    taking.relisted(POD, [pod("a", 50, nodeName="n1")], "100", at(100))
    taking.flush()
    assert [(one.uid, one.earliest_ms, one.at_ms) for one in of(sink, Moment.GONE)] == [
        ("b", at(10), at(100))
    ]
    assert [one.subject for one in of(sink, Moment.BOUND)] == ["n1"]
    mark = sink.marks[ObjectKind.POD]
    assert (mark.epoch, mark.resource_version) == (1, "100")


def test_an_old_list_that_is_replayed_opens_no_epoch_and_ends_nothing() -> None:
    sink = MemorySink()
    for _ in range(2):
        taking = intake(sink)
        taking.relisted(POD, [], "10", at(10))
        taking.see(POD, "ADDED", pod("a", 11), at(11))
        taking.flush()
    assert of(sink, Moment.GONE) == []
    assert sink.marks[ObjectKind.POD].epoch == 0


def test_another_kube_system_is_another_cluster() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.relisted(NAMESPACE, [namespace("kube-system", "k1", 3)], "10", at(10))
    taking.relisted(POD, [pod("a", 5)], "10", at(10))
    taking.relisted(NAMESPACE, [namespace("kube-system", "k2", 4)], "500", at(100))
    taking.relisted(POD, [pod("b", 7)], "500", at(101))
    taking.flush()
    assert {one.uid for one in of(sink, Moment.GONE)} == {"k1", "a"}
    assert {kind: (mark.epoch, mark.cluster_uid) for kind, mark in sink.marks.items()} == {
        ObjectKind.NAMESPACE: (1, "k2"),
        ObjectKind.POD: (1, "k2"),
    }


def namespace(name: str, uid: str, version: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(uid, version, name=name)}


def test_an_event_that_expires_undoes_nothing() -> None:
    sink = MemorySink()
    taking = intake(sink)
    read = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata("e", 5),
        "count": 3,
        "reason": "Killing",
    }
    taking.see(EVENT, "ADDED", read, at(1))
    expired = json.loads(json.dumps(read))
    expired["metadata"]["resourceVersion"] = "9"
    taking.see(EVENT, "DELETED", expired, at(3600))
    taking.see(EVENT, "ADDED", read, at(3601))
    taking.flush()
    assert [(one.count, one.reason) for one in sink.events] == [(3, "Killing")]
    assert sink.transitions == []
    # They are very many: of their state only the version is kept.
    assert (sink.objects["e"].namespace, sink.objects["e"].name) == ("", "")


MALFORMED = {
    "a negative quantity": (pod("x", 3, gpus="-1"), "device count '-1'"),
    "a fraction of a device": (pod("x", 3, gpus="0.5"), "device count '0.5'"),
    "not a number": (pod("x", 3, gpus="nan"), "'nan'"),
    "no quantity": (pod("x", 3, gpus="many"), "'many'"),
    "a count beyond reason": (pod("x", 3, gpus="1E"), "at most 1000000"),
    "no part of a GPU": (
        {**pod("x", 3), "metadata": metadata("x", 3) | {"annotations": {"gpu-fraction": "0"}}},
        "gpu-fraction = '0': expected more than 0",
    ),
    "a list for a map": ({**pod("x", 3), "spec": []}, "Expected `object`, got `array`"),
    "a number too wide": (pod("x", 3, priority=1 << 40), "<= 2147483647"),
    "another kind": ({**pod("x", 3), "kind": "Unheard"}, "kind Unheard (v1): expected Pod"),
    "no uid": ({**pod("x", 3), "metadata": {"name": "x"}}, "has no metadata.uid"),
    "no name": ({**pod("x", 3), "metadata": {"uid": "x"}}, "has no metadata.name"),
    "no time": (pod("x", 3, status={"conditions": [{"type": "PodScheduled", "status": "False",
                "lastTransitionTime": "yesterday"}]}), "expected RFC 3339"),
}  # fmt: skip


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_object_is_set_aside_and_nothing_else_is_lost(what: str) -> None:
    read, because = MALFORMED[what]
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 2), at(1))
    for _ in range(2):
        taking.see(POD, "ADDED", read, at(2))
    taking.see(POD, "ADDED", pod("b", 4), at(3))
    taking.flush()
    assert [one.uid for one in of(sink, Moment.CREATED)] == ["a", "b"]
    (aside,) = sink.set_aside
    assert because in aside.because
    assert (aside.source, aside.observed_ms) == ("Pod", at(2))
    assert aside.count == (2 if what in ("no uid", "no name") else 1)  # a replay is known by its uid


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"type":"ADDED"}', b'{"type":"ADDED","object":{"x":NaN}}', b"\xff\xfe"]
)
def test_a_bad_line_is_set_aside_and_nothing_else_is_lost(line: bytes) -> None:
    sink = MemorySink()
    taking = intake(sink)
    for part in (line, line, json.dumps({"type": "ADDED", "object": pod("a", 2)}).encode()):
        taking.see_line(POD, part, at(1))
    taking.flush()
    assert [one.uid for one in of(sink, Moment.CREATED)] == ["a"]
    assert [one.count for one in sink.set_aside] == [2]


@pytest.mark.parametrize(
    "read", [{"apiVersion": "v1", "kind": "Pod", "metadata": []}, {"metadata": {"uid": 7}}, b"[]", b"{"]
)
def test_an_object_that_does_not_even_say_who_it_is_is_counted(read: dict[str, object] | bytes) -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", read, at(1))
    taking.relisted(POD, [read, pod("a", 2)], "10", at(2))
    taking.relisted(POD, [read], "20", at(3))
    taking.flush()
    assert sum(one.count for one in sink.set_aside) == 3
    assert [one.uid for one in of(sink, Moment.CREATED)] == ["a"]
    assert of(sink, Moment.GONE) == []  # it may be any of those that are missing


def test_an_object_whose_last_reading_is_malformed_is_gone_all_the_same() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 2), at(1))
    taking.see(POD, "DELETED", {**pod("a", 3), "spec": []}, at(5))
    taking.flush()
    assert [one.at_ms for one in of(sink, Moment.GONE)] == [at(5)]
    assert len(sink.set_aside) == 1


def test_a_malformed_item_of_a_list_is_not_gone() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.relisted(POD, [pod("a", 2), pod("b", 3)], "10", at(1))
    taking.relisted(POD, [{**pod("a", 12), "spec": []}], "20", at(5))
    taking.flush()
    assert [one.uid for one in of(sink, Moment.GONE)] == ["b"]


def test_a_full_intake_commits_by_itself() -> None:
    sink = MemorySink()
    taking = Intake("c", sink, sink.known("c"), flush_rows=10)
    for number in range(20):
        taking.see(POD, "ADDED", pod(f"p{number}", number + 1), at(number))
    assert sink.batches == 4  # two rows each: created, described
    assert sink.marks[ObjectKind.POD].resource_version == "20"
    assert len(sink.objects) == 20


def test_a_quiet_intake_commits_no_rows() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", pod("a", 2), at(1))
    taking.flush()
    marks = dict(sink.marks)
    assert taking.flush() == 0
    assert sink.marks == marks


def test_a_condition_that_flips_twice_within_its_second_is_seen_twice() -> None:
    sink = MemorySink()
    for version, status in enumerate(("False", "True", "False", "True"), start=1):
        taking = intake(sink)  # restarts must not lose the order within the second
        for write in (2 * version, 2 * version + 1):  # the second changes nothing of interest
            read = workload("w", write, conditions=[condition("QuotaReserved", status, 10)])
            taking.see(WORKLOAD, "MODIFIED", read, at(10 + version / 10))
        taking.flush()
    assert [one.state for one in of(sink, Moment.CONDITION)] == ["False", "True", "False", "True"]
    assert all(at(10) <= one.at_ms < at(11) for one in of(sink, Moment.CONDITION))
    # The stamp that comes again tells only the second: the flip was seen three and four tenths into it.
    assert [one.at_ms for one in of(sink, Moment.CONDITION)][2:] == [at(10.3), at(10.4)]
