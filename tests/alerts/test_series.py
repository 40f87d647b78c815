"""The number of series of a large site, by the formula and on a page that is scraped."""

from collections.abc import Iterator
from itertools import product

from alerts.declared import declared, read_by
from alerts.exporter import LABELS, SERIES_BUDGET, Exporter
from alerts.series import MOST, Site, factors, most_series, page
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Metric, MetricKind, Sample
from domain.window import FixedClock

SITE = Site()
NUMBERS = {name: most_series(metric, SITE) for name, metric in REGISTRY.items()}


def of_a_large_site(metric: Metric) -> Iterator[Measurement]:
    """A value for every label of the site, every twentieth of which is a lower bound."""
    labels = [*metric.labels, *metric.extra_labels]
    ranges = [
        metric.scraped_where.get(name, [f"{number}" for number in range(size)])
        for name, (_, size) in zip(labels, factors(metric, SITE), strict=True)
    ]
    for number, values in enumerate(product(*ranges)):
        named = dict(zip(labels, values, strict=True))
        sample = Sample(labels=named, value=1.0, lower_bound=number % 20 == 0)
        yield Measurement(metric=metric.name, as_of_ms=0, sample=sample)


def test_a_large_site_stays_within_what_prometheus_should_bear() -> None:
    assert sum(NUMBERS.values()) < MOST
    assert max(NUMBERS.values()) <= SERIES_BUDGET
    exporter = Exporter(REGISTRY, FixedClock(0))
    # What a histogram is made of is counted by the formula, and tested where the exporter is.
    shown = [
        metric
        for metric in REGISTRY.values()
        if metric.exported and metric.scraped and metric.kind is not MetricKind.HISTOGRAM
    ]
    exporter.publish([each for metric in shown for each in of_a_large_site(metric)], 0)
    lines = [line for line in exporter.text().decode().splitlines() if not line.startswith("#")]
    bounds = [line for line in lines if "_lower_bound{" in line]
    own = [line for line in lines if line.startswith(("gpuledger_measured_", "gpuledger_as_of_"))]
    assert len(lines) < MOST
    assert len(lines) - len(bounds) - len(own) == sum(NUMBERS[metric.name] for metric in shown)


def test_what_grows_with_gpus_jobs_or_people_is_no_label() -> None:
    assert {"node", "device", "user_name", "workload", "uid", "gang_size"}.isdisjoint(LABELS)


def test_the_page_tells_the_sum_and_every_metric() -> None:
    text = page(REGISTRY, SITE)
    assert f"**{sum(NUMBERS.values()):,}**" in text
    shown = [metric.series for metric in REGISTRY.values() if metric.exported and metric.scraped]
    assert [name for name in shown if f"`gpuledger_{name}`" not in text] == []


def test_alerts_see_what_they_need() -> None:
    for alert in declared(REGISTRY):
        if alert.metric is not None:
            assert all(REGISTRY[name].scraped for name in read_by(alert))
        if counted := alert.rule.counted:
            # Its number is found by the labels of the alert, and by no others.
            assert sorted(REGISTRY[counted].labels) == sorted(alert.rule.identity)
