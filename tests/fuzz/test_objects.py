"""Whatever objects a cluster sends: each is taken, known or set aside, and the books can be kept."""

import json
import random
from collections.abc import Iterator
from copy import deepcopy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.answers import ListQuestion
from collector.intake import Intake
from collector.translator import TRANSLATORS, Translator
from domain.facts import ObjectKind
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, parse_instant
from service.answers import Answers
from service.books import books_of
from store.embedded import Store
from tests.collector.golden import translator_of
from tests.fakes import MemorySink
from tests.fuzz.mutations import Json, changed, odd_bytes, odd_objects, written
from tests.laws import law

NOW_MS = parse_instant("2026-06-01T00:00:00Z")
EVENT_TYPES = st.sampled_from(["ADDED", "MODIFIED", "DELETED"])


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    store = Store.open(None)
    yield store
    store.close()


def aside(sink: MemorySink) -> int:
    return sum(one.count for one in sink.set_aside)


def test_the_objects_that_are_changed_are_of_every_kind() -> None:
    assert {translator.kind for translator, _ in written()} >= {one.kind for one in TRANSLATORS}


@law(150)
@given(odd=odd_objects(), event_type=EVENT_TYPES)
def test_each_object_is_taken_in_or_set_aside_and_the_store_takes_what_came_of_it(
    odd: tuple[Translator, dict[str, Json]], event_type: str, store: Store
) -> None:
    translator, body = odd
    payload = json.dumps(body).encode()
    sink = MemorySink()
    intake = Intake("c", sink, sink.known("c"))
    intake.see(translator, event_type, payload, NOW_MS)
    intake.see_line(translator, b'{"type":"%b","object":%b}' % (event_type.encode(), payload), NOW_MS + 1)
    intake.flush()
    # The second time it is known, or not understood again.
    assert intake.readings + aside(sink) >= 1
    assert intake.readings <= 2
    kept = Intake("c", store, store.known("c"))
    kept.see(translator, event_type, payload, NOW_MS)
    kept.flush()


@law(80)
@given(
    bodies=st.lists(
        st.one_of(odd_bytes(), odd_objects().map(lambda odd: json.dumps(odd[1]).encode())), max_size=4
    )
)
def test_each_payload_of_bytes_is_counted_once_by_every_way_in(bodies: list[bytes]) -> None:
    for translator in (TRANSLATORS[0], written()[0][0]):
        seen, listed = MemorySink(), MemorySink()
        one, other = Intake("c", seen, seen.known("c")), Intake("c", listed, listed.known("c"))
        for body in bodies:
            before = one.readings + len(one)
            one.see(translator, "ADDED", body, NOW_MS)
            assert one.readings + len(one) >= before
        other.relisted(translator, [msgspec.Raw(body) for body in bodies], "7", NOW_MS)
        for intake in (one, other):
            intake.flush()
        assert one.readings == other.readings
        assert aside(seen) == aside(listed)


@given(line=st.one_of(odd_bytes(), st.builds(lambda body: b'{"type":"ADDED","object":' + body, odd_bytes())))
def test_each_line_of_a_watch_is_counted(line: bytes) -> None:
    sink = MemorySink()
    intake = Intake("c", sink, sink.known("c"))
    intake.see_line(TRANSLATORS[0], line, NOW_MS)
    intake.flush()
    assert intake.readings + aside(sink) == 1


def _play(store: Store, seed: int, objects: int) -> int:
    """Give the store so many changed objects; gives how many were taken or set aside."""
    draw = random.Random(seed)
    odd: list[Json] = [
        None,
        "",
        -1,
        10**30,
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        [],
        {},
        "x\x00y",
        "8x",
        0.5,
    ]
    intake = Intake("c", store, store.known("c"))
    for number in range(objects):
        translator, given = draw.choice(written())
        changes = [
            (
                draw.randrange(10_000),
                draw.choice(["set", "drop", "list", "wrap", "double"]),
                deepcopy(draw.choice(odd)),
            )
            for _ in range(draw.randrange(3))
        ]
        body = changed(given, changes)
        if isinstance(metadata := body.get("metadata"), dict):
            metadata |= {"uid": f"u{number // 2}", "resourceVersion": str(number + 1)}
        event_type = draw.choice(["ADDED", "MODIFIED", "MODIFIED", "DELETED"])
        intake.see(translator, event_type, json.dumps(body).encode(), NOW_MS - (objects - number) * 60_000)
    intake.flush()
    return intake.readings + sum(int(str(row["count"])) for row in store.set_aside_counts())


def keep_books(seed: int, objects: int, *, measured: bool) -> None:
    store = Store.open(None)
    try:
        assert _play(store, seed, objects) >= objects
        clock = FixedClock(NOW_MS)
        books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).refresh()
        answers = Answers(store, Tenancy(), Policy(), clock)
        for row in answers.workloads(ListQuestion(page_size=1000)).rows:
            assert answers.workload(row["uid"]) is not None
        for name, metric in answers.registry().items() if measured else ():
            assert isinstance(answers.measure(metric, NOW_MS), list), name
        kinds = {row["kind"] for row in answers.sources().rows}
        assert {str(ObjectKind.POD), str(ObjectKind.NODE)} <= kinds
    finally:
        store.close()


def test_the_books_are_kept_whatever_the_objects_say() -> None:
    keep_books(seed=4, objects=300, measured=False)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(12))
def test_the_books_are_kept_whatever_more_objects_say(seed: int) -> None:
    keep_books(seed=seed, objects=1500, measured=True)


def _books(*seen: tuple[str, dict[str, Json]]) -> Store:
    """The books after these events, a minute apart."""
    store = Store.open(None)
    intake = Intake("c", store, store.known("c"))
    for number, (event_type, body) in enumerate(seen):
        intake.see(translator_of(body), event_type, json.dumps(body).encode(), NOW_MS + number * 60_000)
    intake.flush()
    clock = FixedClock(NOW_MS + 3_600_000)
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).refresh()
    return store


def test_a_node_that_could_never_be_read_and_is_gone_stops_nothing() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"uid": "n", "name": "n"},
        "status": {"capacity": 7},
    }
    store = _books(("ADDED", node), ("DELETED", node))
    counts = [(row["source"], row["count"]) for row in store.set_aside_counts()]
    assert counts == [("Node", 2)]
    store.close()


def test_a_ray_worker_whose_cluster_was_never_seen_belongs_to_the_job_that_its_labels_name() -> None:
    created = "2026-05-31T09:00:00Z"
    job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"uid": "job", "name": "train", "namespace": "team", "creationTimestamp": created},
        "spec": {},
    }
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "train-x",
        "uid": "unseen",
        "controller": True,
    }
    labels = {"ray.io/originated-from-cr-name": "train", "ray.io/originated-from-crd": "RayJob"}
    metadata = {"uid": "pod", "name": "w", "namespace": "team", "creationTimestamp": created}
    limits = {"limits": {"nvidia.com/gpu": 1}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"labels": labels, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "resources": limits}]},
    }
    store = _books(("ADDED", job), ("ADDED", pod))
    rows = Answers(store, Tenancy(), Policy(), FixedClock(NOW_MS + 60_000)).workloads(ListQuestion()).rows
    assert [row["uid"] for row in rows] == ["job"]
    store.close()


def test_an_object_with_the_uid_of_another_kind_is_set_aside_and_changes_nothing() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"uid": "u", "name": "n", "resourceVersion": "7"}}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"uid": "u", "name": "q", "namespace": "team", "resourceVersion": "5"},
    }
    store = _books(("ADDED", node), ("ADDED", queue), ("DELETED", queue))
    because = "its metadata.uid is that of another object, of kind Node"
    assert [
        (row["because"], row["count"]) for row in store.set_aside_counts() if row["source"] == "LocalQueue"
    ] == [(because, 2)]
    state = store.known("c").objects["u"]
    assert (state.kind, state.name, state.gone_ms) == (ObjectKind.NODE, "n", None)
    store.close()
