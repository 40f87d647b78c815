"""Checkpoints that jobs and metrics tell of, through the whole of a running service and over real HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from typing_extensions import override

from collector.checkpoints import OF_THE_FUTURE
from collector.intake import Intake
from collector.translator import find
from domain.checkpoint import CheckpointReport, ToldBy
from domain.window import MS_PER_HOUR, MS_PER_SECOND, FixedClock, SystemClock, format_instant
from service.checkpoint_metrics import CheckpointPoller
from service.checkpoint_settings import CheckpointMetricSettings
from service.checkpoints import Checkpoints
from service.first_cut import FirstCut
from service.runtime import Runtime
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import ASKS_EVERY_SECONDS, PODS, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig

BETWEEN_US = "between us"
MS_PER_MINUTE = 60 * MS_PER_SECOND
KEY = "ml.example/saved-at"
FACTS = (
    "select * from transition order by seq",
    "select * from description order by seq",
    "select * from set_aside order by all",
    "select * from object_state order by all",
    "select * from source_mark order by all",
)


def pod(name: str, *, namespace: str, from_ms: int, **saved: str) -> dict[str, Any]:
    """A pod of 4 GPUs that runs from an instant on, with these annotations."""
    stamp = format_instant(from_ms)
    state = {"running": {"startedAt": stamp}}
    return {
        "metadata": {
            "uid": f"uid-{name}", "name": name, "namespace": namespace, "creationTimestamp": stamp,
            "annotations": dict(saved),
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "4"}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
        },
    }  # fmt: skip


class _Exporter(BaseHTTPRequestHandler):
    text = ""

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        body = self.server.text.encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def exporter(text: str) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    server.text = text  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@dataclass(frozen=True, slots=True)
class Site:
    """A service that reads two pods: `a` of the team red, `b` of the team blue, both since an hour."""

    runtime: Runtime
    cluster: FakeCluster
    now_ms: int

    def tell(self, bearer: str = "of red", /, **body: Any) -> requests.Response:
        """Told again while the service does not know yet what there is, as after a rebuild."""
        answers: list[requests.Response] = []

        def is_known() -> bool:
            answers.append(
                requests.post(
                    f"{self.runtime.url}/api/v1/checkpoints",
                    json={"namespace": "red", **body},
                    headers={"Authorization": f"Bearer {bearer}"},
                    timeout=60,
                )
            )
            return answers[-1].status_code != 503

        until(is_known, pause=ASKS_EVERY_SECONDS)
        return answers[-1]

    def get(self, path: str) -> Any:
        headers = {"Authorization": "Bearer for programs"}
        return requests.get(f"{self.runtime.url}/api/v1/{path}", headers=headers, timeout=60).json()

    def ago(self, minutes: float) -> str:
        return format_instant(self.now_ms - round(minutes * MS_PER_MINUTE))

    def saved(self, uid: str) -> list[tuple[str, str]]:
        return [(one["at"], one["told_by"]) for one in self.get(f"workloads/{uid}")["checkpoints"]]

    def too_much_at_risk(self, team: str, saved_ago_ms: int) -> float:
        """GPU-hours by which the metric is above what 4 GPUs put at risk since then."""
        as_of_ms = SystemClock().now_ms()
        asked = f"metrics/at_risk_gpu_hours?by=team&as_of={format_instant(as_of_ms)}"
        (value,) = [row["value"] for row in self.get(asked)["rows"] if row["labels"]["team"] == team]
        return float(value) - 4 * (as_of_ms - self.now_ms + saved_ago_ms) / MS_PER_HOUR

    def set_aside(self, kind: str) -> dict[str, int]:
        return {
            cause["because"]: cause["count"]
            for row in self.get("sources")["rows"]
            for cause in row["set_aside_causes"]
            if row["kind"] == kind
        }


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("told")
    now_ms = SystemClock().now_ms() // MS_PER_SECOND * MS_PER_SECOND
    saved_at = (now_ms - 20 * MS_PER_MINUTE) / MS_PER_SECOND
    text = (
        f'train_last_checkpoint_timestamp_seconds{{namespace="blue",pod="b"}} {saved_at}\n'
        # Of several series of a pod the latest counts, in whatever order they stand.
        f'eval_last_checkpoint_timestamp_seconds{{namespace="blue",pod="b"}} {saved_at - 600}\n'
        f'train_last_checkpoint_timestamp_seconds{{namespace="blue",pod="nobody"}} {saved_at}\n'
        'train_steps{namespace="blue",pod="b"} 12\n'
        # Milliseconds where seconds belong.
        f'train_last_checkpoint_timestamp_seconds{{namespace="red",pod="a"}} {saved_at * 1000}\n'
    )
    with FakeCluster() as cluster, exporter(text) as target:
        cluster.serve(PODS)
        since_ms = now_ms - MS_PER_HOUR
        stamps = {KEY: format_instant(now_ms - 50 * MS_PER_MINUTE)}
        cluster.apply(PODS, pod("a", namespace="red", from_ms=since_ms, **stamps))
        cluster.apply(PODS, pod("b", namespace="blue", from_ms=since_ms, **{KEY: "2040-01-01T00:00:00Z"}))
        settings = load_settings(
            overrides={
                "store.data_dir": folder / "data",
                "server.port": 0,
                "schedule.measure_every_seconds": 1,
                "keeping.journal_size": "100MB",
                "clusters": [{"name": "north", "kubeconfig": str(kubeconfig(folder, cluster.url))}],
                "auth": {
                    "mode": "header",
                    "token_file": written(folder, "service", "for programs"),
                    "header": {"secret_file": written(folder, "proxy", BETWEEN_US)},
                    "roles": {"money": "finance"},
                },
                "checkpoints": {
                    "annotations": [KEY],
                    "metrics": [{"cluster": "north", "targets": [target], "every": "1s"}],
                    "token_files": {team: written(folder, team, f"of {team}\n") for team in ("red", "blue")},
                },
            }
        )
        with Runtime(settings) as runtime:
            made = Site(runtime, cluster, now_ms)
            until(lambda: len(made.get("workloads")["rows"]) == 2, pause=ASKS_EVERY_SECONDS)
            # Never silently: it is set aside, once however often the metric is read.
            until(lambda: made.set_aside("Checkpoint") == {OF_THE_FUTURE: 1}, pause=ASKS_EVERY_SECONDS)
            yield made


def test_a_job_tells_once_of_a_checkpoint_and_telling_again_changes_nothing(site: Site) -> None:
    told = {"pod": "a", "at": site.ago(30), "step": 1200, "size_bytes": 3_200_000_000, "duration_seconds": 41}
    first, again = site.tell(**told), site.tell(**told)
    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert first.json() == {
        "cluster": "north", "object_uid": "uid-a", "object_kind": "Pod", "workload_uid": "uid-a",
        "at": site.ago(30), "new": True,
    }  # fmt: skip
    assert again.json() == first.json() | {"new": False}
    (found,) = [one for one in site.get("workloads/uid-a")["checkpoints"] if one["at"] == site.ago(30)]
    assert found == {
        "at": site.ago(30), "step": 1200, "detail": "3.2 GB, written in 41 s", "told_by": "push",
    }  # fmt: skip


def test_seconds_since_the_epoch_an_own_uid_and_no_instant_are_understood(site: Site) -> None:
    at_ms = site.now_ms - 25 * MS_PER_MINUTE
    assert site.tell(pod="a", at=at_ms / MS_PER_SECOND).json()["at"] == format_instant(at_ms)
    assert site.tell(uid="uid-a", at=site.ago(24)).status_code == 201
    assert site.tell(workload="a", at=site.ago(24)).status_code == 404  # it is a pod
    before_ms = SystemClock().now_ms()
    now = site.tell(pod="a", cluster="north").json()["at"]
    assert format_instant(before_ms) <= now <= format_instant(SystemClock().now_ms())


def test_foreign_work_looks_like_none_and_a_token_of_a_team_reads_nothing(site: Site) -> None:
    foreign = site.tell("of blue", pod="a", at=site.ago(10))
    nobody = site.tell("of blue", pod="nobody", at=site.ago(10))
    assert foreign.status_code == nobody.status_code == 404
    assert foreign.json()["detail"].replace("red/a", "") == nobody.json()["detail"].replace("red/nobody", "")
    assert site.tell("for programs", pod="a", at=site.ago(11)).status_code == 201
    assert site.tell("guessed", pod="a").status_code == 401
    headers = {"Authorization": "Bearer of red"}
    assert (
        requests.get(f"{site.runtime.url}/api/v1/workloads", headers=headers, timeout=60).status_code == 401
    )
    finance = {"X-Forwarded-User": "f", "X-Forwarded-Groups": "money", "X-Gpuledger-Proxy-Secret": BETWEEN_US}
    url, body = f"{site.runtime.url}/api/v1/checkpoints", {"namespace": "red", "pod": "a"}
    assert requests.post(url, json=body, headers=finance, timeout=60).status_code == 403
    assert site.ago(10) not in dict(site.saved("uid-a"))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "names nothing"),
        ({"pod": "a", "uid": "u"}, "names pod and uid"),
        ({"pod": "a", "namespace": ""}, "a namespace with either pod or"),
        ({"pod": "a", "cluster": "south"}, "expected a cluster that is read now (north)"),
        ({"pod": "a", "stpe": 1}, "unknown field `stpe`"),
        ({"pod": "a", "step": -1}, "`int` >= 0"),
        ({"pod": "a", "at": "five"}, "five"),
        ({"pod": "a", "at": 1e300}, "expected seconds since the epoch"),
        ({"pod": "a" * 20_000}, "a body of more than"),
    ],
)
def test_a_wrong_report_is_refused_with_the_reason(site: Site, body: dict[str, Any], says: str) -> None:
    reply = site.tell(**body)
    assert reply.status_code == 400
    assert says in reply.json()["detail"]


def test_a_page_of_another_site_cannot_tell(site: Site) -> None:
    reply = requests.post(
        f"{site.runtime.url}/api/v1/checkpoints",
        data='{"namespace": "red", "pod": "a"}',
        headers={"Authorization": "Bearer of red", "Content-Type": "text/plain"},
        timeout=60,
    )
    assert reply.status_code == 400
    assert "expected application/json" in reply.json()["detail"]


def test_an_instant_at_which_it_cannot_have_been_made_is_counted_and_not_kept(site: Site) -> None:
    future, early = site.ago(-10), site.ago(90)
    before = site.set_aside("Checkpoint")
    replies = [site.tell(pod="a", at=at) for at in (future, early)]
    assert [reply.status_code for reply in replies] == [422, 422]
    assert {future, early}.isdisjoint(dict(site.saved("uid-a")))
    after = site.set_aside("Checkpoint")
    for because in ("a checkpoint of the future", "a checkpoint from before its object was created"):
        assert after[because] == before.get(because, 0) + 1
    # What an annotation says is counted once, however often the pod is read.
    assert site.set_aside("Pod") == {"a checkpoint of the future": 1}


def test_a_metric_and_an_annotation_of_another_key_tell_of_checkpoints(site: Site) -> None:
    until(lambda: bool(site.saved("uid-b")), pause=ASKS_EVERY_SECONDS)
    assert site.saved("uid-b") == [(site.ago(20), "metric")]
    assert (site.ago(50), KEY) in site.saved("uid-a")
    sources = {row["kind"]: row for row in site.get("sources")["rows"]}
    assert sources["Checkpoint"]["state"] == "read"


def test_a_name_that_was_given_again_means_the_pod_that_had_it_then() -> None:
    store, now_ms, told = Store.open(None), SystemClock().now_ms(), []
    translator = find("", "Pod")
    assert translator is not None
    intake = Intake("north", store, store.known("north"))
    for uid, age_ms in (("first", 2 * MS_PER_HOUR), ("second", 30 * MS_PER_MINUTE)):
        written = pod("a", namespace="red", from_ms=now_ms - age_ms)
        written["metadata"]["uid"] = uid
        intake.see(translator, "ADDED", written, now_ms)
    intake.flush()
    clock = FixedClock(now_ms)
    checkpoints = Checkpoints(
        store,
        ["north"],
        lambda *given: told.append(given),
        clock,
        first_cut=FirstCut(store, ["north"], clock),
    )

    def taken(minutes: int) -> tuple[str, bool, str]:
        report = CheckpointReport(namespace="red", pod="a", at_ms=now_ms - minutes * MS_PER_MINUTE)
        record = checkpoints.take(report, by=ToldBy.METRIC)
        assert record is not None
        return record["object_uid"], record["new"], record["set_aside"]

    assert taken(60) == ("first", True, "")
    assert taken(10) == ("second", True, "")
    assert taken(-10) == ("second", False, "a checkpoint of the future")
    # Also what cannot be true is told on: it is counted there.
    assert len(told) == 3
    store.close()


def test_pods_that_a_metric_shows_no_more_are_forgotten_and_those_it_shows_are_asked_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock, asked = Store.open(None), SystemClock(), list[str]()
    checkpoints = Checkpoints(
        store, ["north"], lambda *_: None, clock, first_cut=FirstCut(store, ["north"], clock)
    )

    def take(report: CheckpointReport, **_: object) -> dict[str, bool]:
        asked.append(report.pod)
        return {"new": True}

    monkeypatch.setattr(checkpoints, "take", take)
    poller = CheckpointPoller(CheckpointMetricSettings(cluster="north", targets=("http://x",)), checkpoints)
    name = "train_last_checkpoint_timestamp_seconds"
    for pods in (["stays", "goes-0"], ["stays", "goes-1"], [], ["stays", "goes-2"]):
        with exporter("".join(f'{name}{{namespace="n",pod="{one}"}} 1700000000\n' for one in pods)) as url:
            poller._settings = CheckpointMetricSettings(cluster="north", targets=(url,))
            poller.poll()
    assert asked == ["stays", "goes-0", "goes-1", "goes-2"]
    assert sorted(poller._told) == [("n", "goes-2"), ("n", "stays")]
    store.close()


def test_what_was_saved_is_not_lost_and_a_rebuilt_store_is_equal(site: Site) -> None:
    until(lambda: bool(site.saved("uid-b")), pause=ASKS_EVERY_SECONDS)
    assert site.tell(pod="a", at=site.ago(15)).status_code == 201
    # 4 GPUs since 20 minutes; without the metric it would be the hour since the start. What was saved is told
    # at once, numbers rest on the next books.
    until(
        lambda: site.too_much_at_risk("blue", 20 * MS_PER_MINUTE) == pytest.approx(0, abs=1e-4),
        pause=ASKS_EVERY_SECONDS,
    )
    store = site.runtime.store
    with site.runtime._collectors.paused():
        before = [store.rows(select) for select in FACTS]
        site.runtime._keeper.rebuild()
        after = [store.rows(select) for select in FACTS]
    # Whose work it is is known again with the next books.
    until(lambda: len(site.get("workloads")["rows"]) == 2, pause=ASKS_EVERY_SECONDS)
    assert after == before
    assert len([row for row in before[0] if row["moment"] == "checkpoint"]) >= 3
