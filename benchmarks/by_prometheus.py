"""
The p99 of waits and the depth of queues as a real Prometheus knows them, from back-filled series.

It gets what the product's exporter would have shown each minute: waits as a classic histogram with the
exporter's own edges, and depth as a gauge. Between edges and between scrapes it guesses; here is told how far
off.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import polars as pl
import requests

from analytics.metrics.first_wait_seconds import METRIC
from benchmarks.questions import Data
from benchmarks.seeded_jobs import CLASSES, START_MS
from domain.window import MS_PER_SECOND

SCRAPE_MS: Final = 60_000
EDGES_SECONDS: Final = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800)
assert all(f"{edge * 1000}" in METRIC.sql for edge in EDGES_SECONDS), "the exporter has other edges"
_ENDLESS: Final = "+Inf"
_WORDS: Final = ("promtool", "prometheus")
# How long a start may take, and how often a question is asked for its time.
_START_SECONDS: Final = 60
_ASKED: Final = 20


def missing() -> list[str]:
    """The programs that are not there."""
    return [word for word in _WORDS if shutil.which(word) is None]


def series(data: Data) -> Iterator[str]:
    """The lines of OpenMetrics: one per series and scrape, a series after the other."""
    jobs = pl.read_parquet(data.parquet, columns=["service_class", "submit_ms", "start_ms", "end_ms"])
    scrapes = np.arange(START_MS, data.cluster.end_ms + 1, SCRAPE_MS)
    stamps = [f"{at_ms / MS_PER_SECOND:.3f}\n" for at_ms in scrapes]
    yield "# TYPE queue_wait_seconds histogram\n"
    for klass in CLASSES:
        placed = jobs.filter(pl.col("start_ms").is_not_null(), service_class=klass)
        waits = (placed["start_ms"] - placed["submit_ms"]).to_numpy()
        starts = placed["start_ms"].to_numpy()
        for edge in (*EDGES_SECONDS, _ENDLESS):
            within = starts if edge == _ENDLESS else starts[waits <= float(edge) * MS_PER_SECOND]
            counts = np.searchsorted(np.sort(within), scrapes, "left")
            le = edge if edge == _ENDLESS else f"{float(edge):.1f}"
            yield from _lines(
                f'queue_wait_seconds_bucket{{service_class="{klass}",le="{le}"}}', counts, stamps
            )
    yield "# TYPE queue_depth_workloads gauge\n"
    for klass in CLASSES:
        depth = _depth(jobs.filter(service_class=klass), scrapes, data)
        yield from _lines(f'queue_depth_workloads{{service_class="{klass}"}}', depth, stamps)
    yield "# EOF\n"


def _lines(name: str, values: "np.ndarray[Any, Any]", stamps: Iterable[str]) -> Iterator[str]:
    return (f"{name} {value} {stamp}" for value, stamp in zip(values.tolist(), stamps, strict=True))


def _depth(jobs: pl.DataFrame, scrapes: "np.ndarray[Any, Any]", data: Data) -> "np.ndarray[Any, Any]":
    """Who had been submitted before an instant, less who had stopped waiting before it."""
    until = jobs.select(
        pl.coalesce("start_ms", "end_ms", pl.lit(data.cluster.end_ms + SCRAPE_MS))
    ).to_series()
    come = np.searchsorted(np.sort(jobs["submit_ms"].to_numpy()), scrapes, "left")
    gone = np.searchsorted(np.sort(until.to_numpy()), scrapes, "left")
    return np.asarray(come - gone)


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """
    Back-fill a Prometheus and ask it.

    Returns:
        p99 by class (seconds, over the window), depth by class and instant, and what it took: CPU seconds and
        MB of the back-fill and of the server, milliseconds of a question.
    """
    data = Data.read(asked)
    with TemporaryDirectory(prefix="benchmark") as folder:
        text, blocks = Path(folder) / "series.om", Path(folder) / "tsdb"
        with text.open("w") as file:
            file.writelines(series(data))
        before = os.times()
        # One block of all that there is: for each it reads the whole text.
        options = ("--quiet", "--max-block-duration=10000h", str(text), str(blocks))
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        backfill = sum(after[2:4]) - sum(before[2:4])
        with _server(blocks, Path(folder)) as (url, pid):
            return _asked(url, pid, data, asked["instants_ms"]) | {"backfill_cpu_seconds": backfill}


def _asked(url: str, pid: int, data: Data, instants_ms: list[int]) -> dict[str, Any]:
    length = (data.cluster.end_ms - data.window_start_ms) // MS_PER_SECOND
    rates = f"sum by (service_class, le) (increase(queue_wait_seconds_bucket[{length}s]))"
    p99 = f"histogram_quantile(0.99, {rates})"
    waits, began, spent = _values(url, p99, data.cluster.end_ms), time.perf_counter(), _cpu_seconds(pid)
    for _ in range(_ASKED):
        assert _values(url, p99, data.cluster.end_ms) == waits
    waits_seconds, waits_cpu = time.perf_counter() - began, _cpu_seconds(pid) - spent
    began, spent = time.perf_counter(), _cpu_seconds(pid)
    depth = {
        f"{at_ms}|{klass}": value
        for at_ms in instants_ms
        for klass, value in _values(url, "sum by (service_class) (queue_depth_workloads)", at_ms).items()
    }
    depth_seconds, depth_cpu = time.perf_counter() - began, _cpu_seconds(pid) - spent
    return {
        "waits": waits,
        "depth": depth,
        "waits_ms": 1000 * waits_seconds / _ASKED,
        "waits_cpu_ms": 1000 * waits_cpu / _ASKED,
        "depth_ms": 1000 * depth_seconds / len(instants_ms),
        "depth_cpu_ms": 1000 * depth_cpu / len(instants_ms),
        "server_mb": _peak_mb(pid),
    }


def _values(url: str, query: str, at_ms: int) -> dict[str, float]:
    answered = requests.get(
        f"{url}/api/v1/query", params={"query": query, "time": f"{at_ms / 1000:.3f}"}, timeout=60
    )
    answered.raise_for_status()
    return {
        row["metric"]["service_class"]: float(row["value"][1]) for row in answered.json()["data"]["result"]
    }


@contextmanager
def _server(blocks: Path, folder: Path) -> Iterator[tuple[str, int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configuration = folder / "prometheus.yml"
    configuration.write_text("global: {}\n")
    url = f"http://127.0.0.1:{port}"
    command = [
        "prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={blocks}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y", "--log.level=error",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _START_SECONDS
        while not _is_ready(url):
            if time.monotonic() > until or process.poll() is not None:
                message = f"prometheus on {url} did not become ready within {_START_SECONDS} s"
                raise RuntimeError(message)
            time.sleep(0.2)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=5).ok
    except requests.ConnectionError:
        return False


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(pid: int) -> float:
    told = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in told.splitlines() if line.startswith("VmHWM"))) / 1024
