"""Closed months outlive what they rest on: what is learnt too late for a correction is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics.chargeback.canonical import decode_lines
from collector.intake import Intake
from collector.translator import find
from domain.errors import RefusedError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, format_instant
from service import unbooked
from service.answers import Answers
from service.corrections import note_left
from service.keeping import Keeper
from service.runtime import Runtime
from service.settings_file import load_settings
from store import adoption
from store import statements as kept
from store.embedded import Store
from store.retention import drop_before
from store.statements import Left
from tests.service.closing_world import closed, closer, learn, look, site
from tests.service.test_chargeback import AGREED, hours
from tests.service.test_closing import MONTH, NEXT


def test_what_is_learnt_after_facts_of_a_closed_month_were_dropped_is_told_once_and_not_booked() -> None:
    books = site()
    closed(books, "2026-10", MONTH + 5)
    with books.transaction() as connection:
        connection.execute(
            "update workload set ended_ms = $end where workload_uid = 'r0'", {"end": hours(10)}
        )
    assert drop_before(books, ["north"], hours(100)) == 1
    note_left(books)
    look(books, MONTH + 30)
    assert unbooked.untold(books) == []
    # Four hours on the third day, and again two on the last one.
    learn(books, "late", 50, 54, team="green")
    look(books, MONTH + 31)
    look(books, MONTH + 32)
    learn(books, "later", 30 * 24, 30 * 24 + 2, team="green")
    # More is dropped, of which nothing is learnt.
    look(books, MONTH + 33)
    drop_before(books, ["north"], hours(101))
    note_left(books)
    assert kept.corrections(books) == []
    [words] = unbooked.untold(books)
    assert words.startswith("of 2026-10 something was learnt 2 times")
    assert "+6.00 GPU-hours" in words
    answers = Answers(books, Tenancy(), Policy(), FixedClock(hours(MONTH + 34)))
    told = {row["kind"]: row["set_aside"] for row in answers.sources().rows}
    assert told["month 2026-10"] == 2
    with pytest.raises(RefusedError, match=r"corrections: .*not booked.*give a reason"):
        closer(books, NEXT + 5, replace(AGREED, close_coverage=0)).close("2026-11", who="fin")
    # The statement of November says it, and the next one begins anew.
    [check] = [each for each in closed(books, "2026-11", NEXT + 5).checks if each.name == "corrections"]
    assert check.forced
    assert words in check.words
    assert unbooked.untold(books) == []
    learn(books, "last", 60, 61, team="green")
    look(books, NEXT + 6)
    assert "learnt once after" in unbooked.untold(books)[0]
    assert "+1.00 GPU-hours" in unbooked.untold(books)[0]
    books.close()


def test_while_facts_of_a_month_are_in_no_book_it_is_neither_closed_nor_corrected() -> None:
    books = site()
    closed(books, "2026-10", MONTH + 5)
    # As after a rebuild: facts are there, and what they tell of is not.
    fact = """
    insert into transition by name select
        'north' as cluster, 'r0' as uid, 'Pod' as kind, 'bound' as moment, '' as subject, '' as state,
        '' as reason, '' as detail, $at_ms as at_ms, $at_ms as observed_ms, 7 as seq
    """
    with books.transaction() as connection:
        connection.execute("delete from holding where workload_uid = 'r0'")
        connection.execute("delete from watermark")
        connection.execute(fact, {"at_ms": hours(0)})
    [why] = look(books, MONTH + 30)
    assert "what 1 objects did before its end is not in the books yet" in why
    assert kept.corrections(books) == []
    with pytest.raises(RefusedError, match=r"books: .*`gpuledger serve` brings them up to date"):
        closer(books, NEXT + 5, replace(AGREED, close_coverage=0)).close("2026-11", who="fin", reason="now")
    with books.transaction() as connection:
        connection.execute(
            "insert into watermark by name select 'north' as cluster, 'lives' as job, 7 as seq"
        )
    assert look(books, MONTH + 31) == []
    assert len(kept.corrections(books)) == 1
    # What is told of later times holds nothing up.
    with books.transaction() as connection:
        connection.execute("delete from watermark")
        connection.execute("update transition set at_ms = $at_ms", {"at_ms": hours(NEXT)})
    assert closed(books, "2026-11", NEXT + 5).closing is not None
    books.close()


def said(books: Store) -> tuple[object, ...]:
    month = "2026-10"
    told = kept.closed_month(books, month), kept.corrections(books), kept.bases(books)
    return (*told, kept.left(books), kept.forgotten_users(books, month))


def test_a_rebuilt_store_keeps_closed_months_and_their_corrections(tmp_path: Path) -> None:
    books = site()
    closed(books, "2026-10", MONTH + 5)
    learn(books, "late", 30, 35, team="green")
    look(books, MONTH + 30)
    kept.forget_user(books, "2026-10", 1, "forgotten-1")
    kept.note_left(books, Left(month="2026-10", dropped_ms=9, basis="b", held=8), learnt=True, unbooked=7)
    before = said(books)
    assert all(before)
    books.copy_to(tmp_path / "earlier.duckdb")
    books.close()
    rebuilt = Store.open(None)
    adoption.adopt(rebuilt, tmp_path / "earlier.duckdb", ["north"])
    assert said(rebuilt) == before
    rebuilt.close()


def test_a_backup_that_is_put_back_tells_which_signed_months_it_does_not_have(tmp_path: Path) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path})
    made = site()
    closed(made, "2026-10", MONTH + 5)
    made.copy_to(settings.store_file)
    made.close()
    books = Store.open(settings.store_file)
    keeper = Keeper(settings, books)
    keeper.backup(tmp_path / "books.duckdb")
    assert "closed months" not in keeper.restore(tmp_path / "books.duckdb")
    november = closed(books, "2026-11", NEXT + 5)
    assert november.closing is not None
    told = keeper.restore(tmp_path / "books.duckdb")
    assert told.endswith(f"does not have are there: 2026-11 (sha256 {november.closing.sha256})")
    books.close()


def held_pod(name: str, start_ms: int, end_ms: int) -> dict[str, Any]:
    """A pod of team green that had a GPU of the site's node for so long."""
    start, end = format_instant(start_ms), format_instant(end_ms)
    ended = {"terminated": {"startedAt": start, "finishedAt": end, "exitCode": 0}}
    return {
        "metadata": {
            "uid": name, "name": name, "namespace": "green", "resourceVersion": "9",
            "creationTimestamp": start,
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {
            "phase": "Succeeded",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": start}],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": ended}],
        },
    }  # fmt: skip


@pytest.mark.long
def test_what_came_since_the_last_measurement_is_booked_before_anything_is_dropped(tmp_path: Path) -> None:
    """Facts that are in no book hold a month up, and housekeeping does not wait for the next measurement."""
    settings = load_settings(
        overrides={"store.data_dir": tmp_path, "server.port": 0, "keeping.retention": "3650d"}
    )
    made = site()
    closed(made, "2026-10", MONTH + 5)
    made.copy_to(settings.store_file)
    made.close()
    runtime = Runtime(settings, clock=FixedClock(hours(MONTH + 30)))
    runtime._tick()
    pod, translator = held_pod("late", hours(40), hours(45)), find("", "Pod")
    assert translator is not None
    intake = Intake("north", runtime.store, runtime.store.known("north"))
    intake.see(translator, "ADDED", pod, hours(MONTH + 29))
    intake.flush()
    runtime._keep_house()
    found = [line for each in kept.corrections(runtime.store) for line in decode_lines(each.content)]
    runtime.stop()
    late = sum(line.row.micro_gpu_ms for line in found if line.row.team == "green" and line.is_held)
    assert late == 5 * MICRO_GPU_MS_PER_GPU_HOUR
