"""The HTTP server: in a thread beside the collectors, or in front until it is told to stop."""

import socket
import threading
import time
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from domain.errors import UnreachableError

_START_SECONDS = 60.0
_DRAIN_SECONDS = 10


class Server:
    """
    Serves an app from a thread.

    The port is bound before `start` returns, so a taken port is an error there and port 0 becomes
    the one that the system gave.

    Raises:
        UnreachableError: the address cannot be bound, or the server does not come up.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._socket = _bind(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            # Proxy headers are read by api.auth, which asks for the proxy's secret first.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)

    @property
    def url(self) -> str:
        """Where this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 (read, not bound)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def start(self) -> Self:
        """Serve; returns when the first request can come."""
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                message = f"the server on {self.url} did not start; the log says why"
                raise UnreachableError(message)
            self._thread.join(0.01)
        return self

    def stop(self) -> None:
        """Answer what is being asked, then stop."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_DRAIN_SECONDS + 5)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as cause:
        listener.close()
        message = (
            f"cannot listen on {host}:{port}: {cause.strerror or cause};"
            " stop what listens there or choose another --port"
        )
        raise UnreachableError(message) from cause
    return listener
