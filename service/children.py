"""Child processes of `up` and `demo`: start them, wait until they answer, end them together."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from dashboard.shared.launch import streamlit_command
from service import running, tether
from service.settings import Settings
from service.stopping import Stop

START_SECONDS = 60.0
_END_SECONDS = 25.0
_LOOK_SECONDS = 0.2

_API_URL = "GPULEDGER_API_URL"
_PLAYED = "GPULEDGER_PLAYED_SAMPLE"

Child = subprocess.Popen[bytes]


def start(command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Child:
    """
    Start a child in its own group, so that a Ctrl-C reaches us alone and we end it in order.

    Where we are killed, it is told to end. It is tied to the calling thread, which must outlive it.
    """
    return subprocess.Popen(  # noqa: S603 (our own interpreter and arguments)
        [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command],
        env=None if environment is None else dict(environment),
        start_new_session=True,
    )


def dashboard_command(settings: Settings) -> list[str]:
    """The command of the dashboard of these settings."""
    return streamlit_command(
        sys.executable,
        port=settings.server.dashboard_port,
        address=settings.server.host,
        base_url=_base_path(settings),
    )


def dashboard_environment(settings: Settings, *, api_url: str, played: bool = False) -> dict[str, str]:
    """
    The variables that the dashboard needs, over those of this process.

    It reads no settings file: what the file says of the viewer's headers travels with them.

    Args:
        played: the figures are those of a sample that is played, so that the pages can say so.
    """
    header = settings.auth.header
    names = {name: getattr(header, name) for name in ("user_header", "groups_header", "secret_header")}
    variables = {f"GPULEDGER_AUTH__HEADER__{name.upper()}": value for name, value in names.items()}
    if played:
        variables[_PLAYED] = "1"
    return {**os.environ, **variables, _API_URL: api_url}


def dashboard_address(settings: Settings) -> str:
    """Where this machine finds the dashboard."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.server.host, settings.server.host)  # noqa: S104
    path = _base_path(settings)
    return f"http://{host}:{settings.server.dashboard_port}{f'/{path}' if path else ''}"


def _base_path(settings: Settings) -> str:
    """Below which path others reach the dashboard; a proxy passes it on as it is."""
    return urlsplit(settings.server.dashboard_url).path.strip("/")


def wait_for(url: str, child: Child, stop: Stop, *, seconds: float = START_SECONDS) -> bool:
    """Whether the address answers before the child ends, somebody stops us, or time runs out."""
    for _ in range(round(seconds / _LOOK_SECONDS)):
        if child.poll() is not None or stop.is_set():
            return False
        if running.answers(url):
            return True
        stop.wait(_LOOK_SECONDS)
    return False


def wait_for_serve(serve_file: Path, child: Child, stop: Stop) -> str | None:
    """The address of the API that the child announces, when it is ready; None if that never comes."""
    for _ in range(round(START_SECONDS / _LOOK_SECONDS)):
        if child.poll() is not None or stop.is_set():
            return None
        said = running.announced(serve_file)
        if said is not None and said.pid == child.pid and running.answers(f"{said.url}/readyz"):
            return said.url
        stop.wait(_LOOK_SECONDS)
    return None


def watch(children: Mapping[str, Child], stop: Stop) -> int:
    """Until one ends or somebody stops us; then all end. Gives the exit code to end with."""
    while not stop.is_set():
        if any(child.poll() is not None for child in children.values()):
            break
        stop.wait(_LOOK_SECONDS)
    stopped = stop.is_set()
    worst = end_all(children)
    return 0 if stopped else worst


def end_all(children: Mapping[str, Child]) -> int:
    """Ask all to end, last started first; what does not is killed. Gives the worst exit code."""
    for child in reversed(list(children.values())):
        if child.poll() is None:
            child.terminate()
    for child in children.values():
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    # One that we ended by a signal has a negative code; that is no failure of its own.
    return max((child.returncode for child in children.values()), default=0)
