"""What is gone is forgotten in time, and comes back as itself until then."""

from pathlib import Path

import pytest
from typing_extensions import override

from collector.checkpoints import ANNOTATION
from collector.gone import Gone
from collector.intake import Intake
from collector.kube import pod_said
from domain.facts import Batch, Known, Moment, ObjectKind, ObjectState
from domain.window import LAST_KEPT_MS
from store.embedded import Store
from tests.collector.objects import POD, at, intake, pod
from tests.fakes import MemorySink

HOUR_MS = 3_600_000


def test_what_is_gone_for_long_is_forgotten_and_what_lives_is_not() -> None:
    known = Known()
    taking = Intake("c", MemorySink(), known, forget_after_ms=2 * HOUR_MS)
    taking.see(POD, "ADDED", pod("stays", 1), at(0))
    for number in range(200):
        uid = f"p{number}"
        taking.see(POD, "ADDED", pod(uid, 10 + number), at(0) + number * 60_000)
        taking.see(POD, "DELETED", pod(uid, 5_000 + number), at(0) + number * 60_000 + 1_000)
        taking.flush()
    kept = set(known.objects)
    assert "stays" in kept
    # A pod ends each minute: those of the last two hours, the first and the last included.
    assert len(kept - {"stays"}) == 121


@pytest.mark.parametrize("gone_by", ["the watch", "a list", "a line that cannot be read"])
def test_nothing_is_remembered_of_what_is_gone_for_long(gone_by: str) -> None:
    """Each thing that is looked up by uid holds what the cluster has, not what it ever had."""
    known = Known()
    taking = Intake("c", MemorySink(), known, forget_after_ms=HOUR_MS)
    before = len(pod_said.SAID)
    for number in range(1, 40):
        uid, at_ms = f"gone-{number}", at(0) + number * HOUR_MS // 10
        told = pod(uid, number * 10, nodeName="n1")
        told["metadata"]["annotations"] = {ANNOTATION: "no instant"}
        taking.see(POD, "ADDED", told, at_ms)
        if gone_by == "the watch":
            taking.see(POD, "DELETED", pod(uid, number * 10 + 1), at_ms + 1_000)
        elif gone_by == "a list":
            taking.relisted(POD, [], str(number * 10 + 1), at_ms + 1_000)
        else:
            told["metadata"]["resourceVersion"], told["status"] = str(number * 10 + 1), {"conditions": 7}
            taking.see(POD, "DELETED", told, at_ms + 1_000)
        taking.flush()
    news = taking._news
    assert len(pod_said.SAID) == before
    by_uid = [news._histories, known.keys, known.bodies, taking._annotations._refused]
    assert not any(by_uid)
    assert len(known.objects) == len(news._gone._gone) == 11  # those of the last hour


def test_a_replay_of_what_is_gone_adds_nothing_while_it_is_remembered() -> None:
    sink = MemorySink()
    taking = Intake("c", sink, Known(), forget_after_ms=2 * HOUR_MS)
    for _ in range(2):
        taking.see(POD, "ADDED", pod("a", 1), at(0))
        taking.see(POD, "DELETED", pod("a", 2), at(1))
        taking.flush()
    assert [one.moment for one in sink.transitions] == [Moment.CREATED, Moment.GONE]


def test_an_intake_that_resumes_knows_what_lives_and_what_went_lately(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "facts.duckdb")
    taking = Intake("c", store, store.known("c"))
    for uid, version, gone_ms in (("old", 1, 0), ("new", 3, 3 * HOUR_MS), ("stays", 5, None)):
        taking.see(POD, "ADDED", pod(uid, version), at(0))
        if gone_ms is not None:
            taking.see(POD, "DELETED", pod(uid, version + 1), at(0) + gone_ms)
    taking.flush()
    assert set(store.known("c", gone_within_ms=2 * HOUR_MS).objects) == {"new", "stays"}
    assert set(store.known("c").objects) == {"old", "new", "stays"}
    store.close()


def test_what_came_back_is_not_forgotten() -> None:
    known = Known()
    taking = Intake("c", MemorySink(), known, forget_after_ms=2 * HOUR_MS)
    for uid, version, begin_ms in (("a", 1, 0), ("later", 10, 3 * HOUR_MS)):
        taking.see(POD, "ADDED", pod(uid, version), at(0) + begin_ms)
        taking.see(POD, "DELETED", pod(uid, version + 1), at(1) + begin_ms)
        if uid == "a":
            taking.see(POD, "ADDED", pod(uid, version + 2), at(60))
        taking.flush()
    assert set(known.objects) == {"a", "later"}
    assert known.objects["a"].gone_ms is None


class SinceWhen(MemorySink):
    """Notes since when the known objects of each batch were seen."""

    __slots__ = ("told",)

    @override
    def append(self, batch: Batch) -> int:
        self.told = [*getattr(self, "told", []), batch.seen_since_ms]
        return super().append(batch)


def test_a_batch_says_since_when_its_known_objects_were_seen() -> None:
    sink = SinceWhen()
    taking = intake(sink)
    for second, uid in enumerate(("a", "b", "a", "a", "b"), 1):
        taking.see(POD, "ADDED", pod(uid, second), at(second))
        if second in {2, 4, 5}:
            taking.flush()
    assert sink.told == [LAST_KEPT_MS, at(1), at(2)]


def gone_state(uid: str, gone_ms: int | None) -> ObjectState:
    return ObjectState(
        uid=uid,
        kind=ObjectKind.POD,
        namespace="n",
        name=uid,
        resource_version="1",
        seen_ms=0,
        gone_ms=gone_ms,
    )


def test_an_end_that_a_clock_far_ahead_stamped_keeps_none_behind_it() -> None:
    objects: dict[str, ObjectState] = {}
    gone = Gone(2 * HOUR_MS, objects)
    ends = {"first": 0, "ahead": 1_000 * HOUR_MS, "second": HOUR_MS, "third": 4 * HOUR_MS}
    for uid, gone_ms in ends.items():
        objects[uid] = gone_state(uid, gone_ms)
        gone.add(uid, gone_ms)
    gone.forget()
    assert list(objects) == ["ahead", "third"]


def test_one_that_the_store_knows_with_such_an_end_keeps_none_behind_it() -> None:
    objects = {
        uid: gone_state(uid, at) for uid, at in (("ahead", 1_000 * HOUR_MS), ("first", 0), ("there", None))
    }
    gone = Gone(2 * HOUR_MS, objects)
    gone.forget()
    assert list(objects) == ["ahead", "first", "there"]
    objects["new"] = gone_state("new", 3 * HOUR_MS)
    gone.add("new", 3 * HOUR_MS)
    gone.forget()
    assert list(objects) == ["ahead", "there", "new"]
