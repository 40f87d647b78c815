"""The door to Prometheus, with a real one: chunks, labels of both ways of scraping, time-outs."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest
import requests

from collector.dcgm.answers import Part
from collector.dcgm.prometheus import CHUNK_POINTS, Prometheus, Range
from domain.errors import UnreachableError
from domain.window import FixedClock
from service.gpu_metrics import Poller, keep_parts, noting_silences
from service.gpu_metrics_settings import GpuMetricsSettings
from store.embedded import Store
from tests.collector_live.running import HandClock
from tests.e2e.processes import fetch, free_ports, started, until

STEP = 15
# More points than the server gives in one answer (11,000), on the grid since the epoch.
POINTS = 11_500
START = 1_764_547_200 // STEP * STEP
END = START + POINTS * STEP
# From here on one device is told of, with a long silence.
SILENT = START + 9_000 * STEP
SLOW_ANSWER_SECONDS = 1

CONFIG = "global: {scrape_interval: 1m}\n"
# A second store that is away: of those of its own a server does not go without.
REMOTE = 'remote_read: [{url: "http://127.0.0.1:9/read", read_recent: true}]\n'

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not installed: apt-get install --no-install-recommends prometheus"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


def percent(place: int) -> int:
    """What the device does at the instant with that number."""
    return place % 97


def recording() -> str:
    """One device over all points under `job="plain"`, where target labels win, and a short one honoured."""
    name = "DCGM_FI_DEV_GPU_UTIL"
    plain = (
        f'{name}{{UUID="GPU-1",node="n1",job="plain",container="dcgm-exporter",namespace="mon",pod="exp-1",'
        'exported_pod="train-0",exported_namespace="red"}'
    )
    honoured = (
        f'{name}{{UUID="GPU-2",node="n1",job="honour",container="main",namespace="blue",pod="infer-7"}}'
    )
    silent = f'{name}{{UUID="GPU-3",node="n1",job="silent",container="main",namespace="blue",pod="infer-8"}}'
    lines = [f"# TYPE {name} gauge"]
    lines += [f"{silent} 9 {SILENT + place * STEP}" for place in (*range(10), *range(100, 110))]
    lines += [f"{plain} {percent(place)} {START + place * STEP}" for place in range(POINTS)]
    lines += [f"{honoured} {value} {START + place * STEP}" for place, value in enumerate(("5", "NaN", "7"))]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prometheus")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    (folder / "metrics.txt").write_text(recording())
    blocks = ["tsdb", "create-blocks-from", "openmetrics", str(folder / "metrics.txt"), str(folder / "tsdb")]
    subprocess.run([program("promtool"), *blocks], check=True, capture_output=True)
    (folder / "prometheus.yml").write_text(CONFIG)
    (port,) = free_ports(1)
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-lifecycle",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    with started(command, folder / "said.txt") as process:

        def ready() -> bool | None:
            try:
                return fetch(f"{url}/-/ready").ok or None
            except (OSError, AssertionError):
                return None

        until(ready, process, folder / "said.txt", seconds=60)
        yield url


@pytest.mark.parametrize("points", [11_000, 1_000, 999])
def test_every_point_comes_once_however_the_range_is_cut(server: str, points: int) -> None:
    asked = Range(start_ms=START * 1000, end_ms=END * 1000, step_seconds=STEP)
    prometheus = Prometheus(server, match='job="plain"')
    parts = list(prometheus.parts(asked, points=points))
    prometheus.close()
    assert len(parts) == -(-POINTS // points)
    read = [row for part in parts for row in part.samples.frame.select("at_ms", "activity").rows()]
    assert read == [((START + place * STEP) * 1000, percent(place) / 100) for place in range(POINTS)]
    assert parts[-1].until_ms == END * 1000
    assert all(not part.samples.set_aside for part in parts)


def test_owners_are_found_whichever_labels_win(server: str) -> None:
    asked = Range(start_ms=START * 1000, end_ms=(START + 3 * STEP) * 1000, step_seconds=STEP)
    prometheus = Prometheus(server)
    (part,) = prometheus.parts(asked)
    prometheus.close()
    owners = part.samples.frame.select("device", "namespace", "pod").unique(maintain_order=True).rows()
    assert owners == [("GPU-1", "red", "train-0"), ("GPU-2", "blue", "infer-7")]
    # The exporter's own pod holds nothing, and a NaN is no zero.
    assert part.samples.frame.filter(device="GPU-2")["activity"].to_list() == [0.05, None, 0.07]


def test_a_poller_goes_on_where_it_stopped_and_reads_nothing_twice(server: str) -> None:
    store = Store.open(None)
    settings = GpuMetricsSettings(
        cluster="c",
        prometheus=server,
        match='job="plain"',
        step=timedelta(seconds=15),
        backfill=timedelta(hours=1),
    )
    read = []
    for now in (START + 3_600, START + 3_600, START + 3_660, START + 10_000):
        poller = Poller(settings, store, FixedClock(now * 1000))
        read.append(poller.poll())
        poller.close()
    # An hour back, less the newest step; then nothing new; then a minute; then on from the mark, which is
    # more than an hour ago: the backfill is a limit after a long stop too.
    assert read == [239, 0, 4, 240 - 1]
    (twice,) = store.rows("select count(*) - count(distinct at_ms) as n from gpu_sample")
    assert twice["n"] == 0
    store.close()


def test_a_poller_reads_on_after_a_clock_that_was_ahead_is_set_right(server: str) -> None:
    store = Store.open(None)
    settings = GpuMetricsSettings(
        cluster="c",
        prometheus=server,
        match='job="plain"',
        step=timedelta(seconds=15),
        backfill=timedelta(hours=1),
    )
    clock = HandClock((END + 36_000) * 1000)  # far beyond all that there is
    read = []
    for _ in ("by the process that was ahead", "by a new one"):
        poller = Poller(settings, store, clock)
        read.append(poller.poll())
        for now in (START + 3_600, START + 3_660):
            clock.at_ms = now * 1000
            read.append(poller.poll())
        poller.close()
        clock.at_ms = (START + 3_720) * 1000
    assert read == [0, 239, 4, 4, 0, 0]
    (twice,) = store.rows("select count(*) - count(distinct at_ms) as n from gpu_sample")
    assert twice["n"] == 0
    store.close()


def test_a_back_fill_that_is_stopped_goes_on_and_is_the_same_as_one_that_is_not(server: str) -> None:
    points = 4_500
    asked = Range(start_ms=START * 1000, end_ms=(START + points * STEP) * 1000, step_seconds=STEP)
    prometheus = Prometheus(server, match='job="plain"')

    def stopped() -> Iterator[Part]:
        yield from islice(prometheus.parts(asked), 3)
        message = "the server is gone"
        raise UnreachableError(message)

    whole, twice = Store.open(None), Store.open(None)
    assert keep_parts(whole, "c", prometheus.parts(asked)).new == points
    with pytest.raises(UnreachableError, match="the server is gone"):
        keep_parts(twice, "c", stopped())
    (kept,) = twice.rows("select count(*) as n from gpu_sample")
    assert kept["n"] == 3 * CHUNK_POINTS
    assert keep_parts(twice, "c", prometheus.parts(asked)).new == points - 3 * CHUNK_POINTS
    stored = "select at_ms, device, pod, activity from gpu_sample order by at_ms"
    assert twice.rows(stored) == whole.rows(stored)
    prometheus.close()


@pytest.mark.parametrize("points", [1_000, 7, 30])
def test_a_stretch_in_which_a_server_told_nothing_is_named(server: str, points: int) -> None:
    first_ms = (SILENT - 4 * STEP) * 1000
    asked = Range(start_ms=first_ms, end_ms=(SILENT + 140 * STEP) * 1000, step_seconds=STEP)
    prometheus = Prometheus(server, match='job="silent"')
    silences: list[tuple[int, int]] = []
    for _ in noting_silences(prometheus.parts(asked, points=points), silences, from_ms=first_ms):
        pass
    prometheus.close()
    before, between, after = silences
    assert before == (first_ms, SILENT * 1000)
    assert (between[1], after[1]) == ((SILENT + 100 * STEP) * 1000, (SILENT + 140 * STEP) * 1000)
    # A server repeats the last value for five minutes, 20 steps, in which another comes or not.
    assert [(begins // 1000 - SILENT) // STEP for begins, _ in (between, after)] in ([29, 129], [30, 130])


def test_a_query_that_is_refused_is_told_with_the_servers_words(server: str) -> None:
    prometheus = Prometheus(server, match='job="plain')
    asked = Range(start_ms=START * 1000, end_ms=(START + STEP) * 1000, step_seconds=STEP)
    with pytest.raises(UnreachableError, match=r"gave no answer: HTTP Status Code 400"):
        list(prometheus.parts(asked))
    prometheus.close()


def test_a_server_that_takes_the_question_and_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        prometheus = Prometheus(url, timeout_seconds=SLOW_ANSWER_SECONDS)
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="timed out"):
            list(prometheus.parts(Range(start_ms=0, end_ms=STEP * 1000, step_seconds=STEP)))
        prometheus.close()
        # The time-out, three times again, and the pauses between.
        assert time.monotonic() - began < 60


def test_a_stretch_of_which_a_server_could_not_look_everywhere_is_read_again(
    server: str, folder: Path
) -> None:
    def configure(text: str) -> None:
        (folder / "prometheus.yml").write_text(text)
        assert requests.post(f"{server}/-/reload", timeout=60).ok

    store, clock = Store.open(None), HandClock((START + 3_600) * 1000)
    settings = GpuMetricsSettings(
        cluster="c",
        prometheus=server,
        match='job="plain"',
        step=timedelta(seconds=STEP),
        backfill=timedelta(hours=1),
    )
    poller = Poller(settings, store, clock)
    marks = []
    try:
        for text in (CONFIG + REMOTE, CONFIG, CONFIG):
            configure(text)
            poller.poll()
            [mark] = store.sample_marks()
            marks.append((mark["read_until_ms"], "remote_read" in str(mark["last_error"])))
            clock.at_ms += STEP * 1000
    finally:
        configure(CONFIG)
        poller.close()
    # What the server has itself counts at once; as read it counts when an answer was whole.
    assert marks == [(0, True), (0, True), (clock.at_ms - 2 * STEP * 1000, False)]
    [kept] = store.rows("select count(*) as n, count(distinct at_ms) as instants from gpu_sample")
    assert (kept["n"], kept["instants"]) == (241, 241)
    store.close()
