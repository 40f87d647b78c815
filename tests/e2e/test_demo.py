"""`gpuledger demo` as a user runs it: a process, two addresses, Ctrl-C."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sample_data.generate import END
from tests.e2e.processes import Demo, demo, fetch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("demo")) as started:
        yield started


def test_it_prints_where_the_dashboard_and_the_api_are(running: Demo) -> None:
    said = running.output.read_text()
    assert running.dashboard in said
    assert f"{running.api}/metrics" in said


def test_the_api_answers_as_of_the_end_of_the_sample(running: Demo) -> None:
    answer = fetch(f"{running.api}/api/v1/metrics/queue_wait_seconds", by="service_class").json()
    assert answer["as_of"] == END.replace("Z", ".000Z")
    assert {row["labels"]["service_class"] for row in answer["rows"]} == {
        "interactive",
        "batch",
        "best_effort",
    }


def test_the_arranged_waits_are_found_among_the_workloads(running: Demo) -> None:
    listed = fetch(f"{running.api}/api/v1/workloads", page_size="500").json()["rows"]
    waits = {workload["name"]: workload["queue_wait_seconds"] or 0.0 for workload in listed}
    assert {name: wait for name, wait in waits.items() if wait > 50 * 60} == {
        "pretrain": 4200.0,
        "colossus": 6000.0,
    }
    assert waits["eval-session"] == 540.0


def test_metrics_pass_promtool(running: Demo) -> None:
    promtool = shutil.which("promtool")
    if promtool is None and os.environ.get("CI") != "true":
        pytest.skip("promtool is not installed")
    assert promtool is not None, "CI has promtool: without it nobody checks the exposition"
    text = fetch(f"{running.api}/metrics").content
    assert b"gpuledger_queue_wait_seconds{" in text
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")


def test_the_dashboard_is_healthy(running: Demo) -> None:
    assert fetch(f"{running.dashboard}/_stcore/health").text == "ok"


@pytest.mark.long
def test_ctrl_c_ends_it_without_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path) as started:
        code = started.interrupt()
        assert (code, "Traceback" in started.output.read_text()) == (0, False)
    for address in (started.api, started.dashboard):
        host, port = address.removeprefix("http://").split(":")
        with pytest.raises(ConnectionRefusedError):
            _connect(host, int(port))


def _connect(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=2).close()
