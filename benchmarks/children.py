"""
Work measured in a process of its own: so neither its CPU time nor its memory is mixed with another's.

A function is named `module:name`; it is given what was JSON, and gives what can be JSON again. Loading its
module, and the libraries that it imports, is left out of the CPU time.
"""

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

_HOUSE: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: CPU seconds of all threads, seconds by the clock, the most memory it had, and its answer."""

    cpu_seconds: float
    wall_seconds: float
    peak_mb: float
    answer: Any


def run(function: str, argument: object) -> Run:
    """
    Run a function, `module:name`, in a child.

    Raises:
        RuntimeError: the child failed; what it said went to standard error.
    """
    with TemporaryDirectory(prefix="benchmark") as folder:
        told = Path(folder) / "told.json"
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.children", function, json.dumps(argument), str(told)],
            cwd=_HOUSE,
        )
        if child.wait():
            message = f"{function}({argument}) ended with code {child.returncode}"
            raise RuntimeError(message)
        read = json.loads(told.read_text())
    # Linux tells it in KiB.
    return Run(
        cpu_seconds=read["cpu"],
        wall_seconds=read["wall"],
        peak_mb=read["peak"],
        answer=read["answer"],
    )


def main(function: str, argument: str, told: str) -> None:
    """What the child does."""
    module, _, name = function.partition(":")
    work, given = getattr(importlib.import_module(module), name), json.loads(argument)
    cpu, wall = process_time(), perf_counter()
    answer = work(given)
    spent = {"cpu": process_time() - cpu, "wall": perf_counter() - wall}
    Path(told).write_text(json.dumps(spent | {"peak": _peak_mb(), "answer": answer}))


def _peak_mb() -> float:
    """The most memory of this program; what `getrusage` tells begins with that of whoever started it."""
    told = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = next(line.split()[1] for line in told.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
