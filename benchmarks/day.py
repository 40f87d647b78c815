"""
A day of a cluster of 1,000 nodes, 60 times as fast: does memory stay flat?

`python -m benchmarks.day [--hours 24] [--speed 60] [--nodes 1000]`; a speed of 0 does not wait. Every node
runs a pod after the other, each for half an hour to two hours: its events, and the Kubernetes Event of its
scheduling, pass through the intake, and the exporters of all nodes are read once a minute, all into a
store on disk by the code that `serve` runs. Exits with 1 where memory grows by more than a tenth after the
first sixth of the time.

What each part of memory did is told too, see `benchmarks.memory`. One of them grows for most of such a day
and then stops: DuckDB keeps a handle of each block that it has used, dead ones too, until there are some
ten thousand, and a join uses ten.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from statistics import fmean, linear_regression
from tempfile import TemporaryDirectory
from time import monotonic, process_time, sleep
from typing import Final

from benchmarks.exporter_texts import answer
from benchmarks.memory import Memory
from benchmarks.pod_stream import START_MS, Event, pod_life
from collector.dcgm.exporter_http import ExporterAddress, Scraped, grouped
from collector.intake import Intake
from collector.translator import find
from domain.window import MS_PER_HOUR, FixedClock, format_instant
from service.gpu_faults import GpuFaults
from service.gpu_metrics_settings import GpuMetricsSettings
from service.scraping import GROUP, Scraper
from store.embedded import Store

_MINUTE_MS: Final = 60_000
_FLUSHES: Final = 5
_GONE_KEPT_MS: Final = 2 * MS_PER_HOUR
_CLUSTER: Final = "north"
_MOST_GROWTH: Final = 0.10
_STORE_LIMIT: Final = "80MB"


def main(arguments: list[str]) -> int:
    """Play the day and print memory by the half hour; gives the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.day")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--speed", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--scrape-minutes", type=int, default=1)
    given = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="benchmark") as folder:
        store = Store.open(Path(folder) / "day.duckdb", memory_limit=_STORE_LIMIT)
        try:
            readings = list(_play(store, given))
        finally:
            store.close()
    return _tell(readings)


def _play(store: Store, given: argparse.Namespace) -> Iterator[tuple[float, Memory]]:
    """Hours that passed and what is in memory, every ten minutes of the simulated day."""
    nodes, every = given.nodes, given.scrape_minutes
    pods, events = find("", "Pod"), find("", "Event")
    assert pods is not None
    assert events is not None
    intake = Intake(
        _CLUSTER,
        store,
        store.known(_CLUSTER, gone_within_ms=_GONE_KEPT_MS),
        forget_after_ms=_GONE_KEPT_MS,
    )
    urls = [f"http://10.0.{node // 250}.{node % 250}:9400" for node in range(nodes)]
    settings = GpuMetricsSettings.model_validate(
        {"cluster": _CLUSTER, "exporters": urls, "step": f"{60 * every}s"}
    )
    scraper = Scraper(settings, store, FixedClock(START_MS), faults=GpuFaults(store, _CLUSTER))
    place = {url: node for node, url in enumerate(settings.exporters)}
    world = _World(nodes)
    began, spent = monotonic(), process_time()
    for minute in range(round(given.hours * 60)):
        for part in range(_FLUSHES):
            until_ms = START_MS + minute * _MINUTE_MS + (part + 1) * _MINUTE_MS // _FLUSHES
            for about_pod, event in world.until(until_ms):
                intake.see_line(pods if about_pod else events, event.line, event.observed_ms)
            intake.flush()
        at_ms = START_MS + (minute + 1) * _MINUTE_MS
        groups = grouped(map(ExporterAddress, settings.exporters), GROUP) if minute % every == 0 else []
        for number, group in enumerate(groups):
            scraper.take(number, [Scraped(one, at_ms, world.text(place[one.url], minute)) for one in group])
        if minute % 10 == 9:
            yield (minute + 1) / 60, Memory.of(store)
        if minute % 60 == 59:
            print(
                f"{format_instant(at_ms)}: {Memory.of(store).words()}; "
                f"{process_time() - spent:.0f} s of CPU, {monotonic() - began:.0f} s, "
                f"{world.events:,} events, {(minute // every + 1) * nodes:,} answers",
                flush=True,
            )
        if given.speed:
            sleep(max(0.0, began + (minute + 1) * 60 / given.speed - monotonic()))


class _World:
    """The nodes and what runs on each: events in the order of time, and what exporters tell."""

    def __init__(self, nodes: int) -> None:
        self.events = 0
        self._random = random.Random(7)
        self._waiting: list[tuple[int, int, bool, Event]] = []
        self._starts = [(START_MS + self._random.randrange(_MINUTE_MS * 30), node) for node in range(nodes)]
        self._starts.sort()
        self._pods = [0] * nodes
        self._made = 0
        self._version = 1_000_000
        self._texts: list[tuple[int, list[str]]] = [(-1, [])] * nodes

    def until(self, until_ms: int) -> Iterator[tuple[bool, Event]]:
        """What is told until then: whether it is about a pod, and the event."""
        while self._starts and self._starts[0][0] <= until_ms:
            at_ms, node = heappop(self._starts)
            self._start(at_ms, node)
        while self._waiting and self._waiting[0][0] <= until_ms:
            _, _, about_pod, event = heappop(self._waiting)
            self._version += 1
            self.events += 1
            yield about_pod, event._replace(object=event.object.replace(b"@version", b"%d" % self._version))

    def text(self, node: int, minute: int) -> str:
        """What the node's exporter tells: the pod that runs, and one of two sets of values."""
        pod, texts = self._texts[node]
        if pod != self._pods[node]:
            pod = self._pods[node]
            told = [answer(node, scrape) for scrape in range(2)]
            texts = [one.replace('pod="', f'pod="p{pod}-') for one in told]
            self._texts[node] = (pod, texts)
        return texts[minute % 2]

    def _start(self, at_ms: int, node: int) -> None:
        self._made += 1
        length_ms = self._random.randrange(30, 120) * _MINUTE_MS
        for event in pod_life(self._made, at_ms, length_ms):
            self._add(event, about_pod=True)
        for kind, later_ms in (("ADDED", 1_000), ("DELETED", MS_PER_HOUR)):
            self._add(_scheduled(self._made, kind, at_ms, later_ms), about_pod=False)
        self._pods[node] = self._made
        heappush(self._starts, (at_ms + length_ms + _MINUTE_MS, node))

    def _add(self, event: Event, *, about_pod: bool) -> None:
        heappush(self._waiting, (event.observed_ms, len(self._waiting) + self._made * 100, about_pod, event))


def _scheduled(number: int, kind: str, at_ms: int, later_ms: int) -> Event:
    stamp = format_instant(at_ms + 1_000)[:19] + "Z"
    body = {
        "kind": "Event", "apiVersion": "v1",
        "metadata": {
            "name": f"pretrain.{number:x}", "namespace": "team-1",
            "uid": f"e0e00000-0000-4000-8000-{number:012x}",
            "resourceVersion": "@version", "creationTimestamp": stamp,
        },
        "involvedObject": {"kind": "Pod", "namespace": "team-1", "name": f"pretrain-{number}",
                           "uid": f"5f1e0000-0000-4000-8000-{number:012x}"},
        "reason": "Scheduled", "message": f"Successfully assigned team-1/pretrain-{number} to gpu-node-1",
        "source": {"component": "default-scheduler"}, "firstTimestamp": stamp, "lastTimestamp": stamp,
        "count": 1, "type": "Normal",
    }  # fmt: skip
    return Event(at_ms + later_ms, kind, json.dumps(body, separators=(",", ":")).encode())


def _tell(readings: list[tuple[float, Memory]]) -> int:
    """Print how memory went after the first sixth of the time; gives the exit status."""
    settled = readings[len(readings) // 6 :]
    half = len(settled) // 2
    hours = [hour for hour, _ in settled]
    growth = 0.0
    for name in ("malloc", "reserve", "buffers", "resident"):
        told = [float(getattr(memory, name)) for _, memory in settled]
        earlier, later = fmean(told[:half]), fmean(told[half:])
        growth = later / earlier - 1
        print(
            f"{name} after the first sixth: {earlier:.0f} MB in the first half, {later:.0f} MB in the second "
            f"({growth:+.1%}), {linear_regression(hours, told).slope:+.2f} MB an hour, "
            f"{linear_regression(hours[half:], told[half:]).slope:+.2f} in the second half, "
            f"{max(told):.0f} MB at most"
        )
    return 0 if growth <= _MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
