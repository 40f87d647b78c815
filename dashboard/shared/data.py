"""The only door to the data: the HTTP API, asked as the viewer of the page."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import quote

import requests
import streamlit as st

from dashboard.shared import format as text
from dashboard.shared.own_api import ask
from domain.errors import DataError, ForbiddenError, UnreachableError, UsageError
from domain.window import parse_duration

API_URL = "GPULEDGER_API_URL"
DEFAULT_API_URL = "http://127.0.0.1:8080"
# What an authenticating proxy says of the viewer; the API checks the secret, we only pass it on.
# Variable -> the header's usual name. The variables are those of the API's settings.
VIEWER_HEADERS = {
    "GPULEDGER_AUTH__HEADER__USER_HEADER": "X-Forwarded-User",
    "GPULEDGER_AUTH__HEADER__GROUPS_HEADER": "X-Forwarded-Groups",
    "GPULEDGER_AUTH__HEADER__SECRET_HEADER": "X-Gpuledger-Proxy-Secret",
}
_CONNECT_SECONDS = 3
_READ_SECONDS = 30
# A month of many jobs is settled anew before it is closed or written.
_LONG_SECONDS = 600
_FRESH_SECONDS = 10
_ENTRIES = 512

Params: TypeAlias = tuple[tuple[str, str], ...]
Json: TypeAlias = Any


class NotFoundError(UsageError):
    """There is no such thing, or the viewer may not know of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of a metric; None with a reason where it is undefined."""

    labels: Mapping[str, str]
    value: float | None
    lower_bound: bool
    few: bool
    undefined_because: str

    def shown(self, unit: str) -> str:
        """As text, with its limits."""
        return text.bounded(self.value, unit, lower_bound=self.lower_bound, few=self.few)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A metric's values at `as_of`; `window` is None for a state of the instant."""

    metric: str
    unit: str
    as_of: datetime
    window: str
    coverage: float | None
    rows: tuple[Value, ...]
    hints: tuple[str, ...] = ()
    # By names of labels and then their values: a page asks for each of thousands of rows.
    _found: dict[frozenset[str], dict[tuple[str | None, ...], Value]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def where(self, **labels: str) -> Value | None:
        """The first row with those labels."""
        names = frozenset(labels)
        found = self._found.get(names)
        if found is None:
            found = self._found[names] = {}
            for row in self.rows:
                found.setdefault(tuple([row.labels.get(name) for name in names]), row)
        return found.get(tuple([labels[name] for name in names]))

    def by(self, *labels: str) -> tuple[Value, ...]:
        """The rows that carry all of those labels; where nothing was observed there is none."""
        return tuple(row for row in self.rows if all(label in row.labels for label in labels))

    def total(self) -> float:
        """The sum of the defined values, for counts."""
        return sum(row.value for row in self.rows if row.value is not None)

    def total_shown(self) -> str:
        """The sum of the defined values as text; a lower bound where one of them is."""
        return text.bounded(self.total(), self.unit, lower_bound=any(row.lower_bound for row in self.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """A metric's declaration, as the API lists it."""

    name: str
    unit: str
    title: str
    definition: str
    source: str
    labels: tuple[str, ...]
    pages: tuple[str, ...]
    looks_back: str = ""

    @property
    def help(self) -> str:
        """What a reader sees when resting on the number."""
        unit = text.UNIT_NAMES.get(self.unit, self.unit)
        return f"**{self.title}** ({unit}). {self.definition}\n\nSource: {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """One page of workloads and the number of all that match."""

    items: tuple[dict[str, Json], ...]
    total: int
    page: int
    page_size: int
    as_of: datetime
    hints: tuple[str, ...] = ()


def api_url() -> str:
    """Where the API is."""
    return os.environ.get(API_URL, DEFAULT_API_URL).rstrip("/")


def viewer() -> Params:
    """
    The viewer's identity as headers of the proxy; empty without a proxy.

    It is part of every cache key, so that no viewer is served what another one may see.
    """
    return identity(st.context.headers, os.environ)


def identity(headers: Mapping[str, str], environment: Mapping[str, str]) -> Params:
    """
    The headers that tell who the viewer is, by the names that the API expects.

    >>> identity({"X-User": "ada", "Cookie": "c"}, {"GPULEDGER_AUTH__HEADER__USER_HEADER": "X-User"})
    (('X-User', 'ada'),)
    """
    names = [environment.get(variable, usual) for variable, usual in VIEWER_HEADERS.items()]
    return tuple((name, headers[name]) for name in names if name in headers)


@st.cache_data(ttl=_FRESH_SECONDS, max_entries=_ENTRIES, show_spinner=False)
def _fetch(url: str, params: Params, viewer_headers: Params) -> Json:
    headers = {"Accept": "application/json", **dict(viewer_headers)}
    try:
        reply = ask(
            "GET", url, params=list(params), headers=headers, timeout=(_CONNECT_SECONDS, _READ_SECONDS)
        )
    except requests.Timeout as cause:
        message = (
            f"The API at {url} did not answer within {_READ_SECONDS} s. "
            "Try a shorter window, or look at the log of `gpuledger serve`."
        )
        raise UnreachableError(message) from cause
    except requests.RequestException as cause:
        message = (
            f"The API at {url} cannot be reached. Start it with `gpuledger serve`, "
            f"or set {API_URL} to where it runs."
        )
        raise UnreachableError(message) from cause
    if not reply.ok:
        raise problem(reply.status_code, reply.text, url)
    try:
        return reply.json()
    except requests.JSONDecodeError as cause:
        message = f"{url} did not answer with JSON. Is {API_URL} the address of gpuledger's API?"
        raise DataError(message) from cause


def problem(status: int, body: str, url: str) -> Exception:
    """
    The error that an answer outside 2xx stands for, as a sentence.

    Args:
        body: RFC 9457 `application/problem+json` where the API wrote it, else anything.
    """
    try:
        said = json.loads(body)
        sentence = str(said.get("detail") or said.get("title") or "")
    except (json.JSONDecodeError, AttributeError):
        sentence = ""
    if status in {requests.codes.unauthorized, requests.codes.forbidden}:
        return ForbiddenError(sentence or "Your role does not include this.")
    if status == requests.codes.not_found:
        return NotFoundError(sentence or f"{url}: there is no such thing, or you may not see it.")
    if status < requests.codes.internal_server_error:
        return UsageError(sentence or f"{url}: the API refused the question with status {status}.")
    told = f"The API at {url} failed with status {status}{f': {sentence}' if sentence else '.'}"
    return UnreachableError(f"{told} Its log says more; the page works again when it does.")


def get(path: str, params: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> Json:
    """
    What the API answers to this viewer.

    Empty parameters are left out, except an empty `by`; `text.NO_QUEUE` asks for no queue.
    """
    pairs = params.items() if isinstance(params, Mapping) else params
    asked = tuple(
        sorted(
            (name, "" if value == text.NO_QUEUE else value) for name, value in pairs if value or name == "by"
        )
    )
    return _fetch(f"{api_url()}/api/v1/{path}", asked, viewer())


def metric(name: str, *, by: Iterable[str] = (), asked: Mapping[str, str] | None = None) -> Answer:
    """
    A metric's values.

    Args:
        by: labels to keep apart; none asks for one total.
        asked: `window`, `as_of` and filters by label; empty ones are left out.
    """
    reply = get(f"metrics/{name}", {**(asked or {}), "by": ",".join(by)})
    return Answer(
        metric=reply["metric"],
        unit=reply["unit"],
        as_of=text.parse_instant(reply["as_of"]),
        window=reply.get("window") or "",
        coverage=reply.get("coverage"),
        hints=tuple(reply.get("hints", ())),
        rows=tuple(
            Value(
                labels=row["labels"],
                value=row["value"],
                lower_bound=bool(row.get("lower_bound")),
                few=bool(row.get("few")),
                undefined_because=row.get("undefined_because") or "",
            )
            for row in reply["rows"]
        ),
    )


def increase(name: str, *, window: str, asked: Mapping[str, str]) -> Answer:
    """
    By how much a counter grew in the window: its total now less its total when the window began.

    Args:
        window: as the API writes it, for example `1d`.
    """
    now_total = metric(name, asked=asked)
    began_at = now_total.as_of - parse_duration(window)
    before = metric(name, asked={**asked, "as_of": began_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")})
    if all(row.value is None for row in now_total.rows):
        return now_total
    grown = Value(
        labels={},
        value=now_total.total() - before.total(),
        # What nobody saw only adds up, so more of it is missing now than when the window began.
        lower_bound=any(row.lower_bound for row in now_total.rows),
        few=any(row.few for row in now_total.rows),
        undefined_because="",
    )
    return replace(now_total, window=window, rows=(grown,))


def chargeback(month: str, *, by: Iterable[str], asked: Mapping[str, str]) -> dict[str, Json]:
    """A month's statement with its lines kept apart by these; `current` is the running month."""
    reply: dict[str, Json] = get(f"chargeback/{quote(month, safe='')}", {**asked, "by": ",".join(by)})
    return reply


def role() -> str:
    """What the API lets the viewer of the page do: researcher, admin, finance or operator."""
    return str(get("viewer")["role"])


def close_month(month: str, *, reason: str) -> dict[str, Json]:
    """
    Close a month for good, as the viewer of the page.

    Raises:
        UsageError: the API refuses; the sentence says why.
    """
    url = f"{api_url()}/api/v1/chargeback/{quote(month, safe='')}/close"
    try:
        reply = ask(
            "POST",
            url,
            json={"reason": reason},
            headers=dict(viewer()),
            timeout=(_CONNECT_SECONDS, _LONG_SECONDS),
        )
    except requests.RequestException as cause:
        message = f"The API at {url} did not answer; whether the month is closed, this page tells anew."
        raise UnreachableError(message) from cause
    if not reply.ok:
        raise problem(reply.status_code, reply.text, url)
    # What this page knows of the month is from before.
    st.cache_data.clear()
    told: dict[str, Json] = reply.json()
    return told


def download(path: str, params: Mapping[str, str], viewer_headers: Params) -> bytes:
    """
    A file of the API; for a button, which asks when it is pressed.

    Args:
        viewer_headers: those of the page, for outside of it nobody knows who looks.
    """
    reply = ask(
        "GET",
        f"{api_url()}/api/v1/{path}",
        params={name: value for name, value in params.items() if value},
        headers={"Accept": "*/*", **dict(viewer_headers)},
        timeout=(_CONNECT_SECONDS, _LONG_SECONDS),
    )
    if not reply.ok:
        raise problem(reply.status_code, reply.text, reply.url)
    return reply.content


def registry() -> dict[str, MetricInfo]:
    """Every metric's declaration by name, in the API's order."""
    reply = get("metrics")
    return {
        item["name"]: MetricInfo(
            name=item["name"],
            unit=item["unit"],
            title=item["title"],
            definition=item["definition"],
            source=item["source"],
            labels=tuple(item["labels"]),
            pages=tuple(item.get("pages", ())),
            looks_back=str(item.get("looks_back", "")),
        )
        for item in reply["rows"]
    }


def workloads(asked: Mapping[str, str]) -> WorkloadPage:
    """One page of the workloads that match; paging and sorting happen in the API."""
    reply = get("workloads", asked)
    return WorkloadPage(
        items=tuple(reply["rows"]),
        total=reply["total"],
        page=reply["page"],
        page_size=reply["page_size"],
        as_of=text.parse_instant(reply["as_of"]),
        hints=tuple(reply.get("hints", ())),
    )


def workload(uid: str, *, as_of: str = "") -> dict[str, Json]:
    """One workload with its spans and attempts; the uid is what an address says, so it may be anything."""
    reply: dict[str, Json] = get(f"workloads/{quote(uid, safe='')}", {"as_of": as_of})
    return reply


def why(uid: str, *, as_of: str = "") -> dict[str, Json] | None:
    """Why one workload waits; None where the API does not tell."""
    try:
        reply: dict[str, Json] = get(f"workloads/{quote(uid, safe='')}/why", {"as_of": as_of})
    except NotFoundError:
        return None
    return reply


def sources(*, as_of: str = "") -> dict[str, Json]:
    """How far each source was read, and what was set aside."""
    reply: dict[str, Json] = get("sources", {"as_of": as_of})
    return reply


def kueue_checks() -> list[dict[str, Json]]:
    """Kueue's own figures beside ours; empty where nobody compares them, or the API does not tell."""
    try:
        rows: list[dict[str, Json]] = get("kueue-checks", {})["rows"]
    except NotFoundError:
        return []
    return rows


def gpu_faults(*, as_of: str = "") -> list[dict[str, Json]]:
    """What happened to GPUs, the newest first; empty where the API does not tell."""
    try:
        rows: list[dict[str, Json]] = get("gpu-faults", {"as_of": as_of})["rows"]
    except NotFoundError:
        return []
    return rows


def now() -> datetime:
    """The machine's clock; only for the age of what is shown."""
    return datetime.now(UTC)
