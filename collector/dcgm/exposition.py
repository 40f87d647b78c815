"""
The exposition format, as far as GPU metrics need it: lines of a name, labels and a value.

Exporters repeat their label sets word for word in every answer, so what a label text means is read
once and remembered by the caller's `meaning`.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from domain.window import is_instant

_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,|$)')
_ESCAPED = re.compile(r"\\(.)")
_NAME = re.compile(r",([a-zA-Z_][a-zA-Z0-9_]*)=")
# Any other escape stands for itself, backslash included.
_MEANT = {"n": "\n", "\\": "\\", '"': '"'}


class Reading(NamedTuple):
    """A line: a sample of a series, at an instant of its own where it has a timestamp."""

    name: str
    labels: str
    value: float
    at_ms: int | None


def cut_in(body: bytes | bytearray) -> str:
    r"""
    Why the end of an answer cannot be believed; empty where it can.

    The format ends each line, the last one too: of a number cut short nobody sees that it was.

    >>> cut_in(b"DCGM_FI_DEV_GPU_UTIL{} 1"), cut_in(b"DCGM_FI_DEV_GPU_UTIL{} 17\n")
    ('it was cut after 24 bytes, in the middle of a line', '')
    """
    if not body or body.endswith(b"\n"):
        return ""
    return f"it was cut after {len(body):,} bytes, in the middle of a line"


def readings(text: str, wanted: Callable[[str], bool], refuse: Callable[[str], None]) -> Iterator[Reading]:
    """
    The lines of the wanted families, in the order of the text; `labels` as they are written.

    Args:
        text: an answer of an exporter, in the text format 0.0.4.
        wanted: whether a family is kept.
        refuse: told each line of a wanted family that cannot be read.
    """
    for line in text.split("\n"):
        brace = line.find("{")
        # A sample without labels belongs to no device; the name of a comment starts with a hash.
        if brace < 0 or not wanted(name := line[:brace].strip(" \t")):
            continue
        end = line.rfind("}")
        parts = line[end + 1 :].split()
        try:
            if end < brace or not 1 <= len(parts) <= 2:
                refuse(line)
                continue
            value = _number(parts[0])
            at_ms = int(parts[1]) if len(parts) == 2 else None
        except ValueError:
            refuse(line)
            continue
        if at_ms is not None and not is_instant(at_ms):
            refuse(line)
            continue
        yield Reading(name, line[brace + 1 : end], value, at_ms)


def labels_of(text: str) -> dict[str, str]:
    r"""
    The labels between the braces.

    >>> labels_of('gpu="0",modelName="a \\"b\\"",')
    {'gpu': '0', 'modelName': 'a "b"'}

    Raises:
        ValueError: they cannot be read.
    """
    return _usual_labels(text) or _any_labels(text)


def _usual_labels(text: str) -> dict[str, str]:
    """As `labels_of`, many times as fast, of labels without spaces and escapes; nothing of others."""
    if "\\" in text:
        return {}
    # Each quote begins or ends a value.
    *parts, end = f",{text}".split('"')
    if len(parts) % 2 or end not in ("", ","):
        return {}
    found = dict(zip(map(_name, parts[0::2]), parts[1::2], strict=True))
    return {} if "" in found else found


@lru_cache(maxsize=1 << 10)
def _name(text: str) -> str:
    """The name in a comma, a name and an equal sign; empty where it is none."""
    match = _NAME.fullmatch(text)
    return match[1] if match else ""


def _any_labels(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LABEL.match(text, place)
        if match is None:
            if text[place:].strip(" \t") == "":
                break
            message = f'labels {text!r}: expected name="value" at {place}'
            raise ValueError(message)
        name, value, _ = match.groups()
        if "\\" in value:
            value = _ESCAPED.sub(lambda escaped: _MEANT.get(escaped[1], escaped[0]), value)
        found[name] = value
        place = match.end()
    return found


def _number(text: str) -> float:
    if "_" in text:
        # Python reads 1_000, the format does not.
        raise ValueError(text)
    return float(text)
