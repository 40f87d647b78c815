"""Who an alert is about is told to an Alertmanager, and to nobody else."""

import json
from datetime import timedelta

from alerts.wording import Links
from api.answers import ReportQuestion
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.alerting import Alerting
from service.alerting_settings import AlertingSettings
from service.answers import Answers
from store import alerts
from store.embedded import Store

NOW = 1_700_000_000_000
WAITS = {"cluster": "east", "queue": "red", "service_class": "interactive"}
MEASURED = {
    "starvation_index_seconds": Sample(labels=WAITS, value=400.0, example="merger-plans"),
    "wait_target_seconds": Sample(labels={"service_class": "interactive"}, value=300.0),
    "past_target_workloads": Sample(labels=WAITS, value=3.0),
}


def measured(at_ms: int) -> list[Measurement]:
    return [Measurement(metric=name, as_of_ms=at_ms, sample=sample) for name, sample in MEASURED.items()]


def test_the_name_is_told_and_neither_kept_nor_answered() -> None:
    store = Store.open(None)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(NOW + 120_000))
    links, every = Links(dashboard_url="https://g"), timedelta(seconds=15)

    def alerting() -> Alerting:
        return Alerting(answers, AlertingSettings(), links=links, every=every, clock=FixedClock(NOW))

    here = alerting()
    for minute in (0, 1):
        here.take(measured(NOW + minute * 60_000), NOW + minute * 60_000, {})
    (told,) = (one for one in here.told() if "queue" in one.labels)
    assert told.annotations["example_job"] == "merger-plans"
    assert (told.annotations["breached_jobs"], told.annotations["oldest_wait_s"]) == ("3", "400")
    assert told.annotations["description"].startswith(
        "The longest wait at this moment is 6m 40s, the target of interactive is 5m 0s; past it wait: 3."
    )
    assert "merger-plans" not in json.dumps(dict(told.labels))
    kept = [*alerts.states(store), *alerts.firings(store, start_ms=0, end_ms=2 * NOW)]
    assert len(kept) == 2
    assert "merger-plans" not in str(kept)
    assert "merger-plans" not in str(answers.alerts(ReportQuestion(as_of_ms=NOW + 120_000)).rows)
    # A new process knows it again with its first measurement, and the alert is the same.
    again = alerting()
    (known,) = (one for one in again.told() if "queue" in one.labels)
    assert "example_job" not in known.annotations
    again.take(measured(NOW + 120_000), NOW + 120_000, {})
    (known,) = (one for one in again.told() if "queue" in one.labels)
    assert (known.annotations["example_job"], known.identity) == ("merger-plans", told.identity)
    store.close()
