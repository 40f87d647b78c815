"""An Alertmanager that notes what it is told, and answers as it is asked to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class FakeAlertmanager:
    """`status` is what it answers; `heard` has one list of alerts for each request."""

    url: str = ""
    status: int = 200
    heard: list[list[Json]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    came: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    waited_for: int = 0

    def wait(self, seconds: float = 60.0) -> list[Json]:
        """The alerts of the next request that was not waited for."""
        assert self.came.acquire(timeout=seconds), "nobody told anything"
        self.waited_for += 1
        return self.heard[self.waited_for - 1]


@contextmanager
def alertmanager() -> Iterator[FakeAlertmanager]:
    """One that runs on a free port."""
    fake = FakeAlertmanager()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            fake.heard.append(json.loads(content))
            fake.headers.append(dict(self.headers))
            fake.paths.append(self.path)
            self.send_response(fake.status)
            self.send_header("Content-Length", "0")
            if 300 <= fake.status < 400:
                self.send_header("Location", f"{fake.url}/elsewhere")
            self.end_headers()
            fake.came.release()

        def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]  # typing has none in 3.11
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/am"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
