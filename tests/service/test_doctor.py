"""Each kind of trouble becomes a sentence of `doctor`, with what to do about it."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import sleep
from typing import Any

import polars as pl
import pytest
import yaml
from typing_extensions import override

from collector.imports.keeping import Keeper as JobKeeper
from collector.imports.row import Ending, JobRow
from collector.intake import Intake
from collector.kube.client import Connection
from collector.translator import TRANSLATORS
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, SystemClock, format_instant
from service.books import books_of
from service.cli import doctor_clusters
from service.cli.doctor import examine
from service.cli.finding import Finding, Verdict
from service.keeping import Keeper
from service.settings import ClusterSettings, Settings
from service.settings_file import load_settings
from store.embedded import Store
from store.gpu_samples import Read
from tests.build import at
from tests.collector_live.running import HandClock
from tests.collector_live.test_credentials import token
from tests.fake_cluster import FakeCluster
from tests.service.test_activity import COLUMNS, sample
from tests.service.test_live_runtime import kubeconfig

KIND = {str(kind.kind): kind for kind in TRANSLATORS}
DAY_SECONDS = 86_400


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        yield cluster


def found(file: Path, clock: HandClock | SystemClock) -> list[Finding]:
    return list(doctor_clusters.findings(ClusterSettings(name="north", kubeconfig=file), clock))


def with_token(file: Path, written: str) -> Path:
    config = yaml.safe_load(file.read_text())
    config["users"][0]["user"] = {"token": written}
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.mark.parametrize(
    ("left_days", "verdict", "says"),
    [
        (20, None, ""),
        (3, Verdict.WARNING, "the token ends in 3 d"),
        (-2, Verdict.WRONG, "the token ended 2 d"),
    ],
)
def test_a_token_that_ends_is_told_in_days(
    left_days: int, verdict: Verdict | None, says: str, cluster: FakeCluster, tmp_path: Path
) -> None:
    # Half an hour more, so that the test's own seconds change no figure.
    now = SystemClock().now_ms() // 1000
    end = now + left_days * DAY_SECONDS + (1800 if left_days > 0 else -1800)
    file = with_token(kubeconfig(tmp_path, cluster.url), token(iat=end - 90 * DAY_SECONDS, exp=end))
    told = found(file, SystemClock())
    if verdict is None:
        assert told == []
        return
    [one] = told
    assert (one.verdict, says in one.text, "renew it" in one.remedy) == (verdict, True, True), one
    assert format_instant(end * 1000) in one.text


def test_a_pods_own_token_is_not_renewed_in_a_kubeconfig(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SystemClock().now_ms() // 1000
    file = with_token(kubeconfig(tmp_path, cluster.url), token(iat=now - DAY_SECONDS, exp=now + 1800))
    opened = Connection.open
    # A pod finds its credentials where no test may write; all but where they lie is the same.
    monkeypatch.setattr(Connection, "open", lambda **_given: opened(kubeconfig=file))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    for given, says in ((None, "the kubelet of the pod's node"), (file, "renew it in the kubeconfig")):
        [one] = doctor_clusters.findings(ClusterSettings(name="north", kubeconfig=given), SystemClock())
        assert one.remedy.startswith(says)
        assert ("kubeconfig" in one.remedy) is (given is not None)


def test_clocks_that_differ_are_told_with_by_how_much(cluster: FakeCluster, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, cluster.url)
    now_ms = SystemClock().now_ms()
    [behind] = found(file, HandClock(now_ms + 3_690_000))
    assert "the API server's clock is 1 h 1 m behind ours" in behind.text
    [ahead] = found(file, HandClock(now_ms - 7_290_000))
    assert "the API server's clock is 2 h 1 m ahead of ours" in ahead.text
    assert "NTP" in ahead.remedy
    assert found(file, SystemClock()) == []


def test_a_cluster_that_cannot_be_reached_and_a_wrong_kubeconfig_are_told(tmp_path: Path) -> None:
    with FakeCluster() as cluster:
        file = kubeconfig(tmp_path, cluster.url)
    [away] = found(file, SystemClock())
    assert (away.verdict, "no answer" in away.text) == (Verdict.WRONG, True)
    [wrong] = found(tmp_path / "none", SystemClock())
    assert (wrong.verdict, wrong.remedy) == (Verdict.WRONG, "mend clusters in the settings")


class Answering(BaseHTTPRequestHandler):
    """Answers everything alike."""

    status, body, pause = 200, b"", 0.0

    def do_GET(self) -> None:
        sleep(self.pause)
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def told_by(file: Path, **answer: object) -> Finding:
    """What is found at a server that answers so."""
    handler = type("Handler", (Answering,), answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        scheme = "https" if answer.get("tls") else "http"
        [one] = found(kubeconfig(file, f"{scheme}://127.0.0.1:{server.server_port}"), SystemClock())
        server.shutdown()
        thread.join()
    return one


def status(code: int, message: str) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "message": message}).encode()


ANONYMOUS = 'forbidden: User "system:anonymous" cannot get path "/version"'
REFUSED = 'forbidden: User "system:serviceaccount:a:b" cannot get path "/version"'


@pytest.mark.parametrize(
    ("answer", "verdict", "says", "do"),
    [
        ({"status": 401, "body": status(401, "Unauthorized")}, Verdict.WRONG,
         "answered 401: Unauthorized: the token or certificate of the kubeconfig is refused",
         "kubectl create token"),
        ({"status": 403, "body": status(403, ANONYMOUS)}, Verdict.WRONG, "takes us for nobody",
         "put a new token"),
        ({"status": 403, "body": status(403, REFUSED)}, Verdict.WARNING, "answered 403",
         "system:public-info-viewer"),
        ({"status": 200, "body": b"<html><body>Please log in"}, Verdict.WRONG,
         "is no API server: '<html><body>Please log in'", "a proxy or a login page"),
        ({"status": 200, "body": b"{}"}, Verdict.WRONG, "is no API server: '{}'", "look at the API server"),
        ({"status": 302, "body": b""}, Verdict.WRONG, "answered 302", "a proxy or a login page"),
        ({"status": 400, "body": b"Client sent an HTTP request to an HTTPS server."}, Verdict.WRONG,
         "answered 400: Client sent an HTTP request", "write https://"),
        ({"status": 503, "body": status(503, "etcd")}, Verdict.WRONG, "answered 503: etcd",
         "look at its log"),
        ({"tls": True}, Verdict.WRONG, "no answer (SSLError", "speaks no TLS"),
        ({"pause": 1.0}, Verdict.WRONG, "was silent for too long", "the connection died"),
    ],
)  # fmt: skip
def test_who_answers_in_the_api_servers_place_and_how_is_told(
    answer: dict[str, object], verdict: Verdict, says: str, do: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(doctor_clusters, "_ASK_SECONDS", 0.2)
    one = told_by(tmp_path, **answer)
    assert one.verdict is verdict
    assert says in one.text
    assert do in one.remedy
    assert "trying again" not in one.text


def test_a_name_that_nobody_knows_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    [one] = found(kubeconfig(tmp_path, "https://api.nowhere.invalid"), SystemClock())
    assert (one.verdict, "DNS" in one.remedy) == (Verdict.WRONG, True), one


def node(name: str, gpus: str) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": gpus} if gpus else {}
    return {
        "metadata": {
            "uid": name,
            "name": name,
            "resourceVersion": "1",
            "creationTimestamp": format_instant(at(0)),
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def filled(file: Path, *, priorities: tuple[str, ...]) -> None:
    """Four nodes, of which one has no GPUs and one no exporter; the samples lack two fields."""
    store = Store.open(file)
    intake = Intake("north", store, store.known("north"))
    for name, gpus in (("n1", "8"), ("n2", "8"), ("cpu", "")):
        intake.see(KIND["Node"], "ADDED", node(name, gpus), at(1))
    classes = [
        {"metadata": {"uid": name, "name": name, "resourceVersion": "1"}, "value": 5} for name in priorities
    ]
    for body in classes:
        intake.see(KIND["PriorityClass"], "ADDED", body, at(1))
    pod = {"metadata": {"uid": "p", "name": "p", "namespace": "n", "resourceVersion": "1",
                        "creationTimestamp": format_instant(at(0))}}  # fmt: skip
    intake.see(KIND["Pod"], "ADDED", pod, at(59))
    intake.flush()
    rows = [sample(0, 0.5) | {"at_ms": at(59), "node": "n1", "engine": False, "memory_mib": None}]
    frame = pl.DataFrame(rows, schema=COLUMNS)
    store.append_samples("north", "exporter/n1", frame, Read(until_ms=at(60), seen_ms=at(60), error=""))
    clock = FixedClock(at(60))
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).lives_of("north")
    store.close()


@pytest.mark.parametrize("priorities", [("system-node-critical",), ("system-node-critical", "batch")])
def test_gaps_in_what_exporters_and_priority_classes_tell_are_told(
    priorities: tuple[str, ...], tmp_path: Path
) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path})
    filled(settings.store_file, priorities=priorities)
    gaps = {each.text: each.remedy for each in examine(settings) if each.text.startswith("cluster north: ")}
    alone = "there is no priority class beside Kubernetes' own"
    assert any(alone in text for text in gaps) is (len(priorities) == 1)
    expected = {
        "no exporter tells of 1 node (n2 for 59 m 1 s), of 2 with GPUs": "DaemonSet",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE is missing on 1 node (n1)": "profiling metrics",
        "DCGM_FI_DEV_FB_USED is missing on 1 node (n1)": "add DCGM_FI_DEV_FB_USED",
    }
    told = {text: remedy for text, remedy in gaps.items() if alone not in text}
    assert len(told) == len(expected)
    for text, remedy in expected.items():
        [key] = [key for key in told if text in key]
        assert remedy in told[key]


def test_what_the_cluster_does_not_have_is_no_finding_and_what_is_refused_is_one(tmp_path: Path) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path})
    store = Store.open(settings.store_file)
    intake = Intake("north", store, store.known("north"))
    intake.troubled(KIND["RayJob"], "not_installed: the cluster does not serve rayjobs.ray.io in v1", at(1))
    intake.troubled(KIND["Node"], "no_permission: list /api/v1/nodes: the API server answered 403", at(1))
    intake.flush()
    store.close()
    told = [each.text for each in examine(settings) if "north/" in each.text]
    assert [text.partition(" ")[0] for text in told] == ["north/Node"]


def left_behind(settings: Settings, *, days: float) -> None:
    """Clusters of which kinds were read last so long ago, and one whose jobs came from a table."""
    ago = SystemClock().now_ms() - round(days * DAY_SECONDS * 1000)
    store = Store.open(settings.store_file)
    for name, kinds in (("north", ("Pod", "Node")), ("gone", ("Pod", "Node"))):
        intake = Intake(name, store, store.known(name))
        for kind in kinds:
            intake.relisted(KIND[kind], [], "5", ago)
        intake.flush()
    rows = [JobRow(line=1, job="1", submit_ms=ago, eligible_ms=ago, start_ms=ago, end_ms=ago + 1,
                   ending=Ending.SUCCEEDED)]  # fmt: skip
    JobKeeper("slurm", store, source="jobs.txt", now_ms=ago).keep(rows)
    store.close()


@pytest.mark.parametrize(("days", "names_it"), [(0.1, False), (3.0, True)])
def test_a_cluster_that_may_be_gone_for_good_is_told_to_be_retired(
    days: float, tmp_path: Path, *, names_it: bool
) -> None:
    with FakeCluster() as away:
        file = kubeconfig(tmp_path, away.url)
    settings = load_settings(
        overrides={
            "store.data_dir": tmp_path / "data",
            "clusters": [{"name": "north", "kubeconfig": str(file)}],
        }
    )
    left_behind(settings, days=days)
    told = [each for each in examine(settings) if "was last read" in each.text]
    # One of the settings, kind by kind; one that is in none, once; of an imported one nothing is expected.
    assert [(each.text.split()[0], each.verdict) for each in told] == [
        ("north/Node", Verdict.WRONG),
        ("north/Pod", Verdict.WRONG),
        ("cluster", Verdict.WARNING),
    ]
    assert ["gpuledger retire north" in each.remedy for each in told[:2]] == [names_it] * 2
    assert "cluster gone is in no setting, and was last read" in told[2].text
    assert "gpuledger retire gone" in told[2].remedy


def test_a_cluster_that_was_retired_is_no_finding(tmp_path: Path) -> None:
    settings = load_settings(
        overrides={
            "store.data_dir": tmp_path / "data",
            "clusters": [{"name": "north", "kubeconfig": str(kubeconfig(tmp_path, "http://127.0.0.1:9"))}],
        }
    )
    left_behind(settings, days=3.0)
    store = Store.open(settings.store_file)
    Keeper(settings, store).retire("gone")
    store.close()
    assert not [each for each in examine(settings) if "cluster gone" in each.text]


def test_a_serve_that_answers_something_else_is_a_finding(tmp_path: Path) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path})
    handler = type("Handler", (Answering,), {"body": b"<html>"})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings.serve_file.write_text(json.dumps({"url": url, "pid": 1}))
        told = [each for each in examine(settings) if "does not tell its sources" in each.text]
        server.shutdown()
        thread.join()
    assert [each.verdict for each in told] == [Verdict.WRONG]


def test_a_disk_below_what_is_kept_free_is_wrong_and_says_that_nothing_is_read(tmp_path: Path) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path, "keeping.min_free": "900TB"})
    [full] = [each for each in examine(settings) if "less than keeping.min_free" in each.text]
    assert (full.verdict, "make room" in full.remedy) == (Verdict.WRONG, True)
