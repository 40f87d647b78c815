"""A kind that may not be read: the rest works, and API, probe, doctor and page say what is missing."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
import streamlit as st
from streamlit.testing.v1 import AppTest

from analytics.metrics import REGISTRY
from api.answers import Question, ReportQuestion, SourceState
from api.readiness import verbose
from api.reports import REPORTS
from api.reports.report import made
from collector.translator import TRANSLATORS, Translator
from dashboard.shared import data
from dashboard.shared.frame import refused_sentence
from dashboard.shared.launch import APP
from domain.facts import Batch, ObjectKind, SourceMark
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service import features, refusals
from service.answers import Answers
from service.cli.doctor import examine, source_findings
from service.cli.finding import Verdict
from service.runtime import Runtime
from service.settings_file import load_settings
from store.embedded import Store
from tests.build import at
from tests.collector_live.account import serve_all
from tests.collector_live.running import ASKS_EVERY_SECONDS, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig


@pytest.mark.parametrize("kind", TRANSLATORS, ids=lambda kind: kind.kind)
def test_of_each_kind_it_is_told_what_cannot_be_told_without_it_and_what_to_grant(kind: Translator) -> None:
    error = f"no_permission: list /{kind.resource}: the API server answered 403: forbidden"
    marks = {
        one.kind: SourceMark(
            kind=one.kind,
            resource_version="1",
            epoch=0,
            seen_ms=0 if one is kind else at(60),
            last_error=error if one is kind else "",
        )
        for one in TRANSLATORS
    }
    store = Store.open(None)
    store.append(Batch(cluster="north", marks=marks))
    rows = Answers(store, Tenancy(), Policy(), FixedClock(at(60))).sources().rows
    store.close()
    [lacking] = [row for row in rows if row["missing"] or row["remedy"]]
    assert (lacking["kind"], lacking["state"]) == (kind.kind, SourceState.NOT_PERMITTED)
    assert lacking["missing"] == features.MISSING[kind.kind]
    group = f"API group {kind.group}" if kind.group else "the core API group"
    assert f"grant get, list and watch of {kind.resource} of {group}" in lacking["remedy"]
    assert lacking["missing"] in refused_sentence([lacking])
    [line] = [line for line in verbose(rows).splitlines() if line.startswith("[-]")]
    found = [each for each in source_findings(list(rows), load_settings()) if each.verdict != Verdict.OK]
    [finding] = found
    assert finding.remedy == lacking["remedy"]
    for told in (line, finding.text):
        assert "403: forbidden" in told
        assert lacking["missing"] in told


@pytest.fixture(scope="module")
def without() -> Iterator[Callable[[ObjectKind], Answers]]:
    """Answers from a store whose cluster north may not read a kind, and south may read all."""
    stores: list[Store] = []

    def of(kind: ObjectKind) -> Answers:
        store = Store.open(None)
        stores.append(store)
        error = "no_permission: list: the API server answered 403: forbidden"
        refused = SourceMark(kind=kind, resource_version="", epoch=0, seen_ms=0, last_error=error)
        read = SourceMark(kind=kind, resource_version="1", epoch=0, seen_ms=at(60))
        store.append(Batch(cluster="north", marks={kind: refused}))
        store.append(Batch(cluster="south", marks={kind: read}))
        return Answers(store, Tenancy(), Policy(), FixedClock(at(60)))

    yield of
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("kind", "lacking", "others"),
    [
        (ObjectKind.NODE, ["capacity_gpus", "free_gpus", "fragmented_gpus"], ["queue_wait_seconds"]),
        (ObjectKind.WORKLOAD, ["reserved_gpus", "queue_wait_seconds"], ["capacity_gpus", "lent_gpus"]),
        (ObjectKind.CLUSTER_QUEUE, ["lent_gpus", "quota_gpus"], ["capacity_gpus", "reserved_gpus"]),
        (ObjectKind.EVENT, ["pod_denials_total"], ["held_gpus"]),
    ],
)
def test_a_metric_says_which_kind_it_lacks(
    kind: ObjectKind, lacking: list[str], others: list[str], without: Callable[[ObjectKind], Answers]
) -> None:
    answers = without(kind)
    for name in lacking:
        [hint] = answers.metric(name, Question()).hints
        assert hint.startswith(f"kind {kind} of north may not be read: {features.MISSING[kind]}; grant ")
        assert answers.metric(name, Question(filters={"cluster": ("south",)})).hints == ()
    assert [answers.metric(name, Question()).hints for name in others] == [() for _ in others]


def test_a_report_says_what_it_lacks(without: Callable[[ObjectKind], Answers]) -> None:
    document = made(REPORTS["fragmentation"], without(ObjectKind.NODE), ReportQuestion())
    [hint] = document["hints"]
    assert "kind Node of north may not be read" in hint
    assert document["lead"][0] == f"{hint[:1].upper()}{hint[1:]}."


def test_each_metric_of_a_cluster_is_made_of_some_kind() -> None:
    """What is counted elsewhere, or by a site itself, is made of none."""
    store = Store.open(None)
    none = {
        name
        for name, metric in REGISTRY.items()
        if not refusals.kinds(store, [metric.sql]) and not name.startswith(("policy_", "queue_state_"))
    }
    assert none == {"wait_target_seconds"}
    store.close()


@pytest.mark.parametrize(
    ("error", "do"),
    [
        ("not_installed: the cluster does not serve jobsets", "nothing to do"),
        ("retry: list /x: the API server answered 401: Unauthorized", "renew them"),
        ("retry: list /x: the API server answered 429: too many", "overloaded"),
        ("retry: list /x: the API server answered 503: no endpoints", "look at its log"),
        ("retry: GET h: no answer (SSLError: CERTIFICATE_VERIFY_FAILED); trying again",
        "certificate-authority"),
        ("retry: GET h: no answer (NewConnectionError: refused); trying again",
        "nothing answers at that address"),
        ("retry: GET h: no answer (NameResolutionError: Failed to resolve 'h'); trying again", "DNS"),
        ("retry: GET h: no answer (ConnectTimeoutError: timed out); trying again", "firewalls or the VPN"),
        ("retry: GET h: no answer (ProxyError: Tunnel connection failed: 403); trying again", "NO_PROXY"),
        ("retry: GET h: no answer (SSLError: WRONG_VERSION_NUMBER); trying again", "speaks no TLS"),
        ("retry: list /x: expected a list with a resourceVersion, got b'<!DOCTYPE html>'", "login page"),
        ("retry: list /x: the API server answered 302: ", "login page"),
        ("retry: list /x: the API server answered 403: no", "deploy/rbac.yaml"),
        ("retry: GET h: the connection was silent for too long and was given up", "idle time-out"),
        ("retry: the server is at 5, we were at 9: it was restored", "went back to an earlier state"),
        ("retry: watch /x: 410 Expired: too old resource version", "forgot what came before"),
        ("retry: credentials for h cannot be renewed: no file", "mend the plug-in or the token file"),
        ("retry: list /x: expected a list with a resourceVersion, got b''", "look at the API server"),
    ],
)  # fmt: skip
def test_each_trouble_of_a_watch_has_something_to_do_about_it(error: str, do: str) -> None:
    assert do in features.remedy("JobSet", error)


def test_without_nodes_all_else_works_and_everything_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeCluster() as cluster:
        serve_all(cluster)
        assert cluster.granted is not None
        cluster.granted.discard(("", "nodes"))
        cluster.pending = {"clusterqueue-0": []}
        settings = load_settings(
            overrides={
                "store.data_dir": tmp_path / "data",
                "server.port": 0,
                "clusters": [{"name": "north", "kubeconfig": str(kubeconfig(tmp_path, cluster.url))}],
            }
        )
        with Runtime(settings) as runtime:

            def rows() -> dict[str, data.Json]:
                told = requests.get(f"{runtime.url}/api/v1/sources", timeout=60).json()["rows"]
                return {row["kind"]: row for row in told}

            # All kinds but one, and Kueue's order of its queues.
            until(
                lambda: sum(bool(row["seen_at"]) for row in rows().values()) == len(TRANSLATORS),
                pause=ASKS_EVERY_SECONDS,
            )
            node = rows().pop("Node")
            assert {row["state"] for kind, row in rows().items() if kind != "Node"} == {"read"}
            assert (node["state"], node["missing"]) == ("not_permitted", features.missing("Node"))
            ready = requests.get(f"{runtime.url}/readyz?verbose", timeout=60)
            assert ready.status_code == 200
            [line] = [line for line in ready.text.splitlines() if line.startswith("[-]")]
            [found] = [each for each in examine(settings) if "north/Node" in each.text]
            monkeypatch.setitem(os.environ, data.API_URL, runtime.url)
            st.cache_data.clear()
            app = AppTest.from_file(str(APP), default_timeout=60).run()
            app.switch_page("views/sources.py")
            page = app.run()
            st.cache_data.clear()
        assert {denied.partition(" ")[2] for denied in cluster.denied} == {"/nodes"}
    for told in (line, found.text):
        assert told.count(features.missing("Node")) == 1
        assert "403" in told
    assert (found.verdict, found.remedy) == (Verdict.WARNING, node["remedy"])
    assert not page.exception
    [warning] = [each.value for each in page.warning if "Not permitted" in each.value]
    assert warning == refused_sentence([node])
    tables = "\n".join(each.proto.body for each in page.get("html"))
    assert "grant get, list and watch of nodes" in tables
