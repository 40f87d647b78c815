"""Rows that come by the million, as frames: filters, groups and columns."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from analytics.censored import Flags, Longs
from domain.errors import DataError

# Arrays by the name of a column, of like length.
Columns: TypeAlias = Mapping[str, Any]


def passing(frame: pl.DataFrame, filters: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows whose labels are among those that are wanted; without rows there need be no columns."""
    if frame.is_empty():
        return frame
    for name, wanted in filters.items():
        frame = frame.filter(pl.col(name).is_in(list(wanted)))
    return frame


def groups(
    frame: pl.DataFrame, by: Sequence[str], takes: Sequence[str]
) -> list[tuple[dict[str, str], Columns]]:
    """
    The columns that are taken, by labels; as `evaluate.grouped`, rows with null for a label stay out.

    Without labels there is one group, where there is a row.

    Raises:
        DataError: a column that is taken holds neither whole numbers nor yes and no.
    """
    if frame.is_empty():
        return []
    if not by:
        return [({}, {name: _column(frame[name]) for name in takes})]
    # Columns are turned into arrays once for all groups, of which there may be thousands.
    ordered = (
        frame.select(*by, *takes).drop_nulls(list(by)).group_by(list(by), maintain_order=True).agg(takes)
    )
    if ordered.is_empty():
        return []
    ends = ordered[takes[0]].list.len().cum_sum().to_list()
    columns = {name: np.split(_column(ordered[name].explode()), ends[:-1]) for name in takes}
    return [
        (
            dict(zip(by, map(str, key), strict=True)),
            {name: column[place] for name, column in columns.items()},
        )
        for place, key in enumerate(ordered.select(by).iter_rows())
    ]


def _column(given: pl.Series) -> Longs | Flags:
    """Yes and no, of which null is no; or whole numbers."""
    if given.dtype == pl.Boolean:
        return given.fill_null(value=False).to_numpy().astype(np.bool_)
    if given.null_count() or not (given.dtype.is_integer() or given.is_empty()):
        message = (
            f"column {given.name} of type {given.dtype}, {given.null_count()} of it null: expected whole"
            " numbers; is it null in the metric's SQL, or a sum that is not cast to bigint?"
        )
        raise DataError(message)
    return given.cast(pl.Int64).to_numpy()
