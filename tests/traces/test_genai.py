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


# The reference's keys of activity, and where the product says the same: metric, its labels, the unit.
OF_POD: dict[str, tuple[str, dict[str, str], float]] = {
    "samples": ("gpu_readings", {}, 1),
    "mean_util": ("gpu_activity_ratio", {}, 100),
    "p50": ("gpu_readings_quantile_ratio", {"quantile": "0.5"}, 100),
    "p95": ("gpu_readings_quantile_ratio", {"quantile": "0.95"}, 100),
    "max": ("gpu_readings_quantile_ratio", {"quantile": "1"}, 100),
    "zero_share": ("gpu_readings_inactive_ratio", {}, 1),
}
OF_ALL = {
    "samples": OF_POD["samples"],
    "mean": OF_POD["mean_util"],
    "p50": OF_POD["p50"],
    "p90": ("gpu_readings_quantile_ratio", {"quantile": "0.9"}, 100),
    "p99": ("gpu_readings_quantile_ratio", {"quantile": "0.99"}, 100),
    "mx": OF_POD["max"],
    "zero_share": OF_POD["zero_share"],
}
# Samples are kept to the sixth decimal of a share, and the reference to that of a percent.
NEAR = 5.1e-5


def test_every_figure_of_activity_is_that_of_the_reference(tmp_path: Path) -> None:
    store = Store.open(None)
    samples = read_parquet(as_samples(tmp_path / "samples.parquet"), source="trace", step_ms=STEP_MS)
    keep_parts(store, "c", samples, lambda _: None)
    books_of(store, tenancy=TENANCY, policy=Policy(), clock=FixedClock(AS_OF_MS)).refresh()
    answers = reference("alibaba-genai-2026")
    of_all, of_pods = answers["all"], answers["by_pod"]
    assert {key for of in of_pods.values() for key in of} == OF_POD.keys()
    assert of_all.keys() == {*OF_ALL, "pods"}
    equal = 0
    # A reading stands for one step where the next is missing: so each counts alike, as in a mean of readings.
    for key, (metric, labels, unit) in OF_POD.items():
        ours = said(store, metric, "device", as_of_ms=AS_OF_MS, **labels)
        assert len(ours) == of_all["pods"]
        found = {pod: unit * ours[pod] for pod in of_pods}
        assert found == pytest.approx({pod: of[key] for pod, of in of_pods.items()}, abs=NEAR), key
        equal += len(found)
    for key, (metric, labels, unit) in OF_ALL.items():
        assert unit * said(store, metric, as_of_ms=AS_OF_MS, **labels)[""] == pytest.approx(
            of_all[key], abs=NEAR
        ), key
        equal += 1
    tell(f"alibaba-genai-2026: {equal} figures of activity, of {len(of_pods)} pods and of all")
    assert equal == 78 * 6 + 7
