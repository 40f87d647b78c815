"""The list of workloads: chosen, ordered and cut into pages by the store, it is the whole in order."""

from collections.abc import Iterator
from typing import Any

import pytest

from api.answers import ListQuestion
from collector.recording import import_recording
from domain.window import FixedClock, parse_instant
from sample_data import SETTINGS, SMALL
from sample_data.generate import END
from service import listed_sql
from service.answers import Answers
from service.refresh import Refresher
from service.settings_file import load_settings
from service.workloads import _SORTS
from store.embedded import Store

END_MS = parse_instant(END)
HOUR = 3_600_000
WAITING = ("queued", "checking", "placing")
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    settings = load_settings(SETTINGS)
    store = Store.open(None)
    import_recording(SMALL, "sample", store)
    tenancy, policy = settings.tenancy_rules(), settings.thresholds()
    Refresher(store=store, tenancy=tenancy, policy=policy).refresh()
    yield Answers(store, tenancy, policy, FixedClock(END_MS))
    store.close()


def rows(answers: Answers, at_ms: int, **asked: Any) -> list[dict[str, Any]]:
    listed = answers.workloads(ListQuestion(as_of_ms=at_ms, **{"page_size": 1000, **asked}))
    if "page_size" not in asked:
        assert listed.total == len(listed.rows)
    return list(listed.rows)


def in_order(found: list[dict[str, Any]], column: str, *, descending: bool) -> list[str]:
    """By a column, what is not known last; else by submission, cluster and uid."""
    first = sorted(found, key=lambda row: (row["submitted_at"], row["cluster"], row["uid"]))
    known = sorted(
        (row for row in first if row[column] is not None), key=lambda row: row[column], reverse=descending
    )
    return [row["uid"] for row in (*known, *(row for row in first if row[column] is None))]


@pytest.mark.parametrize("at_ms", [END_MS, END_MS - HOUR])
@pytest.mark.parametrize("column", sorted(_SORTS))
def test_a_list_is_in_order_and_its_pages_are_the_whole(answers: Answers, column: str, at_ms: int) -> None:
    every = rows(answers, at_ms)
    assert len(every) > 50
    for descending in (False, True):
        sort = f"-{column}" if descending else column
        whole = rows(answers, at_ms, sort=sort)
        if column != "wasted_gpu_hours":  # ordered by what it is at least, shown with what it may be
            assert [row["uid"] for row in whole] == in_order(every, column, descending=descending)
        assert {row["uid"]: row for row in whole} == {row["uid"]: row for row in every}
        paged = [
            row for page in (1, 2, 3) for row in rows(answers, at_ms, sort=sort, page=page, page_size=25)
        ]
        assert paged == whole[:75]
    assert rows(answers, at_ms, page=99, page_size=100) == []


@pytest.mark.parametrize("at_ms", [END_MS, END_MS - HOUR])
@pytest.mark.parametrize("states", [WAITING, ("running",), ("ended",), ("ended", "backoff")])
def test_a_list_by_state_is_those_rows_of_the_whole(
    answers: Answers, states: tuple[str, ...], at_ms: int
) -> None:
    every = rows(answers, at_ms)
    assert rows(answers, at_ms, states=states) == [row for row in every if row["state"] in states]


@pytest.mark.parametrize(
    ("dimension", "values"),
    [("team", ("nlp", "ads")), ("gpu_model", ("",)), ("gpu_model", ("NVIDIA-L4", "")), ("user", ("",)),
     ("queue", ("no such",)), ("namespace", ("vision",)), ("service_class", ("batch",))],
)  # fmt: skip
def test_a_list_by_a_name_is_those_rows_of_the_whole(
    answers: Answers, dimension: str, values: tuple[str, ...]
) -> None:
    every = rows(answers, END_MS - HOUR)
    found = rows(answers, END_MS - HOUR, filters={dimension: values})
    assert found == [row for row in every if row[dimension] in values]


def test_who_has_ended_is_known_without_a_look_at_its_course(answers: Answers) -> None:
    states = {(row["state"], row["outcome"] != "open") for row in rows(answers, END_MS)}
    assert ("ended", True) in states
    assert not {state for state, over in states if over != (state == "ended")}


def test_every_column_of_a_row_can_be_ordered_by() -> None:
    assert set(_SORTS.values()) <= set(listed_sql._KEYS)


def test_who_waits_for_quota_is_of_the_list(answers: Answers) -> None:
    at_ms = END_MS - HOUR
    pending = answers.pending_workloads(ListQuestion(as_of_ms=at_ms, page_size=1000))
    waiting = {row["uid"]: row for row in rows(answers, at_ms, states=("queued",)) if row["queue"]}
    assert {row["uid"] for row in pending.rows} == set(waiting)
    assert all(row["waiting_seconds"] == waiting[row["uid"]]["waiting_seconds"] for row in pending.rows)
