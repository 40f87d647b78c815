"""What a scrape shows of a snapshot, and that Prometheus can read it."""

import subprocess
from dataclasses import replace
from functools import cache

import pytest
from prometheus_client.parser import text_string_to_metric_families

from alerts.budget import MOST, OWN
from alerts.declared import declared, read_by
from alerts.exporter import LABELS, LEFT_OUT, Exporter
from analytics.metrics import REGISTRY
from domain.errors import PolicyError
from domain.metric import Measurement, Sample
from domain.window import FixedClock
from tests.golden.cases import answer, case_files, read

NOW_MS = 1_000_000


def scrape(*measurements: Measurement, sources: dict[str, int] | None = None) -> dict[str, float]:
    """Series and values of one scrape, labels in alphabetical order."""
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS))
    exporter.publish(measurements, 500_000, sources or {})
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exporter.text().decode())
        for sample in family.samples
    }


def measured(metric: str, sample: Sample) -> Measurement:
    return Measurement(metric=metric, as_of_ms=500_000, sample=sample)


@cache
def from_golden_cases() -> list[Measurement]:
    """Measurements of every metric, as its golden cases give them for the exported labels."""
    found = []
    for file in case_files():
        metric = REGISTRY[file.parent.name]
        case = {**read(file), "by": list(metric.labels)}
        for row in answer({key: value for key, value in case.items() if key != "only"}, metric.name):
            labels = {
                name: value for name, value in row.items() if name in LABELS and name != "undefined_because"
            }
            sample = Sample(
                labels=labels,
                value=row.get("value"),
                lower_bound=row.get("lower_bound", False),
                undefined_because=row.get("undefined_because", ""),
            )
            found.append(measured(metric.name, sample))
    return list({(each.metric, str(each.sample.labels)): each for each in found}.values())


# Whichever of the two comes first computes all golden cases.
@pytest.mark.timeout(400)
@pytest.mark.prometheus
def test_promtool_finds_nothing_to_complain_of() -> None:
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS))
    exporter.publish(from_golden_cases(), NOW_MS, {"east": NOW_MS})
    text = exporter.text()
    exported = [metric for metric in REGISTRY.values() if metric.exported and metric.scraped]
    assert all(f"# TYPE gpuledger_{metric.series} ".encode() in text for metric in exported)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")


def test_before_the_first_snapshot_there_is_nothing() -> None:
    assert Exporter(REGISTRY).text() == b""


def test_a_new_snapshot_takes_the_place_of_the_old_one() -> None:
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS))
    for model, as_of_ms in (("A100", 500_000), ("H100", 600_000)):
        sample = Sample(labels={"cluster": "east", "gpu_model": model}, value=1.0)
        exporter.publish([measured("free_gpus", sample)], as_of_ms)
        text = exporter.text().decode()
        series = [line for line in text.splitlines() if line.startswith("gpuledger_free_gpus{")]
        assert series == [f'gpuledger_free_gpus{{cluster="east",gpu_model="{model}"}} 1.0']
        assert f"gpuledger_as_of_timestamp_seconds {as_of_ms / 1000}" in text


def test_an_undefined_value_has_no_series_and_is_counted_by_its_reason() -> None:
    labels = {
        "cluster": "east",
        "queue": "q",
        "service_class": "batch",
        "quantile": "0.5",
        "estimator": "censored",
    }
    series = scrape(measured("queue_wait_seconds", Sample.undefined(labels, "none placed")))
    assert not [name for name in series if name.startswith("gpuledger_queue_wait_seconds")]
    assert series["gpuledger_undefined[('because', 'none placed'), ('metric', 'queue_wait_seconds')]"] == 1


def test_of_many_reasons_the_most_frequent_are_told_and_the_rest_as_one() -> None:
    reasons = ["common"] * 3 + [f"reason {number}" for number in range(7)]
    series = scrape(
        *(
            measured("free_gpus", Sample.undefined({"cluster": "east", "gpu_model": f"{number}"}, reason))
            for number, reason in enumerate(reasons)
        )
    )
    counted = {name: value for name, value in series.items() if name.startswith("gpuledger_undefined[")}
    of = "gpuledger_undefined[('because', '%s'), ('metric', 'free_gpus')]"
    assert (counted[of % "common"], counted[of % "other reasons"], len(counted)) == (3, 3, 6)


def test_a_lower_bound_is_marked_by_its_companion() -> None:
    labels = {"cluster": "east", "gpu_model": "A100"}
    series = scrape(
        measured("free_gpus", Sample(labels=labels, value=3.5, lower_bound=True)),
        measured("free_gpus", Sample(labels={**labels, "gpu_model": "H100"}, value=8.0)),
    )
    assert series["gpuledger_free_gpus[('cluster', 'east'), ('gpu_model', 'A100')]"] == 3.5
    assert series["gpuledger_free_gpus_lower_bound[('cluster', 'east'), ('gpu_model', 'A100')]"] == 1
    assert "gpuledger_free_gpus_lower_bound[('cluster', 'east'), ('gpu_model', 'H100')]" not in series


def test_a_scrape_tells_its_age_by_the_clock_of_the_machine() -> None:
    series = scrape(sources={"east": 990_000})
    measured_of = "gpuledger_measured_timestamp_seconds[('cluster', 'east'), ('ledger', 'gpuledger')]"
    assert series[measured_of] == 1000
    assert series["gpuledger_as_of_timestamp_seconds[]"] == 500
    seen_of = measured_of.replace("measured", "source_seen")
    assert series[seen_of] == 990


@pytest.mark.timeout(400)
def test_first_waits_are_a_histogram_with_the_targets_as_edges() -> None:
    series = scrape(*(each for each in from_golden_cases() if each.metric == "first_wait_seconds"))
    edge = (
        "gpuledger_first_wait_seconds_bucket[('cluster', 'east'), ('le', '%s'), ('service_class', 'batch')]"
    )
    assert [series[edge % name] for name in ("10.0", "300.0", "3600.0", "86400.0", "+Inf")] == [1, 2, 3, 3, 3]
    assert series["gpuledger_first_wait_seconds_sum[('cluster', 'east'), ('service_class', 'batch')]"] == 601


def test_series_over_the_budget_are_left_out_and_counted() -> None:
    many = [
        measured("free_gpus", Sample(labels={"cluster": "east", "gpu_model": str(number)}, value=1.0))
        for number in range(MOST - OWN + 2)
    ]
    series = scrape(*many)
    assert series[f"gpuledger_undefined[('because', '{LEFT_OUT}'), ('metric', 'free_gpus')]"] == 2


def test_a_metric_that_would_export_a_series_per_node_is_refused() -> None:
    held = REGISTRY["held_gpus"]
    with pytest.raises(PolicyError, match=r"held_gpus, exported labels \['node'\]"):
        Exporter({"held_gpus": replace(held, labels=("cluster", "node"))})


def test_gpu_hours_are_exported_in_base_units() -> None:
    metric = REGISTRY["held_gpu_hours"]
    labels = dict.fromkeys((*metric.labels, *metric.extra_labels), "x")
    series = scrape(measured("held_gpu_hours", Sample(labels=labels, value=2.0, lower_bound=True)))
    named = {name.partition("[")[0]: value for name, value in series.items()}
    assert named["gpuledger_held_gpu_seconds"] == 7200.0
    assert named["gpuledger_held_gpu_seconds_lower_bound"] == 1.0
    assert "gpuledger_held_gpu_hours" not in named


def test_a_metric_that_is_not_exported_has_no_series() -> None:
    sample = Sample(labels={"rule": "buy_days"}, value=5.0)
    assert not [name for name in scrape(measured("policy_threshold_days", sample)) if "threshold" in name]


def test_a_scrape_asks_nobody() -> None:
    def refuse(*_: object) -> list[Sample]:
        pytest.fail("a scrape computes nothing")

    metric = replace(REGISTRY["free_gpus"], compute=refuse, sql="select nothing that there is")
    exporter = Exporter({metric.name: metric}, FixedClock(NOW_MS))
    sample = Sample(labels={"cluster": "east", "gpu_model": "A100"}, value=3.0)
    exporter.publish([measured("free_gpus", sample)], NOW_MS)
    assert exporter.text() == exporter.text()
    assert b'gpuledger_free_gpus{cluster="east",gpu_model="A100"} 3.0' in exporter.text()


def test_what_is_not_scraped_has_no_series() -> None:
    waits = {"cluster": "east", "queue": "q", "service_class": "batch", "quantile": "0.99"}
    series = scrape(
        *(
            measured("queue_wait_seconds", Sample(labels={**waits, "estimator": name}, value=5.0))
            for name in ("censored", "started")
        ),
        measured("time_to_placement_seconds", Sample(labels={**waits, "estimator": "censored"}, value=5.0)),
    )
    seconds = [name for name in series if "_seconds[" in name and "timestamp" not in name]
    assert len(seconds) == 1
    assert "('estimator', 'censored')" in seconds[0]


def test_an_alarm_that_sounds_has_a_series_before_anything_was_measured() -> None:
    alarms = {"disk_full": "make room"}
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS), alarms=lambda: alarms)
    assert b'gpuledger_alarm{alarm="disk_full",ledger="gpuledger"} 1.0' in exporter.text()
    alarms.clear()
    assert exporter.text() == b""


def test_a_cluster_is_told_of_while_all_that_told_of_it_failed() -> None:
    """Else its ledger would be silent to Prometheus, which is another alert."""
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS))
    sample = Sample(labels={"cluster": "east", "gpu_model": "A100"}, value=3.0)
    exporter.publish([measured("fragmented_gpus", sample)], NOW_MS)
    exporter.publish([], NOW_MS, failed={"fragmented_gpus"})
    text = exporter.text()
    assert b'gpuledger_measured_timestamp_seconds{cluster="east",ledger="gpuledger"}' in text
    assert b'gpuledger_incomplete{ledger="gpuledger",metric="fragmented_gpus"} 1.0' in text
    exporter.publish([], NOW_MS)
    assert b'cluster="east"' not in exporter.text()


def test_an_undefined_value_that_is_of_nothing_has_no_mark() -> None:
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS))
    labels = {"cluster": "east", "gpu_model": "A100"}
    for sample, marks in ((Sample.undefined({}, "no node"), 0), (Sample.undefined(labels, "no node"), 1)):
        exporter.publish([measured("fragmented_gpus", sample)], NOW_MS)
        assert exporter.text().count(b"gpuledger_fragmented_gpus_unknown{") == marks


def test_what_sounds_and_what_failed_is_told_of_a_hundred_clusters() -> None:
    clusters = {f"c{number}": 990_000 for number in range(100)}
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS), alarms=lambda: {"metric_failed": "all of them"})
    exporter.publish([], 500_000, clusters, failed=frozenset(REGISTRY))
    text = exporter.text().decode()
    assert 'gpuledger_alarm{alarm="metric_failed"' in text
    assert text.count("\ngpuledger_source_seen_timestamp_seconds{") == len(clusters)
    watched = {name for alert in declared(REGISTRY) if alert.metric is not None for name in read_by(alert)}
    # An autoscaler acts on this one.
    watched.add("queue_depth_gpus")
    assert text.count("\ngpuledger_incomplete{") == len(watched)
    assert "own_series_left_out" not in text


def test_however_many_alarms_sound_it_is_told_what_was_read_and_what_is_incomplete() -> None:
    alarms = {f"one_cluster_twice/{number}": "why" for number in range(1_500)}
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS), alarms=lambda: alarms)
    exporter.publish([], 500_000, {"east": 990_000}, failed=frozenset({"starvation_index_seconds"}))
    text = exporter.text().decode()
    for name in ("measured_timestamp_seconds", "source_seen_timestamp_seconds", "incomplete"):
        assert text.count(f"\ngpuledger_{name}{{") == 1


def test_what_there_is_no_room_for_about_the_ledger_itself_is_counted() -> None:
    clusters = {f"c{number}": 990_000 for number in range(600)}
    exporter = Exporter(REGISTRY, FixedClock(NOW_MS), alarms=lambda: {"metric_failed": "all of them"})
    exporter.publish([], 500_000, clusters, failed=frozenset({"free_gpus", "starvation_index_seconds"}))
    lines = [line for line in exporter.text().decode().splitlines() if not line.startswith("#")]
    assert len(lines) == OWN
    # Of each cluster two, the instant, the alarm, what failed; less the room, of which one is this count.
    assert f"gpuledger_own_series_left_out {2 * 600 + 3 - (OWN - 1)}.0" in lines
