"""The generated rule file, and what belongs to it, against Prometheus' and Alertmanager's own tools."""

import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.declared import Declared, declared, factor, labels
from alerts.exporter import Exporter
from alerts.inhibition import configuration
from alerts.operator import prometheus_rule, service_monitor
from alerts.readings import annotations, readings
from alerts.rules import rules_file
from alerts.wording import Links, Words, names_in
from analytics.metrics import REGISTRY
from domain.alert import AlertRule, Limit
from domain.errors import PolicyError
from domain.metric import Measurement, Sample
from domain.policy import Policy
from domain.window import FixedClock
from tests.alerts.scraped import fires, input_series
from tests.alerts.worlds import START_MS
from tests.golden.cases import store_of, values

ALERTS = declared(REGISTRY)
RULES = rules_file(
    REGISTRY, Policy(), dashboard_url="https://gpu.example/", runbooks_url="https://book.example"
)


def rules(text: str = RULES) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def tool(folder: Path, *command: str, **files: str) -> str:
    """What a tool says of these files; it must succeed."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.prometheus
def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    said = tool(tmp_path, "promtool", "check", "rules", "rules.yaml", rules=RULES)
    assert "SUCCESS" in said
    assert "duplicate" not in said
    assert "lint" not in said


def test_an_alert_is_a_rule_and_names_its_numbers_its_page_and_its_runbook() -> None:
    written = [rule for rule in rules() if "alert" in rule]
    assert [rule["alert"] for rule in written] == [alert.rule.name for alert in ALERTS]
    for rule, alert in zip(written, ALERTS, strict=True):
        said = rule["annotations"]
        assert said["runbook_url"] == f"https://book.example/{alert.rule.name}.md"
        assert said["dashboard_url"].startswith("https://gpu.example/")
        assert rule["labels"] == {"severity": str(alert.rule.severity)}
        if alert.metric:
            assert "$value" in said["summary"] + said["description"]
            assert {"value", "limit"} <= names_in(alert.rule.summary) | names_in(alert.rule.description)


def test_names_of_recordings_say_level_metric_and_operations() -> None:
    recorded = [rule for rule in rules() if "record" in rule]
    assert len({rule["record"] for rule in recorded}) == len(recorded)
    for rule in recorded:
        level, metric, operations = rule["record"].split(":")
        by = rule["expr"].partition("by (")[2].partition(")")[0]
        assert level == "_".join(by.split(", "))
        assert f"({metric}" in rule["expr"]
        assert operations.split("_")[-1].startswith("last")


def test_only_what_is_exported_is_asked() -> None:
    exported = {f"gpuledger_{metric.series}" for metric in REGISTRY.values() if metric.exported}
    exported |= {f"gpuledger_{name}_timestamp_seconds" for name in ("measured", "source_seen")}
    exported.add("gpuledger_alarm")
    for rule in (rule for rule in rules() if "record" in rule):
        assert rule["record"].split(":")[1] in exported


@pytest.mark.prometheus
def test_alertmanager_accepts_the_example_and_routes_by_it(tmp_path: Path) -> None:
    text = configuration(ALERTS)
    assert "SUCCESS" in tool(tmp_path, "amtool", "check-config", "am.yaml", am=text)
    for told, receiver in (
        (("alertname=GpuQueueWaitTooLong", "severity=warning"), "team"),
        (("alertname=GpuSchedulerStalled", "severity=critical"), "on-call"),
        (("alertname=GpuledgerSourceStale", "severity=critical"), "on-call"),
        (("alertname=GpuledgerWatchdog", "severity=info"), "watchdog"),
    ):
        expected = f"--verify.receivers={receiver}"
        tool(tmp_path, "amtool", "config", "routes", "test", "--config.file=am.yaml", expected, *told)


def test_a_silent_ledger_and_a_louder_alert_inhibit() -> None:
    found = yaml.safe_load(configuration(ALERTS))["inhibit_rules"]
    of_work = [alert.rule for alert in ALERTS if alert.metric is not None]
    of_ledger = [
        (each["source_matchers"][0], each["target_matchers"][0], each.get("equal", []))
        for each in found
        if "Gpuledger" in each["source_matchers"][0]
    ]
    every = "|".join(rule.name for rule in of_work)
    of_cluster = "|".join(rule.name for rule in of_work if "cluster" in rule.identity)
    # A team's budget is of all clusters of a ledger: any that is stale is enough. Another's are its own.
    of_none = "|".join(rule.name for rule in of_work if "cluster" not in rule.identity)
    assert "GpuQueueWaitTooLong" in of_cluster
    assert "GpuHourBudgetBurned" in of_none
    assert "Gpuledger" not in every
    assert of_ledger == [
        (f'alertname="Gpuledger{name}"', f'alertname=~"{targets}"', equal)
        for targets, equal in ((of_cluster, ["cluster"]), (of_none, ["ledger"]))
        for name in ("MeasurementsStale", "MeasurementsAbsent", "SourceStale")
    ]
    assert {
        "source_matchers": ['alertname="GpuQueueWaitTooLong"'],
        "target_matchers": ['alertname="GpuQueueWaitP99TooLong"'],
        "equal": ["cluster", "queue", "service_class"],
    } in found
    louder = {name for alert in ALERTS for name in alert.rule.inhibited_by}
    assert louder <= {alert.rule.name for alert in ALERTS}


def test_the_operator_gets_the_same_rules_and_scrapes_the_same_address() -> None:
    written = yaml.safe_load(prometheus_rule(RULES))
    assert (written["apiVersion"], written["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert written["spec"] == yaml.safe_load(RULES)
    (endpoint,) = yaml.safe_load(service_monitor())["spec"]["endpoints"]
    assert endpoint["path"] == "/metrics"


def test_a_faster_sample_shortens_lengths_and_keeps_the_limits() -> None:
    fast = rules_file(REGISTRY, Policy(), dashboard_url="http://localhost", hold_scale=1 / 60)
    slow_alerts, fast_alerts = ([each for each in rules(text) if "alert" in each] for text in (RULES, fast))
    assert [rule["expr"] for rule in fast_alerts] == [rule["expr"] for rule in slow_alerts]
    by_name = {rule["alert"]: rule for rule in fast_alerts}["GpuQueueWaitTooLong"]
    assert (by_name["for"], by_name["keep_firing_for"]) == ("1s", "5s")
    (kept,) = [
        each for each in rules(fast) if "gpuledger_starvation_index_seconds:" in each.get("record", "")
    ]
    assert "[15s]" in kept["expr"]


def test_a_site_sets_its_limits() -> None:
    policy = Policy(source_stale_after=timedelta(minutes=7), alert_limits={"GpuIdle": 12.5})
    text = rules_file(REGISTRY, policy, dashboard_url="http://localhost")
    expressions = {rule["alert"]: rule["expr"] for rule in rules(text) if "alert" in rule}
    assert expressions["GpuledgerSourceStale"].endswith("> 420")
    assert expressions["GpuIdle"].endswith("> 12.5")
    with pytest.raises(PolicyError, match=r"policy\.alert_limits\.GpuIdel: expected one of .*GpuIdle"):
        rules_file(REGISTRY, Policy(alert_limits={"GpuIdel": 1.0}), dashboard_url="http://localhost")


def test_a_limit_needs_the_labels_that_it_is_joined_on() -> None:
    with pytest.raises(PolicyError, match=r"alert A: limit on \['team'\]"):
        AlertRule(
            name="A", summary="", description="", link="", identity=("cluster",),
            limit=Limit(gauge="wait_target_seconds", on=("team",)),
        )  # fmt: skip


@pytest.mark.prometheus
def test_numbers_are_written_as_prometheus_writes_them(tmp_path: Path) -> None:
    numbers = (0.0, 0.00025, 0.5, 1.0, 59.94, 60.0, 3599.9, 90061.5, -75.0, 0.123456, 1234567.0, 12.34567)
    texts = "|".join(f"{{{{ $value | {words} }}}}" for words in Words)
    alert = {"alert": "A", "expr": "x != -1e9", "annotations": {"text": texts}}
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": "x", "values": repr(number)}],
            "alert_rule_test": [
                {
                    "eval_time": "0m",
                    "alertname": "A",
                    "exp_alerts": [
                        {"exp_annotations": {"text": "|".join(words.write(number) for words in Words)}}
                    ],
                }
            ],
        }
        for number in numbers
    ]
    tool(
        tmp_path,
        *("promtool", "test", "rules", "test.yaml"),
        rules=yaml.safe_dump({"groups": [{"name": "g", "rules": [alert]}]}),
        test=yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}),
    )


@pytest.mark.prometheus
def test_what_a_pod_said_that_was_replaced_breaches_nothing_and_a_scrape_that_fails_ends_nothing(
    tmp_path: Path,
) -> None:
    waits = (
        'gpuledger_starvation_index_seconds{cluster="east",queue="red",service_class="interactive",pod="%s"}'
    )
    about = ('gpuledger_wait_target_seconds{cluster="east",service_class="interactive",pod="%s"}', "300")
    rolled = {waits % "old": "310 stale", waits % "new": "_ 0x39"}
    missed = {waits % "old": "310x9 _ _ _ 310x27"}
    tests = [
        {
            "interval": "1m",
            "input_series": [
                *({"series": series, "values": values} for series, values in found.items()),
                {"series": about[0] % "new", "values": f"{about[1]}x40"},
                {"series": "gpuledger_measured_timestamp_seconds", "values": "0+60x40"},
            ],
            "promql_expr_test": [
                fires("GpuQueueWaitTooLong", minute * 60, alerts=expected) for minute in range(6, 40)
            ],
        }
        for found, expected in ((rolled, 0), (missed, 1))
    ]
    tool(
        tmp_path,
        *("promtool", "test", "rules", "test.yaml"),
        rules=RULES,
        test=yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}),
    )


def breaching(workloads: int) -> dict[str, list[dict[str, Any]]]:
    """So many workloads that wait for two days, in 4 queues and all 3 classes; further ones wait a minute."""
    minute = 60_000
    names = [f"w{number}" for number in range(workloads + 10)]
    return {
        "workload": [
            {
                "workload_uid": name,
                "queue": f"q{number % 4}" if number < workloads else "calm",
                "service_class": ("interactive", "batch", "best_effort")[number % 3],
            }
            for number, name in enumerate(names)
        ],
        "span": [
            {
                "workload_uid": name,
                "state": "queued",
                "start_ms": START_MS - (2880 if number < workloads else 1) * minute,
            }
            for number, name in enumerate(names)
        ],
    }


def scraped(tables: dict[str, list[dict[str, Any]]], names: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The text of a scrape of a world, and its samples by metric."""
    registry = {name: REGISTRY[name] for name in names}
    with store_of(tables) as store:
        samples = {
            name: [
                Sample(labels=dict(zip(metric.labels, key, strict=True)), value=value)
                for key, value in values(store, name, "2026-01-02T00:00:00Z", by=metric.labels).items()
            ]
            for name, metric in registry.items()
        }
    exporter = Exporter(registry, FixedClock(0))
    exporter.publish(
        [
            Measurement(metric=name, as_of_ms=START_MS, sample=each)
            for name, found in samples.items()
            for each in found
        ],
        START_MS,
    )
    return exporter.text().decode(), samples


@pytest.mark.prometheus
def test_a_thousand_breaching_workloads_are_one_alert_per_queue_and_class(tmp_path: Path) -> None:
    text, samples = scraped(breaching(1000), ("starvation_index_seconds", "wait_target_seconds"))
    name = "GpuQueueWaitTooLong"
    (alert,) = [each for each in ALERTS if each.rule.name == name]
    found = [each for each in readings(alert, samples, Policy()) if each.breaches]
    assert len(found) == 4 * 3
    assert len({tuple(sorted(each.labels.items())) for each in found}) == 4 * 3
    test = {
        "interval": "1m",
        "input_series": input_series([text] * 5),
        "promql_expr_test": [fires(name, 180, alerts=4 * 3)],
    }
    tool(
        tmp_path,
        *("promtool", "test", "rules", "test.yaml"),
        rules=RULES,
        test=yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}),
    )


def test_a_limit_that_nobody_measured_is_unknown() -> None:
    by_name = {alert.rule.name: alert for alert in ALERTS}
    waits = {"cluster": "east", "queue": "q", "service_class": "batch"}
    samples = {"starvation_index_seconds": [Sample(labels=waits, value=9e9)]}
    (reading,) = readings(by_name["GpuQueueWaitTooLong"], samples, Policy())
    assert (reading.breaches, reading.limit) == (None, None)


# Where nothing waits, grows, is attempted or held, or nobody is to tell of it, the metric is undefined, and
# all is well. Of every other rule an undefined value says that nobody knows.
FINE_IF_UNDEFINED = {
    "GpuMetricsMissing", "GpuPreemptionStorm", "GpuQueueCapSoon", "GpuQueueWaitBroken",
    "GpuQueueWaitP99TooLong", "GpuRestartStorm",
}  # fmt: skip


@pytest.mark.parametrize("alert", [each for each in ALERTS if each.metric], ids=lambda each: each.rule.name)
def test_an_undefined_value_ends_a_breach_where_it_tells_that_there_is_none(alert: Declared) -> None:
    identity = dict.fromkeys(alert.rule.identity, "x") | dict(alert.rule.match)
    (reading,) = readings(alert, {alert.source: [Sample.undefined(identity, "nothing of it")]}, Policy())
    expected = False if alert.rule.name in FINE_IF_UNDEFINED else None
    assert (reading.breaches, reading.value) == (expected, None)
    assert reading.because == "nothing of it"


def test_of_several_limits_the_one_that_is_breached_first_counts_both_ways() -> None:
    (alert,) = [each for each in ALERTS if each.rule.name == "GpuQueueWaitTooLong"]
    waits = {"cluster": "east", "queue": "q", "service_class": "batch"}
    samples = {
        "starvation_index_seconds": [Sample(labels=waits, value=400.0)],
        "wait_target_seconds": [
            Sample(labels={"service_class": "batch"}, value=limit) for limit in (600.0, 300.0)
        ],
    }
    (reading,) = readings(alert, samples, Policy())
    assert (reading.breaches, reading.limit) == (True, 300.0)
    (record,) = [
        each["expr"] for each in rules() if "wait_target_seconds:min_last15m" in each.get("record", "")
    ]
    told = (
        "min by (cluster, service_class) (gpuledger_wait_target_seconds)"
        " or min by (cluster, service_class) (last_over_time(gpuledger_wait_target_seconds[15m]))"
    )
    assert told in record


def test_a_label_without_a_value_is_no_label() -> None:
    (alert,) = [each for each in ALERTS if each.rule.name == "GpuQueueWaitTooLong"]
    identity = {"cluster": "east", "queue": "", "service_class": "batch"}
    assert labels(alert, identity).keys() == {"alertname", "severity", "cluster", "service_class"}


def test_limits_are_in_the_metrics_own_unit() -> None:
    by_name = {alert.rule.name: alert for alert in ALERTS}
    assert factor(by_name["GpuCumulativeWaitTooLong"], Policy()) == 3.0
    assert factor(by_name["GpuledgerSourceStale"], Policy()) == 180.0
    assert factor(by_name["GpuQueueExploding"], Policy()) == 0.85


def test_a_link_quotes_what_stands_in_it() -> None:
    (alert,) = [each for each in ALERTS if each.rule.name == "GpuQueueWaitTooLong"]
    waits = {"cluster": "e/1", "queue": "a&b", "service_class": "batch"}
    samples = {
        "starvation_index_seconds": [Sample(labels=waits, value=4000.0)],
        "wait_target_seconds": [Sample(labels={"service_class": "batch"}, value=3600.0)],
    }
    (reading,) = readings(alert, samples, Policy())
    said = annotations(alert, reading, Links(dashboard_url="https://gpu.example"))
    assert said["dashboard_url"] == (
        "https://gpu.example/queues?cluster=e%2F1&queue=a%26b&service_class=batch"
    )
