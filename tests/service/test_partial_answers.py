"""A server that cannot look everywhere answers in part, and says so: what may be missing is asked again."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from typing_extensions import override

from domain.policy import Policy
from domain.tenant import Tenancy
from service.answers import Answers
from service.cli import run
from service.cli.doctor import source_findings
from service.gpu_metrics import Poller
from service.gpu_metrics_settings import GpuMetricsSettings
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import HandClock

STEP = 30
START = 1_764_547_200  # on the grid of every step here
AWAY = "receive series from Addr: 10.1.2.3:10901 LabelSets: {}: rpc error: code = Unavailable"


class Querier(ThreadingHTTPServer):
    """
    As a Thanos: of two devices one lies in a store that may be away, for good or until some instant.

    `asked` is the stretches of the questions about activity, in seconds.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.is_away = False
        self.lacks_before = 0
        self.said: dict[str, list[str]] = {}
        self.asked: list[tuple[int, int]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, query: str, first: int, last: int, step: int) -> dict[str, object]:
        result = []
        lacks = self.is_away or first < self.lacks_before
        if query == "DCGM_FI_DEV_GPU_UTIL":
            self.asked.append((first, last))
            for device in ("GPU-1",) if lacks else ("GPU-1", "GPU-2"):
                metric = {"__name__": query, "UUID": device, "Hostname": "n1"}
                result.append(
                    {"metric": metric, "values": [[at, "50"] for at in range(first, last + 1, step)]}
                )
        told: dict[str, object] = {
            "status": "success",
            "data": {"resultType": "matrix", "result": result},
            **self.said,
        }
        return told | ({"warnings": [AWAY, AWAY]} if lacks else {})


class _Handler(BaseHTTPRequestHandler):
    server: Querier

    def do_GET(self) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        told = self.server.answer(asked["query"], int(asked["start"]), int(asked["end"]), int(asked["step"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def querier() -> Iterator[Querier]:
    with Querier() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def polling(querier: Querier, *, step: int = STEP) -> Iterator[tuple[Store, HandClock, Poller]]:
    """An hour after the start, and nothing was read yet."""
    store, clock = Store.open(None), HandClock((START + 3_600) * 1000)
    settings = GpuMetricsSettings(
        cluster="c", prometheus=querier.url, step=timedelta(seconds=step), backfill=timedelta(hours=1)
    )
    poller = Poller(settings, store, clock)
    yield store, clock, poller
    poller.close()
    store.close()


def devices(store: Store) -> dict[object, object]:
    rows = store.rows("select device, count(*) as n from gpu_sample group by device order by device")
    return {row["device"]: row["n"] for row in rows}


def mark(store: Store) -> dict[str, object]:
    [found] = store.sample_marks()
    return found


def test_what_a_store_that_was_away_has_is_read_when_it_is_back(querier: Querier) -> None:
    with polling(querier) as (store, clock, poller):
        poller.poll()
        whole_ms = mark(store)["read_until_ms"]
        assert devices(store) == {"GPU-1": 119, "GPU-2": 119}
        querier.is_away = True
        for _ in range(20):
            clock.at_ms += STEP * 1000
            assert poller.poll() == 1  # what is new is not held up
        assert devices(store) == {"GPU-1": 139, "GPU-2": 119}
        assert mark(store)["read_until_ms"] == whole_ms
        querier.is_away = False
        for _ in range(2):
            clock.at_ms += STEP * 1000
            poller.poll()
        assert devices(store) == {"GPU-1": 141, "GPU-2": 141}
        assert mark(store)["read_until_ms"] == clock.at_ms - STEP * 1000
        assert mark(store)["last_error"] == ""


def test_a_new_process_asks_again_for_what_may_be_missing(querier: Querier) -> None:
    with polling(querier) as (store, clock, first):
        querier.is_away = True
        first.poll()
        querier.is_away = False
        settings = GpuMetricsSettings(cluster="c", prometheus=querier.url, backfill=timedelta(hours=1))
        second = Poller(settings, store, clock)
        assert second.poll() == 119
        second.close()


def test_a_warning_that_never_ends_holds_up_nothing(querier: Querier) -> None:
    step, days = 1_800, 1
    querier.is_away = True
    with polling(querier, step=step) as (store, clock, poller):
        for _ in range(days * 48):
            clock.at_ms += step * 1000
            poller.poll()
            [newest] = store.rows("select max(at_ms) as at_ms from gpu_sample")
            assert newest["at_ms"] == clock.at_ms - 2 * step * 1000
        # Of what is older than `backfill`, an hour, nothing is asked any more.
        assert max(last - first for first, last in querier.asked) <= 3_600
        assert "answered in part only" in str(mark(store)["last_error"])


def test_an_old_stretch_that_stays_partial_is_asked_for_ever_more_seldom(querier: Querier) -> None:
    querier.lacks_before = START + 1_800  # as "No StoreAPIs matched": older than any store goes
    polls = 40
    with polling(querier) as (_, clock, poller):
        for _ in range(polls):
            clock.at_ms += STEP * 1000
            poller.poll()
    # An hour at first, and once more because what is new is whole; then when an eighth of it has passed.
    assert [number for number, one in enumerate(querier.asked) if one[1] - one[0] > STEP] == [0, 2, 17, 32]
    assert len(querier.asked) == polls


def test_remarks_on_a_query_are_no_warnings(querier: Querier) -> None:
    remark = "PromQL info: metric might not be a counter"
    querier.said = {"infos": [remark], "warnings": [remark]}  # 2.48 to 2.53 wrote it among the warnings
    with polling(querier) as (store, clock, poller):
        poller.poll()
        assert mark(store)["read_until_ms"] == clock.at_ms - STEP * 1000
        assert mark(store)["last_error"] == ""


def test_the_page_of_sources_and_the_doctor_say_what_the_server_warned_of(querier: Querier) -> None:
    querier.is_away = True
    with polling(querier) as (store, clock, poller):
        poller.poll()
        rows = list(Answers(store, Tenancy(), Policy(), clock).sources().rows)
        [row] = [row for row in rows if row["source"] == querier.url]
        assert row["state"] == "read"
        assert (
            f"answered in part only, of 2025-12-01T00:00:00.000Z to 2025-12-01T00:59:00.000Z: {AWAY}"
            in (row["last_error"])
        )
        assert row["last_error"].count(AWAY) == 1
        told = [one for one in source_findings(rows, load_settings()) if AWAY in one.text]
        assert [one.remedy.split(":")[0] for one in told] == ["bring back what the server says is away"]


def test_an_import_says_which_answers_may_lack_samples(
    querier: Querier, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start, end = "2025-12-01T00:00:00Z", "2025-12-01T00:10:00Z"
    command = ["import", "prometheus", querier.url, "--cluster", "c", "--start", start, "--end", end]
    command += ["--data-dir", str(tmp_path)]
    querier.is_away = True
    assert run(command) == 0
    told = capsys.readouterr().out
    assert "c: 20 GPU samples read, 20 of them new" in told
    assert f"answered in part only, of 2025-12-01T00:00:00.000Z to 2025-12-01T00:09:30.000Z: {AWAY}" in told
    assert "give the same command again" in told
    querier.is_away = False
    assert run(command) == 0
    told = capsys.readouterr().out
    assert "c: 40 GPU samples read, 20 of them new" in told
    assert "in part" not in told
