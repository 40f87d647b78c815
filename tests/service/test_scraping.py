"""Thousands of exporters in a round: some hang, some answer rubbish, and the others are read in time."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest

from api.answers import Record
from collector.dcgm.exporter_http import ExporterAddress, Scraped, ScrapePace, grouped, scrape
from domain.gpu_sample import GPU_METRICS
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from service.cli.doctor import source_findings
from service.gpu_faults import GpuFaults
from service.gpu_metrics_settings import GpuMetricsSettings
from service.scraping import Scraper
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import START_MS

CLUSTER = "north"


def line(node: str) -> str:
    return f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{UUID="GPU-{node}",Hostname="{node}",modelName="A100"}} 0.5\n'


@dataclass(slots=True)
class Exporters:
    """
    A server that plays any number of exporters: the first part of the path says which.

    `hangs` never answer; `failing` answer 500 and `absent` 404; `endless` never end, and `dripping` neither,
    with a line now and then; `cut` end in the middle of a number.
    """

    hangs: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    endless: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    dripping: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    port: int = 0
    most_at_once: int = 0
    asked: list[str] = field(default_factory=list)
    _at_once: int = 0
    _stop: asyncio.Event | None = None

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}/metrics"

    async def serve(self, ready: threading.Event) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._stop is not None
        loop.call_soon_threadsafe(self._stop.set)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._stop is not None
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            name = (await reader.readline()).split(b"/")[1].decode()
            while (await reader.readline()).strip():
                pass
            self.asked.append(name)
            if name in self.hangs:
                # Until the client gives up, or the test ends.
                ended = asyncio.create_task(self._stop.wait())
                gone = asyncio.create_task(reader.read())
                _, pending = await asyncio.wait((ended, gone), return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
                return
            status = "500 no" if name in self.failing else "404 no" if name in self.absent else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{line(name)}".encode())
            if name in self.cut:
                writer.write(b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-cut"} 1')
            while name in self.endless and not self._stop.is_set():
                writer.write(b"# more\n" * 10_000)
                await writer.drain()
            while name in self.dripping and not self._stop.is_set():
                writer.write(b"# more\n")
                await writer.drain()
                await asyncio.sleep(0.05)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            self._at_once -= 1
            writer.close()


@contextmanager
def serving(exporters: Exporters) -> Iterator[Exporters]:
    loop, ready = asyncio.new_event_loop(), threading.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(exporters.serve(ready),))
    thread.start()
    assert ready.wait(60)
    yield exporters
    exporters.stop(loop)
    thread.join()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_an_answer_that_was_cut_in_the_middle_of_a_line_is_none() -> None:
    taken: list[Scraped] = []
    with serving(Exporters(cut={"cut"})) as server:
        groups = grouped([ExporterAddress(server.url(name)) for name in ("cut", "whole")], 2)
        scrape(groups, lambda _, some: taken.extend(some), clock=FixedClock(START_MS), pace=ScrapePace())
    told = {one.exporter.url.split("/")[-2]: one for one in taken}
    assert (told["cut"].text, told["whole"].error) == ("", "")
    assert "in the middle of a line" in told["cut"].error


def scraper(settings: GpuMetricsSettings, store: Store, **more: Any) -> Scraper:
    return Scraper(settings, store, FixedClock(START_MS), faults=GpuFaults(store, CLUSTER), **more)


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.long)])
def test_exporters_of_which_some_hang_are_read_while_those_are_waited_for(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    some = count // 16
    hangs, failing, endless = set(names[:some]), set(names[some : some + 8]), set(names[some + 8 : some + 10])
    taken: list[Scraped] = []
    most_held = 0
    seconds = 6.0

    def take(_: int, scraped: list[Scraped]) -> None:
        nonlocal most_held
        most_held = max(most_held, len(scraped))
        taken.extend(scraped)

    with serving(Exporters(hangs=hangs, failing=failing, endless=endless)) as server:
        groups = grouped([ExporterAddress(server.url(name)) for name in names], count // 8)
        began = monotonic()
        pace = ScrapePace(at_once=256, seconds=seconds, most_bytes=1 << 20)
        scrape(groups, take, clock=FixedClock(START_MS), pace=pace)
        took = monotonic() - began
    told = {one.exporter.url.split("/")[-2]: one for one in taken}
    assert len(taken) == len(told) == count
    assert {name for name, one in told.items() if one.error} == hangs | failing | endless
    assert all(told[name].text == line(name) for name in names[some + 10 :])
    assert {told[name].error.split(": ", 1)[1] for name in hangs} == {f"it took longer than {seconds:g} s"}
    assert {told[name].error.split(": ", 1)[1] for name in failing} == {"status 500"}
    assert {told[name].error.split(": ", 1)[1] for name in endless} == {"more than 1,048,576 bytes"}
    # The server notices a moment later that somebody has gone.
    assert server.most_at_once < 2 * 256
    assert most_held == max(map(len, groups))
    # One after the other the hanging ones alone would take as many times the limit.
    assert took < seconds * some / 2


def test_one_that_drips_is_given_up_like_one_that_hangs_and_a_wrong_path_is_no_answer() -> None:
    taken: list[Scraped] = []
    with serving(Exporters(dripping={"n0"}, absent={"n1"})) as server:
        group = [ExporterAddress(server.url(f"n{number}")) for number in range(3)]
        pace = ScrapePace(seconds=4.0)
        scrape([group], lambda _, scraped: taken.extend(scraped), clock=FixedClock(START_MS), pace=pace)
    assert {one.exporter.url.split("/")[-2]: one.error.rpartition(": ")[2] for one in taken} == {
        "n0": "it took longer than 4 s",
        "n1": "status 404",
        "n2": "",
    }


def test_each_exporter_is_kept_with_its_mark_and_one_that_hangs_is_told() -> None:
    store = Store.open(None)
    with serving(Exporters(hangs={"n3"})) as server:
        urls = tuple(server.url(f"n{number}") for number in range(8))
        settings = GpuMetricsSettings.model_validate({"cluster": CLUSTER, "exporters": urls, "step": "6s"})
        one = scraper(settings, store)
        assert one.round() == 7
        assert one.round() == 0  # the clock stands still: the same samples again
    marks = {str(mark["source"]): mark for mark in store.sample_marks()}
    assert len(marks) == 8
    # A sample stands for its step.
    assert marks[ExporterAddress(urls[0]).source]["read_until_ms"] == START_MS + 6_000
    hung = marks[ExporterAddress(urls[3]).source]
    assert hung["seen_ms"] == 0
    assert "it took longer than 2.4 s" in str(hung["last_error"])
    assert {row["node"] for row in store.rows("select node from gpu_sample")} == {
        f"n{number}" for number in range(8) if number != 3
    }
    store.close()


def test_an_exporter_that_answers_no_metrics_is_a_trouble_counted_and_named_until_it_answers_some() -> None:
    address = ExporterAddress("http://127.0.0.1:9400")
    settings = GpuMetricsSettings(cluster=CLUSTER, exporters=(address.url,))
    store = Store.open(None)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(START_MS + 60_000))
    one = scraper(settings, store)

    def told(text: str, at_ms: int) -> Record:
        one.take(0, [Scraped(address, at_ms, text=text)])
        [row] = answers.sources().rows
        return row

    page = told("<html>Log in</html>", START_MS)
    assert (page["state"], page["set_aside"]) == ("never_read", 1)
    assert "HTML" in page["last_error"]
    assert "login page" in page["remedy"]
    [_, failing, aside] = source_findings([page], load_settings())
    name = f"{CLUSTER}/{GPU_METRICS}/{address.source}"
    assert failing.text == f"{name} cannot be read: {page['last_error']}; meanwhile {page['missing']}"
    assert failing.remedy == page["remedy"]
    assert "answers that are no metrics of GPUs" in aside.text
    ahead = told(f"{line('n1').strip()} {START_MS + 10**10}\n", START_MS)
    assert (ahead["state"], ahead["set_aside"]) == ("never_read", 2)
    assert "set the clock of its node" in ahead["remedy"]
    assert store.rows("select * from gpu_sample") == []
    sound = told(line("n1"), START_MS + 30_000)
    assert (sound["state"], sound["last_error"], sound["remedy"]) == ("read", "", "")
    store.close()


def test_what_is_told_is_of_the_node_where_the_exporter_was_found_whatever_it_calls_itself() -> None:
    settings = GpuMetricsSettings.model_validate({"cluster": CLUSTER, "discover": {"by": "pods"}})
    found = ExporterAddress("http://10.0.0.7:9400", "gpu-1")
    store = Store.open(None)
    text = line("nvidia-dcgm-exporter-x7k2m")
    xid = text.replace("PROF_GR_ENGINE_ACTIVE", "DEV_XID_ERRORS").replace(" 0.5", " 79")
    one = scraper(settings, store)
    for at_ms, told in ((START_MS, text), (START_MS + 30_000, text + xid)):
        one.take(0, [Scraped(found, at_ms, text=told)])
    assert [row["node"] for row in store.rows("select node from gpu_sample")] == ["gpu-1", "gpu-1"]
    assert {row["namespace"] for row in store.rows("select * from object_state where kind = 'GPU'")} == {
        "gpu-1"
    }
    store.close()


def test_an_exporter_that_is_listed_twice_is_asked_once() -> None:
    store = Store.open(None)
    with serving(Exporters()) as server:
        url = server.url("n1")
        # The same one with and without a slash at its end.
        root = url.removesuffix("/metrics")
        one = scraper(GpuMetricsSettings(cluster=CLUSTER, exporters=(root, f"{root}/", root)), store)
        assert one.round() == 1
        assert server.asked == ["n1"]
    store.close()


def test_more_groups_than_there_is_room_for_are_asked_one_after_the_other() -> None:
    taken: list[Scraped] = []
    with serving(Exporters()) as server:
        groups = [
            [ExporterAddress(server.url(f"n{number}-{place}")) for place in range(4)] for number in range(10)
        ]
        asking = threading.Thread(
            target=lambda: scrape(
                groups,
                lambda _, scraped: taken.extend(scraped),
                clock=FixedClock(START_MS),
                pace=ScrapePace(at_once=2),
            ),
            daemon=True,
        )
        asking.start()
        asking.join(60)
    assert len(taken) == 40


def test_a_group_that_cannot_be_kept_ends_the_round_and_says_why() -> None:
    def take(_: int, __: list[Scraped]) -> None:
        message = "the disk is full"
        raise RuntimeError(message)

    with serving(Exporters()) as server:
        groups = grouped([ExporterAddress(server.url(f"n{number}")) for number in range(40)], 4)
        with pytest.raises(RuntimeError, match="the disk is full"):
            scrape(groups, take, clock=FixedClock(0), pace=ScrapePace(at_once=4))


def test_groups_stay_when_exporters_come_and_go() -> None:
    def places(names: Sequence[int]) -> dict[str, int]:
        groups = grouped([ExporterAddress(f"http://10.0.0.{name}:9400") for name in names], 32)
        return {one.url: number for number, group in enumerate(groups) for one in group}

    before, after = places(range(200)), places(range(20, 220))
    stayed = before.keys() & after.keys()
    assert len(stayed) == 180
    assert {url: before[url] for url in stayed} == {url: after[url] for url in stayed}
