"""What is the same for all that waits is found once, and anew as soon as anything of it is another."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from analytics.fairness.kueue_shares import TERMS_AND_USES
from benchmarks.waiting_city import City, city
from benchmarks.waiting_store import AS_OF_MS, CLUSTER, kept
from domain.facts import Batch, Description, ObjectKind
from domain.metric import Measurement, Sample
from domain.policy import Policy
from service import why, why_sql
from service.why_scene import Scenes
from store import derived
from store.embedded import Store
from tests.golden.cases import store_of

MINUTE = 60_000
NODE = {"node": "n1", "capacity": 8, "allocatable": 8, "start_ms": 0, "end_ms": None}


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[City, Store]]:
    """A city, whose workloads came at any millisecond of a day."""
    site = city(nodes=24, waiting=60)
    store = kept(site)
    yield site, store
    store.close()


def told(store: Store, uid: str, as_of_ms: int, scenes: Scenes | None = None) -> dict[str, Any]:
    document = why.document(store, uid, as_of_ms, Policy(), scenes=scenes)
    assert document is not None
    return document


def scene(scenes: Scenes, store: Store, as_of_ms: int) -> object:
    with scenes.entered(store, CLUSTER, as_of_ms) as found:
        return found


def one_that_waits_for_another() -> dict[str, list[dict[str, Any]]]:
    """A node of 8 that `h` holds from the first minute on; `w` wants all of it from the second on."""
    return {
        "workload": [
            {"workload_uid": "h", "submitted_ms": MINUTE, "first_placed_ms": MINUTE},
            {"workload_uid": "w", "submitted_ms": 2 * MINUTE},
        ],
        "span": [
            {"workload_uid": "h", "state": "running", "start_ms": MINUTE, "end_ms": None},
            {"workload_uid": "w", "state": "queued", "start_ms": 2 * MINUTE, "end_ms": None},
        ],
        "holding": [{"workload_uid": "h", "pod_uid": "p", "bound_ms": MINUTE, "released_ms": None}],
        "pod_device": [{"workload_uid": "h", "pod_uid": "p", "devices": 8}],
        "node_device": [NODE],
        "workload_shape": [{"workload_uid": "w", "pods": 1, "devices": 8, "part": 0}],
    }


def test_what_is_learned_between_two_questions_changes_the_answer_and_no_past_one() -> None:
    scenes = Scenes()
    with store_of(one_that_waits_for_another()) as store:

        def reason(as_of_ms: int) -> tuple[str, list[str]]:
            found = told(store, "w", as_of_ms, scenes)
            return found["primary"]["reason"], [one["uid"] for one in found["holders"]]

        ends_ms = 10 * MINUTE + 7_000
        short = ("GPU_SHORTAGE", ["h"])
        assert reason(ends_ms) == reason(ends_ms + 1) == short
        with store.transaction() as connection:
            connection.execute("update holding set released_ms = $ends_ms", {"ends_ms": ends_ms})
        assert reason(ends_ms) == short, "it held until then"
        assert reason(ends_ms + 1) == ("UNKNOWN", [])
        assert reason(ends_ms) == short
        with store.transaction() as connection:
            connection.execute("update holding set released_ms = null")
        assert reason(ends_ms + 1) == short


def test_an_answer_from_a_kept_scene_is_the_one_that_is_found_anew(place: tuple[City, Store]) -> None:
    site, store = place
    scenes, chance = Scenes(), random.Random(6)
    for one, _ in chance.sample(site.waiting, 2):
        uids = [other.uid for other, _ in site.waiting if other.since_ms < one.since_ms - 1]
        # Where something happens, or a minute is over, one millisecond decides.
        edges = (one.since_ms, one.since_ms // MINUTE * MINUTE + MINUTE)
        for edge_ms in edges if uids else ():
            for as_of_ms in (edge_ms, edge_ms + 1, edge_ms + 1 - MINUTE):
                uid = chance.choice(uids)
                if there(site, uid) < as_of_ms:
                    assert told(store, uid, as_of_ms, scenes) == told(store, uid, as_of_ms)


def there(site: City, uid: str) -> int:
    """Since when it waits."""
    return next(one.since_ms for one, _ in site.waiting if one.uid == uid)


def test_a_scene_serves_its_minute_until_lives_change() -> None:
    store, scenes = kept(city(nodes=24, waiting=20)), Scenes()
    at_ms = AS_OF_MS + MINUTE // 2
    first = scene(scenes, store, at_ms)
    assert scene(scenes, store, at_ms + 20_000) is first
    assert scene(scenes, store, AS_OF_MS + MINUTE + 1) is not first
    store.publish([Measurement(metric="m", as_of_ms=at_ms, sample=Sample(labels={}, value=1))])
    assert scene(scenes, store, at_ms) is first, "what was measured changes nobody's life"
    store.write_lives(CLUSTER, [], {}, ("lives", 2))
    again = scene(scenes, store, at_ms)
    assert again is not first
    for minutes in range(1, 4):
        scene(scenes, store, at_ms - minutes * MINUTE)
    assert scene(scenes, store, at_ms) is not again, "more than a few are not kept"
    store.close()


def test_what_a_queue_or_a_workload_says_anew_of_itself_changes_the_answer() -> None:
    site = city(nodes=24, waiting=60)
    store, scenes = kept(site), Scenes()
    queue = next(
        name for name in sorted({one.queue for one, _ in site.waiting})
        if name not in site.strict and sum(one.queue == name for one, _ in site.waiting) > 2
    )  # fmt: skip
    own = sorted((one for one, _ in site.waiting if one.queue == queue), key=lambda one: one.priority)
    now_ms = AS_OF_MS + 10_000

    def says(uid: str, kind: ObjectKind, change: dict[str, Any]) -> None:
        [known] = store.rows("select body, name from description where uid = $uid", {"uid": uid})
        body = json.loads(str(known["body"])) | change
        store.append(
            Batch(
                cluster=CLUSTER,
                descriptions=[
                    Description(
                        uid=uid, kind=kind, namespace="", name=str(known["name"]), from_ms=AS_OF_MS,
                        earliest_ms=AS_OF_MS - 1, observed_ms=AS_OF_MS, body=json.dumps(body).encode(),
                    )
                ],
            )
        )  # fmt: skip

    def ahead(uid: str) -> int:
        return int(told(store, uid, now_ms, scenes)["queue_position"]["ahead_by_our_order"])

    last, first = own[0].uid, own[-1].uid
    was = ahead(first)
    says(last, ObjectKind.WORKLOAD, {"priority": 10**9})
    assert (ahead(first), ahead(last)) == (was + 1, 0)
    says(f"queue-{queue}", ObjectKind.CLUSTER_QUEUE, {"stop_policy": "Hold"})
    assert told(store, first, now_ms, scenes)["primary"]["reason"] == "HELD_BY_OWNER"
    store.close()


def test_no_scene_rests_on_what_is_written_beside_lives() -> None:
    """What is told of starts is read anew, and of the facts only bodies: their newest number is compared."""
    questions = (
        why_sql.NODES, why_sql.HOLDS, why_sql.BESIDE, why_sql.HELD_BY_QUEUE, why_sql.FLAVORS, why_sql.QUEUES,
        why_sql.NAMES, why_sql.OWNERS, why_sql.WAITING_FOR_QUOTA, why_sql.ADMITTED, TERMS_AND_USES,
    )  # fmt: skip
    asked = {word for sql in questions for word in sql.split()}
    beside = {*derived.TABLES, "transition", "event_sighting", "measurement", "gpu_sample", "queue_position"}
    assert {"description", "node_device"} <= asked
    assert beside.isdisjoint(asked)
