"""
The line to exporters: thousands in a round, many at once, each with a limit of time and of size.

One that hangs takes one of many places for a few seconds, and holds up nobody; answers are handed over group
by group as soon as a group is complete, so that no more of them are in memory than a few groups have.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from zlib import crc32

import aiohttp

from collector.addresses import Address, shown
from collector.dcgm.exposition import cut_in
from domain.window import Clock

_PATH: Final = "/metrics"
_CHUNK_BYTES: Final = 1 << 16
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class ExporterAddress:
    """
    An exporter; its address may leave the path out, and may have a name and password, which are not shown.

    `node` is where it runs, if that is known.
    """

    url: str
    node: str = ""

    @property
    def source(self) -> str:
        """The name under which its samples are kept."""
        return f"exporter/{shown(self.url).split('://', 1)[-1].rstrip('/')}"


class Scraped(NamedTuple):
    """An answer and when it was asked for; where there is none, `error` says why."""

    exporter: ExporterAddress
    at_ms: int
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapePace:
    """
    How a round goes.

    At most `at_once` exporters are asked at a time, each for `seconds` in all; an answer of more than
    `most_bytes` is none. The first question to the last is spread over `spread_seconds`, in an order that
    stays the same, so that neither the network nor the exporters' machines see a burst.
    """

    at_once: int = 512
    seconds: float = 10.0
    most_bytes: int = 16 << 20
    spread_seconds: float = 0.0


def grouped(exporters: Iterable[ExporterAddress], group_size: int) -> list[list[ExporterAddress]]:
    """
    Exporters in groups of about that size; where one stands does not change when others come or go.

    The number of groups is a power of two: it changes only when their number has doubled.
    """
    ordered = sorted(exporters, key=lambda one: crc32(one.url.encode()))
    parts = 1
    while len(ordered) > parts * group_size:
        parts *= 2
    groups: list[list[ExporterAddress]] = [[] for _ in range(parts)]
    for one in ordered:
        groups[crc32(one.url.encode()) * parts >> 32].append(one)
    return groups


def scrape(
    groups: Sequence[Sequence[ExporterAddress]],
    take: Callable[[int, list[Scraped]], None],
    *,
    clock: Clock,
    pace: ScrapePace,
) -> None:
    """
    Ask every exporter once.

    Args:
        groups: of exporters.
        take: is given a group's number and its answers, one group at a time; while it works, others are
            asked on, but not more than fill two groups beside those at once.
        clock: stamps the questions.
        pace: of the round.

    Raises:
        Exception: what `take` raises; then the rest is not asked.
    """
    if any(groups):
        asyncio.run(_Round(groups, take, clock, pace).run())


class _Round:
    def __init__(
        self,
        groups: Sequence[Sequence[ExporterAddress]],
        take: Callable[[int, list[Scraped]], None],
        clock: Clock,
        pace: ScrapePace,
    ) -> None:
        self._groups = groups
        self._take = take
        self._clock = clock
        self._pace = pace
        self._arrived: list[list[Scraped]] = [[] for _ in groups]
        total = sum(map(len, groups))
        self._workers = min(pace.at_once, total)
        self._gap_seconds = pace.spread_seconds / total
        # The oldest group that is not complete has all its exporters asked: there is always a way on.
        self._room = asyncio.Semaphore(2 * max(map(len, groups)) + self._workers)
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        connector = aiohttp.TCPConnector(limit=self._workers, force_close=True)
        timeout = aiohttp.ClientTimeout(total=self._pace.seconds)
        self._began = asyncio.get_running_loop().time()
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            order = self._order()
            work = [asyncio.create_task(self._work(session, order)) for _ in range(self._workers)]
            try:
                await asyncio.gather(*work)
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)

    def _order(self) -> Iterator[tuple[float, int, ExporterAddress]]:
        place = 0
        for number, group in enumerate(self._groups):
            for exporter in group:
                yield place * self._gap_seconds, number, exporter
                place += 1

    async def _work(
        self, session: aiohttp.ClientSession, order: Iterator[tuple[float, int, ExporterAddress]]
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            due = next(order, None)
            if due is None:
                self._room.release()
                return
            after_seconds, number, exporter = due
            await asyncio.sleep(max(0.0, self._began + after_seconds - loop.time()))
            arrived = self._arrived[number]
            arrived.append(await self._ask(session, exporter))
            if len(arrived) == len(self._groups[number]):
                self._arrived[number] = []
                async with self._writing:
                    await asyncio.to_thread(self._take, number, arrived)
                for _ in arrived:
                    self._room.release()

    async def _ask(self, session: aiohttp.ClientSession, exporter: ExporterAddress) -> Scraped:
        address = Address.of(exporter.url)
        url = address.url if address.url.endswith(_PATH) else address.url.rstrip("/") + _PATH
        headers = None if address.login is None else {"Authorization": address.login.header}
        at_ms = self._clock.now_ms()
        body = bytearray()
        try:
            async with session.get(url, headers=headers) as answer:
                because = "" if answer.status == _OK else f"status {answer.status}"
                if not because:
                    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
                        body += chunk
                        if len(body) > self._pace.most_bytes:
                            because = f"more than {self._pace.most_bytes:,} bytes"
                            break
        except TimeoutError:
            because = f"it took longer than {self._pace.seconds:g} s"
        except (aiohttp.ClientError, ValueError, OSError) as cause:
            because = str(cause) or type(cause).__name__
        because = because or cut_in(body)
        if because:
            return Scraped(exporter, at_ms, error=f"exporter at {url} gave no answer: {because}")
        return Scraped(exporter, at_ms, text=body.decode(errors="replace"))
