"""
The only door to the `kubernetes` package: an authenticated line to one API server, in raw bytes.

The package finds the cluster and its credentials (kubeconfig, exec plug-ins, service account) and
keeps them fresh. Its typed models and its watch are not used: they fail on Events written through
core/v1, never list again after a 410, and wait for ever on a dead peer.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import urllib3
from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration
from urllib3.exceptions import HTTPError, ReadTimeoutError

from domain.errors import SettingsError, UnreachableError

# One open watch per kind plus lists; urllib3 throws away connections above its pool's size.
_POOL_SIZE = 64
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that was read to its end. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LineStream:
    """An open answer that gives its lines as they come; a last line that was cut off is dropped."""

    def __init__(self, response: urllib3.BaseHTTPResponse, where: str) -> None:
        self.status = response.status
        self.headers = _headers(response)
        self._response = response
        self._where = where

    def __iter__(self) -> Iterator[bytes]:
        """
        Lines without their end, empty ones left out.

        Raises:
            UnreachableError: the connection broke, or nothing came for the read time-out.
        """
        rest = b""
        try:
            for chunk in self._response.stream(_CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line.strip())
        except HTTPError as cause:
            raise _unreachable(self._where, cause) from cause

    def body(self) -> bytes:
        """The whole answer, for one that is no stream: an error."""
        try:
            return self._response.read()
        except HTTPError as cause:
            raise _unreachable(self._where, cause) from cause

    def interrupt(self) -> None:
        """End a read that another thread is waiting in; safe from any thread."""
        with suppress(ValueError, RuntimeError, OSError):  # it has ended by itself
            self._response.shutdown()

    def close(self) -> None:
        """Drop the connection; an unread rest would poison the next request on it."""
        self._response.close()


class Connection:
    """An authenticated line to one API server. Threads may share it."""

    def __init__(self, configuration: Configuration, *, connect_seconds: float = 5.0) -> None:
        configuration.connection_pool_maxsize = _POOL_SIZE
        configuration.keep_alive = True
        self._configuration = configuration
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._host = str(configuration.host).rstrip("/")
        self._connect_seconds = connect_seconds
        self._lock = threading.Lock()
        self._streams: set[LineStream] = set()
        self._closed = False

    @classmethod
    def open(cls, *, kubeconfig: Path | None = None, context: str | None = None) -> "Connection":
        """
        The cluster of a kubeconfig's context, or the one we run in.

        Without arguments: the service account when we run in a pod, else the usual kubeconfig.

        Raises:
            SettingsError: there is no such file or context, or no service account.
        """
        configuration = Configuration()
        in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
        try:
            if kubeconfig is None and context is None and in_pod:
                kube_config.load_incluster_config(  # type: ignore[no-untyped-call]
                    client_configuration=configuration
                )
            else:
                kube_config.load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=None if kubeconfig is None else str(kubeconfig),
                    context=context,
                    client_configuration=configuration,
                    persist_config=False,
                )
        except (kube_config.ConfigException, OSError) as cause:
            given = "the usual kubeconfig" if kubeconfig is None else f"kubeconfig {kubeconfig}"
            message = (
                f"{given}, context {context or 'current'}: {cause}; "
                "give a readable file with --kubeconfig and one of its contexts with --context"
            )
            raise SettingsError(message) from cause
        return cls(configuration)

    def get(self, path: str, params: Mapping[str, str], *, read_seconds: float = 60.0) -> Answer:
        """
        Ask and read the whole answer, whatever its status.

        Raises:
            UnreachableError: no whole answer came.
        """
        stream = self.stream(path, params, read_seconds=read_seconds)
        try:
            return Answer(status=stream.status, headers=stream.headers, body=stream.body())
        finally:
            self.release(stream)

    def stream(self, path: str, params: Mapping[str, str], *, read_seconds: float) -> LineStream:
        """
        Ask and give the open answer; the caller must `release` it.

        Args:
            path: from the root, `/api/v1/pods`.
            params: of the query.
            read_seconds: the longest silence that is not taken for a dead connection.

        Raises:
            UnreachableError: no answer came, or the connection was closed with `close`.
        """
        where = f"GET {self._host}{path}"
        try:
            response = self._pool.request(
                "GET",
                self._host + path,
                fields=dict(params),
                headers=self._headers(),
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=self._connect_seconds, read=read_seconds),
            )
        except HTTPError as cause:
            raise _unreachable(where, cause) from cause
        stream = LineStream(response, where)
        with self._lock:
            closed = self._closed
            if not closed:
                self._streams.add(stream)
        if closed:
            stream.close()
            message = f"{where}: this connection was closed; open a new one"
            raise UnreachableError(message)
        return stream

    def release(self, stream: LineStream) -> None:
        """Give back a stream, read to its end or not."""
        with self._lock:
            self._streams.discard(stream)
        stream.close()

    def close(self) -> None:
        """Wake every thread that waits for a line, and answer no more questions."""
        with self._lock:
            self._closed = True
            streams = list(self._streams)
        for stream in streams:
            stream.interrupt()
        self._pool.clear()

    def _headers(self) -> dict[str, str]:
        """Fresh credentials: asking for them renews a token that is about to expire."""
        headers = {"Accept": "application/json", "User-Agent": "gpuledger"}
        # The package gives a dict for each way to authenticate; all of them are header fields.
        for setting in dict(self._configuration.auth_settings()).values():
            if isinstance(setting, dict) and setting.get("value"):
                headers[str(setting["key"])] = str(setting["value"])
        return headers


def _headers(response: urllib3.BaseHTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _unreachable(where: str, cause: HTTPError) -> UnreachableError:
    if isinstance(cause, ReadTimeoutError):
        return UnreachableError(f"{where}: the connection was silent for too long and was given up")
    return UnreachableError(f"{where}: no answer ({type(cause).__name__}: {cause}); trying again")
