"""Filters that live in the URL, so that a view is a link."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

import streamlit as st

from analytics.folding import OTHERS
from dashboard.shared import format as text

Item = TypeVar("Item")

WINDOWS = {"": "last 24 h", "1h": "last 1 h", "6h": "last 6 h", "7d": "last 7 d", "30d": "last 30 d"}
REFRESHES = {"": "off", "15": "every 15 s", "60": "every 60 s"}
STATES = ("queued", "checking", "placing", "starting", "running", "held", "backoff", "draining", "ended")
WAITING = "waiting"
WAITING_STATES = ("queued", "checking", "placing")


def link(page: str, /, **params: str) -> str:
    """
    The address of a page with its filters, relative, so that it holds behind any base path.

    Empty for the others of whom a viewer sees sums only: they have no page.

    >>> link("queues", queue="team a", cluster="")
    'queues?queue=team+a'
    >>> link("jobs", team="others")
    ''
    """
    if OTHERS in params.values():
        return ""
    chosen = {name: value for name, value in params.items() if value}
    return f"{page}?{urlencode(chosen)}" if chosen else page


def from_url(name: str) -> str:
    """A parameter of the page's address, empty without one."""
    return st.query_params.get(name, "")


def window_name(window: str) -> str:
    """
    A window as the API writes it, for people.

    >>> window_name("1d"), window_name("6h"), window_name("1w"), window_name("")
    ('last 24 h', 'last 6 h', 'last 7 d', 'now')
    """
    if not window:
        return "now"
    if window == "1d":
        return "last 24 h"
    if window.endswith("w"):
        # As the choice of windows calls it.
        return f"last {7 * int(window[:-1])} d"
    return f"last {window[:-1]} {window[-1]}"


def options(known: Iterable[str], chosen: str) -> list[str]:
    """
    What a choice offers: all, what is known, and what the link names even if nobody knows it.

    >>> options(["b10", "b9", ""], "z")
    ['', 'b9', 'b10', 'z']
    """
    return ["", *sorted({*known, chosen} - {""}, key=text.natural)]


def states_asked(state: str) -> str:
    """
    The states that a choice stands for, as the API wants them.

    >>> states_asked("waiting"), states_asked("running"), states_asked("")
    ('queued,checking,placing', 'running', '')
    """
    return ",".join(WAITING_STATES) if state == WAITING else state


def _key(name: str) -> str:
    return f"filter-{name}"


def _write_url(name: str) -> None:
    value = st.session_state[_key(name)]
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)
    # Another filter is another list: it begins on its first page.
    for param in [param for param in st.query_params if param.startswith("page")]:
        st.query_params.pop(param)


def _select(
    label: str, name: str, offered: list[str], shown: Mapping[str, str], help_text: str | None = None
) -> str:
    # The address is the truth. Streamlit's own binding would write the shown words into it.
    chosen = from_url(name)
    st.session_state[_key(name)] = chosen if chosen in offered else offered[0]
    return (
        st.selectbox(
            label,
            offered,
            format_func=lambda value: shown.get(value, value),
            key=_key(name),
            on_change=_write_url,
            args=(name,),
            help=help_text,
        )
        or ""
    )


def choice(label: str, name: str, known: Iterable[str], *, names: Mapping[str, str] | None = None) -> str:
    """A choice among known values or all; it is the URL's parameter `name`."""
    return _select(label, name, options(known, from_url(name)), {"": "all", **(names or {})})


def fixed(label: str, name: str, shown: Mapping[str, str], *, help_text: str | None = None) -> str:
    """
    A choice among fixed values; the empty one is the default and stays out of the URL.

    What a link names beside them is offered too: it must not quietly become something else.
    """
    chosen = from_url(name)
    offered = list(shown) if chosen in shown else [*shown, chosen]
    return _select(label, name, offered, shown, help_text)


def page_number(param: str = "page") -> int:
    """
    The page of a list that the address names, by a parameter that begins with `page`.

    Anything but a positive number is the first page.
    """
    text_of_page = from_url(param)
    return int(text_of_page) if text_of_page.isascii() and text_of_page.isdigit() and int(text_of_page) else 1


def _turn_page(key: str, param: str) -> None:
    st.query_params[param] = str(st.session_state[key])


def pages(number_of_pages: int, param: str = "page") -> None:
    """The row of page numbers below a list; `param` as of `page_number`."""
    if number_of_pages > 1:
        shown = min(page_number(param), number_of_pages)
        # The address is the truth: another page is another widget, that begins there. One whose state
        # was written would be warned of, for it has a default.
        key = _key(f"{param}-{shown}")
        st.pagination(number_of_pages, default=shown, key=key, on_change=_turn_page, args=(key, param))


def paged(items: Sequence[Item], size: int, param: str) -> Sequence[Item]:
    """The items of the page that the address names; of one that does not exist those of the last."""
    first = (min(page_number(param), max(1, -(-len(items) // size))) - 1) * size
    return items[first : first + size]


def pages_of(items: Sequence[object], size: int, param: str, what: str) -> None:
    """Which of the items are shown, and the row of page numbers, below a list that has several pages."""
    number = -(-len(items) // size)
    if number > 1:
        first = (min(page_number(param), number) - 1) * size + 1
        st.caption(f"{first:,} to {min(first + size - 1, len(items)):,} of {text.count(len(items), what)}")
        pages(number, param)


def service_class(name: str = "class") -> str:
    """The choice of a service class."""
    return choice("Class", name, text.CLASSES, names=text.CLASS_NAMES)


def window() -> str:
    """The choice of the window that figures look back over."""
    return fixed("Window", "window", WINDOWS, help_text="How far back figures look that need a window.")


def asked(**filters: str) -> dict[str, str]:
    """The filters as parameters of the API, with the instant that the link may name."""
    renamed = {"class": "service_class"}
    chosen = {renamed.get(name, name): value for name, value in filters.items() if value}
    as_of = from_url("as_of")
    return {**chosen, "as_of": as_of} if as_of else chosen
