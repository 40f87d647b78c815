"""Passwords and tokens of whoever tells us something: sent, renewed, and never shown."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from collector.metrics_page import metrics_page
from domain.errors import SettingsError, UnreachableError
from domain.window import FixedClock
from service.cli.configuration import masked
from service.gateways import Gateways
from service.gpu_metrics import Poller
from service.gpu_metrics_settings import GpuMetricsSettings
from service.kueue_checks import KueueChecks
from service.outside_settings import GatewaySettings, KueueMetricsSettings
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import HandClock

NOW_MS = 1_764_547_200_000
LINE = 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="GPU-1",Hostname="n1",modelName="A100"} 0.5\n'
BASIC = "Basic " + base64.b64encode(b"me:s3cret@home").decode()


class Guarded(ThreadingHTTPServer):
    """An exporter and a Prometheus that let in whoever sends what is `wanted`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wanted = BASIC

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def with_password(self) -> str:
        return f"http://me:s3cret%40home@{self.place}"


class _Handler(BaseHTTPRequestHandler):
    server: Guarded

    def do_GET(self) -> None:
        is_let_in = self.headers.get("Authorization") == self.server.wanted
        at = NOW_MS // 1000
        series = {"metric": {"__name__": "x"}, "value": [at, "4"], "values": [[at, "4"]]}
        told = json.dumps({"status": "success", "data": {"result": [series]}})
        self.send_response(200 if is_let_in else 401)
        self.end_headers()
        self.wfile.write((LINE if self.path.endswith("/metrics") else told).encode())

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with Guarded() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def read(store: Store) -> bool:
    """Whether the last reading of the source went well."""
    [mark] = store.sample_marks()
    return not mark["last_error"]


def test_a_token_that_is_renewed_is_sent_with_the_next_question(guarded: Guarded, tmp_path: Path) -> None:
    file, store = tmp_path / "token", Store.open(None)
    file.write_text("one\n")
    guarded.wanted = "Bearer one"
    settings = GpuMetricsSettings(cluster="c", prometheus=f"http://{guarded.place}", token_file=file)
    clock = HandClock(NOW_MS)
    poller = Poller(settings, store, clock)
    gateway = GatewaySettings(
        name="g", cluster="c", prometheus=f"http://{guarded.place}", token_file=file, depth="x"
    )
    gateways = Gateways([gateway], clock)

    def went_well() -> tuple[bool, int]:
        clock.at_ms += 300_000  # what was told is not passed on for so long
        poller.poll()
        gateways.poll(0)
        return read(store), len(list(gateways.outside()))

    assert went_well() == (True, 1)
    guarded.wanted = "Bearer two"
    assert went_well() == (False, 0)
    file.unlink()  # while it is renewed
    assert went_well() == (False, 0)
    [mark] = store.sample_marks()
    assert "gpu_metrics.token_file" in str(mark["last_error"])
    file.write_text("two\n")
    assert went_well() == (True, 1)
    poller.close()
    gateways.close()
    store.close()


def test_a_token_that_was_never_there_ends_the_program_at_the_start(tmp_path: Path) -> None:
    settings = GpuMetricsSettings(cluster="c", prometheus="http://127.0.0.1:9", token_file=tmp_path / "none")
    store = Store.open(None)
    with pytest.raises(SettingsError, match=r"gpu_metrics\.token_file"):
        Poller(settings, store, FixedClock(NOW_MS))
    store.close()


@pytest.mark.parametrize("is_let_in", [True, False])
@pytest.mark.parametrize("kind", ["exporters", "prometheus"])
def test_a_password_in_the_address_of_gpu_metrics_gets_in_and_is_never_shown(
    guarded: Guarded, kind: str, *, is_let_in: bool, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.wanted = BASIC if is_let_in else "nobody"
    store = Store.open(None)
    of_kind = {"exporters": (guarded.with_password,), "prometheus": guarded.with_password}
    settings = GpuMetricsSettings.model_validate({"cluster": "c", kind: of_kind[kind]})
    poller = Poller(settings, store, FixedClock(NOW_MS))
    poller.poll()
    poller.close()
    assert read(store) is is_let_in
    [mark] = store.sample_marks()
    assert guarded.place in str(mark["source"])
    assert "s3cret" not in str([mark, [vars(one) for one in caplog.records]])
    store.close()


@pytest.mark.parametrize("is_let_in", [True, False])
def test_nor_is_one_in_the_addresses_of_kueue_checkpoints_and_gateways(
    guarded: Guarded, *, is_let_in: bool, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.wanted = BASIC if is_let_in else "nobody"
    url, clock, store = guarded.with_password, FixedClock(NOW_MS), Store.open(None)
    kueue = [
        KueueMetricsSettings(cluster="c", prometheus=url),
        KueueMetricsSettings(cluster="c", targets=(url,)),
    ]
    checks = KueueChecks(store, kueue, clock)
    gateways = Gateways([GatewaySettings(name="g", cluster="c", prometheus=url, depth="x")], clock)
    for number in range(len(kueue)):
        checks.poll(number)
    gateways.poll(0)
    rows = list(checks.listing().rows)
    # It lets us in, and is no Kueue.
    assert ["tells nothing of ClusterQueues" in row["error"] for row in rows] == [is_let_in] * 2
    passed_on = list(gateways.outside())
    assert len(passed_on) == is_let_in
    if is_let_in:
        assert metrics_page(url) == LINE  # of the targets of checkpoints too
    else:
        with pytest.raises(UnreachableError) as refused:
            metrics_page(url)
        assert "s3cret" not in str(refused.value)
    assert "s3cret" not in str([rows, passed_on, [vars(one) for one in caplog.records]])
    checks.close()
    gateways.close()
    store.close()


def test_the_settings_are_printed_without_passwords_in_any_address() -> None:
    settings = load_settings(
        overrides={
            "gpu_metrics": [
                {"cluster": "c", "exporters": ["http://me:s3cret@n1:9400"]},
                {"cluster": "c", "prometheus": "https://me:s3cret@prometheus/a@b"},
            ]
        }
    )
    shown = masked(settings)["gpu_metrics"]
    assert "s3cret" not in str(shown)
    assert shown[0]["exporters"] == ["http://********@n1:9400"]
    assert shown[1]["prometheus"] == "https://********@prometheus/a@b"
