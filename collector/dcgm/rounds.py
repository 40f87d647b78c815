"""
Answers of many exporters at once, as samples: a hundred times as fast as line by line.

Exporters write a series in the same words again and again. What its labels say is read once and remembered
by their text; of each further answer only the values are read, and become samples by whole columns. An answer
with a line in an uncommon form goes through `exposition.readings`, so that both ways give the same.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, NamedTuple

import polars as pl

from collector.dcgm.exposition import labels_of, readings
from collector.dcgm.layout import KEPT, Form, Written, taken_apart
from collector.dcgm.samples import (
    BAD_LABELS,
    BAD_LINE,
    FIELD_PLACES,
    NO_DEVICE,
    NO_METRICS,
    OF_THE_FUTURE,
    Series,
    described,
    is_plain,
    is_wanted,
    samples_of,
    samples_of_plain,
    tells_health,
    without_value,
)
from domain.gpu_sample import Field, device_of, owner_of
from domain.window import CLOCK_SKEW_MS, MS_PER_HOUR

_LONG: Final = {"series": pl.Int64, "field": pl.Int8, "at_ms": pl.Int64, "value": pl.Float64}


class Answer(NamedTuple):
    """
    What an exporter told when it was asked at an instant.

    `node` is where it runs, if that is known. It counts before what series say: an exporter that is not told
    the name of its node writes that of its own pod.
    """

    source: str
    text: str
    at_ms: int
    node: str = ""


class Round(NamedTuple):
    """
    Samples with the columns of table `gpu_sample` less cluster and seq; what was set aside, by source.

    `troubles` says of each source that answered and told no sample what is wrong with its answer.
    """

    frame: pl.DataFrame
    set_aside: dict[str, Counter[str]]
    troubles: dict[str, str]


class _Layout(NamedTuple):
    """
    How an exporter's answer was written last.

    Args:
        form: of its lines.
        labels: of each wanted line, up to the closing brace.
        series: the number of each row.
        is_plain: each series is a sample by itself, whatever else is told.
    """

    form: Form
    labels: tuple[str, ...]
    series: tuple[int, ...]
    is_plain: bool


@dataclass(slots=True)
class _Target:
    """An exporter; `texts` has the series of each label text of its last answer, None where of no device."""

    node: str
    texts: dict[str, int | None] = field(default_factory=dict)
    layout: _Layout | None = None


class _Usual(NamedTuple):
    """An answer of which every line has the usual form; a value per wanted line."""

    at_ms: int
    layout: _Layout
    values: list[float]


class _Readings(NamedTuple):
    """Readings as columns."""

    series: list[int]
    field: list[int]
    at_ms: list[int]
    value: list[float]

    def add(self, usual: _Usual) -> None:
        """All readings of an answer."""
        form = usual.layout.form
        self.series.extend(usual.layout.series[row] for row in form.rows)
        self.field.extend(form.fields)
        self.at_ms.extend([usual.at_ms] * len(form.rows))
        self.value.extend(usual.values)


class Exporters:
    """
    Reads the answers of a group of exporters, and remembers what their labels mean.

    Of label texts those of the last answers are remembered. Pods come and go, and each leaves series
    behind: once an hour all is forgotten and read anew.

    Args:
        step_ms: how far apart they are asked.
    """

    def __init__(self, step_ms: int) -> None:
        self._step_ms = step_ms
        self._forget(0)

    def __len__(self) -> int:
        """How many series are remembered."""
        return len(self._series)

    def samples(self, answers: Sequence[Answer]) -> Round:
        """The samples of these answers; an exporter has at most one among them."""
        newest_ms = max((answer.at_ms for answer in answers), default=0)
        if newest_ms - self._since_ms >= MS_PER_HOUR:
            self._forget(newest_ms)
        aside: dict[str, Counter[str]] = {}
        plain, others = self._read(answers, aside)
        wide = _wide(plain)
        doubtful = without_value(wide)
        if doubtful:
            for place in doubtful:
                others.add(plain[place])
            wide = wide.filter(~pl.col("answer").is_in(doubtful))
        named = self._described()
        frame = samples_of_plain(wide, named, step_ms=self._step_ms)
        if others.series:
            read = pl.DataFrame(others._asdict(), schema=_LONG)
            told = named.join(read.select("series").unique(), on="series", how="semi")
            further, more = samples_of(read, told, step_ms=self._step_ms)
            frame = pl.concat([frame, further.select(frame.columns)])
            for source, counts in more.items():
                aside.setdefault(source, Counter()).update(counts)
        usual = len(plain) == len(answers) and all(one.layout.series for one in plain)
        return Round(frame, aside, {} if usual else _troubles(frame, answers, aside))

    def _read(
        self, answers: Sequence[Answer], aside: dict[str, Counter[str]]
    ) -> tuple[list[_Usual], _Readings]:
        """The answers of which each series is a sample by itself, and the readings of the others."""
        plain: list[_Usual] = []
        others = _Readings([], [], [], [])
        # By name: the answers come in as the network pleases.
        for answer in sorted(answers, key=attrgetter("source")):
            usual = self._usual(answer)
            if usual is None:
                counts = self._read_singly(answer, others)
                if counts:
                    aside[answer.source] = counts
            elif usual.layout.is_plain:
                plain.append(usual)
            else:
                others.add(usual)
        return plain, others

    def _forget(self, since_ms: int) -> None:
        self._since_ms = since_ms
        self._targets: dict[str, _Target] = {}
        self._forms: dict[Form, Form] = {}
        self._latest: Form | None = None
        self._series: dict[Series, int] = {}
        self._met: list[Series] = []
        self._named = described(())

    def _described(self) -> pl.DataFrame:
        """One row per series, those included that were met just now."""
        first = self._named.height
        if first < len(self._met):
            new = described(self._met[first:], first=first)
            self._named = pl.concat([self._named, new], rechunk=True)
        return self._named

    def _target(self, answer: Answer) -> _Target:
        known = self._targets.get(answer.source)
        if known is None or known.node != answer.node:
            known = self._targets[answer.source] = _Target(answer.node)
        return known

    def _usual(self, answer: Answer) -> _Usual | None:
        """An answer in the usual form; None where a line is in none, or its labels name no device."""
        target = self._target(answer)
        if target.layout is not None:
            values = target.layout.form.values(answer.text, target.layout.labels)
            if values is not None:
                return _Usual(answer.at_ms, target.layout, values)
        written = taken_apart(answer.text, self._latest)
        target.layout = None if written is None else self._laid_out(written, answer, target)
        if written is None or target.layout is None:
            return None
        return _Usual(answer.at_ms, target.layout, written.values)

    def _laid_out(self, written: Written, answer: Answer, target: _Target) -> _Layout | None:
        try:
            texts = {labels: self._number(labels, answer, target) for labels in dict.fromkeys(written.labels)}
        except ValueError:
            return None
        target.texts = texts
        known = {number: None for number in texts.values() if number is not None}
        if None in texts.values():
            return None
        rows = {number: row for row, number in enumerate(known)}
        in_rows = tuple(rows[number] for labels in written.labels if (number := texts[labels]) is not None)
        form = Form(starts=written.form.starts, rows=in_rows)
        form = self._latest = self._forms.setdefault(form, form)
        shared = {labels: labels for labels in texts}
        return _Layout(
            form=form,
            labels=tuple(map(shared.__getitem__, written.labels)),
            series=tuple(rows),
            is_plain=not form.repeats and is_plain(self._met[number] for number in rows),
        )

    def _number(self, labels: str, answer: Answer, target: _Target) -> int | None:
        """
        The series with these labels; None where they name no device.

        Raises:
            ValueError: they cannot be read.
        """
        if labels in target.texts:
            return target.texts[labels]
        read = labels_of(labels[:-1])
        device = device_of(read)
        if device is None:
            return None
        if answer.node:
            device = replace(device, node=answer.node)
        series = Series(answer.source, device, owner_of(read))
        number = self._series.setdefault(series, len(self._met))
        if number == len(self._met):
            self._met.append(series)
        return number

    def _read_singly(self, answer: Answer, others: _Readings) -> Counter[str]:
        """The readings of an answer line by line; what is set aside of them is counted."""
        aside: Counter[str] = Counter()

        def refuse(_: str) -> None:
            aside[BAD_LINE] += 1

        target = self._target(answer)
        texts: dict[str, int | None] = {}
        for one in readings(answer.text, is_wanted, refuse):
            labels = f"{one.labels}}}"
            try:
                number = self._number(labels, answer, target)
            except ValueError:
                aside[BAD_LABELS] += 1
                continue
            texts[labels] = number
            if number is None:
                aside[NO_DEVICE] += 1
                continue
            if one.at_ms is not None and one.at_ms > answer.at_ms + CLOCK_SKEW_MS:
                aside[OF_THE_FUTURE] += 1
                continue
            others.series.append(number)
            others.field.append(FIELD_PLACES[one.name])
            others.at_ms.append(answer.at_ms if one.at_ms is None else one.at_ms)
            others.value.append(one.value)
        target.texts = texts
        return aside


def _troubles(
    frame: pl.DataFrame, answers: Sequence[Answer], aside: dict[str, Counter[str]]
) -> dict[str, str]:
    """What is wrong with answers that told no sample, by source; those that are none at all are counted."""
    silent = {answer.source for answer in answers} - set(frame["source"].unique())
    found: dict[str, str] = {}
    for answer in answers if silent else ():
        if answer.source in silent:
            counts = aside.get(answer.source, Counter())
            found[answer.source] = _trouble(answer, counts)
            if counts:
                aside[answer.source] = counts
    return found


def _trouble(answer: Answer, aside: Counter[str]) -> str:
    """What is wrong with an answer that told no sample; one that is none at all is counted."""
    if aside:
        [(because, count)] = aside.most_common(1)
        return f"{answer.source} answered, and nothing of it can be kept: {because} ({count:,} times)"
    if not tells_health(answer.text):
        aside[NO_METRICS] += 1
    told = "without a metric of activity or memory"
    if not answer.text.strip():
        told = "with nothing"
    elif answer.text.lstrip().startswith("<"):
        told = "with a page of HTML or XML"
    return f"{answer.source} answered {told}; expected lines such as {Field.UTIL}{{gpu=...}}"


def _wide(plain: Sequence[_Usual]) -> pl.DataFrame:
    """One row per series of these answers, with the place of its answer and a column for each field."""
    places: list[int] = []
    series: list[int] = []
    instants: list[int] = []
    columns: list[list[float | None]] = [[] for _ in KEPT]
    for place, (at_ms, layout, values) in enumerate(plain):
        rows = len(layout.series)
        places.extend([place] * rows)
        series.extend(layout.series)
        instants.extend([at_ms] * rows)
        told = [*values, None]
        for column, of_rows in zip(columns, layout.form.places, strict=True):
            column.extend(map(told.__getitem__, of_rows))
    return pl.DataFrame(
        {
            "answer": pl.Series(places, dtype=pl.Int64),
            "series": pl.Series(series, dtype=pl.Int64),
            "at_ms": pl.Series(instants, dtype=pl.Int64),
            **{
                name.name: pl.Series(column, dtype=pl.Float64)
                for name, column in zip(KEPT, columns, strict=True)
            },
        }
    )
