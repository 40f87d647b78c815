"""Where exporters are found: pods and endpoints, page by page, and while the API server is away."""

import json
from typing import Any

import pytest
from kubernetes.client import Configuration

from collector.dcgm.discovery import Asked, By, discover, exporters_in
from collector.kube.client import Connection
from service.gpu_faults import GpuFaults
from service.gpu_metrics_settings import GpuMetricsSettings
from service.scraping import Scraper
from store.embedded import Store
from tests.collector_live.running import PODS as PODS_PATH
from tests.collector_live.running import HandClock
from tests.fake_cluster import FakeCluster
from tests.service.test_scraping import CLUSTER, Exporters, serving

PODS = {
    "kind": "PodList",
    "metadata": {"resourceVersion": "7"},
    "items": [
        {
            "metadata": {"name": "dcgm-a"},
            "spec": {
                "nodeName": "gpu-1",
                "containers": [
                    {"ports": [{"name": "health", "containerPort": 81}]},
                    {"ports": [{"name": "metrics", "containerPort": 9400}]},
                ],
            },
            "status": {"phase": "Running", "podIP": "10.0.0.7"},
        },
        {
            "spec": {"nodeName": "gpu-2", "containers": [{}]},
            "status": {"phase": "Running", "podIP": "fd00::7"},
        },
        {"spec": {"nodeName": "gpu-3"}, "status": {"phase": "Pending"}},
        # One that was evicted keeps its address, which may be another pod's by now.
        {
            "spec": {"nodeName": "gpu-4", "containers": [{"ports": [{"containerPort": 9400}]}]},
            "status": {"phase": "Failed", "podIP": "10.0.0.10"},
        },
    ],
}
SLICES = {
    "kind": "EndpointSliceList",
    "metadata": {"resourceVersion": "7"},
    "items": [
        {
            "addressType": "IPv4",
            "ports": [{"name": "metrics", "port": 9400}],
            "endpoints": [
                {"addresses": ["10.0.0.7"], "nodeName": "gpu-1", "conditions": {"ready": True}},
                {"addresses": ["10.0.0.8"], "nodeName": "gpu-2", "conditions": {"ready": False}},
                {"addresses": ["10.0.0.9"], "nodeName": "gpu-3"},
            ],
        },
        {
            "addressType": "FQDN",
            "ports": [{"name": "metrics", "port": 9400}],
            "endpoints": [{"addresses": ["dcgm.example"]}],
        },
        {"addressType": "IPv4", "ports": None, "endpoints": None},
    ],
}


@pytest.mark.parametrize(
    ("by", "port", "body", "expected"),
    [
        (By.PODS, 0, PODS, [("http://10.0.0.7:9400", "gpu-1")]),
        (By.PODS, 9500, PODS, [("http://10.0.0.7:9500", "gpu-1"), ("http://[fd00::7]:9500", "gpu-2")]),
        (By.SERVICES, 0, SLICES, [("http://10.0.0.7:9400", "gpu-1"), ("http://10.0.0.9:9400", "gpu-3")]),
    ],
)
def test_exporters_are_the_pods_that_run_and_the_endpoints_that_are_ready(
    by: By, port: int, body: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    found = exporters_in([json.dumps(body).encode()], Asked(by=by, namespace="", selector="a=b", port=port))
    assert [(one.url, one.node) for one in found] == expected


@pytest.mark.parametrize("in_order", [1, -1])
def test_an_exporter_with_addresses_of_two_families_is_asked_once(in_order: int) -> None:
    def of(family: str, port: int, **addresses: str) -> bytes:
        endpoints = [
            {"addresses": [address], "nodeName": "gpu-1", "targetRef": {"kind": "Pod", "uid": uid}}
            for uid, address in addresses.items()
        ]
        one = {"addressType": family, "ports": [{"name": "metrics", "port": port}], "endpoints": endpoints}
        return json.dumps({"kind": "EndpointSliceList", "items": [one]}).encode()

    pages = [
        of("IPv6", 9400, both="fd00::1", only_6="fd00::2"),
        of("IPv4", 9400, both="10.0.0.1", only_4="10.0.0.3"),
        of("IPv4", 9500, both="10.0.0.1"),  # another exporter in the same pod
    ]
    asked = Asked(by=By.SERVICES, namespace="", selector="a=b", port=0)
    assert [one.url for one in exporters_in(pages[::in_order], asked)] == [
        "http://10.0.0.1:9400",
        "http://10.0.0.1:9500",
        "http://10.0.0.3:9400",
        "http://[fd00::2]:9400",
    ]


def exporter_pod(port: int, uid: str = "u-1") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"dcgm-{uid}", "namespace": "gpu", "uid": uid},
        "spec": {
            "nodeName": "gpu-1",
            "containers": [{"ports": [{"name": "metrics", "containerPort": port}]}],
        },
        "status": {"phase": "Running", "podIP": "127.0.0.1"},
    }


def test_the_exporters_of_every_page_are_found_each_once() -> None:
    with FakeCluster(page_limit=1) as cluster:
        cluster.serve(PODS_PATH)
        for number, port in enumerate((9402, 9400, 9401, 9400)):
            cluster.apply(PODS_PATH, exporter_pod(port, f"u-{number}"))
        asked = Asked(by=By.PODS, namespace="", selector="app=dcgm", port=0)
        found = discover(Connection(Configuration(host=cluster.url)), asked)
    assert [one.url for one in found] == [f"http://127.0.0.1:{port}" for port in (9400, 9401, 9402)]
    assert {query["labelSelector"] for query in cluster.asked(PODS_PATH, watch=False)} == {"app=dcgm"}


def test_exporters_are_discovered_and_asked_on_while_the_api_server_is_away() -> None:
    store, clock = Store.open(None), HandClock()
    settings = GpuMetricsSettings.model_validate({"cluster": CLUSTER, "discover": {"by": "pods"}})
    with serving(Exporters()) as server, FakeCluster() as cluster:
        cluster.serve(PODS_PATH)
        connection = Connection(Configuration(host=cluster.url))
        one = Scraper(settings, store, clock, faults=GpuFaults(store, CLUSTER), connection=lambda: connection)
        assert one.round() == 0
        assert "no exporter was found" in str(store.sample_marks()[0]["last_error"])
        cluster.apply(PODS_PATH, exporter_pod(server.port))
        clock.at_ms += 59_000
        assert one.round() == 0  # it looks once a minute
        clock.at_ms += 1_000
        assert one.round() == 1
        assert [mark["source"] for mark in store.sample_marks()] == [f"exporter/127.0.0.1:{server.port}"]
        assert [row["node"] for row in store.rows("select node from gpu_sample")] == ["gpu-1"]
        cluster.forbid(PODS_PATH)
        clock.at_ms += 60_000
        assert one.round() == 1
        away = {str(mark["source"]): str(mark["last_error"]) for mark in store.sample_marks()}[
            "discovery/pods"
        ]
        assert "exporters were not looked for" in away
        one.close()
    store.close()


def test_exporters_are_looked_for_also_after_a_clock_that_was_ahead_is_set_right() -> None:
    store, clock = Store.open(None), HandClock()
    settings = GpuMetricsSettings.model_validate({"cluster": CLUSTER, "discover": {"by": "pods"}})
    with serving(Exporters()) as server, FakeCluster() as cluster:
        cluster.serve(PODS_PATH)
        connection = Connection(Configuration(host=cluster.url))
        clock.at_ms += 86_400_000
        one = Scraper(settings, store, clock, faults=GpuFaults(store, CLUSTER), connection=lambda: connection)
        assert one.round() == 0
        cluster.apply(PODS_PATH, exporter_pod(server.port))
        clock.at_ms -= 86_400_000
        assert one.round() == 1
        one.close()
    store.close()
