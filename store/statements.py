"""
Closed months and their corrections.

A closed month is written once, with the corrections that it books, in one transaction: a stop at any
point leaves the month open, or closed whole.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from domain.errors import RefusedError, StoreError
from domain.window import format_instant
from store.engine import Engine

_HEADS: Final = """
select month, sha256, closed_ms, closed_by, as_of_ms, reason, start_ms, end_ms
from closed_month
order by start_ms, month
"""
_MONTH: Final = "select closed_month.* from closed_month where month = $month"
_CORRECTIONS: Final = """
select month_correction.* from month_correction
order by month, number
"""
_BASES: Final = "select month, basis, checked_ms from month_basis order by month"
_CLOSE: Final = """
insert into closed_month by name
select
    $month as month,
    $sha256 as sha256,
    $closed_ms as closed_ms,
    $closed_by as closed_by,
    $as_of_ms as as_of_ms,
    $reason as reason,
    $start_ms as start_ms,
    $end_ms as end_ms,
    $content as content
"""
_BOOK: Final = """
update month_correction set booked_in = $booked_in
where month = $month and number = $number and booked_in = ''
returning number
"""
_CORRECT: Final = """
insert into month_correction by name
select
    $month as month,
    $number as number,
    $found_ms as found_ms,
    $content as content,
    '' as booked_in
where
    (select count(*) from month_correction where month = $month) = $number - 1
    and exists (select 1 from closed_month where month = $month)
returning number
"""
_NOTE_BASIS: Final = """
insert into month_basis (month, basis, checked_ms) values ($month, $basis, $checked_ms)
on conflict do update set basis = excluded.basis, checked_ms = excluded.checked_ms
"""
_LEFT: Final = "select month_left.* from month_left order by month"
# What is learnt is to be told again.
_NOTE_LEFT: Final = """
insert into month_left by name
select
    $month as month,
    $dropped_ms as dropped_ms,
    $basis as basis,
    $held::hugeint as held,
    0 as times,
    0 as unbooked,
    '' as told_in
on conflict do update set
    dropped_ms = excluded.dropped_ms,
    basis = excluded.basis,
    held = excluded.held,
    times = case when told_in = '' or not $learnt then times else 0 end + $learnt::int,
    unbooked = case when told_in = '' or not $learnt then unbooked else 0 end + $unbooked::hugeint,
    told_in = case when $learnt then '' else told_in end
"""
_REWRITE: Final = """
update month_correction set content = $content where month = $month and number = $number
"""
_FORGET_USER: Final = """
insert into month_user (month, place, instead) values ($month, $place, $instead)
on conflict do update set instead = excluded.instead
"""
_FORGOTTEN: Final = "select place, instead from month_user where month = $month"
_TELL_LEFT: Final = "update month_left set told_in = $month where times > 0 and told_in = ''"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedMonth:
    """A closed month; `content` is its statement, with the fingerprint `sha256`."""

    month: str
    sha256: str
    closed_ms: int
    closed_by: str
    as_of_ms: int
    reason: str
    start_ms: int
    end_ms: int
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What was learnt of a closed month by `found_ms`; `booked_in` is empty while no statement has it."""

    month: str
    number: int
    found_ms: int
    content: bytes = field(repr=False)
    booked_in: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """
    What is left of a closed month of which facts were dropped before `dropped_ms`, as it was looked at last.

    `held` and `unbooked` are micro-GPU-milliseconds; `times` and `unbooked` count what was learnt since, and
    `told_in` is the month whose close said so.
    """

    month: str
    dropped_ms: int
    basis: str
    held: int
    times: int = 0
    unbooked: int = 0
    told_in: str = ""


def closed_months(engine: Engine) -> list[ClosedMonth]:
    """Every closed month, without its content, in the order of time."""
    return [ClosedMonth(**_any(row)) for row in engine.kept_rows(_HEADS)]


def closed_month(engine: Engine, month: str) -> ClosedMonth | None:
    """
    A closed month with its statement; None where it is open.

    Raises:
        StoreError: what is stored has another fingerprint than was written.
    """
    rows = engine.rows(_MONTH, {"month": month})
    if not rows:
        return None
    found = ClosedMonth(**_any(rows[0]))
    sha256 = hashlib.sha256(found.content).hexdigest()
    if sha256 != found.sha256:
        message = (
            f"the statement of {month} has the fingerprint {sha256}, and was closed with {found.sha256}:"
            " it was changed in the store; restore a backup"
        )
        raise StoreError(message)
    return found


def corrections(engine: Engine) -> list[Correction]:
    """Every correction, by month and number."""
    return [Correction(**_any(row)) for row in engine.kept_rows(_CORRECTIONS)]


def close(engine: Engine, closed: ClosedMonth, books: Collection[tuple[str, int]]) -> None:
    """
    Write a closed month and book these corrections in it, all or nothing; what is not booked is told then.

    Raises:
        RefusedError: it is closed already, or a correction is booked elsewhere; nothing was written.
    """
    with engine.transaction() as connection:
        found = connection.execute(
            "select sha256, closed_ms, closed_by from closed_month where month = $month",
            {"month": closed.month},
        ).fetchone()
        if found:
            sha256, closed_ms, closed_by = found
            message = (
                f"month {closed.month} was closed at {format_instant(closed_ms)} by {closed_by}, with"
                f" sha256 {sha256}: it is never closed twice; what is learnt later becomes a correction"
            )
            raise RefusedError(message)
        values = {name: getattr(closed, name) for name in ClosedMonth.__slots__}
        connection.execute(_CLOSE, values)
        for month, number in books:
            place = {"booked_in": closed.month, "month": month, "number": number}
            if not connection.execute(_BOOK, place).fetchall():
                message = (
                    f"correction {number} of {month} was booked by another close meanwhile: close"
                    f" {closed.month} again"
                )
                raise RefusedError(message)
        connection.execute(_TELL_LEFT, {"month": closed.month})


def correct(engine: Engine, correction: Correction) -> bool:
    """Append a correction; False where another one of that number is there, or the month is not closed."""
    values = {name: getattr(correction, name) for name in ("month", "number", "found_ms", "content")}
    with engine.transaction() as connection:
        return bool(connection.execute(_CORRECT, values).fetchall())


def rewrite(engine: Engine, correction: Correction) -> None:
    """Put other content in the place of a correction's, in which a name is another word."""
    values = {name: getattr(correction, name) for name in ("month", "number", "content")}
    with engine.transaction() as connection:
        connection.execute(_REWRITE, values)


def forget_user(engine: Engine, month: str, place: int, instead: str) -> None:
    """Note which word stands for a user of a closed month, whose bytes keep the name."""
    with engine.transaction() as connection:
        connection.execute(_FORGET_USER, {"month": month, "place": place, "instead": instead})


def forgotten_users(engine: Engine, month: str) -> dict[int, str]:
    """The words that stand for users of a closed month, by the place of the name in its bytes."""
    rows: Sequence[dict[str, Any]] = [_any(row) for row in engine.rows(_FORGOTTEN, {"month": month})]
    return {row["place"]: row["instead"] for row in rows}


def bases(engine: Engine) -> dict[str, tuple[str, int]]:
    """Per month what it rested on when it was last settled anew, and when that was."""
    rows: Sequence[dict[str, Any]] = [_any(row) for row in engine.rows(_BASES)]
    return {row["month"]: (row["basis"], row["checked_ms"]) for row in rows}


def note_basis(engine: Engine, month: str, basis: str, checked_ms: int) -> None:
    """Note what a month rests on, for the next look at whether that changed."""
    with engine.transaction() as connection:
        connection.execute(_NOTE_BASIS, {"month": month, "basis": basis, "checked_ms": checked_ms})


def left(engine: Engine) -> dict[str, Left]:
    """What is left of closed months of which facts were dropped, by month."""
    return {str(row["month"]): Left(**_any(row)) for row in engine.rows(_LEFT)}


def note_left(engine: Engine, left: Left, *, learnt: bool = False, unbooked: int = 0) -> None:
    """Note what is left of a month, and whether something was learnt of it, and by how much more is held."""
    values = {name: getattr(left, name) for name in ("month", "dropped_ms", "basis", "held")}
    with engine.transaction() as connection:
        connection.execute(_NOTE_LEFT, {**values, "learnt": learnt, "unbooked": unbooked})


def _any(row: Any) -> dict[str, Any]:
    return dict(row)
