"""
The only door to `prometheus_api_client`: GPU metrics from a Prometheus, over a stretch of time.

A server that could not look everywhere answers what it has, with warnings: Prometheus where a `remote_read`
fails, Thanos where a store is away. The package drops them; here they are heard as answers come in.

The package waits without limit unless told otherwise, cuts instants to whole seconds and sends a range
as it is, which the server refuses above 11,000 points. So a limit is set here, the grid has whole seconds,
and a range is asked in chunks; an answer includes both its ends, so a chunk ends one step before the next.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException

from collector.addresses import Address, Bearer, Token
from collector.dcgm.answers import Part, Series, series_in, take_series
from collector.dcgm.samples import Gathered, is_wanted
from domain.errors import RecordingError, SettingsError, UnreachableError, UsageError
from domain.gpu_fault import HEALTH_FIELDS
from domain.gpu_sample import LONGEST_STEP_MS, Field
from domain.window import MS_PER_SECOND, format_instant

TIMEOUT_SECONDS: Final = 60
# Far below the server's limit: so many points of a large site fit into memory.
CHUNK_POINTS: Final = 1_000
# Prometheus 2.48 to 2.53 writes remarks on a query among the warnings, later ones apart in `infos`.
_REMARK: Final = "PromQL info:"
# Thanos gives a warning for each store that is away, of a few hundred letters each.
_WARNINGS_SHOWN: Final = 3
_LETTERS_SHOWN: Final = 300
# The package takes any JSON with status 200 for an answer of the usual form. A file with a token may be gone
# while it is written anew.
_NO_ANSWER: Final = (
    requests.RequestException, PrometheusApiClientException, RecordingError, SettingsError, ValueError,
    LookupError, TypeError,
)  # fmt: skip


class _Warned(msgspec.Struct):
    """Of an answer only what hindered it."""

    warnings: list[str] | None = None


_WARNED: Final = msgspec.json.Decoder(_Warned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """
    Instants to ask for: those of the grid of `step_seconds` since the epoch in [start_ms, end_ms).

    Raises:
        UsageError: the step is not 1 s to 30 min, or the end lies before the start.
    """

    start_ms: int
    end_ms: int
    step_seconds: int

    def __post_init__(self) -> None:
        if not 1 <= self.step_seconds <= LONGEST_STEP_MS // MS_PER_SECOND:
            message = f"step of {self.step_seconds} s: expected whole seconds from 1 s to 30m"
            raise UsageError(message)
        if self.end_ms < self.start_ms:
            message = f"from {self.start_ms} to {self.end_ms}: expected an end after the start"
            raise UsageError(message)

    def chunks(self, points: int = CHUNK_POINTS) -> Iterator[tuple[int, int]]:
        """
        First and last instant of each chunk, in seconds; no instant is in two of them.

        >>> list(Range(start_ms=1, end_ms=60_000, step_seconds=15).chunks(2))
        [(15, 30), (45, 45)]
        """
        step = self.step_seconds
        first = -(-self.start_ms // (step * MS_PER_SECOND)) * step
        last = (self.end_ms - 1) // (step * MS_PER_SECOND) * step
        for begin in range(first, last + 1, step * points):
            yield begin, min(begin + (points - 1) * step, last)


class Prometheus:
    """
    A line to one server.

    Args:
        url: its address, with the path before `/api`; a name and password in it are sent, and not shown.
        token: gives what is sent as bearer token, where one is needed.
        match: further label matchers, for example `job="dcgm-exporter"`.
        timeout_seconds: how long an answer may take.
    """

    def __init__(
        self, url: str, *, token: Token | None = None, match: str = "", timeout_seconds: int = TIMEOUT_SECONDS
    ) -> None:
        address = Address.of(url.rstrip("/"))
        self.url = address.url
        self._match = match
        self._warnings: list[str] = []
        session = requests.Session()
        session.hooks["response"].append(self._hear)
        self._client: Any = PrometheusConnect(
            url=self.url,
            auth=address.login if token is None else Bearer(token),
            timeout=timeout_seconds,
            session=session,
        )

    @property
    def source(self) -> str:
        """The name under which its samples are kept."""
        return f"{self.url}{{{self._match}}}" if self._match else self.url

    def parts(self, asked: Range, *, points: int = CHUNK_POINTS) -> Iterator[Part]:
        """
        The samples of a stretch of time, chunk by chunk, oldest first.

        A part says why it may lack some; the first one also why what was asked of `health` before may.

        Raises:
            UnreachableError: the server does not answer, or refuses.
        """
        gathered = Gathered()
        for first, last in asked.chunks(points):
            for name in filter(is_wanted, Field):
                take_series(gathered, self._range(name, first, last, asked.step_seconds))
            yield Part(
                source=self.source,
                until_ms=(last + asked.step_seconds) * MS_PER_SECOND,
                samples=gathered.samples(asked.step_seconds * MS_PER_SECOND),
                lacking=self._lacking(first, last),
            )

    def health(self, asked: Range, *, points: int = CHUNK_POINTS) -> Iterator[list[Series]]:
        """
        What tells of faults of GPUs over a stretch of time, chunk by chunk, oldest first.

        Raises:
            UnreachableError: the server does not answer, or refuses.
        """
        self._warnings.clear()
        for first, last in asked.chunks(points):
            yield [
                series
                for name in HEALTH_FIELDS
                for series in self._range(name, first, last, asked.step_seconds)
            ]

    def at_instant(self, query: str) -> list[tuple[dict[str, str], float]]:
        """
        What a query gives now: labels and value of each series; a histogram has no value and is left out.

        Raises:
            UnreachableError: the server does not answer, or refuses.
        """
        try:
            result = self._client.custom_query(query)
            self._warnings.clear()  # what there is now counts, and soon it is asked again
            return [(one["metric"], float(one["value"][1])) for one in result if "value" in one]
        except _NO_ANSWER as cause:
            message = f"Prometheus at {self.url}: {query} gave no answer: {cause}"
            raise UnreachableError(message) from cause

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _hear(self, answer: requests.Response, *_: object, **__: object) -> None:
        """Note the warnings of an answer; what is none, the package refuses."""
        with suppress(msgspec.MsgspecError):
            told = _WARNED.decode(answer.content).warnings or ()
            self._warnings += [one for one in told if not one.startswith(_REMARK)]

    def _lacking(self, first: int, last: int) -> str:
        """Why the answers about these instants may lack samples; empty where they are whole."""
        told = list(dict.fromkeys(self._warnings))
        self._warnings.clear()
        if not told:
            return ""
        shown = "; ".join(one[:_LETTERS_SHOWN] for one in told[:_WARNINGS_SHOWN])
        more = f"; and {len(told) - _WARNINGS_SHOWN} more warnings" if len(told) > _WARNINGS_SHOWN else ""
        between = " to ".join(format_instant(at * MS_PER_SECOND) for at in (first, last))
        return f"Prometheus at {self.url} answered in part only, of {between}: {shown}{more}"

    def _range(self, name: str, first: int, last: int, step: int) -> list[Series]:
        query = f"{name}{{{self._match}}}" if self._match else name
        try:
            result = self._client.custom_query_range(
                query,
                start_time=datetime.fromtimestamp(first, UTC),
                end_time=datetime.fromtimestamp(last, UTC),
                step=str(step),
            )
            return series_in(result)
        except _NO_ANSWER as cause:
            message = f"Prometheus at {self.url}: {query} gave no answer: {cause}"
            raise UnreachableError(message) from cause
