"""The connection to an API server, against a real one on the loopback."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import urllib3
from kubernetes.client import Configuration

from collector.kube.client import Connection, LineStream
from collector.kube.discovery import discover
from collector.kube.watch_steps import Outcome
from collector.translator import find
from domain.errors import SettingsError, UnreachableError
from tests.fake_cluster import FakeCluster

PODS = "/api/v1/pods"
WORKLOADS = "/apis/kueue.x-k8s.io/{}/workloads"
WATCH = {"watch": "1", "resourceVersion": "100", "timeoutSeconds": "60"}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.serve(PODS)
        yield running


def connected(cluster: FakeCluster) -> Connection:
    return Connection(Configuration(host=cluster.url))


def outcome_of_workloads(cluster: FakeCluster) -> tuple[Outcome, str]:
    translator = find("kueue.x-k8s.io", "Workload")
    assert translator is not None
    answered = discover(connected(cluster), translator)
    return answered.outcome, answered.version


def test_a_kubeconfig_names_the_server_and_the_token(cluster: FakeCluster, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{cluster.url}"}}}}]
users: [{{name: u, user: {{token: secret}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
"""
    )
    answer = Connection.open(kubeconfig=path, context="here").get(PODS, {"limit": "500"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert cluster.authorizations == ["Bearer secret"]
    with pytest.raises(SettingsError, match=r"context elsewhere: .*--context"):
        Connection.open(kubeconfig=path, context="elsewhere")


def test_a_kubeconfig_that_is_not_there_is_a_settings_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing, context current: .*--kubeconfig"):
        Connection.open(kubeconfig=tmp_path / "missing")


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"GET http://127\.0\.0\.1:9/api/v1/pods: no answer"):
        Connection(Configuration(host="http://127.0.0.1:9")).get(PODS, {})


def test_a_silent_stream_is_given_up_after_its_time(cluster: FakeCluster) -> None:
    connection = connected(cluster)
    stream = connection.stream(PODS, WATCH, read_seconds=0.5)  # its head must come within that too
    with pytest.raises(UnreachableError, match="silent"):
        list(stream)
    connection.release(stream)


@dataclass
class _Pieces:
    """An answer in pieces, as they come from a socket."""

    pieces: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def stream(self, _: int) -> Iterator[bytes]:
        yield from self.pieces


def lines_of(*pieces: bytes) -> list[bytes]:
    return list(LineStream(cast("urllib3.BaseHTTPResponse", _Pieces(list(pieces))), "watch"))


def test_lines_are_given_whole_however_they_are_cut() -> None:
    text = "aé\n\n \nb\nccc\nd".encode()
    for step in range(1, len(text) + 1):
        pieces = [text[begin : begin + step] for begin in range(0, len(text), step)]
        assert lines_of(*pieces) == ["aé".encode(), b"b", b"ccc"]


def test_a_line_without_end_is_given_up() -> None:
    piece = bytes(1 << 20)
    with pytest.raises(UnreachableError, match=r"watch: a line of more than 67,108,864 bytes"):
        lines_of(*[piece] * 65)


def test_a_line_that_is_cut_off_is_not_given(cluster: FakeCluster) -> None:
    connection = connected(cluster)
    stream = connection.stream(PODS, WATCH, read_seconds=60)
    lines = iter(stream)
    cluster.send_line(PODS, b"whole")
    assert next(lines) == b"whole"
    cluster.cut_watches(PODS)
    with pytest.raises(UnreachableError):
        next(lines)
    connection.release(stream)


def test_closing_the_connection_wakes_a_reader_and_ends_all_use(cluster: FakeCluster) -> None:
    connection = connected(cluster)
    stream = connection.stream(PODS, WATCH, read_seconds=90)
    reading = threading.Event()

    def read() -> None:
        reading.set()
        with suppress(UnreachableError):
            list(stream)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert reading.wait(60)
    connection.close()
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(UnreachableError, match="closed"):
        connection.get(PODS, {})


def test_the_newer_of_two_served_versions_is_read(cluster: FakeCluster) -> None:
    cluster.serve(WORKLOADS.format("v1beta1"))
    assert outcome_of_workloads(cluster) == (Outcome.FOUND, "v1beta1")
    cluster.serve(WORKLOADS.format("v1beta2"))
    assert outcome_of_workloads(cluster) == (Outcome.FOUND, "v1beta2")


def test_a_kind_is_absent_when_its_group_or_its_crd_is(cluster: FakeCluster) -> None:
    assert outcome_of_workloads(cluster) == (Outcome.NOT_INSTALLED, "")
    cluster.serve("/apis/kueue.x-k8s.io/v1beta2/cohorts")
    assert outcome_of_workloads(cluster) == (Outcome.NOT_INSTALLED, "")
