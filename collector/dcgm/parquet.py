"""
GPU samples from a Parquet file, as a site keeps them or exports them from elsewhere.

One row is a device at an instant, with the pod on it. Columns:

- at_ms: milliseconds of the epoch;
- node, uuid, gpu_model: of the GPU;
- instance, profile: of a MIG instance, empty for a whole GPU;
- namespace, pod: empty where nobody is on it;
- activity: 0 to 1, null where unknown;
- fb_used_mib, fb_total_mib: memory of the device, null where unknown;
- copies (if there): of the series that this pod has on a shared device, 0 elsewhere.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from collector.dcgm.answers import Part
from collector.dcgm.samples import REPEATED, Samples
from domain.errors import RecordingError
from domain.gpu_sample import HIGHEST, Device, Field
from domain.window import MS_PER_HOUR, is_instant

# What the reader raises for a file that is none, or broken.
_NO_PARQUET: Final = (
    OSError, UnicodeDecodeError, pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
NO_ACTIVITY: Final = "an activity that is no share from 0 to 1"
NOWHERE: Final = "a row without at_ms, node or uuid"
NO_MEMORY: Final = "memory that is no amount in MiB"
_USUAL_STEP_MS: Final = 60_000
_DEVICE: Final = ("node", "uuid", "instance", "profile", "gpu_model")
_NAMES: Final = ("node", "uuid")
_TEXTS: Final = (*_DEVICE, "namespace", "pod")
_WANTED: Final = ("at_ms", *_TEXTS, "activity", "fb_used_mib", "fb_total_mib")


def read_parquet(path: Path, *, source: str, step_ms: int | None = None) -> Iterator[Part]:
    """
    The samples of a file, a day in each part.

    Args:
        path: the file.
        source: who told.
        step_ms: how far apart the samples are meant to be; None takes a minute.

    Raises:
        RecordingError: it is no Parquet file, or a column is missing or of another type.
    """
    rows = _rows(path)
    whole = rows.drop_nulls(("at_ms", "node", "uuid"))
    nowhere, rows = len(rows) - len(whole), whole
    if nowhere and not len(rows):
        message = f"{path}: none of {nowhere} rows has at_ms, node and uuid; expected them in each"
        raise RecordingError(message)
    described = _devices(rows)
    for day in rows.with_columns(day=pl.col("at_ms") // (24 * MS_PER_HOUR)).partition_by(
        "day", maintain_order=True
    ):
        counted, nowhere = Counter({NOWHERE: nowhere}), 0
        # As what is stored already, a row that comes again in its file counts once.
        once = day.unique(maintain_order=True)
        counted[REPEATED] += len(day) - len(once)
        frame = _samples(once.join(described, on=_DEVICE), step_ms or _USUAL_STEP_MS, counted)
        yield Part(
            source=source,
            until_ms=int(frame["at_ms"][-1]) + 1,
            samples=Samples(frame, +counted),
        )


def _rows(path: Path) -> pl.DataFrame:
    try:
        # Polars ends the process where a damaged page tells a length that is none.
        table = pq.read_table(path, read_dictionary=list(_TEXTS))
        table.validate(full=True)  # texts that are none, among others
        rows = pl.DataFrame(table)
    except _NO_PARQUET as cause:
        message = f"{path}: cannot be read as Parquet ({cause}); expected a file of GPU samples"
        raise RecordingError(message) from cause
    missing = [name for name in _WANTED if name not in rows.columns]
    if missing:
        message = f"{path}: no column {', '.join(missing)}; expected {', '.join(_WANTED)}"
        raise RecordingError(message)
    copies = pl.col("copies") if "copies" in rows.columns else pl.lit(0)
    try:
        read = rows.select(
            pl.col("at_ms").cast(pl.Int64),
            *(pl.col(name).cast(pl.Categorical) for name in _NAMES),
            # A text that is null is one that is not there: rows are joined by it.
            *(pl.col(name).cast(pl.Categorical).fill_null("") for name in _TEXTS if name not in _NAMES),
            pl.col("activity", "fb_used_mib", "fb_total_mib").cast(pl.Float64),
            shares=copies.cast(pl.Int64),
        )
    except pl.exceptions.PolarsError as cause:
        message = f"{path}: a column is of another type ({cause}); expected whole at_ms, texts, and numbers"
        raise RecordingError(message) from cause
    for at_ms in read.select(pl.min("at_ms"), latest=pl.max("at_ms")).row(0):
        if at_ms is not None and not is_instant(at_ms):
            message = f"{path}: at_ms = {at_ms}: expected epoch milliseconds, as 1772442000000"
            raise RecordingError(message)
    return read.sort("at_ms", maintain_order=True)


def _devices(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per device: its key, and its part of a card."""
    found = rows.select(_DEVICE).unique(maintain_order=True)
    devices = [
        Device(node=node, uuid=uuid, model=model, instance=instance or "", profile=profile or "")
        for node, uuid, instance, profile, model in found.rows()
    ]
    return found.with_columns(
        device=pl.Series([device.name for device in devices], dtype=pl.String),
        micro_gpus=pl.Series([device.micro_gpus for device in devices], dtype=pl.Int64),
    )


def _samples(rows: pl.DataFrame, step_ms: int, counted: Counter[str]) -> pl.DataFrame:
    """Columns as table `gpu_sample`, less cluster, source and seq; what is no value is null."""
    # Two decimals of 32 bits are another number in 64: rounded, 0.05 is 0.05 again.
    activity = pl.col("activity").cast(pl.Float64).round(6)
    is_share = activity.is_between(0, 1)
    used, total = pl.col("fb_used_mib").cast(pl.Float64), pl.col("fb_total_mib").cast(pl.Float64)
    is_amount = used.is_between(0, HIGHEST[Field.USED]) & total.is_between(1, HIGHEST[Field.TOTAL])
    counted[NO_ACTIVITY] += int(rows.select((activity.is_not_null() & ~is_share).sum()).item())
    counted[NO_MEMORY] += int(rows.select((used.is_not_null() & ~is_amount).sum()).item())
    at_once = ("node", "namespace", "pod", "at_ms")
    shares = pl.col("shares")
    shared = rows.filter(shares > 0).group_by(at_once).agg(pod_shares=shares.sum())
    return (
        rows.join(shared, on=at_once, how="left")
        .select(
            pl.col("node", "device", "gpu_model", "namespace", "pod").cast(pl.String).fill_null(""),
            "shares",
            "at_ms",
            "micro_gpus",
            pod_uid=pl.lit(""),
            pod_shares=pl.col("pod_shares").fill_null(0),
            per_process=pl.lit(value=False),
            step_ms=pl.lit(step_ms, pl.Int64),
            activity=pl.when(is_share).then(activity),
            engine=pl.lit(value=True),
            memory_mib=pl.when(is_amount).then(used),
            memory_total_mib=pl.when(is_amount).then(total),
        )
        .sort("at_ms")
    )
