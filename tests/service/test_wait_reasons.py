"""Reasons are looked at again and again, and kept: how often, for how long, and what of it adds up."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from analytics.why.timeline import FOREVER
from api.answers import Question
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from service.wait_reasons import Reasons
from store.embedded import Store
from store.retention import drop_before
from tests.golden.cases import store_of
from tests.recordings.comparing import imported, rows

MINUTE = 60_000
HOUR = 60 * MINUTE
NODE = {"node": "n1", "capacity": 8, "allocatable": 8, "start_ms": 0, "end_ms": None}
SHAPE = {"workload_uid": "w", "pods": 1, "devices": 16, "part": 0}


def one_that_waits() -> dict[str, list[dict[str, Any]]]:
    """One node of 8, and a workload that wants 16 there and waits from the first minute to the ninth hour."""
    waits = {"workload_uid": "w", "state": "queued", "start_ms": MINUTE, "end_ms": 9 * HOUR}
    runs = {"workload_uid": "w", "state": "running", "start_ms": 9 * HOUR, "end_ms": None}
    return {
        "workload": [{"workload_uid": "w", "submitted_ms": MINUTE}],
        "span": [{**waits, "first_wait": True}, runs],
        "node_device": [NODE],
        "workload_shape": [SHAPE],
    }


@pytest.fixture(scope="module")
def site() -> Iterator[Store]:
    with store_of(one_that_waits()) as made:
        yield made


@pytest.fixture
def store(site: Store) -> Iterator[Store]:
    """The site at which nobody has looked yet."""
    yield site
    with site.transaction() as connection:
        connection.execute("delete from wait_reason")
        connection.execute("delete from reason_look")


def kept(store: Store) -> list[tuple[str, int, int]]:
    found = rows(store, "select reason, start_ms, end_ms from wait_reason order by start_ms")
    return [(row["reason"], row["start_ms"], row["end_ms"]) for row in found]


def test_a_look_counts_back_to_the_start_of_the_wait_and_goes_on_until_it_ends(store: Store) -> None:
    stage = Reasons(store)
    assert stage.refresh("east", 5 * MINUTE) == 1
    assert stage.refresh("east", 5 * MINUTE + 30_000) == 0, "looked at once a minute at most"
    assert stage.refresh("east", 9 * MINUTE) == 0, "the same again is nothing new"
    assert kept(store) == [("NEVER_FITS", MINUTE, FOREVER)]


def test_after_a_long_time_without_a_look_nobody_knows(store: Store) -> None:
    stage = Reasons(store)
    stage.refresh("east", 5 * MINUTE)
    stage.refresh("east", 5 * HOUR)
    assert kept(store) == [
        ("NEVER_FITS", MINUTE, 20 * MINUTE),
        ("NEVER_FITS", 5 * HOUR - 15 * MINUTE, FOREVER),
    ]
    answers = Answers(store, Tenancy(), Policy(), FixedClock(10 * HOUR))
    answer = answers.metric("wait_reason_hours", Question(as_of_ms=5 * HOUR, by=("reason", "blocker")))
    told = {tuple(one.labels.values()): one.value for one in answer.rows}
    assert told == {
        ("NEVER_FITS", ""): pytest.approx(34 / 60),
        ("NOT_EVALUATED", ""): pytest.approx(5 - 35 / 60),
    }


def test_once_nobody_waits_the_last_reason_ends(store: Store) -> None:
    stage = Reasons(store)
    stage.refresh("east", 9 * HOUR - MINUTE)
    stage.refresh("east", 9 * HOUR + MINUTE)
    assert [end_ms for *_, end_ms in kept(store)] == [9 * HOUR + MINUTE]
    found = rows(store, "select max(end_ms) as end_ms from wait_reasons(0, $to_ms)", to_ms=10 * HOUR)
    assert found == [{"end_ms": 9 * HOUR}], "what was found of a wait says nothing of the run after it"


def test_many_are_looked_at_more_seldom(store: Store) -> None:
    stage = Reasons(store)
    stage.refresh("east", 5 * MINUTE)
    stage.waiting["east"] = 4_001
    stage.refresh("east", 7 * MINUTE)
    assert rows(store, "select at_ms from reason_look") == [{"at_ms": 5 * MINUTE}]
    stage.refresh("east", 8 * MINUTE)
    assert rows(store, "select at_ms from reason_look") == [{"at_ms": 8 * MINUTE}]


def test_history_is_looked_at_where_somebody_waited(store: Store) -> None:
    Reasons(store, past_looks=4).refresh("east", 20 * HOUR)
    (one,) = kept(store)
    assert one[:2] == ("NEVER_FITS", MINUTE)
    assert one[2] >= 9 * HOUR


def test_what_is_dropped_takes_its_reasons_along() -> None:
    with store_of(one_that_waits()) as store:
        Reasons(store).refresh("east", 5 * MINUTE)
        with store.transaction() as connection:
            connection.execute("update workload set ended_ms = 1")
        assert drop_before(store, ["east"], HOUR) == 1
        assert kept(store) == []


@pytest.mark.recordings
@pytest.mark.parametrize("name", ["kueue", pytest.param("volcano", marks=pytest.mark.long)])
def test_the_reasons_of_a_recording_are_all_its_waiting_without_hole_or_overlap(name: str) -> None:
    store = imported(name)
    (last,) = rows(store, "select max(at_ms) as at_ms from transition")
    end_ms = last["at_ms"] + 1
    Reasons(store, past_looks=6).refresh(name, end_ms)
    pieces = rows(
        store,
        "select workload_uid, state, waits, reason, start_ms, end_ms from wait_reasons(0, $end_ms)"
        " order by workload_uid, start_ms",
        end_ms=end_ms,
    )
    spans = rows(
        store,
        "select workload_uid, state, start_ms, least(coalesce(end_ms, $end_ms), $end_ms) as end_ms"
        " from workload_span where start_ms < coalesce(end_ms, $end_ms) and start_ms < $end_ms"
        " and state in ('held', 'queued', 'checking', 'placing', 'starting', 'backoff')"
        " order by workload_uid, start_ms",
        end_ms=end_ms,
    )
    joined: list[dict[str, Any]] = []
    for piece in pieces:
        key = {name: piece[name] for name in ("workload_uid", "state")}
        if joined and joined[-1]["end_ms"] == piece["start_ms"] and key.items() <= joined[-1].items():
            joined[-1]["end_ms"] = piece["end_ms"]
        else:
            joined.append(key | {"start_ms": piece["start_ms"], "end_ms": piece["end_ms"]})
    met = [dict(span) for span in spans]
    for one, after in itertools.pairwise(met):
        if all(one[name] == after[name] for name in ("workload_uid", "state")) and (
            one["end_ms"] == after["start_ms"]
        ):
            after["start_ms"], one["state"] = one["start_ms"], ""
    assert joined == [span for span in met if span["state"]]
    assert len({piece["reason"] for piece in pieces}) > 4
    store.close()
