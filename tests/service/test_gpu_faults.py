"""Faults of GPUs: only changes count, they are laid on the pods they hit, and are known after a restart."""

import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from api.scope import scoped
from api.viewer import Role, Viewer
from collector.dcgm.answers import Series
from collector.dcgm.health import of_answer, of_series
from collector.intake import Intake
from collector.translator import find
from domain.errors import StoreBrokenError
from domain.gpu_fault import FaultKind, GpuHealth, HealthReading
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR, MS_PER_SECOND, FixedClock, format_instant, parse_instant
from service.answers import Answers
from service.gpu_faults import GpuFaults
from service.gpu_metrics import Poller, pollers
from service.gpu_metrics_settings import GpuMetricsSettings
from service.keeping import Keeper
from service.recovery import open_store
from service.refresh import Refresher
from store import adoption
from store.embedded import Store
from tests.collector_live.running import HandClock
from tests.service.test_keeping_of_stages import settings_in
from tests.shared import shared

NOON = parse_instant("2026-05-04T12:00:00Z")
UUID = "GPU-00000003-0000-4000-8000-000000000000"


def line(
    value: str, *, pod: str = "", uuid: str = UUID, driver: str = "580", field: str = "XID_ERRORS"
) -> str:
    owner = f',namespace="red",pod="{pod}"' if pod else ""
    labels = f'gpu="3",UUID="{uuid}",Hostname="n1",DCGM_FI_DRIVER_VERSION="{driver}"{owner}'
    return f"DCGM_FI_DEV_{field}{{{labels}}} {value}\n"


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store.open(None)
    yield made
    made.close()


def told(faults: GpuFaults, *answers: str, from_ms: int = NOON) -> list[tuple[str, int, int]]:
    """What answers tell, half a minute apart: kind, code, and the number of the answer."""
    found = []
    for number, text in enumerate(answers):
        at_ms = from_ms + 30 * MS_PER_SECOND * number
        found += [(str(one.kind), one.code, number) for one in faults.take(of_answer(text, at_ms), at_ms)]
    return found


def test_a_number_that_stays_is_one_error_and_the_same_one_after_a_reset_another(store: Store) -> None:
    faults = GpuFaults(store, "c")
    answers = [line(value) for value in ("0", "31", "31", "79", "79", "0", "79")]
    assert told(faults, *answers) == [("xid", 31, 1), ("xid", 79, 3), ("xid", 79, 6)]


@pytest.mark.parametrize("value", ["2147483632", "9223372036854775794", "NaN", "-1", "3.5", "nonsense"])
def test_what_is_no_number_of_an_error_tells_nothing(store: Store, value: str) -> None:
    assert told(GpuFaults(store, "c"), line("0"), line(value), line("0")) == []


def test_a_gpu_that_is_missing_had_no_error_and_no_reset(store: Store) -> None:
    assert told(GpuFaults(store, "c"), line("0"), line("31"), "", line("31")) == [("xid", 31, 1)]


def test_a_gpu_that_nobody_told_of_for_days_is_forgotten_and_known_when_it_comes_back(store: Store) -> None:
    faults = GpuFaults(store, "c")
    assert told(faults, line("0"), line("31")) == [("xid", 31, 1)]
    one_gpu = len(faults)
    for day in range(1, 4):
        told(faults, line("0", uuid=f"GPU-{day}"), from_ms=NOON + day * 24 * MS_PER_HOUR)
        # The driver is the node's, and was told all along.
        assert len(faults) <= 2 * one_gpu
    assert told(faults, line("31"), line("79"), from_ms=NOON + 4 * 24 * MS_PER_HOUR) == [("xid", 79, 1)]


def test_an_error_that_could_not_be_committed_is_told_again_and_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = GpuFaults(store, "c")
    told(faults, line("0"))

    def full(_: object) -> int:
        message = "no space left"
        raise StoreBrokenError(message)

    with monkeypatch.context() as broken:
        broken.setattr(store, "append", full)
        with pytest.raises(StoreBrokenError):
            told(faults, line("79"), from_ms=NOON + 60_000)
    assert told(faults, line("79"), line("79"), from_ms=NOON + 120_000) == [("xid", 79, 0)]
    (row,) = answers_of(store).gpu_faults().rows
    assert (row["xid"], row["at_earliest"]) == (79, format_instant(NOON))


def test_after_a_restore_what_the_store_does_not_know_any_more_is_told_again(tmp_path: Path) -> None:
    kept = settings_in(tmp_path)
    asked = GpuMetricsSettings(cluster="c", exporters=("http://127.0.0.1:9",))
    store = open_store(kept)
    faults = GpuFaults(store, "c")
    with closing(store), closing(Poller(asked, store, FixedClock(NOON), faults)) as poller:
        keeper = Keeper(kept, store, renewed=poller.forget)
        told(faults, line("0"))
        keeper.backup(tmp_path / "backup.duckdb")
        told(faults, line("79"), from_ms=NOON + 60_000)
        keeper.restore(tmp_path / "backup.duckdb")
        assert told(faults, line("79"), line("79"), from_ms=NOON + 120_000) == [("xid", 79, 0)]


def test_what_was_there_before_anybody_looked_is_told_and_not_counted(store: Store) -> None:
    GpuFaults(store, "c").take(of_answer(line("79", pod="a"), NOON), NOON)
    (row,) = answers_of(store).gpu_faults().rows
    assert (row["xid"], row["at_earliest"], row["pod_uid"]) == (79, None, "")
    assert xids(store) == {}


def test_the_sample_of_an_exporter_is_read(store: Store) -> None:
    text = shared("reference/samples/dcgm_xid.txt").read_text()
    (reading, driver) = of_answer(text, NOON)
    assert (reading.node, reading.code, reading.words) == ("gpu-node-01", 79, "GPU has fallen off the bus")
    assert (reading.owner.namespace, reading.owner.pod) == ("team-a", "llm-a-3")
    assert (driver.kind, driver.words, driver.uuid) == (FaultKind.DRIVER, "580.82.07", "")


def test_a_line_with_an_instant_of_its_own_counts_at_that_one() -> None:
    stamped = line("31").rstrip("\n") + f" {NOON - 7_000}\n"
    assert [one.at_ms for one in of_answer(stamped + line("31"), NOON)] == [NOON - 7_000, NOON, NOON]


def test_a_series_that_names_no_node_is_of_the_node_where_its_exporter_runs() -> None:
    unnamed = line("31").replace(',Hostname="n1"', "")
    assert {one.node for one in of_answer(unnamed, NOON, node="n9")} == {"n9"}
    assert {one.node for one in of_answer(line("31"), NOON, node="n9")} == {"n1"}


def test_the_exporters_own_words_for_an_error_come_before_ours() -> None:
    worded = line("79").replace("{", '{err_msg="its own words",', 1)
    assert [one.words for one in of_answer(worded, NOON)] == ["its own words", "580"]
    assert next(of_answer(line("79"), NOON)).words == "GPU has fallen off the bus"


def test_of_a_series_the_driver_is_told_at_both_ends() -> None:
    metric = {"__name__": "DCGM_FI_DEV_XID_ERRORS", "UUID": UUID, "Hostname": "n1"}
    values = [(float(number), "0") for number in (100, 130, 160)]
    read = of_series([Series(metric=metric | {"DCGM_FI_DRIVER_VERSION": "580"}, values=values)])
    assert sorted(one.at_ms for one in read if one.kind is FaultKind.DRIVER) == [100_000, 160_000]


def test_a_remap_failure_and_another_driver_are_told(store: Store) -> None:
    healthy, failed = line("0", field="ROW_REMAP_FAILURE"), line("1", field="ROW_REMAP_FAILURE")
    newer = line("1", field="ROW_REMAP_FAILURE", driver="590")
    assert told(GpuFaults(store, "c"), healthy, failed, newer, newer) == [
        ("row_remap_failure", 1, 1),
        ("driver", 0, 2),
    ]
    assert [row["words"] for row in answers_of(store).gpu_faults().rows] == ["590", ""]


def test_another_owner_of_the_gpu_and_a_series_that_lingers_are_no_news(store: Store) -> None:
    old, new = line("31", pod="a"), line("31", pod="b")
    assert told(GpuFaults(store, "c"), line("0", pod="a"), old, old + new, new) == [("xid", 31, 1)]
    late = line("13", pod="a") + line("79", pod="b")
    other = GpuFaults(store, "d")
    assert told(other, line("13", pod="a"), late, late, line("79", pod="b")) == [
        ("xid", 13, 0),
        ("xid", 79, 1),
    ]


def test_a_restart_repeats_nothing_and_misses_nothing(store: Store) -> None:
    assert told(GpuFaults(store, "c"), line("0"), line("31")) == [("xid", 31, 1)]
    assert told(GpuFaults(store, "c"), line("31"), line("79"), from_ms=NOON + 600_000) == [("xid", 79, 1)]
    assert told(GpuFaults(store, "c"), line("0"), line("31"), from_ms=NOON) == []  # read again
    assert xids(store) == {"31": 1.0, "79": 1.0}


@given(st.lists(st.sampled_from([None, 0, 13, 31]), max_size=12))
def test_errors_are_the_changes_to_a_number_that_is_none_of_zero(shown: list[int | None]) -> None:
    health, counted = GpuHealth(), 0
    for number, code in enumerate(shown, start=1):
        if code is not None:
            reading = HealthReading("n", "u", FaultKind.XID, number, code)
            counted += len(health.take([reading]))
    seen = [code for code in shown if code is not None]
    expected = sum(code not in {0, before} for before, code in zip([0, *seen], seen, strict=False))
    assert counted == expected


# ------------------------------------------------------------ the workload that was hit


def pod(name: str, *, failed_ms: int, code: int = 1) -> dict[str, Any]:
    began = format_instant(NOON - 3_600_000)
    ended = {"exitCode": code, "reason": "Error", "startedAt": began, "finishedAt": format_instant(failed_ms)}
    return {
        "metadata": {
            "uid": f"uid-{name}", "name": name, "namespace": "red", "resourceVersion": "5",
            "creationTimestamp": began,
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {
            "phase": "Failed",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": began}],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"terminated": ended}}],
        },
    }  # fmt: skip


def with_pods(store: Store, *pods: dict[str, Any]) -> None:
    translator = find("", "Pod")
    assert translator is not None
    intake = Intake("c", store, store.known("c"))
    for one in pods:
        intake.see(translator, "ADDED", one, NOON + 600_000)
    intake.flush()


def answers_of(store: Store) -> Answers:
    return Answers(store, Tenancy(), Policy(), FixedClock(NOON + 3_600_000))


def xids(store: Store) -> dict[str, float | None]:
    from api.answers import Question

    rows = answers_of(store).metric("gpu_xid_errors_total", Question(by=("xid",))).rows
    return {row.labels["xid"]: row.value for row in rows if row.labels}


def outcome(store: Store, uid: str) -> tuple[str, str]:
    Refresher(store=store).refresh()
    found = answers_of(store).workload(uid)
    assert found is not None
    (attempt,) = found["attempts"]
    return attempt["outcome"], attempt["reason"]


def test_a_pod_whose_gpu_fell_off_the_bus_failed_by_infrastructure(store: Store) -> None:
    with_pods(store, pod("a", failed_ms=NOON + 20_000), pod("b", failed_ms=NOON + 20_000))
    Refresher(store=store).refresh()
    assert outcome(store, "uid-a")[0] == "failed"
    assert told(GpuFaults(store, "c"), line("0", pod="a"), line("79", pod="a")) == [("xid", 79, 1)]
    assert outcome(store, "uid-a") == ("infra_failed", f"XID 79 on {UUID}: GPU has fallen off the bus")
    assert outcome(store, "uid-b")[0] == "failed"
    detail = answers_of(store).workload("uid-a")
    assert detail is not None
    (fault,) = detail["gpu_faults"]
    assert (fault["node"], fault["xid"], fault["at"]) == ("n1", 79, "2026-05-04T12:00:30.000Z")
    assert fault["at_earliest"] == "2026-05-04T12:00:00.000Z"


def test_a_researcher_sees_every_fault_and_whose_foreign_work_it_hit_has_no_name(store: Store) -> None:
    with_pods(store, pod("a", failed_ms=NOON + 20_000))
    told(GpuFaults(store, "c"), line("0", pod="a"), line("79", pod="a"))
    Refresher(store=store).refresh()
    seen = {}
    for team in ("red", "blue"):
        viewer = Viewer(name="ada", role=Role.RESEARCHER, teams=frozenset({team}))
        (row,) = scoped(answers_of(store), viewer).gpu_faults().rows
        seen[team] = (row["xid"], row["node"], row["workload"], row["pod_uid"], row["team"])
    assert seen == {"red": (79, "n1", "a", "uid-a", "red"), "blue": (79, "n1", "", "", "")}


def test_an_error_of_the_program_blames_no_machine(store: Store) -> None:
    with_pods(store, pod("a", failed_ms=NOON + 20_000))
    assert told(GpuFaults(store, "c"), line("0", pod="a"), line("31", pod="a")) == [("xid", 31, 1)]
    assert outcome(store, "uid-a")[0] == "failed"


def test_a_fault_long_after_the_end_is_no_cause(store: Store) -> None:
    with_pods(store, pod("a", failed_ms=NOON - 120_000))
    assert told(GpuFaults(store, "c"), line("0", pod="a"), line("79", pod="a")) == [("xid", 79, 1)]
    assert outcome(store, "uid-a")[0] == "failed"


def test_what_a_gpu_showed_before_anybody_looked_is_laid_on_no_pod(store: Store) -> None:
    with_pods(store, pod("a", failed_ms=NOON + 20_000))
    assert told(GpuFaults(store, "c"), line("79", pod="a")) == [("xid", 79, 0)]
    assert outcome(store, "uid-a")[0] == "failed"


def test_a_fault_is_laid_on_the_pod_that_had_the_name_then(store: Store) -> None:
    again = pod("a", failed_ms=NOON + 20_000)
    again["metadata"] |= {"uid": "uid-later", "creationTimestamp": format_instant(NOON + 60_000)}
    again["status"] = {"phase": "Pending"}
    with_pods(store, pod("a", failed_ms=NOON + 20_000), again)
    assert told(GpuFaults(store, "c"), line("0", pod="a"), line("79", pod="a")) == [("xid", 79, 1)]
    assert outcome(store, "uid-a")[0] == "infra_failed"


def test_a_rebuild_keeps_what_only_exporters_told(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "earlier.duckdb")
    with_pods(store, pod("a", failed_ms=NOON + 20_000))
    told(GpuFaults(store, "c"), line("0", pod="a"), line("79", pod="a"))
    store.close()
    rebuilt = Store.open(None)
    adoption.adopt(rebuilt, tmp_path / "earlier.duckdb", ["c"])
    with_pods(rebuilt, pod("a", failed_ms=NOON + 20_000))
    assert outcome(rebuilt, "uid-a")[0] == "infra_failed"
    assert told(GpuFaults(rebuilt, "c"), line("79", pod="a"), from_ms=NOON + 600_000) == []
    rebuilt.close()


class _Exporter(BaseHTTPRequestHandler):
    text = ""

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(type(self).text.encode())


def test_a_poller_of_exporters_tells_of_an_error_once(store: Store) -> None:
    settings_of = GpuMetricsSettings.model_validate
    with HTTPServer(("127.0.0.1", 0), _Exporter) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        settings = settings_of({"cluster": "c", "exporters": [f"http://127.0.0.1:{server.server_port}"]})
        for number, value in enumerate(("0", "79", "79")):
            _Exporter.text = line(value)
            poller = Poller(settings, store, FixedClock(NOON + 30_000 * number))
            poller.poll()
            poller.close()
        server.shutdown()
    assert xids(store) == {"79": 1.0}


@pytest.mark.parametrize("restarted", [False, True])
def test_after_a_clock_that_was_ahead_is_set_right_an_error_is_told_when_it_comes(
    store: Store, *, restarted: bool
) -> None:
    clock = HandClock()
    with HTTPServer(("127.0.0.1", 0), _Exporter) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings = GpuMetricsSettings(cluster="c", exporters=(url,))
        ((_, _, ahead),) = pollers([settings], store, clock)
        set_right = Poller(settings, store, clock) if restarted else ahead
        for poller, value, at_ms in (
            (ahead, "31", NOON + 24 * MS_PER_HOUR),
            (set_right, "31", NOON),
            (set_right, "79", NOON + 30_000),
        ):
            _Exporter.text, clock.at_ms = line(value), at_ms
            poller.poll()
        ahead.close()
        set_right.close()
        server.shutdown()
    (row,) = answers_of(store).gpu_faults().rows
    assert (row["xid"], row["at"]) == (79, format_instant(NOON + 30_000))
