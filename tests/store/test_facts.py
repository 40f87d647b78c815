"""Facts: appended whole, numbered, and read back as they were."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from domain.errors import StoreError
from domain.facts import Batch, Moment, ObjectKind, SetAside
from store.embedded import Store
from tests.store.facts_made_up import CLUSTER, bound, described, marked, one_pod, sighted, state


def test_facts_come_back_as_they_went_in(store: Store) -> None:
    late = structs.replace(bound("a", 90), earliest_ms=80, reason="Zeit", detail="später 'x'", amount=3)
    batch = Batch(
        cluster=CLUSTER,
        transitions=[late, bound("a", 50), bound("b", 70)],
        descriptions=[described("a", 50, b'{"node":"n\xc3\xbc1"}')],
        events=[sighted("e", 1)],
    )
    assert store.append(batch) == 5
    assert store.facts_of(CLUSTER) == (batch.transitions, batch.descriptions)
    assert store.facts_of(CLUSTER, {"b"}) == ([bound("b", 70)], [])
    assert store.facts_of(CLUSTER, []) == ([], [])
    assert store.facts_of("another") == ([], [])
    assert store.events_of(CLUSTER) == batch.events


def test_facts_come_back_with_their_enums(store: Store) -> None:
    store.append(one_pod("a", 1))
    [[transition], [description]] = store.facts_of(CLUSTER)
    assert (transition.kind, transition.moment) == (ObjectKind.POD, Moment.BOUND)
    assert isinstance(transition.moment, Moment)
    assert isinstance(description.kind, ObjectKind)


def test_descriptions_and_events_are_asked_by_kind_and_reason(store: Store) -> None:
    node = described("n", 1, b"{}", kind=ObjectKind.NODE)
    scheduled = sighted("f", 1, reason="Scheduled")
    store.append(
        Batch(
            cluster=CLUSTER,
            descriptions=[node, described("a", 2, b"{}")],
            events=[sighted("e", 1), sighted("e", 2), scheduled],
        )
    )
    assert store.descriptions(CLUSTER, [ObjectKind.NODE, ObjectKind.JOB]) == [node]
    assert store.events_of(CLUSTER, ["Scheduled"]) == [scheduled]
    assert [event.count for event in store.events_of(CLUSTER, ["Preempted"])] == [1, 2]


def test_an_intake_resumes_from_what_is_known(store: Store) -> None:
    store.append(one_pod("a", 1))
    store.append(one_pod("gone", 2))
    later = Batch(
        cluster=CLUSTER,
        transitions=[bound("a", 3, node="n2")],
        descriptions=[described("a", 3, b'{"node":"n2"}')],
        objects={"a": state("a", 3), "gone": state("gone", 3, gone_ms=3)},
        marks={ObjectKind.POD: marked(3)},
    )
    store.append(later)

    known = store.known(CLUSTER)

    assert known.objects == later.objects
    assert known.keys == {"a": [bound("a", 1).key, bound("a", 3, node="n2").key]}
    assert known.bodies == {"a": b'{"node":"n2"}'}
    assert known.marks == later.marks
    assert store.known("another").objects == {}


def test_appending_states_and_marks_again_changes_nothing(store: Store) -> None:
    store.append(one_pod("a", 5))
    before = store.known(CLUSTER), store.marks()
    again = Batch(cluster=CLUSTER, objects={"a": state("a", 5)}, marks={ObjectKind.POD: marked(5)})
    assert store.append(again) == 0
    assert (store.known(CLUSTER), store.marks()) == before
    assert store.rows("select count(*) as n from object_state") == [{"n": 1}]


def test_a_mark_without_facts_is_kept(store: Store) -> None:
    store.append(
        Batch(cluster=CLUSTER, marks={ObjectKind.POD: replace(marked(9), last_error="403", restarts=2)})
    )
    [mark] = store.marks()
    assert mark == {
        "cluster": CLUSTER,
        "kind": "Pod",
        "resource_version": "9",
        "epoch": 1,
        "seen_ms": 9,
        "cluster_uid": "",
        "last_error": "403",
        "restarts": 2,
    }
    assert store.clusters() == [CLUSTER]


def test_an_empty_batch_is_nothing(store: Store) -> None:
    assert store.append(Batch(cluster=CLUSTER)) == 0
    assert store.clusters() == []


def test_a_batch_that_fails_leaves_nothing_of_itself(store: Store) -> None:
    store.append(one_pod("a", 1))
    broken = one_pod("b", 2)
    broken.marks[ObjectKind.POD] = replace(marked(2), resource_version=None)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="resource_version"):
        store.append(broken)
    assert store.facts_of(CLUSTER)[0] == [bound("a", 1)]
    assert store.known(CLUSTER).objects == {"a": state("a", 1)}
    assert store.append(one_pod("b", 2)) == 2


def test_what_was_set_aside_is_counted_by_reason(store: Store) -> None:
    for observed_ms, count in ((5, 1), (9, 3)):
        aside = SetAside(source="pods", because="no uid", sample="{}", observed_ms=observed_ms, count=count)
        store.append(Batch(cluster=CLUSTER, set_aside=[aside]))
    assert store.set_aside_counts() == [
        {"cluster": CLUSTER, "source": "pods", "because": "no uid", "count": 4, "observed_ms": 9}
    ]


def test_a_job_is_told_whose_facts_are_new(store: Store) -> None:
    assert store.changed_since(CLUSTER, "lives") == (set(), 0)
    store.append(one_pod("a", 1))
    store.append(one_pod("b", 2))
    seen = store.changed_since(CLUSTER, "lives")
    assert seen == ({"a", "b"}, 4)
    store.write_lives(CLUSTER, [], {}, ("lives", seen.seq))
    assert store.changed_since(CLUSTER, "lives") == (set(), 4)
    assert store.changed_since(CLUSTER, "other") == ({"a", "b"}, 4)
    store.append(Batch(cluster=CLUSTER, events=[sighted("e", 1, regarding="a")]))
    store.append(Batch(cluster="another", transitions=[bound("c", 1)]))
    assert store.changed_since(CLUSTER, "lives") == ({"a"}, 5)


def test_an_event_is_news_of_whom_it_regards_and_of_who_is_related(store: Store) -> None:
    preempted = structs.replace(sighted("e", 1, regarding="victim"), related_uid="preemptor")
    store.append(Batch(cluster=CLUSTER, events=[preempted]))
    assert store.changed_since(CLUSTER, "lives").uids == {"victim", "preemptor"}


def test_a_batch_is_held_when_its_marks_and_all_its_objects_stand_as_it_says(store: Store) -> None:
    batch = one_pod("a", 1)
    assert not store.holds(batch)
    store.append(batch)
    assert store.holds(batch)
    # The same marks, and an object that goes on.
    assert not store.holds(replace(batch, objects={"a": state("a", 2)}))
    assert not store.holds(replace(batch, objects={"a": state("a", 1, gone_ms=1)}))
    assert not store.holds(replace(batch, objects={"a": state("a", 1), "b": state("b", 1)}))
    assert not store.holds(replace(batch, marks={ObjectKind.POD: marked(2)}))
    assert not store.holds(replace(batch, cluster="another"))
    assert not store.holds(Batch(cluster=CLUSTER))


def test_what_came_back_is_not_gone(store: Store) -> None:
    store.append(Batch(cluster=CLUSTER, objects={"a": state("a", 3, gone_ms=3)}))
    store.append(Batch(cluster=CLUSTER, objects={"a": state("a", 4)}))
    assert store.known(CLUSTER).objects == {"a": state("a", 4)}


def test_what_is_gone_is_known_for_so_long_and_no_longer(store: Store) -> None:
    gone = {uid: state(uid, at_ms, gone_ms=at_ms) for uid, at_ms in (("old", 4), ("new", 5))}
    store.append(Batch(cluster=CLUSTER, objects=gone, marks={ObjectKind.POD: marked(10)}))
    assert set(store.known(CLUSTER, gone_within_ms=5).objects) == {"new"}


def test_threads_that_append_at_once_share_no_number(store: Store) -> None:
    start = threading.Barrier(4)

    def write(name: str) -> None:
        start.wait()
        for version in range(1, 11):
            store.append(one_pod(f"{name}{version}", version))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = store.rows("select seq from transition union all select seq from description order by seq")
    assert [row["seq"] for row in numbers] == list(range(1, 81))


@pytest.mark.parametrize("only", ["an event", "a watermark"])
def test_numbers_go_on_from_an_event_and_from_a_watermark_too(only: str, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.duckdb")
    if only == "an event":
        store.append(Batch(cluster=CLUSTER, events=[sighted("e", 1)]))
    else:
        # As after all facts were dropped: what comes later must be news to whom has seen them.
        store.write_lives(CLUSTER, [], {}, ("lives", 1))
    store.close()
    store = Store.open(tmp_path / "store.duckdb")
    store.append(Batch(cluster=CLUSTER, transitions=[bound("a", 1)]))
    assert store.rows("select seq from transition") == [{"seq": 2}]
    store.close()


def test_numbers_go_on_after_the_store_was_reopened(tmp_path: Path) -> None:
    for version in (1, 2, 3):
        store = Store.open(tmp_path / "store.duckdb")
        store.append(one_pod("a", version))
        store.close()
    store = Store.open(tmp_path / "store.duckdb")
    numbers = store.rows("select seq from transition union all select seq from description order by seq")
    assert [row["seq"] for row in numbers] == [1, 2, 3, 4, 5, 6]
    store.close()


def test_a_state_from_before_its_batch_looks_for_known_ones_is_replaced_all_the_same(store: Store) -> None:
    store.append(one_pod("a", 5))
    store.append(replace(one_pod("b", 70), seen_since_ms=60))
    again = replace(one_pod("a", 80), seen_since_ms=70)
    again.objects["b"] = state("b", 80)
    store.append(again)
    assert store.known(CLUSTER).objects == again.objects
    assert len(store.facts_of(CLUSTER)[0]) == 3
