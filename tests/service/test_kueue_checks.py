"""Kueue's own figures beside ours: what is compared, when a difference is told, and where."""

import lzma
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from typing_extensions import override

from analytics.kueue_check import Figure, theirs_of
from domain.errors import SettingsError
from domain.window import FixedClock
from service.cli.doctor import kueue_findings
from service.cli.finding import Verdict
from service.gateways import Gateways
from service.kueue_checks import KueueChecks, ours_of, series_in
from service.outside_settings import GatewaySettings, KueueMetricsSettings
from service.runtime import Runtime
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import ASKS_EVERY_SECONDS, until
from tests.golden.cases import fill
from tests.shared import shared

TEXT = """\
# TYPE kueue_pending_workloads gauge
kueue_pending_workloads{cluster_queue="main",replica_role="leader",status="active"} 7
kueue_pending_workloads{cluster_queue="main",replica_role="follower",status="active"} 7
kueue_pending_workloads{cluster_queue="main",replica_role="leader",status="inadmissible"} 5
kueue_cluster_queue_resource_reservation{cluster_queue="main",flavor="a100",resource="nvidia.com/gpu"} 16
kueue_cluster_queue_resource_reservation{cluster_queue="main",flavor="a100",resource="cpu"} 900
kueue_cluster_queue_resource_usage{cluster_queue="main",flavor="a100",resource="nvidia.com/gpu"} 8
kueue_cluster_queue_weighted_share{cluster_queue="main"} NaN
kueue_admission_wait_time_seconds_sum{cluster_queue="main",priority_class="gold"} 30
kueue_admission_wait_time_seconds_count{cluster_queue="main",priority_class="gold"} 2
kueue_admission_wait_time_seconds_sum{cluster_queue="main",priority_class=""} 30
kueue_admission_wait_time_seconds_count{cluster_queue="main",priority_class=""} 4
"""
NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z


def test_replicas_count_once_and_only_whole_gpus_are_comparable() -> None:
    assert theirs_of(series_in(TEXT)) == {
        Figure.PENDING: {("main", ""): 12.0},
        Figure.RESERVED: {("main", "a100"): 16.0},
        Figure.ADMISSION_WAIT: {("main", ""): 10.0},
    }


@pytest.fixture
def store() -> Iterator[Store]:
    """Two workloads wait in the queue, one of them without GPUs; one holds 16 reserved GPUs."""
    made = Store.open(None)
    fill(
        made,
        {
            "workload": [
                {"workload_uid": "a"},
                {"workload_uid": "b", "requested_gpus": 0},
                {"workload_uid": "c"},
            ],
            "span": [
                {"workload_uid": "a", "state": "queued", "start_ms": NOON - 1, "end_ms": None},
                {"workload_uid": "b", "state": "queued", "start_ms": NOON - 1, "end_ms": NOON},
                {"workload_uid": "c", "state": "queued", "start_ms": NOON - 9, "end_ms": NOON - 1},
            ],
            "reservation": [
                {"workload_uid": "c", "gpus": 16, "start_ms": NOON - 1, "end_ms": None},
                {"workload_uid": "a", "gpus": 4, "start_ms": NOON - 9, "end_ms": NOON - 1},
            ],
        },
    )
    yield made
    made.close()


def test_ours_are_those_of_the_same_instant(store: Store) -> None:
    ours = ours_of(store, "east", NOON)
    assert (ours[Figure.PENDING], ours[Figure.RESERVED]) == ({("main", ""): 2.0}, {("main", "a100"): 16.0})


def test_a_difference_is_told_when_it_stays(store: Store) -> None:
    settings = KueueMetricsSettings(cluster="east", targets=("http://kueue:8080",), times=2)
    checks = KueueChecks(store, [settings], FixedClock(NOON))
    ours = ours_of(store, "east", NOON)
    told = []
    for text in (TEXT, TEXT, TEXT.replace(" 7", " 2").replace(" 5", " 0"), TEXT):
        checks.take(0, list(series_in(text)), ours, NOON)
        told.append([row["figure"] for row in checks.listing().rows if row["differs"]])
    assert told == [[], ["pending workloads"], [], []]
    rows = {row["figure"]: (row["theirs"], row["ours"]) for row in checks.listing().rows}
    assert rows["pending workloads"] == (12.0, 2.0)
    assert rows["GPUs reserved"] == (16.0, 16.0)


def test_our_wait_for_admission_is_that_of_the_first_admission(store: Store) -> None:
    placed = {"workload_uid": "d", "first_placed_ms": NOON - 1_000}
    wait = {"workload_uid": "d", "state": "queued"}
    again = {"start_ms": NOON - 900, "end_ms": NOON - 300, "first_wait": False}
    spans = [wait | {"start_ms": NOON - 31_000, "end_ms": NOON - 1_000, "first_wait": True}, wait | again]
    fill(store, {"workload": [placed], "span": spans})
    assert ours_of(store, "east", NOON)[Figure.ADMISSION_WAIT] == {("main", ""): 30.0}


def test_a_source_that_does_not_answer_says_why() -> None:
    settings = KueueMetricsSettings(cluster="east", targets=("http://127.0.0.1:9",))
    store = Store.open(None)
    checks = KueueChecks(store, [settings], FixedClock(NOON))
    checks.poll(0)
    (row,) = checks.listing().rows
    assert (row["seen_at"], row["figure"], row["differs"]) == (None, "", False)
    assert "http://127.0.0.1:9/metrics gave no answer" in row["error"]
    store.close()


def test_the_doctor_says_what_lies_apart_and_what_agrees(store: Store) -> None:
    settings = KueueMetricsSettings(cluster="east", targets=("http://kueue:8080",), times=1)
    checks = KueueChecks(store, [settings], FixedClock(NOON))
    checks.take(0, list(series_in(TEXT)), ours_of(store, "east", NOON), NOON)
    (finding,) = kueue_findings(list(checks.listing().rows))
    assert finding.verdict is Verdict.WARNING
    assert "pending workloads of ClusterQueue main in east: Kueue says 12, we say 2" in finding.text
    agreeing = {Figure.PENDING: {("main", ""): 11.0}, Figure.RESERVED: {("main", "a100"): 16.0}}
    checks.take(0, list(series_in(TEXT)), agreeing, NOON)
    (finding,) = kueue_findings(list(checks.listing().rows))
    assert finding.verdict is Verdict.OK
    checks.take(0, [], agreeing, NOON)
    (finding,) = kueue_findings(list(checks.listing().rows))
    assert "it tells nothing of ClusterQueues" in finding.text
    assert list(kueue_findings([])) == []


class _Site(BaseHTTPRequestHandler):
    """Kueue's `/metrics`, and a Prometheus that knows two series and refuses the third."""

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        answer = '{"status":"success","data":{"resultType":"vector","result":[%s]}}'
        series = '{"metric":{"pod":"%s"},"value":[1,"%s"]}'
        if "query=depth" in self.path:
            text = answer % ",".join([series % ("a", "3"), series % ("b", "4")])
        elif "query=nothing" in self.path:
            text = answer % ""
        else:
            text = TEXT
        self.send_response(400 if "query=wrong" in self.path else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_gateway_is_passed_on_with_its_source_and_what_it_does_not_say_is_not_zero(site: str) -> None:
    settings = GatewaySettings(
        name="chat", cluster="east", prometheus=site, depth="depth", too_many_requests="nothing", shed="wrong"
    )
    gateways = Gateways([settings], FixedClock(NOON))
    gateways.poll(0)
    (told,) = gateways.outside()
    assert (told.name, told.value) == ("gateway_depth_requests", 7.0)
    assert told.labels == {"cluster": "east", "gateway": "chat", "source": site}
    gateways.close()


def test_a_running_service_compares_and_passes_on(site: str, tmp_path: Path) -> None:
    settings = load_settings(
        overrides={
            "store.data_dir": tmp_path / "data",
            "server.port": 0,
            "kueue_metrics": [{"cluster": "east", "targets": [site], "every": "1s"}],
            "gateways": [
                {"name": "chat", "cluster": "east", "prometheus": site, "depth": "depth", "every": "1s"}
            ],
        }
    )
    with Runtime(settings) as runtime:

        def rows() -> list[dict[str, object]]:
            reply = requests.get(f"{runtime.url}/api/v1/kueue-checks", timeout=60)
            return [row for row in reply.json()["rows"] if row["figure"] == "pending workloads"]

        until(lambda: bool(rows()), pause=ASKS_EVERY_SECONDS)
        assert [(row["theirs"], row["ours"]) for row in rows()] == [(12.0, None)]
        shown = f'gpuledger_gateway_depth_requests{{cluster="east",gateway="chat",source="{site}"}} 7.0'
        until(
            lambda: shown in requests.get(f"{runtime.url}/metrics", timeout=60).text, pause=ASKS_EVERY_SECONDS
        )


def test_settings_name_one_source() -> None:
    with pytest.raises(SettingsError, match="either prometheus, an address, or targets"):
        load_settings(overrides={"kueue_metrics": [{"cluster": "a"}]})


@pytest.mark.recordings
def test_the_recorded_metrics_of_kueue_are_read() -> None:
    data = lzma.decompress(shared("data/recorded/city/kueue.metrics.txt.xz").read_bytes())
    # The first scrape of the recording.
    text = data[: data.index(b"#scrape", 10)].decode()
    theirs = theirs_of(series_in(text))
    assert theirs[Figure.RESERVED]["ads", "a100"] == 40.0
    assert set(theirs[Figure.PENDING]) >= {("ads", ""), ("nlp", ""), ("search", ""), ("vision", "")}
