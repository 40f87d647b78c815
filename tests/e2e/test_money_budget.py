"""A team spends its money of a day: Debian's Alertmanager tells at 80 % and at 100 %, and when it is over."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from alerts.posting import WATCHDOG
from alerts.wording import Links
from analytics.metrics import REGISTRY
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR, SystemClock, parse_instant
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.answers import Answers
from tests.e2e.alertmanagers import alertmanager, receiver
from tests.e2e.processes import free_ports
from tests.e2e.test_alertmanager import MINUTE_MS, wait_for
from tests.golden.cases import store_of

pytestmark = pytest.mark.prometheus

MIDNIGHT: Final = parse_instant("2026-01-02T00:00:00Z")
# One GPU at 2.00 an hour from midnight until 13:00: 16.00 of 20.00 at 08:00, all of it at 10:00.
SPENT: Final[dict[str, list[dict[str, Any]]]] = {
    "node_price": [{"start_ms": MIDNIGHT}],
    "workload": [{"workload_uid": "a"}],
    "holding": [
        {
            "workload_uid": "a",
            "pod_uid": "p",
            "bound_ms": MIDNIGHT,
            "released_ms": MIDNIGHT + 13 * MS_PER_HOUR,
        }
    ],
}
NEARLY: Final = {"alertname": "GpuMoneyBudgetNearlyBurned", "team": "nlp", "period": "day"}
ALL: Final = NEARLY | {"alertname": "GpuMoneyBudgetBurned"}


@dataclass(frozen=True, slots=True)
class Ledger:
    """A store that is measured by hand."""

    answers: Answers
    alerting: Alerting

    def measured(self, hour: float) -> None:
        """So many hours past midnight, and what must last a minute lasts two."""
        for minutes in (0, 2):
            at_ms = MIDNIGHT + round(hour * MS_PER_HOUR) + minutes * MINUTE_MS
            found = self.answers.measure(REGISTRY["budget_money_burned_ratio"], at_ms)
            self.alerting.take(found, at_ms, {})


@pytest.mark.timeout(300)
def test_a_money_budget_at_80_and_at_100_percent_fires_and_resolves(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    policy = Policy(money_budgets={"nlp": {"day": 20.0}})
    with receiver() as told, store_of(SPENT) as store, alertmanager(tmp_path / "am", port, told) as running:
        answers = Answers(store, Tenancy(), policy, SystemClock())
        settings = AlertingSettings.model_validate(
            {"alertmanagers": [{"url": running.url}], "resend": "1s", "expire": "5m"}
        )
        links, every = Links(dashboard_url="https://gpu.example"), timedelta(seconds=15)
        alerting = Alerting(answers, settings, links=links, every=every, clock=SystemClock())
        books = Ledger(answers, alerting)
        alerting.start()
        try:
            books.measured(7.9)
            assert {one.labels["alertname"] for one in alerting.told()} <= {WATCHDOG}
            books.measured(8)
            wait_for(lambda: told.statuses(**NEARLY) == ["firing"], "80 % is told")
            assert not running.alerts(**ALL)
            [first] = told.told(**NEARLY)[:1]
            assert first["annotations"]["summary"] == "team nlp has spent 80.33% of its money of the day"
            assert first["labels"]["severity"] == "info"

            books.measured(10)
            wait_for(lambda: told.statuses(**ALL) == ["firing"], "100 % is told")
            [first] = told.told(**ALL)[:1]
            told_of = first["annotations"]["summary"]
            assert told_of == "team nlp has spent 100.3% of its money of the day, 100% or more"
            [quieter] = running.alerts(**NEARLY)
            assert quieter["status"]["inhibitedBy"], "who hears of 100 % does not hear of 80 % as well"

            # The next day has a new budget.
            books.measured(24.1)
            books.measured(24.3)
            for labels in (ALL, NEARLY):
                wait_for(lambda labels=labels: told.statuses(**labels)[-1] == "resolved", "it ends")  # type: ignore[misc]
            assert told.statuses(**ALL) == ["firing", "resolved"]
            assert told.statuses(**NEARLY) == ["firing", "resolved"]
        finally:
            alerting.stop()
