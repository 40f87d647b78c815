"""
A person who is forgotten, and closed months: what is signed stays, and no correction comes of a name.

The bytes of a closed month keep the name; what is kept of it beside them has another word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from analytics.chargeback.canonical import decode_lines, encode_lines
from analytics.chargeback.line import Line
from analytics.chargeback.month_statement import MonthStatement
from service.statements import closed_statement
from store import statements as kept
from store.embedded import Store


def forget_in_months(store: Store, name: str, instead: str) -> int:
    """Let another word stand for a user's name; gives how many closed months keep it in their bytes."""
    signed = 0
    for head in kept.closed_months(store):
        closed = closed_statement(store, head.month)
        users = [] if closed is None else _users(closed)
        if name in users:
            kept.forget_user(store, head.month, users.index(name), instead)
            signed += 1
    for each in kept.corrections(store):
        lines = decode_lines(each.content)
        if any(line.row.user == name for line in lines):
            kept.rewrite(store, replace(each, content=encode_lines(exchanged(lines, {name: instead}))))
    return signed


def named_in_months(store: Store) -> set[str]:
    """Users of closed months and of their corrections; of some of them there may be nothing else any more."""
    months = (closed_statement(store, head.month) for head in kept.closed_months(store))
    lines = [line for closed in months if closed is not None for line in closed.lines]
    lines += [line for each in kept.corrections(store) for line in decode_lines(each.content)]
    return {line.row.user for line in lines}


def forgotten_in(store: Store, closed: MonthStatement) -> Mapping[str, str]:
    """The words that stand for users of a closed month, by the names in its bytes."""
    instead = kept.forgotten_users(store, closed.month)
    if not instead:
        return {}
    users = _users(closed)
    return {users[place]: word for place, word in instead.items()}


def exchanged(lines: Iterable[Line], instead: Mapping[str, str]) -> list[Line]:
    """The lines with these words for users."""
    return [
        replace(line, row=replace(line.row, user=instead[line.row.user]))
        if line.row.user in instead
        else line
        for line in lines
    ]


def _users(closed: MonthStatement) -> list[str]:
    return sorted({line.row.user for line in closed.lines})
