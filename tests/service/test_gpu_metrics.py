"""GPU metrics into the store: from exporters again and again, from files once, and as settings say."""

import gzip
import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import requests
from typing_extensions import override

from collector.dcgm.prometheus import Prometheus
from domain.errors import SettingsError, UnreachableError
from domain.window import FixedClock
from service.cli import run
from service.gpu_metrics import Poller
from service.gpu_metrics_settings import GpuMetricsSettings
from service.runtime import Runtime
from service.settings_file import load_settings
from store.embedded import Store
from store.gpu_samples import Read
from tests.collector_live.running import ASKS_EVERY_SECONDS, until

LINE = 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="GPU-1",Hostname="n1",modelName="A100"} 0.5\n'
NOBODY = "http://127.0.0.1:9"


class Exporter(BaseHTTPRequestHandler):
    """Answers as an exporter does."""

    def do_GET(self) -> None:
        body = LINE.encode() if self.path == "/metrics" else b""
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def exporter() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_exporters_are_read_at_each_call_and_one_that_is_away_is_told(exporter: str) -> None:
    store = Store.open(None)
    settings = GpuMetricsSettings(cluster="c", exporters=(exporter, NOBODY))
    for second in (10, 40):
        poller = Poller(settings, store, FixedClock(second * 1000))
        assert poller.poll() == 1
        poller.close()
    read = store.rows("select at_ms, step_ms, activity from gpu_sample order by at_ms")
    assert [tuple(row.values()) for row in read] == [(10_000, 30_000, 0.5), (40_000, 30_000, 0.5)]
    marks = {str(mark["source"]): mark for mark in store.sample_marks()}
    assert [mark["seen_ms"] for mark in marks.values()] == [40_000, 0]
    assert "gave no answer" in str(marks["exporter/127.0.0.1:9"]["last_error"])
    store.close()


def test_a_prometheus_that_never_answered_has_its_mark() -> None:
    """By which GPU metrics of its cluster are expected."""
    store = Store.open(None)
    poller = Poller(GpuMetricsSettings(cluster="c", prometheus=NOBODY), store, FixedClock(10_000))
    assert poller.poll() == 0
    poller.close()
    [mark] = store.sample_marks()
    assert (mark["cluster"], mark["first_sample_ms"]) == ("c", None)
    assert "127.0.0.1:9" in str(mark["last_error"])
    store.close()


class Proxy(BaseHTTPRequestHandler):
    """Stands before a Prometheus and answers with a JSON of its own."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(type(self).body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    "body",
    [b"[]", b'{"data": null}', b'{"data": {"result": null}}', b'{"data": {"result": [1772442000, "1"]}}'],
)
def test_a_prometheus_that_answers_another_json_is_told_and_ends_no_poll(body: bytes) -> None:
    Proxy.body = body
    store = Store.open(None)
    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        poller = Poller(GpuMetricsSettings(cluster="c", prometheus=url), store, FixedClock(10**12))
        assert poller.poll() == 0
        poller.close()
        prometheus = Prometheus(url)
        with pytest.raises(UnreachableError, match="up gave no answer"):
            prometheus.at_instant("up")
        prometheus.close()
        server.shutdown()
    [mark] = store.sample_marks()
    assert "gave no answer" in str(mark["last_error"])
    store.close()


def test_a_running_service_polls_and_answers_what_gpus_do(exporter: str, tmp_path: Path) -> None:
    settings = load_settings(
        overrides={
            "store.data_dir": tmp_path / "data",
            "server.port": 0,
            "schedule.measure_every_seconds": 1,
            "gpu_metrics": [{"cluster": "north", "exporters": [exporter], "step": "1s"}],
        }
    )
    store = Store.open(None)
    for cluster in ("north", "south"):
        store.mark_samples(cluster, {"older": Read(until_ms=0, seen_ms=0, error="no answer")})
    with Runtime(settings, store=store) as runtime:

        def told() -> list[float | None]:
            url = f"{runtime.url}/api/v1/metrics/gpu_activity_ratio?by=node"
            return [row["value"] for row in requests.get(url, timeout=60).json()["rows"]]

        until(lambda: told() == [0.5], pause=ASKS_EVERY_SECONDS)
        # What never gave a sample is expected no more where the settings name nothing of its cluster.
        assert {mark["cluster"] for mark in store.sample_marks() if mark["source"] == "older"} == {"north"}
    store.close()


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"cluster": "c"}, "either prometheus, an address, or exporters"),
        ({"cluster": "c", "prometheus": NOBODY, "exporters": [NOBODY]}, "either prometheus, an address, or"),
        ({"cluster": "c", "prometheus": "prometheus:9090"}, "an address, for example http://"),
        ({"cluster": "c", "prometheus": NOBODY, "step": "90ms"}, "whole seconds from 1s to 30m"),
        ({"cluster": "c", "prometheus": NOBODY, "step": "31m"}, "whole seconds from 1s to 30m"),
        ({"cluster": "c", "prometheus": NOBODY, "stpe": "30s"}, "did you mean gpu_metrics.0.step?"),
    ],
)
def test_a_section_that_makes_no_sense_is_told(section: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says.replace(".", r"\.").replace("?", r"\?")):
        load_settings(overrides={"gpu_metrics": [section]})


def scrapes(folder: Path) -> Path:
    heads = [{"t": at, "status": 200, "bytes": len(LINE)} for at in (1_700_000_000, 1_700_000_015)]
    file = folder / "n1.scrapes"
    file.write_text("".join(f"#scrape {json.dumps(head)}\n{LINE}" for head in heads))
    return file


def test_recorded_scrapes_are_imported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["import", "dcgm", str(scrapes(tmp_path)), "--cluster", "c", "--data-dir", str(tmp_path / "d")]
    assert run(command) == 0
    assert "c: 2 GPU samples read, 2 of them new" in capsys.readouterr().out
    assert run(command) == 0
    assert "c: 2 GPU samples read, 0 of them new" in capsys.readouterr().out
    assert run(["metrics", "gpu_activity_ratio", "--by", "node", "--data-dir", str(tmp_path / "d")]) == 0
    assert "n1" in capsys.readouterr().out


def set_aside(folder: Path) -> list[tuple[str, str, int]]:
    store = Store.open(load_settings(overrides={"store.data_dir": folder / "d"}).store_file)
    rows = [(one.source, one.because, one.count) for one in store.set_aside_of("c")]
    store.close()
    return rows


def test_what_is_no_answer_of_an_exporter_is_counted_and_a_file_that_is_cut_off_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "noise").write_bytes(random.Random(1).randbytes(3000) + b"\n")
    ahead = json.dumps({"t": 4_000_000_000, "status": 200, "bytes": len(LINE)})
    (tmp_path / "in" / "ahead").write_text(f"#scrape {ahead}\n{LINE}")
    data = ["--data-dir", str(tmp_path / "d")]
    assert run(["import", "dcgm", str(tmp_path / "in"), "--cluster", "c", *data]) == 0
    told = capsys.readouterr().out
    assert "c: 0 GPU samples read" in told
    assert "set aside 1: an answer with no metrics of GPUs" in told
    assert "set aside 1: a reading of the future" in told
    cut = tmp_path / "n1.gz"
    cut.write_bytes(gzip.compress(scrapes(tmp_path).read_bytes() * 200)[:-20])
    assert run(["import", "dcgm", str(cut), "--cluster", "c", *data]) == 3
    assert "n1.gz is cut off or broken at byte" in capsys.readouterr().err
    counted = set_aside(tmp_path)
    assert {row[0] for row in counted} == {"exporter/ahead", "exporter/n1", "exporter/noise"}
    # All of it again: nothing is counted twice.
    run(["import", "dcgm", str(tmp_path / "in"), str(cut), "--cluster", "c", *data])
    assert set_aside(tmp_path) == counted


def test_saved_answers_are_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metric = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "Hostname": "n1"}
    values = [[1_700_000_000, "50"], [1_700_000_030, "2619"]]
    answer = {"status": "success", "data": {"result": [{"metric": metric, "values": values}]}}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    given = [str(tmp_path / "answer.json"), "--cluster", "c", "--data-dir", str(tmp_path / "d")]
    for new in (2, 0):
        assert run(["import", "prometheus", *given]) == 0
        told = capsys.readouterr().out
        assert f"c: 2 GPU samples read, {new} of them new" in told
        assert "set aside 1: DCGM_FI_DEV_GPU_UTIL: out of range" in told
    assert [row[2] for row in set_aside(tmp_path)] == [1]


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["prometheus", NOBODY], 2, "expected one address, with --start INSTANT"),
        (["prometheus", NOBODY, "--start", "yesterday"], 2, "yesterday"),
        (["prometheus", NOBODY, "--start", "2026-01-01T00:00:00Z", "--step", "45m"], 2, "from 1 s to 30m"),
        (["dcgm", "nowhere.txt"], 3, "nowhere.txt: no such file"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    command: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["import", *command, "--cluster", "c", "--data-dir", str(tmp_path)]) == code
    assert says in capsys.readouterr().err
