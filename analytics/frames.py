"""Rows that come by the million, as frames: filters, groups and columns."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl

from analytics.censored import Flags, Longs
from domain.errors import DataError
from domain.metric import Takes

# Arrays by the name of a column, of like length.
Columns: TypeAlias = Mapping[str, Any]
# A column of a frame whose rows stand for many: a list of what was taken of each of them. Of those with usual
# values another column lists the one that varies, and further ones say what is usual.
TAKEN: Final = "taken"


def passing(frame: pl.DataFrame, filters: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows whose labels are among those that are wanted; without rows there need be no columns."""
    if frame.is_empty():
        return frame
    for name, wanted in filters.items():
        frame = frame.filter(pl.col(name).is_in(list(wanted)))
    return frame


def groups(frame: pl.DataFrame, by: Sequence[str], takes: Takes) -> list[tuple[dict[str, str], Columns]]:
    """
    The columns that are taken, by labels; as `evaluate.grouped`, rows with null for a label stay out.

    Without labels there is one group, where there is a row.

    Raises:
        DataError: a column that is taken holds neither whole numbers nor yes and no.
    """
    if frame.is_empty():
        return []
    if TAKEN not in frame.columns:
        frame = frame.select(*by, pl.concat_list(pl.struct(takes.columns)).alias(TAKEN))
    of_key: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, key in enumerate(frame.select(by).iter_rows() if by else [()] * frame.height):
        if None not in key:
            of_key[key].append(place)
    # Columns are turned into arrays once for all groups, of which there may be thousands.
    taken, of_taken = _taken(frame, takes)
    alone, of_alone = _alone(frame, takes)

    def column(name: str, places: Sequence[int]) -> Longs | Flags:
        """One after the other what was taken of these rows of the frame, and of those with usual values."""
        parts = [taken[name][of_taken[place] : of_taken[place + 1]] for place in places]
        for start, end in [(of_alone[place], of_alone[place + 1]) for place in places]:
            if start < end:
                parts.append(
                    alone[start:end] if name in takes.varies else np.full(end - start, takes.usual[name])
                )
        filled = [part for part in parts if len(part)] or parts[:1]
        return filled[0] if len(filled) == 1 else np.concatenate(filled)

    return [
        (
            dict(zip(by, map(str, key), strict=True)),
            {name: column(name, places) for name in takes.columns},
        )
        for key, places in of_key.items()
    ]


def one_by_one(frame: pl.DataFrame) -> pl.DataFrame:
    """The same with a row for each of those that a row stands for."""
    if TAKEN not in frame.columns:
        return frame
    alone = [name for name, kind in frame.schema.items() if name != TAKEN and kind == pl.List]
    taken = _filled(frame, TAKEN).explode(TAKEN)
    again = set(taken[TAKEN].struct.fields) & set(frame.columns)
    found = taken.drop(again).unnest(TAKEN)
    usual = [_filled(frame, name).drop(TAKEN).explode(name).select(found.columns) for name in alone]
    return pl.concat([found, *usual], how="vertical_relaxed")


def _filled(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows that list something there."""
    return frame.filter(pl.col(name).list.len() > 0)


def _taken(frame: pl.DataFrame, takes: Takes) -> tuple[Columns, list[int]]:
    """What was taken of each row by itself: columns, all lists one after the other, and where each begins."""
    each = _filled(frame, TAKEN)[TAKEN].explode().struct
    return {name: _column(each.field(name)) for name in takes.columns}, _edges(frame[TAKEN])


def _alone(frame: pl.DataFrame, takes: Takes) -> tuple[Longs | Flags, list[int]]:
    """The one column that varies of rows with the usual values, as above; nothing where none stand apart."""
    if not (takes.usual and set(takes.varies) <= set(frame.columns)):
        return np.empty(0, np.int64), [0] * (frame.height + 1)
    (name,) = takes.varies
    return _column(_filled(frame, name)[name].explode()), _edges(frame[name])


def _edges(lists: pl.Series) -> list[int]:
    return [0, *lists.list.len().fill_null(0).cum_sum().to_list()]


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
