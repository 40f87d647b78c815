"""
`gpuledger serve` tells an Alertmanager itself, and is killed: what the way without a Prometheus promises.

Nobody is left to say that the ledger is stale, and an Alertmanager inhibits nothing by what is missing. So
the promise is another one (docs/alerting.md): the watchdog ends after four times `resend`, for somebody
outside to miss it, and whatever fired stands, with the end that it was told last, three days ahead.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from alerts.posting import WATCHDOG
from domain.window import SystemClock, parse_instant
from tests.collector_live.running import PODS, pod
from tests.e2e.alertmanagers import Alertmanager, Receiver, alertmanager, receiver
from tests.e2e.processes import answers, free_ports, started, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig

pytestmark = [pytest.mark.prometheus, pytest.mark.long, pytest.mark.timeout(1800)]

# Nobody waits so long but for what does not come.
PATIENCE_SECONDS: Final = 400
RESEND_MS: Final = 3_000
THREE_DAYS_MS: Final = 3 * 24 * 3_600_000
WAIT: Final = {"alertname": "GpuQueueWaitTooLong", "cluster": "north"}
STALE: Final = {"alertname": "GpuledgerSourceStale", "ledger": "gpuledger", "cluster": "north"}
DOG: Final = {"alertname": WATCHDOG}


@dataclass(slots=True)
class Site:
    """A cluster with a pod that has waited for months, an Alertmanager, and the settings of a ledger."""

    folder: Path
    cluster: FakeCluster
    told: Receiver
    running: Alertmanager
    port: int

    @contextmanager
    def serve(self) -> Iterator[Callable[[], None]]:
        """A ledger from when it answers; what is given kills it, so that it can end nothing in order."""
        (self.folder / "gpuledger.yaml").write_text(
            yaml.safe_dump(
                {
                    "store": {"data_dir": str(self.folder / "data")},
                    "server": {"port": self.port},
                    "schedule": {"measure_every_seconds": 2},
                    "policy": {"source_stale_after": "30s"},
                    "clusters": [
                        {"name": "north", "kubeconfig": str(kubeconfig(self.folder, self.cluster.url))}
                    ],
                    "alerting": {"alertmanagers": [{"url": self.running.url}], "resend": f"{RESEND_MS}ms"},
                }
            )
        )
        output = self.folder / "serve.txt"
        command = [sys.executable, "-m", "service.cli", "serve", "--config"]
        with started([*command, str(self.folder / "gpuledger.yaml")], output) as process:
            until(lambda: answers(f"http://127.0.0.1:{self.port}/livez"), process, output, seconds=240)

            def kill() -> None:
                os.kill(process.pid, signal.SIGKILL)
                assert process.wait(60) == -signal.SIGKILL

            yield kill

    def wait_for(self, look: Callable[[], object], what: str, *, reads: bool = True) -> None:
        """Until it is so; meanwhile the cluster says that it is there, or does not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not look():
            assert time.monotonic() < deadline, f"{what}: {(self.folder / 'serve.txt').read_text()[-3000:]}"
            if reads:
                self.cluster.bookmark(PODS)
            time.sleep(0.5)

    def stands(self, **labels: str) -> tuple[int, int, bool]:
        """Since when the one alert with these labels fires there, until when, and whether it is inhibited."""
        [alert] = self.running.alerts(**labels)
        return (
            parse_instant(alert["startsAt"]),
            parse_instant(alert["endsAt"]),
            bool(alert["status"]["inhibitedBy"]),
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    ports = free_ports(2)
    with (
        FakeCluster() as cluster,
        receiver() as told,
        alertmanager(tmp_path / "am", ports[0], told) as running,
    ):
        cluster.serve(PODS)
        cluster.apply(PODS, pod("u1"))
        yield Site(tmp_path, cluster, told, running, ports[1])


def test_a_ledger_that_is_killed_is_missed_by_its_watchdog_and_resolves_nothing(site: Site) -> None:
    told = site.told
    with site.serve() as kill:
        site.wait_for(lambda: told.statuses(**WAIT) == ["firing"], "the wait is told")
        site.wait_for(lambda: told.statuses(**DOG) == ["firing"], "the watchdog is told")
        kill()
        killed_ms = SystemClock().now_ms()
    began, _, inhibited = site.stands(**WAIT)
    assert not inhibited
    # The last message was on its way before the kill, and tells an end of four times `resend`.
    assert site.stands(**DOG)[1] <= killed_ms + 4 * RESEND_MS
    site.wait_for(lambda: told.statuses(**DOG) == ["firing", "resolved"], "the watchdog is missed")
    _stands_for_three_days(site, began)

    with site.serve() as kill:
        site.wait_for(lambda: told.statuses(**DOG)[-1] == "firing", "a new process goes on")
        site.wait_for(lambda: site.stands(**WAIT)[1] > killed_ms + THREE_DAYS_MS, "the wait is told again")
        assert site.stands(**WAIT)[0] == began
        # Now the cluster falls silent, while there is a ledger that can say so.
        site.cluster.silence(PODS)
        site.wait_for(lambda: told.statuses(**STALE) == ["firing"], "the cluster is stale", reads=False)
        assert site.stands(**WAIT)[2]
        kill()
    site.wait_for(lambda: told.statuses(**DOG)[-1] == "resolved", "it is missed again", reads=False)
    _stands_for_three_days(site, began, inhibited=True)
    assert told.statuses(**STALE) == ["firing"]
    assert len({alert["fingerprint"] for alert in told.told(**WAIT)}) == 1


def _stands_for_three_days(site: Site, began: int, *, inhibited: bool = False) -> None:
    """Nobody was told that the wait ended, and nobody will be before the end that was told last."""
    before_ms = SystemClock().now_ms()
    started_ms, ends_ms, is_inhibited = site.stands(**WAIT)
    assert site.told.statuses(**WAIT) == ["firing"]
    assert (started_ms, is_inhibited) == (began, inhibited)
    # All but the seconds since the last message; far more than the hour that was promised first.
    assert ends_ms > before_ms + THREE_DAYS_MS - 120_000
