"""How a running `serve` is found: a file beside the store, and whether it answers."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import requests

from dashboard.shared.own_api import ask

_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A `serve` process: where it answers, and its process id."""

    url: str
    pid: int


def announce(path: Path, url: str) -> None:
    """Write where this process answers. The rename makes the file whole for every reader."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n", encoding="utf-8")
    written.replace(path)


def withdraw(path: Path) -> None:
    """Remove this process's announcement; another one's is left alone."""
    running = announced(path)
    if running is not None and running.pid == os.getpid():
        path.unlink(missing_ok=True)


def announced(path: Path) -> Running | None:
    """What the file says; None where there is none or it is no announcement."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return Running(url=str(said["url"]), pid=int(said["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def found(path: Path) -> Running | None:
    """The announced process, if it answers."""
    running = announced(path)
    return running if running is not None and answers(f"{running.url}/livez") else None


def answers(url: str) -> bool:
    """Whether that address answers with success."""
    try:
        return ask("GET", url, timeout=_ANSWER_SECONDS).ok
    except requests.RequestException:
        return False
