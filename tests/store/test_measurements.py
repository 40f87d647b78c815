"""Measurements: what was said, and when."""

import math

import pytest

from domain.errors import StoreError
from domain.metric import Measurement, Sample
from store.embedded import Store


def measured(as_of_ms: int, value: float | None, *, queue: str = "q", because: str = "") -> Measurement:
    labels = {"queue": queue, "cluster": "city"}
    return Measurement(
        metric="queue_depth_gpus",
        as_of_ms=as_of_ms,
        sample=Sample(labels=labels, value=value, few=value == 1, undefined_because=because),
    )


def kept(store: Store) -> list[Measurement]:
    return store.history("queue_depth_gpus", start_ms=0, end_ms=1000)


def test_measurements_come_back_as_they_were_said(store: Store) -> None:
    said = [measured(200, 1), measured(200, None, queue="r", because="no queue")]
    store.publish([measured(100, 3)])
    store.publish(said)
    store.publish([])
    assert kept(store) == [measured(100, 3), *said]


def test_labels_are_stored_in_one_order(store: Store) -> None:
    store.publish([measured(100, 3)])
    assert store.rows("select labels from measurement") == [{"labels": '{"cluster":"city","queue":"q"}'}]


def test_history_is_half_open_and_oldest_first(store: Store) -> None:
    for as_of_ms in (300, 100, 200):
        store.publish([measured(as_of_ms, as_of_ms)])
    told = store.history("queue_depth_gpus", start_ms=100, end_ms=300)
    assert [measurement.as_of_ms for measurement in told] == [100, 200]
    assert store.history("another", start_ms=0, end_ms=900) == []


def test_measuring_the_same_instant_again_replaces_what_was_said(store: Store) -> None:
    store.publish([measured(100, 3), measured(100, 4, queue="drained")])
    store.publish([measured(100, 5)])
    assert kept(store) == [measured(100, 5)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_and_named(store: Store, value: float) -> None:
    with pytest.raises(StoreError, match=r"queue_depth_gpus .*'queue': 'q'.* expected a finite number"):
        store.publish([measured(100, 1, queue="r"), measured(100, value)])
    assert kept(store) == []
