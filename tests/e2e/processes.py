"""Real processes of the product and of Prometheus, on free ports of this machine."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import requests

# On a machine with two cores and ten times the load; it takes some 8 s on an idle one.
READY_SECONDS = 240.0
END_SECONDS = 60.0
Found = TypeVar("Found")
# Where a kernel's own ports begin at 32,768, as by default.
_PORTS = range(20_000, 32_000)


def _own_ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    own = _PORTS[worker::workers]
    # Another run on this machine begins elsewhere.
    first = os.getpid() * 97 % len(own)
    return iter([*own[first:], *own[:first]])


_ports = _own_ports()


@dataclass(frozen=True, slots=True)
class Demo:
    """A running `gpuledger demo`; `output` is where its words go."""

    process: "subprocess.Popen[bytes]"
    api: str
    dashboard: str
    output: Path

    def interrupt(self) -> int:
        """Press Ctrl-C; gives its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(END_SECONDS)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a demo is, or will be."""

    api_port: int
    dashboard_port: int

    @classmethod
    def free(cls) -> Self:
        """Two ports that nobody listens on now."""
        return cls(*free_ports(2))

    @property
    def api(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self.api_port}"

    @property
    def dashboard(self) -> str:
        """The address of the pages."""
        return f"http://127.0.0.1:{self.dashboard_port}"


@contextmanager
def demo(
    folder: Path, *options: str, at: Addresses | None = None, ready_seconds: float = READY_SECONDS
) -> Iterator[Demo]:
    """
    `gpuledger demo` with these options, from when it has printed its addresses.

    What is played runs before the pages are up: then it is enough that the API answers.
    """
    here = at or Addresses.free()
    ports = ["--port", str(here.api_port), "--dashboard-port", str(here.dashboard_port)]
    output = folder / "demo.txt"
    command = [sys.executable, "-m", "service.cli", "demo", *ports, *(options or ("--sample", "small"))]
    with started(command, output) as process:
        running = Demo(process, here.api, here.dashboard, output)

        def ready() -> bool | None:
            if "--play" in options:
                return answers(f"{here.api}/metrics")
            return "Ctrl-C" in output.read_text() or None

        until(ready, process, output, seconds=ready_seconds)
        yield running


@contextmanager
def started(command: Sequence[str], output: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A process whose words go to a file; it is ended at the end."""
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(
    look: Callable[[], Found | None], process: "subprocess.Popen[bytes]", output: Path, *, seconds: float
) -> Found:
    """The first thing that `look` finds; fails with the process's words when it ends or time runs out."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        assert process.poll() is None, f"ended with {process.returncode}: {output.read_text()}"
        time.sleep(0.25)
    message = f"not within {seconds:.0f} s; the process said: {output.read_text()}"
    raise AssertionError(message)


def answers(url: str) -> bool | None:
    """True where something says that it is well there, else None, for `until`."""
    try:
        return requests.get(url, timeout=5).ok or None
    except requests.RequestException:
        return None


def fetch(url: str, **parameters: str) -> requests.Response:
    """The answer, which must be a success."""
    reply = requests.get(url, params=parameters, timeout=60)
    assert reply.status_code == 200, f"{url}: {reply.status_code} {reply.text[:500]}"
    return reply


def free_ports(number: int) -> list[int]:
    """
    Ports that nobody listens on now, and that nobody is given by chance until we do.

    Below those that a kernel hands out, to whoever asks for any and to each connection; each worker of
    a test run looks in a part of its own, and never gives a port twice.
    """
    found: list[int] = []
    for port in _ports:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == number:
            return found
    message = f"no {number} free ports are left between {_PORTS.start} and {_PORTS.stop}"
    raise AssertionError(message)
