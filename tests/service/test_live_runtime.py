"""A runtime that watches: from an object of a cluster to the API, without anything made up between."""

import threading
from pathlib import Path

import requests
import yaml

from service.runtime import Runtime
from service.settings_file import load_settings
from tests.collector_live.running import ASKS_EVERY_SECONDS, PODS, pod, until
from tests.collector_live.test_credentials import kubeconfig as kubeconfig_of
from tests.collector_live.test_credentials import plugin
from tests.fake_cluster import FakeCluster


def kubeconfig(folder: Path, url: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "north",
        "clusters": [{"name": "north", "cluster": {"server": url}}],
        "users": [{"name": "reader", "user": {"token": "none"}}],
        "contexts": [{"name": "north", "context": {"cluster": "north", "user": "reader"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def alerts(url: str) -> list[str]:
    rows = requests.get(f"{url}/api/v1/alerts", timeout=60).json()["rows"]
    return [row["alert"] for row in rows]


def test_a_pod_of_a_watched_cluster_reaches_the_api_and_all_ends_when_told(tmp_path: Path) -> None:
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        cluster.apply(PODS, pod("u1", node="n1"))
        settings = load_settings(
            overrides={
                "store.data_dir": tmp_path / "data",
                "server.port": 0,
                "schedule.measure_every_seconds": 1,
                "clusters": [{"name": "north", "kubeconfig": str(kubeconfig(tmp_path, cluster.url))}],
            }
        )
        with Runtime(settings) as runtime:

            def seen() -> list[str]:
                rows = requests.get(f"{runtime.url}/api/v1/workloads", timeout=60).json()["rows"]
                return [f"{row['uid']} {row['state']}" for row in rows]

            until(lambda: seen() == ["u1 starting"], pause=ASKS_EVERY_SECONDS)
            cluster.apply(PODS, pod("u2"))
            until(lambda: sorted(seen()) == ["u1 starting", "u2 placing"], pause=ASKS_EVERY_SECONDS)
            exposition = requests.get(f"{runtime.url}/metrics", timeout=60).text
            assert 'gpuledger_source_seen_timestamp_seconds{cluster="north",ledger="gpuledger"}' in exposition
            sources = requests.get(f"{runtime.url}/api/v1/sources", timeout=60).json()["rows"]
            # Every other kind is not served by this cluster: nothing to read, and nothing stale.
            assert [row["kind"] for row in sources if row["seen_at"]] == ["Pod"]
            assert [row["kind"] for row in sources if row["stale"]] == []
            depth = requests.get(f"{runtime.url}/api/v1/metrics/queue_depth_workloads", timeout=60).json()
            assert depth["coverage"] == 1.0
            # While a measurement takes its time, alerts about the ledger itself are evaluated all the same.
            with runtime._measuring:
                runtime.alarms.sound("disk_full", "make room")
                until(lambda: "GpuledgerAlarm" in alerts(runtime.url), pause=ASKS_EVERY_SECONDS)
    names = [thread.name for thread in threading.enumerate()]
    assert [name for name in names if name.startswith(("collector/", "north/", "api"))] == []


def test_a_plugin_that_fails_at_the_start_holds_up_nothing_but_its_cluster(tmp_path: Path) -> None:
    execute = plugin(tmp_path / "plugin", gives=None)
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        cluster.apply(PODS, pod("u1", node="n1"))
        file = kubeconfig_of(tmp_path / "kubeconfig", cluster.url, execute)
        settings = load_settings(
            overrides={
                "store.data_dir": tmp_path / "data",
                "server.port": 0,
                "clusters": [{"name": "north", "kubeconfig": str(file)}],
                "gpu_metrics": [{"cluster": "north", "discover": {"by": "pods"}, "step": "1s"}],
            }
        )
        with Runtime(settings) as runtime:

            def sources() -> dict[str, dict[str, str]]:
                rows = requests.get(f"{runtime.url}/api/v1/sources", timeout=60).json()["rows"]
                return {row["kind"]: row for row in rows}

            until(lambda: "its plug-in gave none" in sources().get("Pod", {}).get("last_error", ""))
            assert "mend the plug-in" in sources()["Pod"]["remedy"]
            plugin(tmp_path / "plugin", gives="new")
            until(lambda: bool(sources()["Pod"]["seen_at"]), pause=ASKS_EVERY_SECONDS)
        assert set(cluster.authorizations) == {"Bearer new"}


def test_a_site_that_reads_gpu_metrics_only_pauses_too_while_the_disk_is_full(tmp_path: Path) -> None:
    settings = load_settings(
        overrides={
            "store.data_dir": tmp_path / "data",
            "server.port": 0,
            "keeping.min_free": "1000000TB",
            # Nobody answers there, and a mark tells that somebody asked.
            "gpu_metrics": [{"cluster": "north", "exporters": ["http://127.0.0.1:1"], "step": "1s"}],
        }
    )
    with Runtime(settings) as runtime:
        until(lambda: "disk_full" in runtime.alarms.sounding())
        assert requests.get(f"{runtime.url}/readyz", timeout=60).status_code == 503
        assert runtime.store.sample_marks() == []
        runtime._collectors.room.reserved_bytes = 0
        until(lambda: len(runtime.store.sample_marks()) == 1)
        assert runtime.alarms.sounding() == {}
