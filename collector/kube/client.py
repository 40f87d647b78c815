"""
The only door to the `kubernetes` package: an authenticated line to one API server, in raw bytes.

The package finds the cluster and its credentials (kubeconfig, exec plug-ins, service account) and
keeps them fresh. Its typed models and its watch are not used: they fail on Events written through
core/v1, never list again after a 410, and wait for ever on a dead peer.
"""

import os
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigLoader, KubeConfigMerger
from typing_extensions import override
from urllib3.exceptions import HTTPError, ReadTimeoutError

from collector.kube.credentials import SERVER_CERTIFICATE, Lifetime, of_certificates, of_token
from collector.kube.plugin import PLUGIN_SECONDS, limited
from domain.errors import SettingsError, UnreachableError
from domain.window import MS_PER_MINUTE

# One open watch per kind plus lists; urllib3 throws away connections above its pool's size.
_POOL_SIZE = 64
_CHUNK_BYTES = 1 << 16
# Objects are below 2 MB in every API server that keeps them in etcd.
_MOST_LINE_BYTES = 64 << 20
# The package asks a plug-in anew in the last five minutes: before that, no tenth of a life has begun.
_PLUGIN_LIFE_MS = 50 * MS_PER_MINUTE
_UNAUTHORIZED = 401
_HTTPS_PORT = 443


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
        # Pieces of a line that is not complete yet: joined once, or a long line would cost its square.
        rest: list[bytes] = []
        size = 0
        try:
            for chunk in self._response.stream(_CHUNK_BYTES):
                first, *others = chunk.split(b"\n")
                rest.append(first)
                size += len(first)
                if size > _MOST_LINE_BYTES:
                    message = f"{self._where}: a line of more than {_MOST_LINE_BYTES:,} bytes; trying again"
                    raise UnreachableError(message)
                if others:
                    lines = [b"".join(rest), *others[:-1]]
                    rest, size = [others[-1]], len(others[-1])
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
    """
    An authenticated line to one API server. Threads may share it.

    Args:
        configuration: where the server is, and the credentials.
        connect_seconds: how long it may take to reach the server.
        load: reads the configuration again, because credentials were renewed.
        kubeconfig: what `load` reads; when it changes the credentials in it have.
        stamp: when that file had changed last before the configuration was read.
        asks_plugin: whether a plug-in gives the credentials, before which nothing is asked of the server.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        connect_seconds: float = 5.0,
        load: Callable[[], Configuration] | None = None,
        kubeconfig: Path | None = None,
        stamp: int = 0,
        asks_plugin: bool = False,
    ) -> None:
        self._load = load
        self._asks_plugin = asks_plugin
        self._kubeconfig = kubeconfig
        self._connect_seconds = connect_seconds
        self._stamp = stamp
        self._use(configuration)
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

        def load() -> Configuration:
            return _configuration(kubeconfig, context)

        # Before it is read: a file that is renewed meanwhile has changed since.
        stamp = _changed_at(kubeconfig)
        configuration = load()
        asks = not is_service_account(kubeconfig, context) and _asks_plugin(kubeconfig, context)
        return cls(configuration, load=load, kubeconfig=kubeconfig, stamp=stamp, asks_plugin=asks)

    def lifetimes(self) -> list[Lifetime]:
        """Of the credentials in use, as far as they tell: certificates and the token."""
        with self._lock:
            configuration = self._configuration
        found = []
        for what, path in (
            ("client certificate", configuration.cert_file),
            ("certificate authority", configuration.ssl_ca_cert),
        ):
            with suppress(OSError):
                found += of_certificates(Path(path).read_bytes() if path else b"", what)
        with suppress(UnreachableError):
            token = self._headers().get("authorization", "").partition(" ")[2]
            found += (
                # Its plug-in was asked just now, if it had to be.
                replace(life, from_ms=max(life.from_ms, life.end_ms - _PLUGIN_LIFE_MS))
                if self._asks_plugin
                else life
                for life in of_token(token, "token")
            )
        return found

    def server_lifetimes(self) -> list[Lifetime]:
        """Of the certificate that the server shows, though it be over; none where it does not say."""
        with self._lock:
            server = urlsplit(self._configuration.host)
        if server.scheme != "https" or not server.hostname:
            return []
        with suppress(OSError):
            address = (server.hostname, server.port or _HTTPS_PORT)
            shown = ssl.get_server_certificate(address, timeout=self._connect_seconds)
            return of_certificates(shown.encode(), SERVER_CERTIFICATE)
        return []

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
        self._renew(when_changed=True)
        self._expect_credentials()
        with self._lock:
            pool, host = self._pool, self._host
        where = f"GET {host}{path}"
        try:
            response = pool.request(
                "GET",
                host + path,
                fields=dict(params),
                headers=self._headers(),
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=self._connect_seconds, read=read_seconds),
            )
        except HTTPError as cause:
            raise _unreachable(where, cause) from cause
        stream = LineStream(response, where)
        if stream.status == _UNAUTHORIZED:
            self._renew(when_changed=False)
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
            pool = self._pool
        for stream in streams:
            stream.interrupt()
        pool.clear()

    def _use(self, configuration: Configuration) -> None:
        configuration.connection_pool_maxsize = _POOL_SIZE
        configuration.keep_alive = True
        self._configuration = configuration
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._host = str(configuration.host).rstrip("/")

    def _renew(self, *, when_changed: bool) -> None:
        """
        Read the credentials again, if their file changed or the server did not accept them.

        Open watches go on with the old ones, as the server lets them.
        """
        stamp = _changed_at(self._kubeconfig)
        if self._load is None or (when_changed and stamp in {0, self._stamp}):
            return
        # A file that is being written, or a plug-in that fails: the old ones may do until then.
        with suppress(SettingsError):
            configuration = self._load()
            with self._lock:
                if not self._lacks_credentials(configuration) or self._lacks_credentials(self._configuration):
                    self._use(configuration)
                    self._stamp = stamp

    def _lacks_credentials(self, configuration: Configuration) -> bool:
        """Whether a plug-in should have given some, and failed: the package only logs it."""
        return self._asks_plugin and not (configuration.api_key or configuration.cert_file)

    def _expect_credentials(self) -> None:
        """Ask a plug-in that gave none again; nothing is asked of the server as nobody."""
        if self._lacks_credentials(self._configuration):
            self._renew(when_changed=False)
        if self._lacks_credentials(self._configuration):
            message = f"credentials for {self._host} cannot be renewed: its plug-in gave none; trying again"
            raise UnreachableError(message)

    def _headers(self) -> dict[str, str]:
        """
        Fresh credentials: asking for them renews a token that is about to expire.

        Raises:
            UnreachableError: the file of the token is gone, whoever renews it fails, or it is no token.
        """
        headers = {"Accept": "application/json", "User-Agent": "gpuledger"}
        try:
            settings = dict(self._configuration.auth_settings())
        except Exception as cause:
            message = f"credentials for {self._host} cannot be renewed: {cause}; trying again"
            raise UnreachableError(message) from cause
        # The package gives a dict for each way to authenticate; all of them are header fields.
        for setting in settings.values():
            if isinstance(setting, dict) and setting.get("value"):
                # Whoever writes a token into a file ends its line.
                value = str(setting["value"]).strip()
                if not (value.isascii() and value.isprintable()):
                    # Whoever sends it would refuse it too, and show it in the error.
                    message = (
                        f"credentials for {self._host}: the {setting['key']} is not one line of ASCII text, "
                        "and is not sent; write the token anew; trying again"
                    )
                    raise UnreachableError(message)
                headers[str(setting["key"])] = value
        return headers


def is_service_account(kubeconfig: Path | None, context: str | None) -> bool:
    """Whether the credentials are those of the pod that we run in, and not of a kubeconfig."""
    return kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ


def _configuration(kubeconfig: Path | None, context: str | None) -> Configuration:
    configuration = Configuration()
    try:
        if is_service_account(kubeconfig, context):
            kube_config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        else:
            _Loader(  # type: ignore[no-untyped-call]
                config_dict=_merged(kubeconfig), config_base_path=None, active_context=context
            ).load_and_set(configuration)
    # No file, no YAML, half a certificate, no identity provider: the package raises anything.
    except Exception as cause:
        given = "the usual kubeconfig" if kubeconfig is None else f"kubeconfig {kubeconfig}"
        message = (
            f"{given}, context {context or 'current'}: {cause}; "
            "give a readable file with --kubeconfig and one of its contexts with --context"
        )
        raise SettingsError(message) from cause
    return configuration


class _Loader(KubeConfigLoader):
    """The package's, but for a plug-in that hangs: it is ended."""

    @override
    def _load_from_exec_plugin(self) -> object:
        user: dict[str, Any] = self._user.value  # type: ignore[union-attr]
        given = user.get("exec")
        # At a terminal a person may have to log in, and may press Ctrl-C.
        if given and not sys.stdout.isatty():
            user["exec"] = limited(given, PLUGIN_SECONDS)
        try:
            return super()._load_from_exec_plugin()  # type: ignore[no-untyped-call]
        finally:
            user |= {"exec": given} if given else {}


def _asks_plugin(kubeconfig: Path | None, context: str | None) -> bool:
    """Whether the user of a context has an exec plug-in; of a kubeconfig that can be read."""
    config = _merged(kubeconfig)
    chosen = config["contexts"].get_with_name(context or config["current-context"])["context"]
    if not (chosen.safe_get("user") and config.safe_get("users")):
        return False
    user = config["users"].get_with_name(chosen["user"], safe=True)
    return user is not None and "exec" in user["user"]


def _merged(kubeconfig: Path | None) -> Any:
    """What stands in a kubeconfig, or in all of those that the usual place names."""
    path = KUBE_CONFIG_DEFAULT_LOCATION if kubeconfig is None else str(kubeconfig)
    return KubeConfigMerger(path).config  # type: ignore[no-untyped-call]


def _changed_at(path: Path | None) -> int:
    """When a file changed last; 0 where nobody can tell."""
    try:
        return 0 if path is None else path.stat().st_mtime_ns
    except OSError:
        return 0


def _headers(response: urllib3.BaseHTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _unreachable(where: str, cause: HTTPError) -> UnreachableError:
    if isinstance(cause, ReadTimeoutError):
        return UnreachableError(f"{where}: the connection was silent for too long and was given up")
    return UnreachableError(f"{where}: no answer ({type(cause).__name__}: {cause}); trying again")
