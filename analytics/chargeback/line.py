"""A line of a month's statement: a row, what its time was good for, what its quota did, what it corrects."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from analytics.chargeback.capacity import Kind
from analytics.chargeback.quota_lines import QuotaTime
from analytics.chargeback.statement import Row

# The kind of a line that corrects one of an earlier month, which is closed.
CORRECTION: Final = "correction"
# Held micro-GPU-milliseconds by cause.
Causes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """
    The row that a correction is about; its other dimensions are the correction's own.

    `number` counts the corrections of that month. Without a day it is about cents that moved between
    rows of a team when the month was rounded anew.
    """

    month: str
    day: str
    kind: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    A row of the statement, with its held time by cause; a row of other kinds has none.

    A row of quota has what was lent, borrowed and left unused, and what that was worth instead.
    """

    row: Row
    causes: Causes
    quota: QuotaTime | None = None
    worth: tuple[Decimal | None, ...] = ()
    about: About | None = None

    @property
    def is_held(self) -> bool:
        """Whether its GPU-time is held time, or corrects some."""
        return (self.row.kind if self.about is None else self.about.kind) == Kind.HELD
