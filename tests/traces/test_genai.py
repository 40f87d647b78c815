"""GPU duty cycles of a service's pods, taken in as samples, against their means in the reference."""

from pathlib import Path

import polars as pl
import pytest

from collector.dcgm.parquet import read_parquet
from domain.policy import Policy
from domain.window import FixedClock
from service.books import books_of
from service.gpu_metrics import keep_parts
from store.embedded import Store
from tests.traces.taking_in import AS_OF_MS, TENANCY, reference, said, tell, trace

pytestmark = [pytest.mark.recordings, pytest.mark.long]

STEP_MS = 57_000  # the README beside the data


def as_samples(path: Path) -> Path:
    """The trace as a file of samples: a pod's address stands for its GPU."""
    told = pl.read_parquet(trace("alibaba-genai-2026/pod_gpu_duty_cycle.parquet"))
    told.select(
        at_ms=(pl.col("timestamp_anon") * 1000).cast(pl.Int64),
        node=pl.lit("n"),
        uuid=pl.col("container_ip"),
        activity=pl.col("value") / 100,
        **{name: pl.lit("") for name in ("instance", "profile", "gpu_model", "namespace", "pod")},
        **{name: pl.lit(None, pl.Float64) for name in ("fb_used_mib", "fb_total_mib")},
    ).write_parquet(path)
    return path


def test_the_mean_activity_of_each_pod_is_that_of_the_reference(tmp_path: Path) -> None:
    store = Store.open(None)
    samples = read_parquet(as_samples(tmp_path / "samples.parquet"), source="trace", step_ms=STEP_MS)
    taken = keep_parts(store, "c", samples, lambda _: None)
    books_of(store, tenancy=TENANCY, policy=Policy(), clock=FixedClock(AS_OF_MS)).refresh()
    answers = reference("alibaba-genai-2026")
    # A reading stands for one step where the next is missing: so each counts alike, as in a mean of readings.
    pods = said(store, "gpu_activity_ratio", "device")
    assert len(pods) == answers["all"]["pods"]
    # Samples are kept to the sixth decimal of a share: so far a mean may be off, and no farther.
    means = {pod: pods[pod] for pod in answers["by_pod"]}
    expected = {pod: of["mean_util"] / 100 for pod, of in answers["by_pod"].items()}
    assert means == pytest.approx(expected, abs=5.1e-7)
    [whole] = said(store, "gpu_activity_ratio").values()
    assert round(100 * whole, 5) == round(answers["all"]["mean"], 5)
    tell(f"alibaba-genai-2026: mean activity of {len(means)} pods and of all of {taken.new} samples")
    assert (len(means), taken.new) == (78, answers["all"]["samples"])
