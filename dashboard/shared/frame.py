"""What surrounds every page: heading, freshness, and the states without data."""

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import streamlit as st

from dashboard.shared import data, filters
from dashboard.shared import format as text
from dashboard.shared.data import Answer, MetricInfo
from domain.errors import DataError, ForbiddenError, UnreachableError, UsageError
from domain.observed import coverage_words

# Set by the demo while it plays a sample.
PLAYED = "GPULEDGER_PLAYED_SAMPLE"
STALE_AFTER = timedelta(minutes=3)
_SOURCES_NAMED = 3
_HINTS_SHOWN = "_hints_shown"


def page(title: str, lead: str, draw: Callable[[], None], *, first: Callable[[], None] | None = None) -> None:
    """
    Heading, then the page; what goes wrong on the way becomes a sentence with what to do.

    Args:
        title: empty where the page finds its heading in the data.
        draw: draws the rest.
        first: draws what needs no API, and stands there too while that does not answer.
    """
    # Streamlit leaves room above for a toolbar that we do not show.
    # A page has one h1, for those who hear it; it is as large as other headings of this product.
    # What a tile says is not cut off where the window is narrow.
    st.html(
        "<style>.stMainBlockContainer{padding-top:4rem;padding-bottom:3rem}"
        ".stMainBlockContainer h1{font-size:2.25rem;font-weight:600}"
        '[data-testid="stMetricLabel"] *,[data-testid="stMetricDelta"],[data-testid="stMetricDelta"] *'
        "{white-space:normal!important;overflow:visible!important}</style>"
    )
    if title:
        st.title(title, anchor=False)
    if lead:
        st.caption(lead)
    st.session_state[_HINTS_SHOWN] = set()
    if first is not None:
        first()
    try:
        banners()
        draw()
    except UnreachableError as problem:
        st.error(f"**No data: the API does not answer.** {problem}")
    except ForbiddenError as problem:
        st.warning(f"**You may not see this.** {problem} Ask an admin of gpuledger for the role or the team.")
    except data.NotFoundError as problem:
        st.warning(f"**Not found.** {problem}")
        st.page_link("views/home.py", label="Start again from home")
    except UsageError as problem:
        st.error(f"**The API does not understand this address.** {problem}")
        st.page_link("views/home.py", label="Start again from home")
    except DataError as problem:
        st.error(f"**The answer cannot be read.** {problem}")


def banners() -> None:
    """Say it when the page shows the past, or when sources have gone stale."""
    as_of = filters.from_url("as_of")
    if as_of:
        st.info(f"This page shows the cluster as it was at {as_of}. Take `as_of` out of the address for now.")
        return
    try:
        reply = data.sources()
    except ForbiddenError:
        return
    answered = text.parse_instant(reply["as_of"])
    age = text.age(answered, data.now())
    if os.environ.get(PLAYED):
        st.info(f"**Played sample.** The figures are {age}, by the sample's clock.")
    elif data.now() - answered > STALE_AFTER:
        st.info(f"**Not live.** The figures are {age}: recorded data, or a clock that stands.")
    rows = reply["rows"]
    for cluster in never_read(rows):
        st.warning(
            f"**No data of cluster {cluster}.** None of its sources was read yet; "
            "the page *Sources* says why."
        )
    refused = [row for row in rows if row["state"] == "not_permitted"]
    if refused:
        st.warning(refused_sentence(refused))
    stale = [row for row in rows if row["stale"] and row not in refused]
    if stale:
        st.warning(stale_sentence(stale))


def never_read(rows: list[dict[str, data.Json]]) -> list[str]:
    """Clusters of which nothing at all was read."""
    known = {row["cluster"] for row in rows if row["state"] in {"never_read", "not_permitted"}}
    return sorted(known - {row["cluster"] for row in rows if row["seen_at"]})


def refused_sentence(refused: list[dict[str, data.Json]]) -> str:
    """Which kinds the account may not read, and what cannot be told without them."""
    named = "; ".join(
        f"{row['kind']} of {row['cluster']}: {row['missing'] or 'something'}"
        for row in refused[:_SOURCES_NAMED]
    )
    more = len(refused) - _SOURCES_NAMED
    return (
        f"**Not permitted to read {text.count(len(refused), 'source')}.** {named}"
        f"{f'; and {more} more' if more > 0 else ''}. The page *Sources* says what to grant."
    )


def stale_sentence(stale: list[dict[str, data.Json]]) -> str:
    """Which sources lag, and what that means for the figures."""
    worst = sorted(stale, key=lambda row: -(row["lag_seconds"] or 0))
    named = ", ".join(
        f"{row['kind']} of {row['cluster']} ({lag_text(row['lag_seconds'])})"
        for row in worst[:_SOURCES_NAMED]
    )
    more = len(stale) - _SOURCES_NAMED
    return (
        f"**Stale data.** {text.count(len(stale), 'source')} not read in time: {named}"
        f"{f' and {more} more' if more > 0 else ''}. What happened since is missing from the figures; "
        "the page *Sources* says why."
    )


def lag_text(seconds: float | None) -> str:
    """How far a source is behind."""
    return "never read" if seconds is None else f"{text.duration(seconds)} behind"


def freshness(answers: Iterable[Answer]) -> None:
    """One line below a group of figures: window, age, coverage; and what is odd about the names asked for."""
    known = list(answers)
    if not known:
        return
    windows = {filters.window_name(answer.window) for answer in known if answer.window}
    st.caption(
        freshness_text(
            min(answer.as_of for answer in known),
            windows,
            [answer.coverage for answer in known if answer.coverage is not None and answer.window],
            [answer.coverage for answer in known if answer.coverage is not None and not answer.window],
        )
    )
    hints(hint for answer in known for hint in answer.hints)


def freshness_text(
    as_of: datetime, windows: Iterable[str], of_windows: list[float], of_instants: Sequence[float] = ()
) -> str:
    """Window, age and coverage as one line; the worst coverage of figures over windows, and of states."""
    missing = (
        coverage_words(min(of_windows, default=None), windowed=True),
        coverage_words(min(of_instants, default=None), windowed=False),
    )
    return " · ".join([*sorted(windows), text.age(as_of, data.now()), *filter(None, missing)])


def hints(told: Iterable[str]) -> None:
    """What is odd about the names in the address, each once on a page."""
    shown = st.session_state.setdefault(_HINTS_SHOWN, set())
    for hint in dict.fromkeys(told):
        if hint not in shown:
            shown.add(hint)
            st.warning(f"{hint[:1].upper()}{hint[1:]}")


def help_of(registry: dict[str, MetricInfo], name: str) -> str:
    """A metric's definition, for the hover of its number."""
    return registry[name].help if name in registry else name


def auto_refresh() -> None:
    """Read the page anew on a beat that the reader chose."""
    seconds = filters.fixed("Refresh", "refresh", filters.REFRESHES)
    if not seconds:
        return
    st.session_state["_refresh_armed"] = False

    @st.fragment(run_every=int(seconds))
    def beat() -> None:
        # The first run belongs to the page's own; only later ones are beats.
        if st.session_state["_refresh_armed"]:
            st.rerun()
        st.session_state["_refresh_armed"] = True

    beat()
