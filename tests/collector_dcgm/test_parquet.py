"""GPU samples from a Parquet file: what of a row is kept, and what is set aside."""

from pathlib import Path

import polars as pl
import pytest

from collector.dcgm.parquet import NO_ACTIVITY, NO_MEMORY, read_parquet
from collector.dcgm.samples import REPEATED
from domain.errors import RecordingError

DAY_MS = 86_400_000
ROW = {
    "at_ms": DAY_MS,
    "node": "n1",
    "uuid": "GPU-1",
    "instance": "",
    "profile": "",
    "gpu_model": "NVIDIA A100-SXM4-80GB",
    "namespace": "nlp",
    "pod": "train",
    "activity": 0.5,
    "fb_used_mib": 40_960,
    "fb_total_mib": 81_920,
}


def write(path: Path, *changes: dict[str, object]) -> Path:
    rows = [{**ROW, **change} for change in changes]
    pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("activity").cast(pl.Float32)
    ).write_parquet(path)
    return path


def test_a_row_becomes_a_sample_of_the_device_and_its_pod(tmp_path: Path) -> None:
    [part] = read_parquet(write(tmp_path / "s.parquet", {"activity": 0.05}), source="site")
    assert (part.source, part.until_ms, part.samples.set_aside) == ("site", DAY_MS + 1, {})
    assert part.samples.frame.rows(named=True) == [
        {
            "node": "n1",
            "device": "GPU-1",
            "gpu_model": "NVIDIA A100-SXM4-80GB",
            "namespace": "nlp",
            "pod": "train",
            "shares": 0,
            "at_ms": DAY_MS,
            "micro_gpus": 1_000_000,
            "pod_uid": "",
            "pod_shares": 0,
            "per_process": False,
            "step_ms": 60_000,
            # 0.05 in 32 bits is more than 0.05, and would be activity.
            "activity": 0.05,
            "engine": True,
            "memory_mib": 40_960.0,
            "memory_total_mib": 81_920.0,
        }
    ]


def test_a_mig_instance_is_its_part_of_the_card(tmp_path: Path) -> None:
    path = write(tmp_path / "s.parquet", {"instance": "7", "profile": "1g.10gb"})
    [part] = read_parquet(path, source="site")
    assert part.samples.frame.select("device", "micro_gpus").rows() == [("GPU-1/7", 142_857)]


def test_copies_of_a_pod_are_counted_on_the_device_and_on_the_node(tmp_path: Path) -> None:
    path = write(tmp_path / "s.parquet", {"copies": 2}, {"copies": 1, "uuid": "GPU-2"})
    [part] = read_parquet(path, source="site")
    shares = part.samples.frame.select("device", "shares", "pod_shares").sort("device").rows()
    assert shares == [("GPU-1", 2, 3), ("GPU-2", 1, 3)]


def test_each_day_is_a_part_in_order_of_time(tmp_path: Path) -> None:
    path = write(tmp_path / "s.parquet", {"at_ms": 2 * DAY_MS}, {}, {"at_ms": DAY_MS + 60_000})
    parts = list(read_parquet(path, source="site", step_ms=30_000))
    assert [part.samples.frame["at_ms"].to_list() for part in parts] == [
        [DAY_MS, DAY_MS + 60_000],
        [2 * DAY_MS],
    ]
    assert {step for part in parts for step in part.samples.frame["step_ms"]} == {30_000}


@pytest.mark.parametrize("activity", [1.5, -0.1, float("nan")])
def test_an_activity_that_is_no_share_is_set_aside_and_never_zero(tmp_path: Path, activity: float) -> None:
    [part] = read_parquet(write(tmp_path / "s.parquet", {"activity": activity}), source="site")
    assert part.samples.frame["activity"].to_list() == [None]
    assert part.samples.set_aside == {NO_ACTIVITY: 1}


def test_memory_that_is_no_amount_is_set_aside(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.parquet", {"fb_used_mib": 2_147_483_632}, {"fb_used_mib": None, "pod": "other"}
    )
    [part] = read_parquet(path, source="site")
    assert part.samples.frame["memory_mib"].to_list() == [None, None]
    assert part.samples.set_aside == {NO_MEMORY: 1}


def test_a_file_without_a_column_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pl.DataFrame([ROW]).drop("uuid", "activity").write_parquet(path)
    with pytest.raises(RecordingError, match="no column uuid, activity"):
        list(read_parquet(path, source="site"))


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    path.write_text("at_ms,node")
    with pytest.raises(RecordingError, match="cannot be read as Parquet"):
        list(read_parquet(path, source="site"))


def test_a_row_that_comes_again_in_its_file_counts_once(tmp_path: Path) -> None:
    shared = {"copies": 1, "uuid": "GPU-2"}
    path = write(tmp_path / "s.parquet", {}, shared, {}, shared, {"pod": "other"}, {"activity": 0.25}, {})
    [part] = read_parquet(path, source="site")
    assert part.samples.set_aside == {REPEATED: 3}
    rows = part.samples.frame.select("device", "pod", "activity", "pod_shares").rows()
    # Another value of the same instant is another reading: which of them counts, is decided later.
    assert sorted(rows) == [
        ("GPU-1", "other", 0.5, 0),
        ("GPU-1", "train", 0.25, 1),
        ("GPU-1", "train", 0.5, 1),
        ("GPU-2", "train", 0.5, 1),
    ]
