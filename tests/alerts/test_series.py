"""The number of series of a large site, by the formula and on a page that is scraped: there is a maximum."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType

from alerts.budget import MOST, OWN, Budget
from alerts.declared import declared, read_by
from alerts.exporter import LABELS, Exporter
from alerts.series import Site, factors, most_series, most_values, page
from analytics.histogram import SUM
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Metric, MetricKind, Sample
from domain.window import FixedClock

SITE = Site()
SHOWN = [metric for metric in REGISTRY.values() if metric.exported and metric.scraped]
WATCHED = Budget(metrics=REGISTRY, alerts=declared(REGISTRY)).watched
CLASSES = ("interactive", "batch", "best_effort", "unclassified")
WAITS = "starvation_index_seconds"


def labelled(metric: Metric, site: Site) -> Iterator[Mapping[str, str]]:
    """Every combination of labels that the site can have."""
    labels = [*metric.labels, *metric.extra_labels]
    ranges = []
    # Those that say whose it is, the exporter adds.
    for name, (_, size) in zip(labels, factors(metric, site), strict=False):
        values = metric.scraped_where.get(name) or [f"{number}" for number in range(size)]
        # Two of the lines of a histogram are not made of edges; the count follows from the sum.
        edges = [*(f"{edge}.0" for edge in range(size - 3)), "+Inf", SUM]
        ranges.append(edges if name == "le" else values)
    for values in product(*ranges):
        yield dict(zip(labels, values, strict=True))


def scraped(
    samples: Mapping[str, Iterable[Sample]],
    registry: Mapping[str, Metric] = REGISTRY,
    alarms: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    exporter = Exporter(registry, FixedClock(0), alarms=lambda: alarms)
    exporter.publish(
        [
            Measurement(metric=name, as_of_ms=0, sample=each)
            for name, found in samples.items()
            for each in found
        ],
        0,
    )
    return [line for line in exporter.text().decode().splitlines() if not line.startswith("#")]


def series_of(metric: str, lines: Iterable[str]) -> int:
    name = f"gpuledger_{REGISTRY[metric].series}"
    return sum(line.startswith((f"{name}{{", f"{name}_")) for line in lines)


def test_the_formula_counts_every_series_that_a_metric_can_have() -> None:
    for metric in SHOWN:
        bound = metric.kind is not MetricKind.HISTOGRAM
        # Few enough that none is left out.
        small = replace(SITE, queues=3, teams=5)
        samples = [Sample(labels=each, value=1.0, lower_bound=bound) for each in labelled(metric, small)]
        found = series_of(metric.name, scraped({metric.name: samples}, {metric.name: metric}))
        assert found == most_series(metric, small), metric.name


def test_the_worst_site_has_no_more_series_than_the_maximum_and_all_that_alerts_read() -> None:
    lines = scraped(
        {
            metric.name: [
                Sample(labels=each, value=1.0, lower_bound=metric.kind is not MetricKind.HISTOGRAM)
                for each in labelled(metric, SITE)
            ]
            for metric in SHOWN
        }
    )
    needed = sum(most_series(metric, SITE) for metric in SHOWN)
    assert MOST - OWN - len(SHOWN) < len(lines) <= MOST < 20_000 < needed
    for name in WATCHED:
        assert series_of(name, lines) == most_series(REGISTRY[name], SITE)
    assert not [line for line in lines if line.startswith("gpuledger_incomplete")]
    assert [line for line in lines if "left out" in line]


def test_a_site_however_large_has_no_more_and_what_breaches_is_shown_first() -> None:
    """Of 20,000 waits those of the first class breach, which are shorter than all that do not."""
    samples = {
        WAITS: [
            Sample(
                labels={"cluster": f"c{number % 400}", "queue": f"{number}", "service_class": name},
                value=400.0 if name == "interactive" else 900.0 if number % 30 else None,
                undefined_because="" if number % 30 else f"reason {number}",
            )
            for number in range(5000)
            for name in CLASSES
        ],
        "wait_target_seconds": [
            Sample(labels={"service_class": name}, value=300.0 if name == "interactive" else 3600.0)
            for name in CLASSES
        ],
        "queue_depth_gpus": [
            Sample(
                labels={"cluster": "c0", "queue": f"{number}", "service_class": "batch", "team": ""},
                value=1.0,
            )
            for number in range(9)
        ],
        "free_gpus": [Sample(labels={"cluster": "c0", "gpu_model": "H100"}, value=1.0)],
    }  # fmt: skip
    lines = scraped(samples)
    waits = [line for line in lines if line.startswith("gpuledger_starvation_index_seconds{")]
    assert sum("interactive" in line for line in waits) == 5000
    assert series_of("wait_target_seconds", lines) == len(CLASSES) * 400
    # Alerts read more than there is room for: nothing is left for the rest but what autoscalers act on.
    assert series_of("queue_depth_gpus", lines) == 9
    # All that breaches or is unknown is shown.
    assert not [line for line in lines if line.startswith("gpuledger_incomplete")]
    alarms = {f"alarm_{number}": "" for number in range(2000)}
    assert len(lines) <= len(scraped(samples, alarms=alarms)) <= MOST


def test_each_metric_has_what_it_needs_and_the_largest_share_what_is_left() -> None:
    sizes = {"free_gpus": 10, "held_gpus": 500, "quota_gpus": 900}
    found = {
        name: [Sample(labels={"number": f"{number}"}, value=1.0) for number in range(size)]
        for name, size in sizes.items()
    }
    shown = Budget(metrics=REGISTRY, alerts=declared(REGISTRY), room=310).shown(found)
    assert {name: len(samples) for name, samples in shown.samples.items()} == {
        "free_gpus": 10, "held_gpus": 150, "quota_gpus": 150,
    }  # fmt: skip
    assert shown.left_out == {"held_gpus": 350, "quota_gpus": 750}
    assert list(shown.samples["held_gpus"]) == found["held_gpus"][:150]


def kept(room: int, name: str, values: Mapping[str, float | None], **more: list[Sample]) -> list[str]:
    """Which queues of a metric are shown where there is room for so many series."""
    labels = {"cluster": "east", "service_class": "interactive"}
    samples = [Sample(labels={**labels, "queue": queue}, value=value) for queue, value in values.items()]
    shown = Budget(metrics=REGISTRY, alerts=declared(REGISTRY), room=room).shown({name: samples, **more})
    return [sample.labels["queue"] for sample in shown.samples[name]]


def test_what_breaches_goes_first_then_what_is_unknown_then_the_worst() -> None:
    target = {"wait_target_seconds": [Sample(labels={"service_class": "interactive"}, value=300.0)]}
    waits = {"calm": 20.0, "unknown": None, "breaches": 400.0, "near": 299.0}
    one_less, two, one = (kept(room, WAITS, waits, **target) for room in (4, 3, 2))
    assert (one_less, two, one) == (["unknown", "breaches", "near"], ["unknown", "breaches"], ["breaches"])
    # Where little is bad the lowest are the worst.
    assert kept(2, "queue_cap_seconds", {"far": 9e9, "soon": 60.0, "later": 2e4}) == [
        "soon", "later",
    ]  # fmt: skip


def test_how_many_wait_is_told_of_what_breaches_before_where_most_do() -> None:
    labels = {"cluster": "east", "service_class": "interactive"}
    found = {
        "wait_target_seconds": [Sample(labels={"service_class": "interactive"}, value=300.0)],
        WAITS: [Sample(labels={**labels, "queue": q}, value=v) for q, v in (("calm", 9.0), ("late", 400.0))],
    }
    assert kept(4, "past_target_workloads", {"calm": 50.0, "late": 1.0}, **found) == ["late"]


def test_a_histogram_is_shown_whole_or_not_at_all() -> None:
    metric = REGISTRY["first_wait_seconds"]
    found = {metric.name: [Sample(labels=each, value=1.0) for each in labelled(metric, SITE)]}
    each = most_values(metric, SITE) // len(CLASSES)
    shown = Budget(metrics=REGISTRY, alerts=(), room=2 * each + 5).shown(found)
    assert len(shown.samples[metric.name]) == 2 * (each - 1)
    # With the sum comes the count, which takes room too.
    shown = Budget(metrics=REGISTRY, alerts=(), room=2 * each - 1).shown(found)
    assert len(shown.samples[metric.name]) == each - 1


def test_what_grows_with_gpus_jobs_or_people_is_no_label() -> None:
    assert {"node", "device", "user_name", "workload", "uid", "gang_size"}.isdisjoint(LABELS)


def test_the_page_tells_the_maximum_and_every_metric() -> None:
    text = page(REGISTRY, SITE)
    assert f"**{MOST:,}**" in text
    assert f"{sum(most_values(metric, SITE) for metric in SHOWN):,} values" in text
    assert [metric.series for metric in SHOWN if f"`gpuledger_{metric.series}`" not in text] == []


def test_alerts_see_what_they_need() -> None:
    for alert in declared(REGISTRY):
        if alert.metric is not None:
            assert all(REGISTRY[name].scraped for name in read_by(alert))
        if counted := alert.rule.counted:
            # Its number is found by the labels of the alert, and by no others.
            assert sorted(REGISTRY[counted].labels) == sorted(alert.rule.identity)
