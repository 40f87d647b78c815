"""What is kept beside lives so that no question looks through all of them: the same as looking through."""

from random import Random
from typing import Any

import pytest

from store.embedded import Store
from store.forgetting import forget
from store.migrate import migrations
from store.retention import drop_before

CLUSTER = "city"
SEEN = """
select distinct cluster, queue, service_class, priority_class, team, user_name, gpu_model, gang_size
from seen_before($as_of_ms)
"""
LOOKED_THROUGH = """
select distinct
    cluster, queue, service_class, priority_class, team, user_name,
    case when first_placed_ms < $as_of_ms then gpu_model else '' end as gpu_model, gang_size
from gpu_workload
where submitted_ms < $as_of_ms
"""


def workload(uid: str, **said: Any) -> dict[str, Any]:
    row = dict.fromkeys(
        (
            *("kind", "namespace", "name", "job_uid", "team", "user_name", "project", "queue"),
            *("priority_class", "service_class", "gpu_model", "outcome", "skewed"),
        ),
        "",
    )
    open_still = dict.fromkeys(("first_placed_ms", "first_running_ms", "ended_ms", "ended_earliest_ms"))
    asks = {"gang_size": 1, "requested_micro_gpus": 1_000_000, "submitted_ms": 0}
    return {"cluster": CLUSTER, "workload_uid": uid, **row, **open_still, **asks, **said}


def span(uid: str, state: str, start_ms: int, end_ms: int | None, *, first: bool) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "workload_uid": uid,
        "state": state,
        "start_ms": start_ms,
        "end_ms": end_ms,
        "start_earliest_ms": None,
        "reason": "",
        "first_wait": first,
    }


def drawn(uid: str, stream: Random) -> dict[str, Any]:
    """A workload of few teams, users and models that waits, is placed, or is over."""
    submitted = stream.randrange(10)
    placed = submitted + stream.randrange(5) if stream.random() < 0.6 else None
    ended = (placed or submitted) + stream.randrange(1, 6) if stream.random() < 0.5 else None
    return workload(
        uid,
        team=stream.choice(["a", "b"]),
        user_name=stream.choice(["x", "y"]),
        gpu_model=stream.choice(["A100", "H100"]),
        requested_micro_gpus=stream.choice([0, 1_000_000, None]),
        skewed=stream.choice(["", "", "", "clock"]),
        submitted_ms=submitted,
        first_placed_ms=placed,
        ended_ms=ended,
    )


def copy(uid: str) -> dict[str, Any]:
    of = {"of_cluster": "hub", "of_workload_uid": f"{uid}'s original"}
    return {"cluster": CLUSTER, "workload_uid": uid, **of}


def assert_same(store: Store) -> None:
    for as_of_ms in range(0, 26, 3):
        asked = {"as_of_ms": as_of_ms}
        seen, all_of_them = (sorted(map(repr, store.rows(sql, asked))) for sql in (SEEN, LOOKED_THROUGH))
        assert seen == all_of_them, as_of_ms


@pytest.mark.parametrize("seed", range(4))
def test_the_combinations_seen_are_those_of_all_workloads_however_they_are_cut_anew(
    store: Store, seed: int
) -> None:
    stream = Random(seed)
    for step in range(6):
        uids = [str(number) for number in stream.sample(range(8), stream.randint(1, 4))]
        # Some are known no more, as when their objects belong to another workload.
        known = [uid for uid in uids if stream.random() < 0.8]
        tables = {
            "workload": [drawn(uid, stream) for uid in known],
            "workload_copy": [copy(uid) for uid in known if stream.random() < 0.2],
        }
        store.write_lives(CLUSTER, uids, tables, ("lives", step))
        assert_same(store)


def test_a_combination_whose_workloads_were_dropped_was_not_seen(store: Store) -> None:
    old = workload("old", team="gone", first_placed_ms=1, ended_ms=2)
    new = workload("new", team="here", submitted_ms=5, first_placed_ms=6)
    store.write_lives(CLUSTER, ["old", "new"], {"workload": [old, new]}, ("lives", 1))
    assert {row["team"] for row in store.rows(SEEN, {"as_of_ms": 9})} == {"gone", "here"}
    drop_before(store, [CLUSTER], 4)
    assert [row["team"] for row in store.rows(SEEN, {"as_of_ms": 9})] == ["here"]
    assert_same(store)


def test_a_name_that_is_forgotten_is_forgotten_here_too(store: Store) -> None:
    rows = [workload(uid, user_name=name, first_placed_ms=1) for uid, name in (("a", "ada"), ("b", "bob"))]
    store.write_lives(CLUSTER, "ab", {"workload": rows}, ("lives", 1))
    forget(store, "ada", "bob", labels=())
    assert [row["user_name"] for row in store.rows("select user_name from dimensions_seen")] == ["bob"]
    assert_same(store)


def test_a_row_says_how_long_its_workload_had_waited_when_it_was_placed_or_over(store: Store) -> None:
    spans = [
        span("a", "queued", 0, 10, first=True),
        span("a", "held", 10, 100, first=False),
        span("a", "placing", 100, 105, first=True),
        span("a", "running", 105, 200, first=False),
        span("a", "queued", 200, 260, first=False),
        span("b", "queued", 0, None, first=True),
        span("d", "queued", 0, 30, first=True),
        span("d", "held", 30, 40, first=False),
    ]
    rows = [
        workload("a", first_placed_ms=105),
        workload("b"),
        workload("c", first_placed_ms=0),
        workload("d", ended_ms=40),
        workload("e", ended_ms=0),
    ]
    store.write_lives(CLUSTER, "abcde", {"workload": rows, "span": spans}, ("lives", 1))
    said = "select first_wait_ms from workload order by workload_uid"
    assert [row["first_wait_ms"] for row in store.rows(said)] == [15, None, 0, 30, 0]
    # So does what brings a store up to date in which only those that were placed had it.
    (brings,) = (each for each in migrations() if each.number == 36)
    with store.transaction() as connection:
        connection.execute("update workload set first_wait_ms = null where first_placed_ms is null")
        connection.execute(brings.text)
    assert [row["first_wait_ms"] for row in store.rows(said)] == [15, None, 0, 30, 0]


def test_a_row_says_whether_its_workload_waits_after_a_placement(store: Store) -> None:
    spans = [
        span("a", "queued", 0, 10, first=True),
        span("a", "running", 10, 20, first=False),
        span("b", "queued", 0, 10, first=True),
        span("b", "running", 10, 20, first=False),
        span("b", "placing", 20, None, first=False),
        span("c", "queued", 0, None, first=True),
        span("d", "running", 0, 10, first=False),
        span("d", "held", 10, None, first=False),
    ]
    rows = [workload(uid, first_placed_ms=None if uid == "c" else 10) for uid in "abcd"]
    store.write_lives(CLUSTER, "abcd", {"workload": rows, "span": spans}, ("lives", 1))
    said = "select workload_uid from workload where waits_again"
    assert [row["workload_uid"] for row in store.rows(said)] == ["b"]
    # So does what brings a store up to date in which nobody had noted it.
    (brings,) = (each for each in migrations() if each.number == 41)
    with store.transaction() as connection:
        connection.execute("alter table workload drop column waits_again")
        connection.execute(brings.text)
    assert [row["workload_uid"] for row in store.rows(said)] == ["b"]


def test_a_row_says_whether_its_workload_waits_in_pieces(store: Store) -> None:
    spans = [
        span("at-once", "queued", 0, 10, first=True),
        span("at-once", "placing", 10, 15, first=True),
        span("held", "queued", 0, 10, first=True),
        span("held", "held", 10, 20, first=False),
        span("held", "queued", 20, 30, first=True),
        span("waits", "queued", 0, None, first=True),
        span("cancelled", "queued", 0, 40, first=True),
        span("born-held", "held", 0, 10, first=False),
        span("born-held", "queued", 10, 15, first=True),
        span("no-wait", "running", 0, 10, first=False),
        span("again", "queued", 0, 15, first=True),
        span("again", "running", 15, 20, first=False),
        span("again", "queued", 20, None, first=False),
    ]
    rows = [
        workload("at-once", first_placed_ms=15),
        workload("held", first_placed_ms=30, ended_ms=35),
        workload("waits"),
        workload("cancelled", ended_ms=40),
        workload("born-held", first_placed_ms=15),
        workload("no-wait", first_placed_ms=0),
        workload("again", first_placed_ms=15),
    ]
    uids = [row["workload_uid"] for row in rows]
    store.write_lives(CLUSTER, uids, {"workload": rows, "span": spans}, ("lives", 1))
    said = "select workload_uid from workload where waits_in_pieces order by workload_uid"
    in_pieces = [{"workload_uid": uid} for uid in ("born-held", "held", "waits")]
    assert store.rows(said) == in_pieces
    # So does what brings a store up to date in which nobody had noted it.
    (brings,) = (each for each in migrations() if each.number == 42)
    with store.transaction() as connection:
        connection.execute("alter table workload drop column waits_in_pieces")
        connection.execute(brings.text)
    assert store.rows(said) == in_pieces


def test_a_copy_is_no_workload_of_its_own_until_it_is_none(store: Store) -> None:
    rows = {"workload": [workload("a")]}
    store.write_lives(CLUSTER, "a", {**rows, "workload_copy": [copy("a")]}, ("lives", 1))
    assert store.rows("select workload_uid from gpu_workload") == []
    assert len(store.rows("select workload_uid from gpu_work")) == 1
    store.write_lives(CLUSTER, "a", rows, ("lives", 2))
    assert len(store.rows("select workload_uid from gpu_workload")) == 1
