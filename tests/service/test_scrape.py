"""What a service answers to a scrape: what was measured before, and nothing from its store."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from alerts.budget import MOST, OWN
from analytics.metrics import REGISTRY
from domain.errors import StoreError
from domain.metric import Ask, Measurement, Row, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from service.measure import Measurer
from service.runtime import Runtime
from service.settings_file import load_settings
from store.embedded import Store
from tests.service.test_measure import Few, MovingClock

NOW_MS = 1_000_000
FAILS = REGISTRY["fragmented_gpus"]


def fail(_: Sequence[Row], __: Ask) -> list[Sample]:
    message = "no such column"
    raise StoreError(message)


class Ledger(Runtime):
    """A service that answers and shows what it is told; the rest of it is not started."""

    def answer(self) -> None:
        self._server.start()

    def measures_one_that_fails(self) -> str:
        registry = {FAILS.name: replace(FAILS, compute=fail)}
        few = Few(self.store, Tenancy(), Policy(), MovingClock(NOW_MS), only=registry, alarms=self.alarms)
        self.measurer = Measurer(answers=few, refresh=lambda: 0, publish=self._publish)
        self.measurer.tick()
        return self.scraped()

    def shows(self, measured: list[Measurement]) -> None:
        self._publish(measured, NOW_MS)

    def scraped(self) -> str:
        answer = requests.get(f"{self.url}/metrics", timeout=60)
        assert answer.status_code == 200
        return answer.text


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    overrides = {"store.data_dir": tmp_path, "server.port": 0, "server.name": "north"}
    store = Store.open(None)
    running = Ledger(load_settings(overrides=overrides), store=store, clock=MovingClock(NOW_MS))
    running.answer()
    yield running
    running.stop()
    store.close()


def free(number: int) -> Measurement:
    sample = Sample(labels={"cluster": "east", "gpu_model": f"{number}"}, value=1.0)
    return Measurement(metric="free_gpus", as_of_ms=NOW_MS, sample=sample)


def test_a_scrape_never_asks_the_store(ledger: Ledger) -> None:
    ledger.shows([free(1)])
    text = ledger.scraped()
    assert 'gpuledger_free_gpus{cluster="east",gpu_model="1"} 1.0' in text
    ledger.store.close()
    assert ledger.scraped() == text
    # What asks the store cannot be answered now.
    asked = requests.get(f"{ledger.url}/api/v1/metrics/queue_depth_workloads", timeout=60)
    assert asked.status_code >= 500


def test_a_scrape_tells_what_failed_and_that_not_all_is_shown(ledger: Ledger) -> None:
    text = ledger.measures_one_that_fails()
    assert 'gpuledger_incomplete{ledger="north",metric="fragmented_gpus"} 1.0' in text
    assert 'gpuledger_alarm{alarm="metric_failed",ledger="north"} 1.0' in text
    assert {one.labels.get("ledger") for one in ledger.alerting.told()} == {"north"}

    many = [free(number) for number in range(MOST - OWN + 1)]
    ledger.shows(many)
    text = ledger.scraped()
    assert 'gpuledger_measured_timestamp_seconds{cluster="east",ledger="north"}' in text
    assert 'gpuledger_alarm{alarm="series_left_out",ledger="north"} 1.0' in text
    assert "free_gpus (1)" in ledger.alarms.sounding()["series_left_out"]
    ledger.shows(many[1:])
    assert "series_left_out" not in ledger.alarms.sounding()
    # What breaches by the site's own limits goes first.
    assert ledger.exporter._budget.policy is ledger.answers.policy
