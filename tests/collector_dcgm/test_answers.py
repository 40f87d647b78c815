"""Answers of a Prometheus: one series twice, values that are none, histograms, saved folders."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from collector.dcgm.answers import Series, read_saved, series_in, take_series
from collector.dcgm.prometheus import Range
from collector.dcgm.samples import Gathered
from domain.errors import RecordingError, UsageError
from tests.shared import shared

METRIC = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "node": "n1", "Hostname": "exporter-x"}


def saved(folder: Path, name: str, *values: list[Any], status: str = "success") -> Path:
    result = [{"metric": METRIC, "values": list(values)}]
    answer = {"status": status, "error": "out of time", "data": {"resultType": "matrix", "result": result}}
    file = folder / name
    file.write_text(json.dumps(answer))
    return file


def test_the_sample_answer_keeps_the_one_value_and_counts_the_others() -> None:
    text = (shared("reference/samples") / "prometheus_query_range_nan_and_native_histogram.json").read_text()
    gathered = Gathered()
    latest_ms = take_series(gathered, series_in(json.loads(text)["data"]["result"]))
    found = gathered.samples(15_000)
    assert found.frame.select("pod", "at_ms", "activity").rows() == [
        ("llm-a-3", 1_772_442_000_000, 0.97),
        ("llm-a-3", 1_772_442_015_000, None),
        ("llm-a-3", 1_772_442_030_000, None),
    ]
    assert latest_ms == 1_772_442_030_000
    assert sorted(found.set_aside.values()) == [1, 1]


def test_the_node_that_the_target_names_counts_before_the_exporters_host() -> None:
    gathered = Gathered()
    take_series(gathered, [Series(metric=METRIC, values=[(15.0, "5")])])
    assert gathered.samples(15_000).frame["node"].to_list() == ["n1"]


def test_an_answer_goes_as_far_as_its_latest_series_in_whatever_order() -> None:
    longer, shorter = (
        Series(metric=METRIC | {"UUID": uuid}, values=[(15.0, "5"), (until, "6")])
        for uuid, until in (("GPU-1", 60.0), ("GPU-2", 30.0))
    )
    for answered in ([longer, shorter], [shorter, longer]):
        assert take_series(Gathered(), answered) == 60_000


def test_a_point_at_the_edge_of_two_saved_chunks_is_one_sample(tmp_path: Path) -> None:
    first = saved(tmp_path, "a.json", [0, "10"], [15, "20"])
    second = saved(tmp_path, "b.json", [15, "20"], [30, "30"])
    (part,) = read_saved([tmp_path], step_ms=None)
    assert part.samples.frame["activity"].to_list() == [0.1, 0.2, 0.3]
    assert set(part.samples.frame["step_ms"]) == {15_000}
    assert [len(list(read_saved([file], step_ms=15_000))) for file in (first, second)] == [1, 1]


def test_a_saved_answer_that_failed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="the query failed: out of time"):
        list(read_saved([saved(tmp_path, "a.json", status="error")], step_ms=None))


def test_a_result_of_another_kind_is_an_error() -> None:
    with pytest.raises(RecordingError, match="expected the result of a range query"):
        series_in([{"value": [0, "1"]}])


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 60_000, [(0, 30), (45, 45)]),
        (1, 60_001, [(15, 45), (60, 60)]),
        (45_000, 45_000, []),
        (44_999, 45_001, [(45, 45)]),
    ],
)
def test_a_range_is_half_open_on_a_grid_since_the_epoch(
    start: int, end: int, expected: list[tuple[int, int]]
) -> None:
    assert list(Range(start_ms=start, end_ms=end, step_seconds=15).chunks(3)) == expected


def test_ranges_that_follow_each_other_ask_for_every_instant_once() -> None:
    cuts = [0, 7_000, 15_000, 15_001, 44_999, 45_000, 100_000]
    asked = [
        at
        for start, end in pairwise(cuts)
        for first, last in Range(start_ms=start, end_ms=end, step_seconds=15).chunks(2)
        for at in range(first, last + 1, 15)
    ]
    assert asked == list(range(0, 100, 15))


@pytest.mark.parametrize(("end", "step"), [(10, 0), (10, 1801), (-1, 15)])
def test_a_range_that_makes_no_sense_is_refused(end: int, step: int) -> None:
    with pytest.raises(UsageError, match="expected"):
        Range(start_ms=0, end_ms=end, step_seconds=step)
