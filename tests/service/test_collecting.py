"""The collectors of a service: what stops them for a while, and that they go on by themselves."""

import socket
import threading
from pathlib import Path
from time import monotonic

import pytest

from collector.kube.client import Connection
from domain.errors import ProductError, SettingsError
from service.alarms import Alarms
from service.collecting import Collectors
from service.keeping import forgotten_names
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import PATIENCE_SECONDS, PODS, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig

# A question that is not answered is given up after so long.
READ_SECONDS = 60.0


def settings_in(folder: Path, url: str) -> Settings:
    return load_settings(
        overrides={
            "store.data_dir": folder / "data",
            "keeping.min_free": "1MB",
            "clusters": [{"name": "north", "kubeconfig": str(kubeconfig(folder, url))}],
        }
    )


def test_what_cannot_be_opened_after_a_pause_is_tried_again(tmp_path: Path) -> None:
    failures: list[ProductError] = []
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        settings = settings_in(tmp_path, cluster.url)
        store, alarms = Store.open(settings.store_file), Alarms()
        collectors = Collectors(
            settings, store, alarms=alarms, forgotten=forgotten_names(settings), failed=failures.append
        )
        collectors.start()
        until(lambda: cluster.open_watches(PODS) == 1)
        file = tmp_path / "kubeconfig"
        written = file.read_text()
        with collectors.paused():
            file.unlink()
        until(lambda: "kubeconfig" in alarms.why_not_ready())
        asked = len(cluster.requests)
        file.write_text(written)
        until(lambda: PODS in {path for path, _ in cluster.requests[asked:]})
        assert (alarms.sounding(), failures) == ({}, [])
        collectors.stop()
        store.close()


def test_a_wrong_kubeconfig_is_told_at_the_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "http://127.0.0.1:1")
    (tmp_path / "kubeconfig").write_text("users: [")
    store = Store.open(None)
    collectors = Collectors(
        settings, store, alarms=Alarms(), forgotten=forgotten_names(settings), failed=lambda _: None
    )
    with pytest.raises(SettingsError, match="kubeconfig"):
        collectors.start()


def test_a_server_that_is_silent_at_the_start_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = settings_in(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        store = Store.open(settings.store_file)
        collectors = Collectors(
            settings, store, alarms=Alarms(), forgotten=forgotten_names(settings), failed=lambda _: None
        )
        collectors.start()
        with silent.accept()[0] as asked:
            assert asked.recv(100).startswith(b"GET /api/v1/namespaces/kube-system")
            began = monotonic()
            collectors.stop()
            assert monotonic() - began < READ_SECONDS / 2
        store.close()


def test_a_fault_of_ours_in_a_reader_is_told_and_not_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[ProductError] = []
    failed = threading.Event()

    def fail(error: ProductError) -> None:
        failures.append(error)
        failed.set()

    def stumble(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Connection, "get", stumble)
    settings = settings_in(tmp_path, "http://127.0.0.1:1")
    store = Store.open(settings.store_file)
    collectors = Collectors(
        settings, store, alarms=Alarms(), forgotten=forgotten_names(settings), failed=fail
    )
    collectors.start()
    assert failed.wait(PATIENCE_SECONDS)
    assert "cluster north: reading ended by a fault of ours, ZeroDivisionError" in str(failures[0])
    collectors.stop()
    store.close()
