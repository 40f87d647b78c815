"""An API server over real HTTP on the loopback, as far as list-and-watch needs one."""

import ssl
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

import msgspec
from typing_extensions import override

from tests.fake_etcd import Body, Change, FakeEtcd, Resource, status_body

_NO_LIMIT = 3600.0
_BOOKMARK = b'{"type":"BOOKMARK"'


class FakeCluster(FakeEtcd):
    """
    Use as a context manager.

    `tls`: how it shows itself and whom it lets in; None serves plain HTTP.
    """

    def __init__(
        self,
        *,
        page_limit: int = 500,
        cluster_uid: str = "cluster-1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(page_limit=page_limit, cluster_uid=cluster_uid)
        self._scheme = "http" if tls is None else "https"
        self._server = _Server(("127.0.0.1", 0), _Handler)
        if tls is not None:
            # The handshake comes with the first read, in the thread of that reader.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._server.cluster = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    cluster: FakeEtcd

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that went away is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        cluster = self.server.cluster
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        with cluster.changed:
            cluster.requests.append((url.path, query))
            cluster.authorizations.append(self.headers.get("Authorization", ""))
            resource = cluster.resource(url.path)
            answer = self._plain_answer(cluster, url.path, resource, query)
            is_list = answer is not None and answer[0] == 200 and "watch" not in query
            cut = is_list and self._is_cut(resource)
            watch = None
            if answer is None and resource is not None:
                watch = _Watch(cluster, url.path, resource, query, self._chunk)
        if answer is not None:
            self._send(*answer, cut=cut)
        elif watch is not None:
            try:
                watch.run(self)
            except OSError:  # the reader has gone
                self.close_connection = True

    def do_POST(self) -> None:
        """Nobody has any business to write: it is denied, and noted."""
        with self.server.cluster.changed:
            self.server.cluster.denies(self.command, urlsplit(self.path).path)
        self._send(403, status_body(403, "Forbidden"), {})

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 (names of the base class)

    def _plain_answer(
        self,
        cluster: FakeEtcd,
        path: str,
        resource: Resource | None,
        query: dict[str, str],
    ) -> tuple[int, Body, dict[str, str]] | None:
        if cluster.denies("GET", path):
            return 403, status_body(403, "Forbidden"), {}
        if path == "/api/v1/namespaces/kube-system":
            return 200, {"kind": "Namespace", "metadata": {"uid": cluster.cluster_uid}}, {}
        seen = cluster.visibility(path)
        if seen is not None:
            return *seen, {}
        if resource is None:
            found = cluster.discovery(path)
            return (404, status_body(404, "NotFound"), {}) if found is None else (200, found, {})
        if resource.forbidden:
            return 403, status_body(403, "Forbidden"), {}
        canned = cluster.canned(resource, watch="watch" in query)
        if canned is not None:
            return canned.status, canned.body, canned.headers
        if "watch" in query:
            gone = cluster.is_gone(int(query["resourceVersion"]))
            return (410, status_body(410, "Expired"), {}) if gone and cluster.gone_as_http else None
        page = cluster.listing(resource, query)
        return (410, cluster.expired_body, {}) if page is None else (200, page, {})

    @staticmethod
    def _is_cut(resource: Resource | None) -> bool:
        if resource is None or not resource.cut_lists:
            return False
        resource.cut_lists -= 1
        return True

    def _send(self, status: int, body: Body, headers: dict[str, str], *, cut: bool = False) -> None:
        data = msgspec.json.encode(body)
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection |= cut

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


class _Watch:
    """One open watch."""

    def __init__(
        self,
        cluster: FakeEtcd,
        path: str,
        resource: Resource,
        query: dict[str, str],
        send: Callable[[bytes], None],
    ) -> None:
        self._cluster, self._path, self._resource, self._send = cluster, path, resource, send
        self._from = int(query["resourceVersion"])
        self._seconds = float(query["timeoutSeconds"]) or _NO_LIMIT
        # As a real server: nobody gets bookmarks who did not ask for them.
        self._bookmarks = query.get("allowWatchBookmarks") == "true"
        # The caller holds `changed`: from here on what is done to the open watches is done to this one.
        self._extra_sent = len(resource.extra)
        self._closings, self._cuts = resource.closings, resource.cuts
        self._replays, resource.replay = resource.replay, resource.replay and not cluster.replays_once
        resource.watches += 1
        resource.opened += 1

    def run(self, handler: _Handler) -> None:
        try:
            self._answer(handler)
        finally:
            with self._cluster.changed:
                self._resource.watches -= 1

    def _answer(self, handler: _Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        if self._cluster.is_gone(self._from):
            gone = {"type": "ERROR", "object": status_body(410, "Expired")}
            self._send(msgspec.json.encode(gone) + b"\n")
            self._send(b"")
            return
        self._pump(handler)

    def _pump(self, handler: _Handler) -> None:
        sent = min(self._from, self._resource.listed) if self._replays else self._from
        while True:
            with self._cluster.changed:
                self._cluster.changed.wait_for(partial(self._has_news, sent), self._seconds)
                told, (lines, newest) = self._extra_sent, self._news(sent)
                cut = self._cuts != self._resource.cuts
                is_news = bool(lines) or newest > sent or self._extra_sent > told
                waited_out = not is_news and not self._resource.silent
                ended, sent = cut or self._has_ended() or waited_out, newest
            for line in lines:
                self._send_line(line)
            if cut:
                self._send(b'{"type":"MODIFIED","object":{"metada')
                handler.close_connection = True
                return
            if ended:
                self._send(b"")
                return

    def _send_line(self, line: bytes) -> None:
        if not self._resource.slow:
            self._send(line + b"\n")
            return
        middle = len(line) // 2
        self._send(line[:middle])
        self._send(line[middle:])
        self._send(b"\n")

    def _has_ended(self) -> bool:
        served = self._cluster.resource(self._path) is self._resource
        return self._closings != self._resource.closings or self._cluster.stopping or not served

    def _has_news(self, sent: int) -> bool:
        if self._has_ended() or self._cuts != self._resource.cuts:
            return True
        if self._resource.silent:
            return False
        newest = self._resource.history[-1].revision if self._resource.history else sent
        return newest > sent or len(self._resource.extra) > self._extra_sent

    def _news(self, sent: int) -> tuple[list[bytes], int]:
        # An error that ends the watch is sent even when changes are held back.
        added = self._resource.extra[self._extra_sent :]
        self._extra_sent += len(added)
        extra = [line for line in added if self._bookmarks or not line.startswith(_BOOKMARK)]
        if self._resource.silent:
            return extra, sent
        changes = [
            change
            for change in self._resource.history
            # Changes may be repeated, a bookmark never is.
            if change.revision > max(sent, self._from if change.event_type == "BOOKMARK" else 0)
        ]
        told = (change for change in changes if self._bookmarks or change.event_type != "BOOKMARK")
        lines = [_line(change) for change in told]
        return lines + extra, changes[-1].revision if changes else sent


def _line(change: Change) -> bytes:
    """Spelt as an API server does: of a recorded change it is the recorded line, byte for byte."""
    return msgspec.json.encode({"type": change.event_type, "object": change.body})
