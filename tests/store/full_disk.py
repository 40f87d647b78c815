"""
A disk that can be filled and freed.

A tmpfs of its own where this process may mount one; else a limit on the length of files, which
lets a write fail in the same places.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.intake import Intake
from collector.translator import find
from domain.window import parse_instant

PODS_EACH = 200
_SEEN_MS = parse_instant("2026-05-04T09:00:00Z")
_DISK_BYTES = 64 << 20
# DuckDB writes whole blocks; below this much a limit would forbid what is there already.
_HEADROOM_BYTES = 256 << 10


class SmallDisk:
    """A folder whose room ends when it is told."""

    def __init__(self, folder: Path, *, mounted: bool) -> None:
        self.folder = folder
        self._mounted = mounted
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        if not self._mounted:
            _limit_files(max(map(_length, self.folder.iterdir())) + _HEADROOM_BYTES)
            return
        with self._ballast.open("wb", buffering=0) as ballast:
            left = os.statvfs(self.folder)
            try:
                while left.f_bavail * left.f_frsize > _HEADROOM_BYTES:
                    ballast.write(bytes(1 << 16))
                    left = os.statvfs(self.folder)
            except OSError:
                return  # it is full indeed

    def free(self) -> None:
        if self._mounted:
            self._ballast.unlink()
        else:
            _limit_files(resource.RLIM_INFINITY)


def _length(path: Path) -> int:
    """Bytes; whoever writes may have taken the file away meanwhile, as a log that was folded."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _limit_files(most_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))


@pytest.fixture(params=["tmpfs", "limit"])
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limit":
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        disk = SmallDisk(folder, mounted=False)
        try:
            yield disk
        finally:
            disk.free()
            signal.signal(signal.SIGXFSZ, before)
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this process may not mount a tmpfs; the same is tested with a limit on files")
    try:
        yield SmallDisk(folder, mounted=True)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def pods(intake: Intake, batch: int) -> None:
    """Let an intake see new pods, different in each batch."""
    translator = find("", "Pod")
    assert translator is not None
    for number in range(PODS_EACH):
        version = batch * PODS_EACH + number + 1
        name = f"p{version}"
        metadata = {
            "uid": name,
            "name": name,
            "namespace": "nlp",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-05-04T08:00:00Z",
            "labels": {"noise": os.urandom(200).hex()},
        }
        intake.see(translator, "ADDED", {"metadata": metadata}, _SEEN_MS + version)
