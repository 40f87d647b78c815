"""When waiting work starts: told once at each mark of its age, kept, held against what came, and shown."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from analytics.eta.calibration import Held, Told, outcome
from analytics.eta.estimate import ENOUGH
from analytics.eta.sentence import about
from api.schemas import SCHEMAS
from domain.policy import Policy
from domain.window import format_instant
from service import why
from service.cli.app import run
from service.eta_told import Etas, outcomes
from service.why_scene import Scene
from store.embedded import Store
from store.retention import drop_before
from tests.api.test_answers_over_http import check
from tests.golden.cases import fill, store_of
from tests.recordings.comparing import rows

MINUTE = 60_000
HOUR = 60 * MINUTE
# Thirty that came hourly and waited half an hour each; then the one that waits, and one that can never start.
PAST, WAIT_MS = 30, 30 * MINUTE
NOW = PAST * HOUR + 5 * MINUTE


def history() -> dict[str, list[dict[str, Any]]]:
    works: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    for number in range(PAST):
        at, uid = number * HOUR + 1000, f"past-{number}"
        works.append(
            {
                "workload_uid": uid,
                "submitted_ms": at,
                "first_placed_ms": at + WAIT_MS,
                "first_wait_ms": WAIT_MS,
            }
        )
        spans += [
            {"workload_uid": uid, "state": "queued", "start_ms": at, "end_ms": at + WAIT_MS},
            {"workload_uid": uid, "state": "running", "start_ms": at + WAIT_MS, "end_ms": None},
        ]
    for uid in ("waits", "never"):
        gpus = 16 if uid == "never" else 8
        works.append({"workload_uid": uid, "submitted_ms": NOW - 5 * MINUTE, "requested_gpus": gpus})
        spans.append({"workload_uid": uid, "state": "queued", "start_ms": NOW - 5 * MINUTE, "end_ms": None})
    nodes = [{"node": "n1", "capacity": 8, "allocatable": 8, "start_ms": 0, "end_ms": None}]
    shapes = [{"workload_uid": "never", "pods": 1, "devices": 16, "part": 0}]
    reasons = [{"workload_uid": "never", "reason": "NEVER_FITS", "start_ms": NOW - 5 * MINUTE}]
    return {
        "workload": works,
        "span": spans,
        "node_device": nodes,
        "workload_shape": shapes,
        "wait_reason": reasons,
    }


@pytest.fixture(scope="module")
def site() -> Iterator[Store]:
    with store_of(history()) as made:
        yield made


@pytest.fixture
def store(site: Store) -> Iterator[Store]:
    """The site at which nothing was told yet."""
    yield site
    with site.transaction() as connection:
        connection.execute("delete from eta_told")


def eta(store: Store, uid: str, as_of_ms: int = NOW) -> dict[str, Any]:
    document = why.document(store, uid, as_of_ms, Policy())
    assert document is not None
    check(document, SCHEMAS["WorkloadWhy"], at="why")
    found: dict[str, Any] = document["eta"]
    return found


def told(store: Store) -> list[tuple[str, int, bool]]:
    found = rows(store, "select workload_uid, mark, replayed from eta_told order by at_ms, workload_uid")
    return [(row["workload_uid"], row["mark"], row["replayed"]) for row in found]


def test_each_is_told_of_once_at_each_mark_of_its_age(store: Store) -> None:
    stage = Etas(store)
    assert [stage.refresh("east", NOW), stage.refresh("east", NOW + MINUTE)] == [1, 0]
    assert stage.refresh("east", NOW + 6 * MINUTE) == 1
    # What never starts is not told of.
    assert told(store) == [("waits", 0, False), ("waits", 1, False)]


def test_history_that_came_in_at_once_is_told_afterwards_once(store: Store) -> None:
    stage = Etas(store, replays=True)
    assert stage.refresh("east", NOW) > 2 * (PAST - ENOUGH - 5)
    replayed = [uid for uid, _, is_replayed in told(store) if is_replayed]
    # Of each two moments, at 0 and 10 minutes, as soon as so many had started.
    assert replayed.count("past-29") == 2
    assert replayed.count("past-5") == 0
    assert stage.refresh("east", NOW) == 0


def test_an_outcome_says_how_many_were_told_in_its_hour(store: Store) -> None:
    """One comes each hour; another is told of beside the last but one, and nobody knows what comes of it."""
    Etas(store, replays=True).refresh("east", NOW)
    with store.transaction() as connection:
        connection.execute(
            "insert into eta_told select * replace ('other' as workload_uid) from eta_told"
            " where workload_uid = 'past-28'"
        )
    together = {one.told.at_ms // HOUR: one.together for one in outcomes(store, "east", NOW)}
    assert together[28] == 2
    assert {number for hour, number in together.items() if hour != 28} == {1}


def test_the_store_and_the_replay_find_the_same_outcomes() -> None:
    """Small numbers at random, so that instants fall together; both say what came of each interval by NOW."""
    random, works, said, expected = Random(7), [], [], {}
    for number in range(300):
        uid, at, low, high = (
            f"w{number}",
            NOW - random.randint(1, 12),
            random.randint(0, 4),
            random.randint(4, 8),
        )
        placed = random.choice([None, at + random.randint(0, 14)])
        ended = random.choice([None, (placed or at) + random.randint(0, 6)])
        works.append(
            {"workload_uid": uid, "submitted_ms": at - 5, "first_placed_ms": placed, "ended_ms": ended}
        )
        said.append({"workload_uid": uid, "at_ms": at, "low_ms": low, "median_ms": 4, "high_ms": high})
        came = outcome(Told(at, 0, "batch", low, 4, high), placed, ended, NOW)
        if came is not None and came.known_ms < NOW:
            expected[number] = came.side, came.known_ms
    with store_of({"workload": works, "eta_told": said}) as store:
        found = store.rows("select * from eta_outcomes($at) where known_ms < $at", {"at": NOW})
    assert {int(str(row["workload_uid"])[1:]): (row["side"], row["known_ms"]) for row in found} == expected
    assert {side for side, _ in expected.values()} == {-1, 0, 1}


def test_what_was_told_is_shown_beside_what_is_told(store: Store) -> None:
    Etas(store, replays=True).refresh("east", NOW)
    found = eta(store, "waits")
    # 30 minutes less the 5 that it has waited; the band is of whoever waits for less than ten.
    assert found["median_seconds"] == pytest.approx(25 * 60, abs=60)
    assert found["low_seconds"] <= found["median_seconds"] <= found["high_seconds"]
    assert found["calibration"]["age_band"] == "below 10 min"
    assert found["calibration"]["intervals"] >= PAST - ENOUGH - 5
    share = f"{found['calibration']['held_ratio'] * 100:.0f} % of {found['calibration']['intervals']}"
    assert found["sentence"].startswith(f"It starts in about {about(found['median_seconds'] * 1000)} (80 %: ")
    assert f"{share} such intervals held in the last 14 days" in found["sentence"]


def test_what_came_of_earlier_ones_moves_what_is_shown_and_what_is_kept() -> None:
    """Waits of 20 to 49 minutes; then twenty are told to have come too late. They are shown for 14 days."""
    given = history()
    for number, work in enumerate(given["workload"][:PAST]):
        work["first_wait_ms"] = (20 + number) * MINUTE
        placed = work["first_placed_ms"] = work["submitted_ms"] + work["first_wait_ms"]
        given["span"][2 * number]["end_ms"] = given["span"][2 * number + 1]["start_ms"] = placed
    late = [
        {"workload_uid": f"past-{number}", "at_ms": number * HOUR + MINUTE, "median_ms": 1, "high_ms": 2}
        for number in range(20)
    ]
    highs = []
    for told_before in ([], late):
        with store_of(given | {"eta_told": told_before}) as store:
            shown = eta(store, "waits")
            Etas(store).refresh("east", NOW)
            [kept] = rows(store, "select high_ms from eta_told where workload_uid = 'waits'")
            assert shown["high_seconds"] == kept["high_ms"] / 1000
            highs.append(kept["high_ms"])
            now, later = (Scene(store, "east", NOW + days * 24 * HOUR).calibrated() for days in (0, 15))
            assert now.held.get((0, "batch", False), Held(0, 0)).intervals == len(told_before)
            assert later.held == {}
            # For four weeks it moves the ends; what was told just now is late by then too, and moves less.
            assert (later.margins(0, "batch").high > 1) == bool(told_before)
    assert highs[1] > highs[0]


def test_without_a_history_and_where_it_never_starts_the_sentence_says_why(store: Store) -> None:
    early = eta(store, "past-3", 3 * HOUR + MINUTE)
    assert (early["median_seconds"], early["calibration"]) == (None, None)
    assert early["sentence"] == (
        "When it starts cannot be told: fewer than 10 workloads that waited as long have started."
    )
    assert eta(store, "never")["because"] == "as it is it never starts"


def test_what_can_never_start_as_it_is_is_told_how_it_could(store: Store) -> None:
    """It asks for 16 GPUs of a node, which has 8: they are free. Another waits before it."""
    [best] = eta(store, "never")["sooner"]
    assert (best["way"], best["what"]) == ("fewer_gpus", "Ask for 8 GPUs instead of 16")
    assert (best["fits_now"], best["gain_seconds"]) == (True, None)
    assert "there are room and quota for it now; such work waits about 34 min" in best["sentence"]


def test_what_is_told_as_of_then_does_not_know_what_came(store: Store) -> None:
    at = 20 * HOUR + 1000
    found = eta(store, "past-20", at + 5 * MINUTE)
    assert found["like_workloads"] == 20
    document = why.document(store, "past-20", at + 40 * MINUTE, Policy())
    assert document is not None
    assert document["eta"] is None


def requeued(times: int) -> dict[str, list[dict[str, Any]]]:
    """Work that lost its place and waited 10 min for the next, held in between; one waits; one of CPUs."""
    works: list[dict[str, Any]] = [{"workload_uid": "cpus", "submitted_ms": 0, "requested_gpus": 0}]
    spans: list[dict[str, Any]] = [{"workload_uid": "cpus", "state": "queued", "start_ms": 0, "end_ms": None}]
    for number in range(times + 1):
        at, uid = NOW - (number + 1) * HOUR, f"again-{number}" if number else "again"
        works.append({"workload_uid": uid, "submitted_ms": at, "first_placed_ms": at, "first_wait_ms": 0})
        course = [("running", 0), ("queued", 55)]
        if number:
            course = [("running", 0), ("queued", 20), ("held", 24), ("queued", 34), ("running", 40)]
        starts = [at + minute * MINUTE for _, minute in course]
        spans += [
            {"workload_uid": uid, "state": state, "start_ms": start, "end_ms": end}
            for (state, _), start, end in zip(course, starts, [*starts[1:], None], strict=True)
        ]
    return {"workload": works, "span": spans}


def test_who_was_placed_before_is_told_by_waits_of_its_kind() -> None:
    """Twelve waited 10 minutes for their next place, and none at first; it has waited 5."""
    with store_of(requeued(12)) as store:
        found = eta(store, "again")
        assert found["median_seconds"] == pytest.approx(5 * 60, abs=60)
        assert found["like_of"] == "that met such a queue after losing their place"
        assert eta(store, "cpus")["because"] == "only waits of work that asks GPUs are learned from"
    with store_of(requeued(2)) as store:
        assert eta(store, "again")["because"] == "fewer than 10 workloads that waited as long have started"


def test_who_waits_again_is_told_otherwise_as_if_it_was_submitted_anew() -> None:
    """It asks for 16 GPUs of a node of 8. Such work waited 10 min for its next place, and not at first."""
    given = requeued(12)
    given["workload"][1]["requested_gpus"] = 16
    given["node_device"] = history()["node_device"]
    given["workload_shape"] = [{"workload_uid": "again", "pods": 1, "devices": 16, "part": 0}]
    with store_of(given) as store:
        [fewer] = eta(store, "again")["sooner"]
        assert (fewer["way"], fewer["median_seconds"]) == ("fewer_gpus", None)


def test_what_waits_again_is_told_of_anew_and_held_against_its_next_place() -> None:
    with store_of(requeued(13)) as store:
        with store.transaction() as connection:
            # Of its first wait, which is another one.
            connection.execute(
                "insert into eta_told values ('east', 'again', 'batch', 0, 1, 0, 1, 2, '', 10, false, 0)"
            )
        assert Etas(store).refresh("east", NOW) == 1
        assert Etas(store).refresh("east", NOW + MINUTE) == 0
        told_of = rows(store, "select * from eta_told where episode > 0")
        assert [(row["workload_uid"], row["mark"], row["at_ms"]) for row in told_of] == [("again", 0, NOW)]
        with store.transaction() as connection:
            connection.execute(
                "insert into span select * replace ('running' as state, end_ms as start_ms, null as end_ms)"
                " from (select * replace ($at::bigint as end_ms) from span"
                " where workload_uid = 'again' and state = 'queued')",
                {"at": NOW + 5 * MINUTE},
            )
        [came] = [one for one in outcomes(store, "east", NOW + HOUR) if one.told.again]
        assert (came.side, came.known_ms) == (0, NOW + 5 * MINUTE)
        assert [one.told.again for one in outcomes(store, "east", NOW + 5 * MINUTE)] == [False]


def test_of_history_waits_after_a_placement_are_told_afterwards_too() -> None:
    with store_of(requeued(14)) as store:
        Etas(store, replays=True).refresh("east", NOW)
        told_of = rows(
            store, "select workload_uid as uid, episode from eta_told where replayed order by at_ms"
        )
        # The first ten to be placed again are what the others are told by.
        assert [row["uid"] for row in told_of] == ["again-4", "again-3", "again-2", "again-1", "again"]
        assert {row["episode"] for row in told_of} == {1}
        assert eta(store, "again")["calibration"]["intervals"] == 4


def test_what_was_told_goes_with_its_workload() -> None:
    with store_of(history()) as store:
        Etas(store, replays=True).refresh("east", NOW)
        assert "past-29" in {uid for uid, _, _ in told(store)}
        with store.transaction() as connection:
            connection.execute(
                "update workload set ended_ms = first_placed_ms + 1 where workload_uid = 'past-29'"
            )
        drop_before(store, ["east"], NOW)
        assert "past-29" not in {uid for uid, _, _ in told(store)}


def test_the_command_says_when_it_starts_and_what_would_start_it_sooner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(tmp_path / "gpuledger.duckdb")
    fill(store, history())
    store.close()

    def said(uid: str) -> list[str]:
        assert run(["why", uid, "--data-dir", str(tmp_path), "--as-of", format_instant(NOW)]) == 0
        return capsys.readouterr().out.splitlines()

    [starts] = [line for line in said("waits") if line.startswith("It starts in about ")]
    # Nothing is said of intervals none of which was put to the test.
    assert starts.endswith("from 30 like workloads that met such a queue.")
    never = said("never")
    at = never.index("When it starts cannot be told: as it is it never starts.")
    assert never[at + 1] == "What would let it start sooner, the best first:"
    assert never[at + 2].startswith("- Ask for 8 GPUs instead of 16: there are room and quota for it now;")
