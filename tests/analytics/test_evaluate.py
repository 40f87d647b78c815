"""Questions to a metric: what it refuses, what it filters, and how the exported ones are cut."""

from dataclasses import replace
from datetime import timedelta

import pytest

from analytics.evaluate import evaluate, exported_asks, whole
from analytics.metrics import REGISTRY, registry_of
from domain.errors import DataError, PolicyError, UsageError
from domain.metric import Ask, Row
from domain.policy import Policy
from domain.window import Window

DAY = Window(start_ms=0, end_ms=86_400_000)
FREE = REGISTRY["free_gpus"]
ROWS: list[Row] = [
    {"cluster": "east", "gpu_model": "A100", "node": "n1", "free": 2_500_000},
    {"cluster": "east", "gpu_model": "H100", "node": "n2", "free": None},
    {"cluster": "west", "gpu_model": "A100", "node": "n3", "free": 1_000_000},
]


def test_an_unknown_label_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"free_gpus, by pod: expected one of cluster, gpu_model, node"):
        evaluate(FREE, ROWS, Ask(window=DAY, by=("pod",)))


def test_an_unknown_filter_is_refused_too() -> None:
    with pytest.raises(UsageError, match="filter team"):
        evaluate(FREE, ROWS, Ask(window=DAY, by=(), filters={"team": ("nlp",)}))


def test_a_filter_takes_rows_and_not_groups() -> None:
    asked = Ask(window=DAY, by=("gpu_model",), filters={"cluster": ("east",)})
    told = {
        sample.labels["gpu_model"]: (sample.value, sample.lower_bound)
        for sample in evaluate(FREE, ROWS, asked)
    }
    assert told == {"A100": (2.5, False), "H100": (0.0, True)}


def test_where_nothing_passes_the_filter_nothing_is_known() -> None:
    (sample,) = evaluate(FREE, ROWS, Ask(window=DAY, by=(), filters={"cluster": ("north",)}))
    assert (sample.value, sample.undefined_because) == (None, "nothing of this kind was observed")


def test_each_class_is_measured_over_its_own_window() -> None:
    asks = exported_asks(REGISTRY["queue_wait_seconds"], DAY.end_ms, Policy())
    assert {(ask.filters["service_class"], ask.window.seconds / 3600) for ask in asks} == {
        (("interactive",), 6.0),
        (("batch", "best_effort", "unclassified"), 24.0),
    }


def test_a_metric_without_a_window_is_asked_once() -> None:
    (ask,) = exported_asks(FREE, DAY.end_ms, replace(Policy(), window=timedelta(hours=1)))
    assert (ask.by, ask.filters, ask.as_of_ms) == (("cluster", "gpu_model"), {}, DAY.end_ms)


def test_a_null_in_a_column_that_must_be_whole_names_the_column() -> None:
    with pytest.raises(DataError, match="column free = None"):
        whole(ROWS[1], "free")


def test_two_metrics_of_one_name_are_refused() -> None:
    with pytest.raises(PolicyError, match="free_gpus is declared twice"):
        registry_of([FREE, FREE])


def test_two_metrics_that_say_the_same_are_refused() -> None:
    with pytest.raises(PolicyError, match="free_gpus and spare_gpus have the same definition"):
        registry_of([FREE, replace(FREE, name="spare_gpus")])


def test_the_registry_is_in_order_of_name() -> None:
    assert list(REGISTRY) == sorted(REGISTRY)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_metric_says_first_what_one_row_is(name: str) -> None:
    assert REGISTRY[name].sql.startswith("-- One row per ")
