"""Real objects with something in them that no API server should write, and values to write there."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from hypothesis import strategies as st

from collector.translator import Translator
from domain.errors import ProductError
from tests.collector.golden import CASES, object_of, read, translator_of

Json = Any
# Values of every type, and those that a parser, a column or an arithmetic may stumble over.
ODD: st.SearchStrategy[Json] = st.one_of(
    st.sampled_from([
        None, True, False, "", " ", "8", "-1", "1e400", "0.5", "8x", "99999999999999999999", "NaN", "\x00",
        "\ufffd", "\u202e", "a" * 5000, "2026-03-02T09:00:00Z", "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "2026-02-30T00:00:00Z", "2026-03-02T09:00:00.123456+14:00", "True", "Unknown", 0, -1, 1, 2**31,
        -(2**31),
        2**63, 10**30, 0.1, -0.0, 1e308, [], {}, [None], [[]], {"": None}, {"a": {}}, [{}],
        {"nvidia.com/gpu": "-8"},
        {"nvidia.com/gpu": 1e30}, {"nvidia.com/gpu": None}, [{"nvidia.com/gpu": []}],
    ]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)  # fmt: skip


@contextmanager
def refused_with(words: str) -> Iterator[None]:
    """Lets our own errors pass that say these words, and no other error."""
    refusal = None
    try:
        yield
    except ProductError as error:
        refusal = str(error)
    assert refusal is None or words in refusal


@cache
def written() -> tuple[tuple[Translator, dict[str, Json]], ...]:
    """The objects of all golden cases, and how each is read; an object of each kind is among them."""
    found = []
    for path in CASES:
        given = object_of(read(path))
        found.append((translator_of(given), given))
    return tuple(found)


def places(node: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything in an object but of itself."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, member in members:
        yield (*at, key)
        yield from places(member, (*at, key))


def changed(given: dict[str, Json], changes: list[tuple[int, str, Json]]) -> dict[str, Json]:
    """
    A copy with changes: (where, as a number of any size; what to do; a value for it).

    What is done: "set" the value there, "drop" what is there, "list" or "wrap" it, or "double" it.
    """
    odd = copy.deepcopy(given)
    for number, how, value in changes:
        paths = list(places(odd))
        if not paths:
            return odd
        last: Json
        *parents, last = paths[number % len(paths)]
        holder: Json = odd
        for key in parents:
            holder = holder[key]
        match how:
            case "drop":
                del holder[last]
            case "list":
                holder[last] = [holder[last]]
            case "wrap":
                holder[last] = {str(last): holder[last]}
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            case _:
                holder[last] = value
    return odd


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 10_000), st.sampled_from(["set", "set", "set", "drop", "list", "wrap", "double"]), ODD
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def odd_objects(draw: st.DrawFn) -> tuple[Translator, dict[str, Json]]:
    """A real object with up to four changes."""
    translator, given = draw(st.sampled_from(written()))
    return translator, changed(given, draw(CHANGES))


@st.composite
def odd_bytes(draw: st.DrawFn) -> bytes:
    """Bytes that no JSON library writes: broken, not UTF-8, too deep, NaN, half a surrogate."""
    return draw(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([
                b"", b"null", b"[]", b"{}", b"7", b'"x"', b"NaN", b'{"metadata": NaN}', b"\xff\xfe{}",
                b'{"metadata":{"uid":"\xff"}}', b'{"metadata":{"uid":"\\ud800"}}', b'{"metadata":null}',
                b'{"metadata":{"uid":7}}', b'{"metadata":{"uid":"u","uid":null}}', b"[" * 5000,
                b'{"metadata":{"labels":' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}}",
                b'{"metadata":{"uid":"u","resourceVersion":"' + b"9" * 5000 + b'"}}',
                b'{"metadata":{"uid":"u","generation":' + b"9" * 5000 + b"}}",
            ]),
        )
    )  # fmt: skip
