"""Starts the process that owns a file, and reads through its API like a page does."""

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import urlopen

from domain.window import MS_PER_SECOND, parse_instant
from tests.store.killing import ROOT


class Owner:
    """`written` counts the writes that were acknowledged."""

    def __init__(self, path: Path) -> None:
        self.written = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.owner", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )

    def __enter__(self) -> Self:
        self.url = self._line()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def write_after_a_second(self) -> None:
        """Let a second of its clock pass, and a pod be written."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self.written += int(self._line()) > 0

    def read(self) -> tuple[int, float]:
        """What a page gets: the status of the answer, and the age of the newest row, seconds."""
        with urlopen(f"{self.url}/api/v1/workloads?sort=-submitted_at&page_size=1", timeout=60) as answer:  # noqa: S310
            listing = json.load(answer)
        age_ms = parse_instant(listing["as_of"]) - parse_instant(listing["rows"][0]["submitted_at"])
        return answer.status, age_ms / MS_PER_SECOND

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()
