"""What a reader sees of a page, taken apart: texts, tiles, cells of tables, points of charts."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from html import unescape
from typing import Any

from streamlit.testing.v1 import AppTest

TEXTS = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success")
# How long ago the sample was recorded is told by the machine's clock.
_AGO = re.compile(r", (?:<?\d+ [smhd] ?)+ago")
_ROW, _HEAD, _CELL = (
    re.compile(pattern, re.DOTALL)
    for pattern in (r"<tr>(.*?)</tr>", r"<th .*?>(.*?)</th>", r"<td.*?>.*?</td>")
)
_TAG = re.compile(r"<[^>]+>")
Cells = dict[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Rendering:
    """
    A page as it was drawn.

    `cells` holds, by the names of the row and the column, the whole cell with its link, colour and
    note. `points` holds, by chart and line, what is drawn there.
    """

    texts: Counter[tuple[str, str]]
    tiles: dict[str, str]
    cells: Cells
    rows: list[str]
    points: dict[tuple[str, str], list[str]]
    choices: dict[str, list[str]]


def rendering(app: AppTest, *, row_name: int = 1, table: int | None = None) -> Rendering:
    """
    Take a page apart.

    Args:
        app: the page, drawn.
        row_name: how many of the first cells name a row of its table.
        table: take this table only, by its place on the page; None takes all.
    """
    assert not app.exception
    texts = Counter(
        (kind, _AGO.sub("", str(getattr(each, "value", "")))) for kind in TEXTS for each in app.get(kind)
    )
    tiles: dict[str, str] = {}
    for tile in app.metric:
        number = sum(name.startswith(f"{tile.label} #") for name in tiles) + 1
        tiles[f"{tile.label} #{number}"] = f"{tile.value} | {tile.delta}"
    cells: Cells = {}
    rows: list[str] = []
    tables = [drawn for element in app.get("html") if (drawn := _ROW.findall(element.proto.body))]
    for head, *body in tables if table is None else tables[table : table + 1]:
        columns = [seen(title) for title in _HEAD.findall(head)]
        for row in body:
            drawn = _CELL.findall(row)
            name = " · ".join(map(seen, drawn[:row_name]))
            rows.append(name)
            cells |= {(name, column): cell for column, cell in zip(columns, drawn, strict=True)}
    points: dict[tuple[str, str], list[str]] = {}
    for chart in app.get("plotly_chart"):
        points |= _points(chart.proto.alt, json.loads(chart.proto.spec))
    choices = {each.label: list(each.options) for each in app.selectbox}
    return Rendering(texts, tiles, cells, rows, points, choices)


def seen(html: str) -> str:
    """What a reader sees of a cell; the mark of a broken promise is left out."""
    return unescape(_TAG.sub("", html)).removeprefix("▲ ")


def _points(chart: str, spec: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Of each line of a chart its points: trace, length and text, in a fixed order."""
    found: dict[tuple[str, str], list[str]] = {}
    for trace in spec["data"]:
        said = trace.get("customdata") or trace.get("text") or trace["x"]
        # Plotly packs the lengths of a timeline's bars; their texts tell the same.
        lengths = trace["x"] if isinstance(trace["x"], list) else [""] * len(trace["y"])
        for line, x, words in zip(trace["y"], lengths, said, strict=True):
            found.setdefault((chart, line), []).append(f"{trace.get('name')}: {x} {words}")
    return {line: sorted(points) for line, points in found.items()}


def changed(before: dict[Any, Any], after: dict[Any, Any]) -> set[Any]:
    """The keys under which two renderings say something else, or one says nothing."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
