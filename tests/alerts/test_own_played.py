"""
A whole ledger on a clock of its own: it loses its cluster, finds no room, is stopped, and all comes back.

Its collector reads a cluster over HTTP, and what it answers to a scrape each minute goes to promtool. Minute
by minute, without a cluster, the same alerts are in test_own.py. promtool's time begins at 0, and so does the
clock.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
import yaml
from typing_extensions import override

from alerts.declared import OWN
from service.patience import DISK
from service.runtime import Runtime
from service.settings_file import load_settings
from tests.alerts.scraped import fires, firing, input_series
from tests.alerts.test_own import RULES, expected
from tests.collector_live.running import PODS, HandClock, pod, until
from tests.fake_cluster import FakeCluster
from tests.service.test_live_runtime import kubeconfig

pytestmark = [pytest.mark.prometheus, pytest.mark.long, pytest.mark.timeout(900)]

MINUTE_MS = 60_000
# It measures before it serves, and again with its ticker's first tick.
AT_THE_START = 2


class Ledger(Runtime):
    """A ledger that measures when it is told, and counts how often."""

    ticks = 0

    def tick(self) -> None:
        """What its ticker does at each measurement."""
        self._tick()
        self.alerting.watch()

    @override
    def _tick(self) -> None:
        super()._tick()
        self.ticks += 1


@dataclass(slots=True)
class Site:
    """A cluster, the ledger that reads it, and whoever scrapes it each minute."""

    folder: Path
    cluster: FakeCluster
    clock: HandClock
    scrapes: list[str | None] = field(default_factory=list)
    told: list[set[str]] = field(default_factory=list)
    twins: list[str | None] = field(default_factory=list)

    @contextmanager
    def ledger(self, *, min_free: str = "1MB", data: str = "data") -> Iterator[Ledger]:
        """From its start to its end; it watches, and its ticker has begun, before time goes on."""
        opened = self.cluster.opened(PODS)
        settings = load_settings(
            overrides={
                "store.data_dir": self.folder / data,
                "server.port": 0,
                # It is told by hand when a minute is over.
                "schedule.measure_every_seconds": 3600,
                "keeping.min_free": min_free,
                "clusters": [{"name": "east", "kubeconfig": str(kubeconfig(self.folder, self.cluster.url))}],
            }
        )
        with Ledger(settings, clock=self.clock, machine=self.clock) as running:
            until(lambda: self.cluster.opened(PODS) > opened or DISK in running.alarms.sounding())
            until(lambda: running.ticks == AT_THE_START)
            yield running

    def up(
        self,
        ledger: Ledger,
        minutes: int,
        *,
        holds: Callable[[], bool] | None = None,
        twin: Ledger | None = None,
    ) -> None:
        """Minutes with a ledger, each measured when this holds; by default that it has read its cluster."""
        for _ in range(minutes):
            self.cluster.bookmark(PODS)
            until(holds or (lambda: self._seen_ms(ledger) == self.clock.at_ms))
            ledger.tick()
            told = ledger.alerting.told()
            self._over(
                _scrape(ledger),
                {one.labels["alertname"] for one in told if one.ends_ms is None},
                _scrape(twin) if twin else None,
            )

    def down(self, minutes: int) -> None:
        """Minutes without one."""
        for _ in range(minutes):
            self._over(None, set())

    def _over(self, scrape: str | None, told: set[str], twin: str | None = None) -> None:
        self.scrapes.append(scrape)
        self.twins.append(twin)
        self.told.append(told)
        self.clock.at_ms += MINUTE_MS

    @staticmethod
    def _seen_ms(ledger: Ledger) -> int:
        return max((int(str(mark["seen_ms"])) for mark in ledger.store.marks()), default=0)


def _scrape(ledger: Ledger) -> str:
    return requests.get(f"{ledger.url}/metrics", timeout=60).text


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with FakeCluster() as cluster:
        cluster.serve(PODS)
        one = pod("u1")
        one["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z"
        cluster.apply(PODS, one)
        yield Site(tmp_path, cluster, HandClock(0))


# When each fires, from minute to minute, both included; and when it is asked what it says.
COURSES = {
    # Seen last in minutes 3 and 13, and anew in 11 and 21: older than 3 minutes for more than one. It stays
    # for six minutes, and before they are over it is stale again.
    "GpuledgerSourceStale": ([(8, 26)], 9),
    # While there is no room nothing is measured either, but once at its start in minute 14.
    "GpuledgerMeasurementsStale": ([(19, 26)], 20),
    "GpuledgerAlarm": ([(15, 21)], 20),
    "GpuledgerMeasurementsAbsent": ([(29, 40)], 32),
    # Another of the same name beside it, for eight minutes.
    "GpuledgerNameShared": ([(48, 51)], 50),
    # It never falls silent: that it does is what somebody outside waits for.
    "GpuledgerWatchdog": ([(0, 52)], 20),
}


def fires_in(name: str, minute: int) -> bool:
    return any(first <= minute <= last for first, last in COURSES[name][0])


def test_what_becomes_of_a_ledger_fires_and_resolves_both_ways(site: Site, tmp_path: Path) -> None:
    play(site)
    assert sorted(COURSES) == sorted(alert.rule.name for alert in OWN)
    check_with_promtool(site.scrapes, site.twins, tmp_path)
    of_both = [alert.rule.name for alert in OWN if not alert.only_prometheus]
    for minute, told in enumerate(site.told):
        assert {name for name in of_both if fires_in(name, minute)} == {*of_both} & told, minute


def play(site: Site) -> None:
    """Good minutes, enough for all to end, and seven of each thing that goes wrong."""
    site.down(1)
    with site.ledger() as ledger:
        site.up(ledger, 3)
        site.cluster.silence(PODS)
        site.up(ledger, 7, holds=lambda: True)
        site.cluster.silence(PODS, silent=False)
        site.up(ledger, 3)
    # More than any disk has.
    with site.ledger(min_free="1000000TB") as ledger:
        site.up(ledger, 7, holds=lambda: DISK in ledger.alarms.sounding())
    with site.ledger() as ledger:
        site.up(ledger, 7)
    site.down(7)
    with site.ledger() as ledger:
        site.up(ledger, 8)
        with site.ledger(data="other") as twin:
            site.up(ledger, 8, twin=twin)
        site.up(ledger, 2)


def check_with_promtool(scrapes: list[str | None], twins: list[str | None], folder: Path) -> None:
    """Prometheus fires in these minutes and in no others, and says what it should."""
    test = {
        "interval": "1m",
        "input_series": [
            *input_series(scrapes, instance="one"),
            *input_series(twins, instance="another"),
        ],
        "alert_rule_test": [firing(name, asked * 60, expected(name)) for name, (_, asked) in COURSES.items()],
        "promql_expr_test": [
            fires(name, minute * 60, alerts=int(fires_in(name, minute)))
            for name in COURSES
            for minute in range(len(scrapes))
        ],
    }
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "rules.yaml").write_text(RULES)
    (folder / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
