"""Rows that come by the million, as frames: filters, groups and columns."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from analytics.censored import Flags, Longs
from domain.errors import DataError


def passing(frame: pl.DataFrame, filters: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows whose labels are among those that are wanted; without rows there need be no columns."""
    if frame.is_empty():
        return frame
    for name, wanted in filters.items():
        frame = frame.filter(pl.col(name).is_in(list(wanted)))
    return frame


def groups(
    frame: pl.DataFrame, by: Sequence[str], takes: Sequence[str]
) -> list[tuple[dict[str, str], pl.DataFrame]]:
    """
    The columns that are taken, by labels; as `evaluate.grouped`, rows with null for a label stay out.

    Without labels there is one group, where there is a row.
    """
    if frame.is_empty():
        return []
    if not by:
        return [({}, frame.select(takes))]
    labelled = frame.select(*by, *takes).drop_nulls(list(by))
    return [
        (dict(zip(by, map(str, key), strict=True)), members)
        for key, members in labelled.partition_by(by, include_key=False, as_dict=True).items()
    ]


def longs(frame: pl.DataFrame, column: str) -> Longs:
    """
    A column that holds whole numbers.

    Raises:
        DataError: a row of it holds something else.
    """
    given = frame[column]
    if given.null_count() or not (given.dtype.is_integer() or given.is_empty()):
        message = (
            f"column {column} of type {given.dtype}, {given.null_count()} of it null: expected whole numbers;"
            " is it null in the metric's SQL, or a sum that is not cast to bigint?"
        )
        raise DataError(message)
    return given.cast(pl.Int64).to_numpy()


def flags(frame: pl.DataFrame, column: str) -> Flags:
    """A column of yes or no; null is no."""
    return frame[column].fill_null(value=False).to_numpy().astype(np.bool_)
