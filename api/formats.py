"""The formats of an answer: JSON, CSV, Arrow; and which one a request wants."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from api.answers import Record, flat_rows
from api.exports.comma_separated import inert

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
PROBLEM = "application/problem+json"


def to_json(document: Record) -> bytes:
    """JSON; a NaN becomes null."""
    return msgspec.json.encode(document)


def columns(rows: Sequence[Record]) -> list[str]:
    """Every key of the rows, in the order in which they first come."""
    return list(dict.fromkeys(key for row in rows for key in row))


def to_csv(document: Record) -> bytes:
    """CSV with a header; a value that is null is an empty field, and no text is a formula."""
    rows = flat_rows(document)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: inert(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in rows
    )
    return text.getvalue().encode()


def to_frame(document: Record) -> pl.DataFrame:
    """The rows as a frame; columns as in CSV."""
    rows = flat_rows(document)
    names = columns(rows)
    # Every row is looked at: a column may begin with a hundred nulls.
    return pl.DataFrame([[row.get(name) for name in names] for row in rows], schema=names, orient="row",
                        infer_schema_length=None)  # fmt: skip


def to_arrow(document: Record) -> bytes:
    """An Arrow IPC stream."""
    stream = io.BytesIO()
    to_frame(document).write_ipc_stream(stream)
    return stream.getvalue()


@dataclass(frozen=True, slots=True)
class Format:
    """A media type and how to write it."""

    media_type: str
    write: Callable[[Record], bytes]


_JSON = Format(JSON, to_json)
TABLE_FORMATS = (_JSON, Format(CSV, to_csv), Format(ARROW, to_arrow))
DOCUMENT_FORMATS = (_JSON,)


def wanted(accept: str, offered: Sequence[Format]) -> Format | None:
    """
    The offered format that an Accept header likes best; None where it likes none.

    >>> wanted("text/csv;q=0.5, application/json", TABLE_FORMATS).media_type
    'application/json'
    >>> wanted("image/png", TABLE_FORMATS) is None
    True
    """
    ranges = [_media_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    scores = [(_quality(offer.media_type, ranges), offer) for offer in offered]
    best = max(score for score, _ in scores)
    return next((offer for score, offer in scores if score == best > 0), None)


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    group = media_type.partition("/")[0] + "/*"
    # The most exact range decides (RFC 9110, 12.5.1).
    for pattern in (media_type, group, "*/*"):
        found = [quality for name, quality in ranges if name == pattern]
        if found:
            return max(found)
    return 0.0
