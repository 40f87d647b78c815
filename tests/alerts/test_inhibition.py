"""Which alert is not told while which other one fires: as Alertmanager does it by our rules."""

from typing import Final

import yaml

from alerts.declared import declared
from alerts.inhibition import Labels, configuration, inhibited_by, inhibitions
from analytics.metrics import REGISTRY

RULES: Final = inhibitions(declared(REGISTRY))


def alert(name: str, **labels: str) -> Labels:
    return {"alertname": name, **labels}


def of_queue(name: str, queue: str, cluster: str = "east") -> Labels:
    return alert(name, cluster=cluster, queue=queue, service_class="batch")


def test_what_is_said_louder_of_the_same_is_not_told_and_what_is_of_another_is() -> None:
    louder = [of_queue("GpuQueueWaitTooLong", "red")]
    assert inhibited_by(of_queue("GpuQueueWaitP99TooLong", "red"), louder, RULES) == ["GpuQueueWaitTooLong"]
    assert inhibited_by(of_queue("GpuQueueWaitP99TooLong", "blue"), louder, RULES) == []
    assert inhibited_by(of_queue("GpuQueueWaitTooLong", "red"), louder, RULES) == []
    # To Alertmanager a label without a value is none: that of work in no queue.
    none = [alert("GpuQueueWaitTooLong", cluster="east", service_class="batch")]
    assert inhibited_by(of_queue("GpuQueueWaitP99TooLong", ""), none, RULES) == ["GpuQueueWaitTooLong"]


def test_a_stale_cluster_silences_its_own_alerts_and_what_is_of_no_cluster_of_its_ledger() -> None:
    stale = [alert("GpuledgerSourceStale", ledger="two", cluster="east")]
    waits = [of_queue("GpuQueueWaitTooLong", "red", cluster) for cluster in ("east", "west")]
    assert [inhibited_by(one, stale, RULES) for one in waits] == [["GpuledgerSourceStale"], []]
    budget, other = (
        alert("GpuHourBudgetBurned", ledger=name, team="nlp", period="day") for name in ("two", "one")
    )
    assert inhibited_by(budget, stale, RULES) == ["GpuledgerSourceStale"]
    assert inhibited_by(other, stale, RULES) == []
    assert inhibited_by(stale[0], stale, RULES) == []
    unmeasured = [alert("GpuledgerMeasurementsStale", ledger="one", cluster="west")]
    assert [inhibited_by(one, unmeasured, RULES) for one in waits] == [[], ["GpuledgerMeasurementsStale"]]
    assert inhibited_by(other, unmeasured, RULES) == ["GpuledgerMeasurementsStale"]
    assert inhibited_by(budget, unmeasured, RULES) == []


def test_who_tells_of_silence_outlasts_what_was_over_before_anything_is_known_again() -> None:
    """Where a source comes back, what ended meanwhile is not told once more by itself."""
    rules = {alert.rule.name: alert.rule for alert in declared(REGISTRY)}
    of_silence = [rule for rule in RULES if rule.louder.startswith("Gpuledger")]
    assert of_silence
    for rule in of_silence:
        for name in set(rule.quieter) - {"GpuBuyOrTune"}:  # judged by the week, and stays for hours
            assert rules[rule.louder].keep > rules[name].keep, (rule.louder, name)


def test_who_is_told_of_what_together_how_soon_and_how_often() -> None:
    route = yaml.safe_load(configuration(declared(REGISTRY)))["route"]
    watchdog, on_call, info = route.pop("routes")
    # Each cluster and ledger by itself; no route below groups otherwise, so watchdogs are missed singly.
    assert route == {
        "receiver": "team", "group_by": ["alertname", "cluster", "ledger"],
        "group_wait": "30s", "group_interval": "5m", "repeat_interval": "12h",
    }  # fmt: skip
    assert watchdog == {
        "receiver": "watchdog", "matchers": ['alertname="GpuledgerWatchdog"'],
        "group_wait": "0s", "group_interval": "1m", "repeat_interval": "1m",
    }  # fmt: skip
    assert [(one["receiver"], one["repeat_interval"]) for one in (on_call, info)] == [
        ("on-call", "1h"), ("team", "24h"),
    ]  # fmt: skip
