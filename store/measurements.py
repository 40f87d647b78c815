"""Measurements: what the product said of each metric, and when."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from domain.errors import StoreError
from domain.metric import Measurement, Sample
from store.engine import Engine

_REPLACE: Final = """
delete from measurement
using (select distinct metric, as_of_ms from incoming) as said
where measurement.metric = said.metric and measurement.as_of_ms = said.as_of_ms
"""

_LABELS: Final = msgspec.json.Encoder(order="sorted")

# One row per series and instant in [start, end).
_HISTORY: Final = """
select measurement.* from measurement
where metric = $metric and as_of_ms >= $start_ms and as_of_ms < $end_ms
order by as_of_ms, labels
"""


def publish(engine: Engine, measurements: Sequence[Measurement]) -> None:
    """
    Keep what was measured; measuring one metric again for the same instant replaces it.

    Raises:
        StoreError: a value is not finite. One NaN would poison every sum over it.
    """
    rows = [_row(measurement) for measurement in measurements]
    if not rows:
        return
    schema = engine.schema("measurement")
    columns = zip(schema, zip(*rows, strict=True), strict=True)
    incoming = pa.Table.from_arrays([pa.array(values, of.type) for of, values in columns], schema=schema)
    with engine.transaction(changes_lives=False) as connection:
        connection.register("incoming", incoming)
        connection.execute(_REPLACE)
        connection.unregister("incoming")
        connection.from_arrow(incoming).insert_into("measurement")


def history(engine: Engine, metric: str, *, start_ms: int, end_ms: int) -> list[Measurement]:
    """What was said of a metric in [start, end), oldest first."""
    asked = {"metric": metric, "start_ms": start_ms, "end_ms": end_ms}
    return [_measurement(row) for row in engine.rows(_HISTORY, asked)]


def _row(measurement: Measurement) -> tuple[object, ...]:
    """In the order of the table's columns."""
    sample = measurement.sample
    if sample.value is not None and not math.isfinite(sample.value):
        message = (
            f"metric {measurement.metric} {dict(sample.labels)}: value {sample.value}; "
            "expected a finite number, or none with the reason"
        )
        raise StoreError(message)
    return (
        measurement.metric,
        measurement.as_of_ms,
        _LABELS.encode(dict(sample.labels)).decode(),
        sample.value,
        sample.lower_bound,
        sample.few,
        sample.undefined_because,
    )


def _measurement(row: Mapping[str, Any]) -> Measurement:
    sample = Sample(
        labels=msgspec.json.decode(row["labels"]),
        value=row["value"],
        lower_bound=row["lower_bound"],
        few=row["few"],
        undefined_because=row["undefined_because"],
    )
    return Measurement(metric=row["metric"], as_of_ms=row["as_of_ms"], sample=sample)
