"""
How the answers of an exporter are laid out: all of them but the numbers, which stays from round to round.

A line is compared with how it began before, and of its labels with how they were written, and what remains
is the number. Any difference at all, a timestamp included, gives nothing: then the answer is read anew.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Final, NamedTuple

from collector.dcgm.samples import FIELD_PLACES, WANTED
from domain.gpu_sample import Field

# The fields of a sample, in the order of `Field`.
KEPT: Final = tuple(name for name in Field if name in WANTED)
_PLACES: Final = {f"{name}{{": FIELD_PLACES[name] for name in KEPT}


@dataclass(frozen=True, kw_only=True)
class Form:
    """
    What the answers of exporters of one make have in common.

    Args:
        starts: how each line begins, so that its family is beyond doubt.
        rows: of each wanted line the place of its series among those of the answer.
    """

    starts: tuple[str, ...]
    rows: tuple[int, ...] = ()

    @cached_property
    def wanted(self) -> list[bool]:
        """Whether a line is of a wanted family."""
        return [start in _PLACES for start in self.starts]

    @cached_property
    def names(self) -> list[str]:
        """How each wanted line begins."""
        return list(compress(self.starts, self.wanted))

    @cached_property
    def fields(self) -> list[int]:
        """Of each wanted line the place in `Field`."""
        return [_PLACES[name] for name in self.names]

    @cached_property
    def places(self) -> list[list[int]]:
        """For each of `KEPT` which wanted line has the value of each row; -1 where none does."""
        told = {both: place for place, both in enumerate(zip(self.fields, self.rows, strict=True))}
        rows = range(max(self.rows, default=-1) + 1)
        return [[told.get((FIELD_PLACES[name], row), -1) for row in rows] for name in KEPT]

    @cached_property
    def repeats(self) -> bool:
        """Whether a field of a series is told more than once."""
        return len(set(zip(self.fields, self.rows, strict=True))) < len(self.rows)

    def wanted_lines(self, text: str) -> list[str] | None:
        """The wanted lines of an answer, without their names; None where it is of another form."""
        lines = text.split("\n")
        if lines.pop() or len(lines) != len(self.starts) or not all(map(str.startswith, lines, self.starts)):
            return None
        return list(map(str.removeprefix, compress(lines, self.wanted), self.names))

    def values(self, text: str, labels: tuple[str, ...]) -> list[float] | None:
        """The values of the wanted lines of an answer with these labels; None where anything differs."""
        told = self.wanted_lines(text)
        return None if told is None else _numbers(list(map(str.removeprefix, told, labels)))


class Written(NamedTuple):
    """An answer as it was written: its form, and per wanted line labels to the closing brace, and value."""

    form: Form
    labels: list[str]
    values: list[float]


def taken_apart(text: str, like: Form | None = None) -> Written | None:
    """
    The parts of an answer whose lines all have the usual form; else None. The rows are left open.

    Args:
        text: the answer.
        like: its form is this one's in all likelihood.
    """
    form = like
    told = None if like is None else like.wanted_lines(text)
    if form is None or told is None:
        starts = list(map(_start, text.split("\n")[:-1]))
        form = Form(starts=tuple(starts))
        told = form.wanted_lines(text)
        if told is None or "" in starts:
            return None
    labels: list[str] = []
    numbers: list[str] = []
    for line in told:
        end = line.rfind("}") + 1
        labels.append(line[:end])
        numbers.append(line[end:])
    values = _numbers(numbers)
    return None if values is None or "" in labels else Written(form, labels, values)


def _start(line: str) -> str:
    """So much of a line that it tells the family of each line that begins so; empty where nothing does."""
    if line.startswith("#"):
        return "#"
    name, brace, _ = line.partition("{")
    if brace and name in WANTED:
        return name + brace
    word, end = (name, brace) if brace else line.partition(" ")[:2]
    bare = word.strip(" \t")
    return word + end if end and bare and bare not in WANTED else ""


def _numbers(texts: list[str]) -> list[float] | None:
    """The numbers; None where one of the texts is none: Python reads 1_000, the format does not."""
    try:
        values = list(map(float, texts))
    except ValueError:
        return None
    return None if "_" in "".join(texts) else values
