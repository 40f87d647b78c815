"""Debian's Alertmanager with our example configuration, and somebody who is told."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.declared import declared
from alerts.inhibition import configuration
from analytics.metrics import REGISTRY
from tests.e2e.processes import answers, fetch, started, until

Json = dict[str, Any]


def program(name: str, package: str) -> str:
    """Where a program of Debian is; skips the test, or fails in CI, where it is not."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not installed: apt-get install --no-install-recommends {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


@dataclass(slots=True)
class Receiver:
    """Notes what it is told; `url` is where."""

    url: str = ""
    posts: list[Json] = field(default_factory=list)

    def told(self, **labels: str) -> list[Json]:
        """What was said of alerts with these labels, in order, each once per message."""
        return [
            alert
            for post in self.posts
            for alert in post["alerts"]
            if labels.items() <= alert["labels"].items()
        ]

    def statuses(self, **labels: str) -> list[str]:
        """What was said of them, without what was only said again because others of the group changed."""
        found: list[str] = []
        for alert in self.told(**labels):
            if found[-1:] != [alert["status"]]:
                found.append(alert["status"])
        return found


@contextmanager
def receiver() -> Iterator[Receiver]:
    """One that listens on a free port."""
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            here.posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]  # typing has none in 3.11
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    here.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield here
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """A running one."""

    process: "subprocess.Popen[bytes]"
    url: str
    output: Path

    def alerts(self, **labels: str) -> list[Json]:
        """Its alerts with these labels, silenced and inhibited ones included."""
        every: list[Json] = fetch(f"{self.url}/api/v2/alerts").json()
        return [alert for alert in every if labels.items() <= alert["labels"].items()]


def example(told: Receiver, *, wait: str = "1s") -> str:
    """Our example configuration, with one receiver for all and short times."""
    content = yaml.safe_load(configuration(declared(REGISTRY)))
    routes = [content["route"], *content["route"]["routes"]]
    for route in routes:
        route.update({"group_wait": wait, "group_interval": wait, "repeat_interval": "1h"})
    for one in content["receivers"]:
        one["webhook_configs"] = [{"url": told.url, "send_resolved": True}]
    text: str = yaml.safe_dump(content)
    return text


@contextmanager
def alertmanager(folder: Path, port: int, told: Receiver) -> Iterator[Alertmanager]:
    """An Alertmanager that forgets nothing when it is started again in the same folder."""
    file = program("prometheus-alertmanager", "prometheus-alertmanager")
    folder.mkdir(exist_ok=True)
    (folder / "alertmanager.yml").write_text(example(told))
    command = [
        file,
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    output = folder / "alertmanager.txt"
    url = f"http://127.0.0.1:{port}"
    with started(command, output) as process:
        until(lambda: answers(f"{url}/-/ready"), process, output, seconds=60)
        yield Alertmanager(process, url, output)
