"""Query parameters: their table, and how a request's text becomes a question."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from starlette.datastructures import QueryParams

from analytics.over_time import Instants
from api.answers import ListQuestion, Question, ReportQuestion
from domain.errors import UsageError
from domain.metric import DIMENSIONS, FILTERS
from domain.window import parse_duration, parse_instant
from domain.workload import State

MAX_PAGE_SIZE = 1000
_MAX_DIGITS = 9
# The word for all states in which a workload waits, as pages have it in their address.
WAITING = "waiting"
# The command line's short words for two of the dimensions; both spellings work everywhere.
ALIASES = {"class": "service_class", "model": "gpu_model"}
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One query parameter, as OpenAPI shows it. `many`: may be repeated or hold a comma list."""

    name: str
    description: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    many: bool = False


AS_OF = Parameter(
    name="as_of",
    description=(
        "The instant that the answer is about; facts from then on do not count. One after now is refused."
        " Default: now."
    ),
    schema={"type": "string", "format": "date-time"},
)
WINDOW = Parameter(
    name="window", description="Length of the window that ends at as_of, for example 24h or 7d."
)
BY = Parameter(
    name="by",
    description="Labels to keep apart; empty for one total. Default: the metric's own labels.",
    many=True,
)
FILTER_PARAMETERS = tuple(
    Parameter(name=name, description=f"Only workloads with this {name}; empty: without one.", many=True)
    for name in FILTERS
) + tuple(
    Parameter(name=short, description=f"The same as {name}.", many=True) for short, name in ALIASES.items()
)
USER = Parameter(name="user", description="Only workloads of this user; empty: of an unknown one.", many=True)
NAME = Parameter(name="name", description="Only workloads of this name.", many=True)
NAMESPACE = Parameter(name="namespace", description="Only workloads in this namespace.", many=True)
STATE = Parameter(
    name="state",
    description=f"Only workloads in this state at as_of; {WAITING}: in any in which one waits.",
    schema={"type": "string", "enum": [*map(str, State), WAITING]},
    many=True,
)
SORT = Parameter(name="sort", description="The column to order by; with a leading - downwards.")
PAGE = Parameter(
    name="page", description="Which page, from 1.", schema={"type": "integer", "minimum": 1, "default": 1}
)
PAGE_SIZE = Parameter(
    name="page_size",
    description="Rows of a page.",
    schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": 100},
)

POPULATION = Parameter(
    name="population",
    description="Of metrics that have it: only work that asks GPUs (gpu, the default), or none (cpu).",
    many=True,
)
RESOURCE = Parameter(
    name="resource",
    description="Of metrics that have it: only this one of gpu, cpu, node and wall.",
    many=True,
)

START = Parameter(
    name="start",
    description="The first instant of a range.",
    schema={"type": "string", "format": "date-time"},
)
END = Parameter(
    name="end",
    description="The instant up to which a range goes, itself included where a step meets it. Default: now.",
    schema={"type": "string", "format": "date-time"},
)
STEP = Parameter(name="step", description="How far the instants of a range are apart, for example 5m.")

RANGE_PARAMETERS = (START, END, STEP, WINDOW, BY, *FILTER_PARAMETERS, POPULATION, RESOURCE)
METRIC_PARAMETERS = (AS_OF, WINDOW, BY, *FILTER_PARAMETERS, POPULATION, RESOURCE)
REPORT_PARAMETERS = (AS_OF, WINDOW, *FILTER_PARAMETERS)
LINE_FILTERS = ("kind", "cluster", "team", "project", "user", "queue", "gpu_model", "model")
STATEMENT_PARAMETERS = (
    AS_OF,
    Parameter(
        name="by",
        description="What lines are kept apart by; empty for one. Default: every line, day by day.",
        many=True,
    ),
    *(
        Parameter(name=name, description=f"Only lines with this {name}; empty: without one.", many=True)
        for name in LINE_FILTERS
    ),
)
PENDING_PARAMETERS = (AS_OF, PAGE, PAGE_SIZE, *FILTER_PARAMETERS, USER)
_OF_LISTS = (USER.name, NAME.name, NAMESPACE.name)
LIST_PARAMETERS = (AS_OF, STATE, SORT, PAGE, PAGE_SIZE, *FILTER_PARAMETERS, USER, NAME, NAMESPACE)


def nearest(given: str, known: Sequence[str]) -> str:
    """
    A hint that names the known word nearest to the given one, or all of them.

    >>> nearest("widnow", ["as_of", "window"])
    "did you mean 'window'?"
    """
    close = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(known)}"


def check_known(query: QueryParams, parameters: Sequence[Parameter]) -> None:
    """
    Refuse what a route does not take: a misspelt filter must not answer for everything.

    Raises:
        UsageError: a parameter is unknown, or stands twice where one value is meant.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name in query:
        if name not in known:
            message = f"query parameter {name!r}: {nearest(name, list(known))}"
            raise UsageError(message)
        if not known[name].many and len(query.getlist(name)) > 1:
            message = f"query parameter {name!r} stands {len(query.getlist(name))} times: expected one value"
            raise UsageError(message)


def as_of(query: QueryParams, name: str = "as_of") -> int | None:
    """The instant asked for, None for "now"."""
    # A plus sign in a query is a blank; a zone of +01:00 written without escaping means the plus.
    return _one(query, name, lambda text: parse_instant(text.replace(" ", "+")))


def instants(query: QueryParams, now_ms: int) -> Instants:
    """
    The instants that a range was asked for.

    Raises:
        UsageError: start or step is missing, or they give no instant.
    """
    start_ms, step = as_of(query, START.name), _one(query, STEP.name, _duration)
    if start_ms is None or step is None:
        message = "a range needs start and step: expected for example start=2026-03-01T00:00:00Z&step=1h"
        raise UsageError(message)
    end_ms = as_of(query, END.name)
    return Instants.between(start_ms, now_ms if end_ms is None else end_ms, step // timedelta(milliseconds=1))


def metric_question(query: QueryParams) -> Question:
    """The question that a metric's route was asked."""
    return Question(
        as_of_ms=as_of(query),
        window=_one(query, "window", _duration),
        by=tuple(ALIASES.get(label, label) for label in _many(query, "by")) if "by" in query else None,
        filters=filters(query),
    )


def report_question(query: QueryParams) -> ReportQuestion:
    """The question that a report's route was asked."""
    return ReportQuestion(
        as_of_ms=as_of(query), window=_one(query, "window", _duration), filters=filters(query)
    )


def statement_question(query: QueryParams) -> Question:
    """The question that a month's statement was asked."""
    given = {name: query.getlist(name) for name in LINE_FILTERS if name in query}
    return Question(
        as_of_ms=as_of(query),
        by=tuple(ALIASES.get(label, label) for label in _many(query, "by")) if "by" in query else None,
        filters=filters_of(given),
    )


def list_question(query: QueryParams) -> ListQuestion:
    """The question that the list of workloads was asked."""
    states = states_of(_many(query, "state"))
    page_size = _one(query, "page_size", lambda text: _count("page_size", text))
    if page_size is not None and page_size > MAX_PAGE_SIZE:
        message = f"page_size = {page_size}: expected at most {MAX_PAGE_SIZE}; ask for further pages"
        raise UsageError(message)
    return ListQuestion(
        as_of_ms=as_of(query),
        states=states,
        filters=filters_of(
            {name: query.getlist(name) for name in (*FILTERS, *ALIASES, *_OF_LISTS) if name in query}
        ),
        sort=query.get("sort") or ListQuestion(states=()).sort,
        page=_one(query, "page", lambda text: _count("page", text)) or 1,
        page_size=page_size or 100,
    )


def states_of(given: Iterable[str], *, named: str = "state") -> tuple[str, ...]:
    """
    States by their names; `waiting` stands for all in which a workload waits.

    Raises:
        UsageError: there is no such state; `named` is what the reader calls the parameter.

    >>> states_of(["running", "waiting"])
    ('running', 'queued', 'checking', 'placing')
    """
    waiting = tuple(str(state) for state in State if state.waits)
    found: list[str] = []
    for state in given:
        if state not in {*State, WAITING}:
            message = f"{named} {state!r}: {nearest(state, [*map(str, State), WAITING])}"
            raise UsageError(message)
        found += waiting if state == WAITING else (state,)
    return tuple(dict.fromkeys(found))


def filters(query: QueryParams) -> dict[str, tuple[str, ...]]:
    """Values by dimension; one that stands for its alias is added to it."""
    names = (*FILTERS, *ALIASES, POPULATION.name, RESOURCE.name)
    return filters_of({name: query.getlist(name) for name in names if name in query})


def filters_of(given: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """
    Filters by dimension, of texts by dimension or alias: each a value, a comma list, or empty.

    An empty text asks for what has no such label, for example workloads without a queue.

    >>> filters_of({"queue": [""], "class": ["batch, interactive"], "team": ["a,", "b"]})
    {'queue': ('',), 'service_class': ('batch', 'interactive'), 'team': ('a', 'b')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, texts in given.items():
        label = ALIASES.get(name, name)
        values = tuple(value for text in texts for value in _parts(text) or ("",))
        found[label] = found.get(label, ()) + values
    return found


def check_labels(labels: Sequence[str], known: Sequence[str] = DIMENSIONS) -> None:
    """
    Refuse a label that is not a dimension.

    Raises:
        UsageError: names the nearest known label.
    """
    for label in labels:
        if label not in known:
            message = f"label {label!r}: {nearest(label, known)}"
            raise UsageError(message)


def _many(query: QueryParams, name: str) -> tuple[str, ...]:
    return tuple(part for text in query.getlist(name) for part in _parts(text))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _one(query: QueryParams, name: str, read: Callable[[str], _Value]) -> _Value | None:
    text = query.get(name)
    return None if text is None or not text else read(text)


def _duration(text: str) -> timedelta:
    return parse_duration(text)


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        message = f"{name} = {text!r}: expected a whole number of at least 1"
        raise UsageError(message)
    if len(text) > _MAX_DIGITS:
        message = f"{name} = {text!r}: expected at most {10**_MAX_DIGITS - 1}"
        raise UsageError(message)
    return int(text)
