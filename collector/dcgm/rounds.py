"""
Answers of many exporters at once, as samples: by whole columns, a hundred times as fast as line by line.

Exporters write a series in the same words again and again. What its labels say is read once and remembered
by their text; of each further line only the value is read. A line that does not look as exporters write it
goes through `exposition.readings`, so that both ways give the same.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from collector.dcgm.exposition import labels_of, readings
from collector.dcgm.samples import (
    BAD_LABELS,
    BAD_LINE,
    FIELD_PLACES,
    NO_DEVICE,
    WANTED,
    Series,
    described,
    is_wanted,
    samples_of,
)
from domain.gpu_sample import device_of, owner_of
from domain.window import MS_PER_HOUR

_WANTED_LINE: Final = rf"^[ \t]*(?:{'|'.join(sorted(WANTED))})[ \t]*\{{"
_LINES: Final = {
    "target": pl.Int32,
    "field": pl.Int8,
    "labels": pl.String,
    "value": pl.Float64,
    "at_ms": pl.Int64,
}
_KNOWN: Final = {"target": pl.Int32, "labels": pl.String, "series": pl.Int64}
_NO_DEVICE: Final = -1


class Answer(NamedTuple):
    """What an exporter told when it was asked at an instant; `node` is the one of series that name none."""

    source: str
    text: str
    at_ms: int
    node: str = ""


class Round(NamedTuple):
    """Samples with the columns of table `gpu_sample` less cluster and seq; what was set aside, by source."""

    frame: pl.DataFrame
    set_aside: dict[str, Counter[str]]


class Exporters:
    """
    Reads the answers of a group of exporters, and remembers what their labels mean.

    Pods come and go, and each leaves label texts behind: once an hour all is forgotten and read anew.

    Args:
        step_ms: how far apart they are asked.
    """

    def __init__(self, step_ms: int) -> None:
        self._step_ms = step_ms
        self._forget(0)

    def __len__(self) -> int:
        """How many label texts are remembered."""
        return self._known.height

    def samples(self, answers: Sequence[Answer]) -> Round:
        """The samples of these answers; an exporter has at most one among them."""
        newest_ms = max((answer.at_ms for answer in answers), default=0)
        if newest_ms - self._since_ms >= MS_PER_HOUR:
            self._forget(newest_ms)
        asked = {self._targets.setdefault(answer.source, len(self._targets)): answer for answer in answers}
        aside: dict[str, Counter[str]] = {answer.source: Counter() for answer in answers}
        lines = lines_of(asked, aside)
        told = self._join(lines)
        if told["series"].null_count():
            self._learn(told.filter(pl.col("series").is_null()), asked, aside)
            told = self._join(lines)
        nobodys = told.filter(pl.col("series") == _NO_DEVICE).group_by("target").len()
        for target, count in nobodys.iter_rows():
            aside[asked[target].source][NO_DEVICE] += count
        instants = pl.DataFrame(
            {"target": list(asked), "asked_ms": [answer.at_ms for answer in asked.values()]},
            schema={"target": pl.Int32, "asked_ms": pl.Int64},
        )
        read = (
            told.filter(pl.col("series") != _NO_DEVICE)
            .join(instants, on="target")
            .select("series", "field", pl.coalesce("at_ms", "asked_ms").alias("at_ms"), "value")
        )
        frame, more = samples_of(read, self._named, step_ms=self._step_ms)
        for source, counts in more.items():
            aside[source].update(counts)
        return Round(frame, {source: counts for source, counts in aside.items() if counts})

    def _forget(self, since_ms: int) -> None:
        self._since_ms = since_ms
        self._targets: dict[str, int] = {}
        self._series: dict[Series, int] = {}
        self._named = described(())
        self._known = pl.DataFrame(schema=_KNOWN)

    def _join(self, lines: pl.DataFrame) -> pl.DataFrame:
        return lines.join(self._known, on=["target", "labels"], how="left", maintain_order="left")

    def _learn(self, told: pl.DataFrame, asked: dict[int, Answer], aside: dict[str, Counter[str]]) -> None:
        """Read label texts that were not told before; a line of one that cannot be read is counted."""
        known: list[tuple[int, str, int]] = []
        for target, labels, count in told.group_by("target", "labels", maintain_order=True).len().iter_rows():
            answer = asked[target]
            try:
                read = labels_of(labels)
            except ValueError:
                aside[answer.source][BAD_LABELS] += count
                continue
            place = _NO_DEVICE
            device = device_of(read, node=answer.node)
            if device is not None:
                series = Series(answer.source, device, owner_of(read))
                place = self._series.setdefault(series, len(self._series))
            known.append((target, labels, place))
        self._named = described(self._series)
        self._known = pl.concat([self._known, pl.DataFrame(known, schema=_KNOWN, orient="row")])


def lines_of(asked: dict[int, Answer], aside: dict[str, Counter[str]]) -> pl.DataFrame:
    """One row per line of a wanted family: target, field, labels as written, value, own instant if any."""
    text, name, labels = pl.col("text"), pl.col("name"), pl.col("labels")
    texts = pl.DataFrame(
        {"target": list(asked), "text": [answer.text for answer in asked.values()]},
        schema={"target": pl.Int32, "text": pl.String},
    )
    found = (
        texts.with_columns(text.str.split("\n"))
        .explode("text", empty_as_null=True, keep_nulls=True)
        .filter(text.str.contains(_WANTED_LINE))
        .with_columns(text.str.splitn("{", 2).struct.rename_fields(["name", "rest"]).alias("parts"))
        .unnest("parts")
        # The usual end of a line. Of two braces before a space, no number follows the first.
        .with_columns(pl.col("rest").str.splitn("} ", 2).struct.rename_fields(["labels", "number"]))
        .unnest("rest")
        .with_columns(value=pl.col("number").cast(pl.Float64, strict=False))
    )
    usual = found.filter(pl.col("value").is_not_null()).select(
        "target",
        name.str.strip_chars(" \t").replace_strict(FIELD_PLACES, return_dtype=pl.Int8).alias("field"),
        labels,
        "value",
        pl.lit(None, pl.Int64).alias("at_ms"),
    )
    unusual = found.filter(pl.col("value").is_null()).select("target", "text")
    return usual if unusual.is_empty() else pl.concat([usual, _read_singly(unusual, asked, aside)])


def _read_singly(
    lines: pl.DataFrame, asked: dict[int, Answer], aside: dict[str, Counter[str]]
) -> pl.DataFrame:
    """As `lines_of`, for lines with a timestamp or a value in an uncommon form, and those that are none."""
    rows: list[tuple[int, int, str, float, int | None]] = []
    for target, line in lines.iter_rows():
        counts = aside[asked[target].source]

        def refuse(_: str, counts: Counter[str] = counts) -> None:
            counts[BAD_LINE] += 1

        rows += [
            (target, FIELD_PLACES[one.name], one.labels, one.value, one.at_ms)
            for one in readings(line, is_wanted, refuse)
        ]
    return pl.DataFrame(rows, schema=_LINES, orient="row")
