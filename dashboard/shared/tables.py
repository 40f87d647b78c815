"""
Tables as HTML: real text and links, the same in light and dark. Every value is escaped.

A long one comes in pages, for a cluster may have hundreds of queues and thousands of nodes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from dashboard.shared import filters
from dashboard.shared.charts import STATE_COLOURS, STATE_MEANINGS

ROWS_SHOWN = 50
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
_LINE = "border-bottom:1px solid rgba(128,128,128,.25);padding:.35rem .75rem .35rem 0;"
# Readable on white and on black.
_LINK = "color:#1F7DC2;text-decoration:underline rgba(31,125,194,.35);text-underline-offset:.2em"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: what its head says, what resting on it explains, and whether it holds numbers."""

    key: str
    title: str
    help: str = ""
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value with, where given, a link, a state's colour, a warning, or a note on hover."""

    shown: str
    href: str = ""
    state: str = ""
    bad: bool = False
    note: str = ""
    anchor: str = ""


def _cell(cell: Cell | str, *, number: bool) -> str:
    cell = cell if isinstance(cell, Cell) else Cell(shown=cell)
    inner = escape(cell.shown)
    note = cell.note or STATE_MEANINGS.get(cell.state, "")
    if cell.state:
        colour = STATE_COLOURS.get(cell.state, "#8A8F98")
        inner = (
            f'<span style="display:inline-block;width:.7em;height:.7em;border-radius:50%;'
            f'background:{colour};margin-right:.4em"></span>{inner}'
        )
    if cell.bad:
        inner = f'<strong style="color:#D55E00">▲ {inner}</strong>'
    if cell.href:
        inner = f'<a href="{escape(cell.href)}" style="{_LINK}">{inner}</a>'
    align = "text-align:right;white-space:nowrap;" if number else "text-align:left;"
    title = f' title="{escape(note)}"' if note else ""
    anchor = f' id="{escape(cell.anchor)}"' if cell.anchor else ""
    return f'<td{anchor}{title} style="{_LINE}{align}font-variant-numeric:tabular-nums">{inner}</td>'


def _head(column: Column) -> str:
    align = "right" if column.number else "left"
    hint = "text-decoration:underline dotted;cursor:help;" if column.help else ""
    title = f' title="{escape(column.help)}"' if column.help else ""
    return (
        f'<th scope="col" style="{_LINE}text-align:{align};font-weight:600;opacity:.75;white-space:nowrap">'
        f'<span style="{hint}"{title}>{escape(column.title)}</span></th>'
    )


def html(columns: Sequence[Column], rows: Iterable[Mapping[str, Cell | str]], *, caption: str) -> str:
    """The table as HTML; `caption` is for screen readers."""
    head = "".join(_head(column) for column in columns)
    body = "".join(
        "<tr>" + "".join(_cell(row.get(c.key, ""), number=c.number) for c in columns) + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto">'
        f'<table aria-label="{escape(caption)}" style="border-collapse:collapse;width:100%;font-size:.92rem">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def show(
    columns: Sequence[Column],
    rows: Iterable[Mapping[str, Cell | str]],
    *,
    caption: str,
    foot: Sequence[Mapping[str, Cell | str]] = (),
) -> None:
    """
    Draw the table, or one page of it.

    Args:
        columns: from left to right.
        rows: from top to bottom.
        caption: for screen readers; another one for each table of a page of ours.
        foot: rows that end every page, such as a sum.
    """
    listed = list(rows)
    param = f"page-{_NO_LETTERS.sub('-', caption.lower()).strip('-')}"
    shown = filters.paged(listed, ROWS_SHOWN, param)
    st.html(html(columns, [*shown, *foot], caption=caption))
    filters.pages_of(listed, ROWS_SHOWN, param, "row")
