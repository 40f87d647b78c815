"""Utilisation and coverage against brute force: whole hours, the ends of a window, and any instant."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytics.activity.ratio import NOTHING_HELD, SHARED_ONLY, coverage, utilisation
from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask, Sample
from domain.window import Window
from service.activity import Activity
from store.embedded import Store
from tests.laws import law
from tests.service.test_activity import (
    HOUR,
    MINUTE,
    T0,
    append,
    emptied,
    put,
    sample,
    stay,
)

STEP = 2 * MINUTE
# Five hours, with instants at and around the hours and readings far apart.
INSTANTS = st.one_of(
    st.integers(0, 300).map(lambda minutes: minutes * MINUTE),
    st.sampled_from([HOUR * hour + off for hour in range(5) for off in (-STEP, -MINUTE, -1, 0, 1, MINUTE)]),
).filter(lambda at_ms: at_ms >= 0)
READINGS = st.dictionaries(INSTANTS, st.sampled_from([None, 0.0, 0.25, 1.0]), max_size=25)
STAY = st.tuples(INSTANTS, INSTANTS).map(sorted).filter(lambda ends: ends[0] < ends[1])


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    opened = Store.open(None)
    # Its metrics are read, though no sample may have come yet.
    with opened.transaction() as connection:
        connection.execute("insert into gpu_sample_mark values ('east', 'dcgm', 0, 0, '', null, null)")
    yield opened
    opened.close()


def answer(store: Store, name: str, window: Window, *by: str) -> list[Sample]:
    metric, ask = REGISTRY[name], Ask(window=window, by=by)
    return evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)


def stretches(read: dict[int, float | None], window: Window) -> Iterator[tuple[int, int, float | None]]:
    """Start, end and value of each reading before the window's end, by the words of the definition."""
    known = sorted(at_ms for at_ms in read if T0 + at_ms < window.end_ms)
    for at_ms, next_ms in zip(known, [*known[1:], None], strict=False):
        end_ms = at_ms + STEP if next_ms is None or next_ms - at_ms > 1.5 * STEP else next_ms
        yield max(T0 + at_ms, window.start_ms), min(T0 + end_ms, window.end_ms), read[at_ms]


@law(25)
@example({}, [0, MINUTE], MINUTE, HOUR // 2)
@given(READINGS, STAY, INSTANTS, st.sampled_from([HOUR // 2, HOUR, 3 * HOUR, 24 * HOUR]))
def test_what_is_told_of_any_window_is_what_brute_force_finds(
    store: Store, read: dict[int, float | None], ends: list[int], as_of: int, length: int
) -> None:
    emptied(store)
    put(store, [stay("a", *ends)])
    append(store, [sample(at_ms, activity, step_ms=STEP) for at_ms, activity in read.items()])
    Activity(store).refresh("east", T0)
    window = Window(start_ms=T0 + as_of - length, end_ms=T0 + as_of)
    seen = active = own = own_active = 0.0
    for start, end, value in stretches(read, window):
        if value is not None and start < end:
            mine = max(0, min(end, T0 + ends[1]) - max(start, T0 + ends[0]))
            seen, active = seen + end - start, active + value * (end - start)
            own, own_active = own + mine, own_active + value * mine
    held = max(0, min(T0 + ends[1], window.end_ms) - max(T0 + ends[0], window.start_ms))

    (of_devices,) = answer(store, "gpu_activity_ratio", window, *(("device",) if seen else ()))
    assert of_devices.value == (pytest.approx(active / seen) if seen else None)
    by_team = [
        each.value for each in answer(store, "gpu_activity_ratio", window, "team") if each.value is not None
    ]
    assert by_team == ([pytest.approx(own_active / own)] if own else [])
    (of_held,) = answer(store, "gpu_sample_coverage_ratio", window)
    assert of_held.value == (pytest.approx(own / held) if held else None)


def test_later_samples_never_change_an_earlier_answer(store: Store) -> None:
    emptied(store)
    put(store, [stay("a", 0, None)])
    window = Window(start_ms=T0, end_ms=T0 + 2 * HOUR + 5 * MINUTE)
    early = [sample(at * STEP, 0.5, step_ms=STEP) for at in range(62)]
    append(store, early)
    Activity(store).refresh("east", T0)
    before = [answer(store, name, window) for name in ("gpu_activity_ratio", "gpu_sample_coverage_ratio")]
    append(store, [sample(at * STEP + MINUTE // 2, 1.0, step_ms=STEP) for at in range(63, 200)])
    Activity(store).refresh("east", T0)
    after = [answer(store, name, window) for name in ("gpu_activity_ratio", "gpu_sample_coverage_ratio")]
    assert before == after


def row(**given: Any) -> dict[str, Any]:
    columns = {"seen": 0, "active": 0, "own_seen": 0, "own_active": 0, "is_missing": False}
    return {"team": "nlp", "node": "n1"} | columns | given


def asked(*by: str) -> Ask:
    return Ask(window=Window(start_ms=0, end_ms=1), by=by)


def test_a_shared_gpu_is_busy_and_nobodys() -> None:
    rows = [row(seen=100, active=70)]
    assert utilisation(rows, asked("node")) == [Sample(labels={"node": "n1"}, value=0.7)]
    assert utilisation(rows, asked("team")) == [Sample.undefined({"team": "nlp"}, SHARED_ONLY)]


def test_nothing_held_is_no_coverage_of_zero() -> None:
    assert coverage([], asked()) == [Sample.undefined({}, NOTHING_HELD)]


def test_the_frame_of_a_test_has_the_columns_of_a_sample(store: Store) -> None:
    frame = pl.DataFrame([sample(0, 0.5)])
    assert {*frame.columns, "cluster", "source", "seq"} == set(store.schema("gpu_sample").names)
