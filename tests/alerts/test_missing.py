"""What is missing from a scrape and why: what is unknown keeps an alert, what is gone ends it, both ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.declared import Declared, declared
from alerts.evaluation import Alert, Evaluation, firing
from alerts.exporter import Exporter
from alerts.posting import Identity
from alerts.readings import Reading
from alerts.rules import rules_file
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Sample
from domain.policy import Policy
from tests.alerts.scraped import fires, input_series, promtool_tests, run_promtool

ABSENT, OUTDATED = "GpuledgerMeasurementsAbsent", "GpuledgerMeasurementsStale"
OF_QUEUES, OF_TEAMS = "GpuQueueWaitTooLong", "GpuHourBudgetBurned"
READ = ("starvation_index_seconds", "wait_target_seconds", "past_target_workloads", "budget_burned_ratio")
RULES = rules_file({name: REGISTRY[name] for name in READ}, Policy(), dashboard_url="https://gpu.example")
MINUTE_MS = 60_000
OF_NAME = {alert.rule.name: alert for alert in declared(REGISTRY)}
# A letter per minute: a value that breaches, one that does not, an undefined one; a metric that fails, that
# tells of others only, so while another metric fails or those are undefined, or of another cluster only; a
# ledger that tells what it told before, or nothing.
BREACHES, FINE, UNDEFINED, FAILS, GONE, BESIDE, OTHERS, DROPPED, STALE, SILENT = "bfuxgohdzs"


@dataclass(slots=True)
class Site:
    """A queue or team of a ledger, a minute at a time: as Prometheus scrapes it, and as we evaluate it."""

    alert: Declared
    labels: Mapping[str, str]
    breaching: float
    course: str
    ledger: str = "gpuledger"
    at_ms: int = 0
    scrapes: list[str | None] = field(default_factory=list)
    states: str = ""
    _alerts: Mapping[Identity, Alert] = field(default_factory=dict)

    def now_ms(self) -> int:
        return self.at_ms

    def played(self) -> "Site":
        registry = {name: REGISTRY[name] for name in (self.alert.source, "wait_target_seconds")}
        exporter = Exporter(registry, self, ledger=self.ledger)
        for minute, letter in enumerate(self.course):
            self.at_ms = minute * MINUTE_MS
            samples = self._samples(letter)
            if letter in {SILENT, STALE}:
                self.scrapes.append(exporter.text().decode() if letter == STALE else None)
            else:
                exporter.publish(
                    [
                        Measurement(metric=name, as_of_ms=self.at_ms, sample=each)
                        for name, found in samples.items()
                        for each in found
                    ],
                    self.at_ms,
                    {self._cluster(letter): self.at_ms},
                    failed=registry.keys() - samples.keys(),
                )
                self.scrapes.append(exporter.text().decode())
                self._alerts = Evaluation(
                    declared=[self.alert],
                    samples=samples,
                    policy=Policy(),
                    annotate=_nothing,
                    at_ms=self.at_ms,
                    now_ms=self.at_ms,
                ).after(self._alerts)
            self.states += "!" if firing(self._alerts) else "."
        return self

    def _samples(self, letter: str) -> dict[str, list[Sample]]:
        targets = [Sample(labels={"service_class": "interactive"}, value=300.0)]
        labels = dict.fromkeys(self.labels, "other")
        if "cluster" in labels:
            labels["cluster"] = self._cluster(letter)
        other = Sample(labels=labels, value=0.0)
        if letter == OTHERS:
            other = Sample.undefined(labels, "nobody knows")
        mine = {
            BREACHES: Sample(labels=self.labels, value=self.breaching),
            FINE: Sample(labels=self.labels, value=0.0),
            UNDEFINED: Sample.undefined(self.labels, "nobody knows"),
        }.get(letter)
        told = {} if letter == FAILS else {self.alert.source: [other, *([mine] if mine else [])]}
        return told if letter == BESIDE else {"wait_target_seconds": targets, **told}

    def _cluster(self, letter: str) -> str:
        """The only one that the ledger tells of."""
        return "elsewhere" if letter == DROPPED else self.labels.get("cluster", "east")


def _nothing(_: Declared, __: Reading) -> Mapping[str, str]:
    return {}


def queue(course: str, *, cluster: str = "east", ledger: str = "gpuledger") -> Site:
    labels = {"cluster": cluster, "queue": "q", "service_class": "interactive"}
    return Site(OF_NAME[OF_QUEUES], labels, 900.0, course, ledger).played()


def team(course: str) -> Site:
    labels = {"team": "nlp", "period": "month"}
    return Site(OF_NAME[OF_TEAMS], labels, 1.5, course).played()


def promtool(folder: Path, *tests: Mapping[str, Any]) -> None:
    promtool_tests(folder, RULES, *tests)


def expected(name: str, states: Sequence[str]) -> list[dict[str, Any]]:
    return [fires(name, place * 60, alerts=int(state == "!")) for place, state in enumerate(states)]


# An alert waits for a minute, a value stands for 15, the alert stays 5. In the end a value, or the lack of a
# series in a sound measurement, ends it.
LONG = 25
COURSES = {
    "undefined, then fine": (f"bbb{UNDEFINED * LONG}ffffffff", f".{'!' * (2 + LONG + 5)}..."),
    "undefined, then gone": (f"bbb{UNDEFINED * LONG}gggggggg", f".{'!' * (2 + LONG + 5)}..."),
    "failed, then fine": (f"bbb{FAILS * LONG}ffffffff", f".{'!' * (2 + LONG + 5)}..."),
    "failed, undefined, failed": (f"bbb{FAILS * 20}{UNDEFINED * 3}{FAILS * 3}", f".{'!' * 28}"),
    "failed, the ledger restarted, failed": (f"bbb{FAILS * 20}sss{FAILS * 5}ff", f".{'!' * 32}"),
    "gone": (f"bbb{GONE * 24}", f".{'!' * (2 + 15 + 5)}...."),
    "gone while another metric fails": (f"bbb{BESIDE * 24}", f".{'!' * (2 + 15 + 5)}...."),
    "gone while others are undefined": (f"bbb{OTHERS * 24}", f".{'!' * (2 + 15 + 5)}...."),
    "its cluster is not read any more": (f"bbb{DROPPED * 24}", f".{'!' * (2 + 15 + 5)}...."),
    "never told": (f"ff{UNDEFINED * 5}{FAILS * 20}", "." * 27),
}  # fmt: skip


# What is calm as it becomes unknown: without Prometheus, and with it, where `keep_firing_for` runs on.
CALM = {
    "fine, then undefined": (f"bbbff{UNDEFINED * 25}", f".{'!' * 29}", f".{'!' * 7}{'.' * 22}"),
    "fine, then failed": (f"bbbff{FAILS * 25}", f".{'!' * 29}", f".{'!' * 7}{'.' * 22}"),
    "fine and undefined in turn": (f"bbbf{UNDEFINED * 3}b{UNDEFINED * 9}", f".{'!' * 16}", f".{'!' * 16}"),
}  # fmt: skip


# What is of no cluster is kept by a condition of its own.
OF_EITHER = ("undefined, then fine", "failed, then fine", "gone")


@pytest.mark.parametrize("of", [queue, team])
def test_without_prometheus_only_news_end_an_alert(of: Any) -> None:
    for name, (course, states, *_) in {**COURSES, **CALM}.items():
        assert of(course).states == states, name


@pytest.mark.prometheus
def test_with_prometheus_only_news_end_an_alert(tmp_path: Path) -> None:
    promtool(
        tmp_path,
        *(
            {
                "name": f"{site.alert.rule.name}, {name}",
                "interval": "1m",
                "input_series": input_series(site.scrapes),
                "promql_expr_test": [
                    *expected(site.alert.rule.name, states),
                    # Whatever became of it, the ledger lives.
                    fires(ABSENT, len(course) * 60, alerts=0),
                ],
            }
            for name, (course, *_, states) in {**COURSES, **CALM}.items()
            for site in ([queue(course), team(course)] if name in OF_EITHER else [queue(course)])
        ),
    )


def of_ledgers(*sites: Site) -> list[dict[str, str]]:
    """What one Prometheus scrapes of several ledgers."""
    return [each for site in sites for each in input_series(site.scrapes, instance=site.ledger)]


@pytest.mark.prometheus
def test_of_two_ledgers_the_death_of_one_is_told_and_ends_nothing(tmp_path: Path) -> None:
    minutes = 30
    dead = queue(f"bbb{SILENT * minutes}", ledger="one")
    stale = queue(f"bbb{STALE * minutes}", ledger="one")
    gone = queue(f"bbb{GONE * minutes}", ledger="two", cluster="west")
    cases = {
        # The queue that vanished is over there, and the dead ledger's is not.
        "gone": (dead, gone, ABSENT, 1),
        "breaches": (dead, queue("b" * (3 + minutes), ledger="two", cluster="west"), ABSENT, 2),
        # What the living one tells of the same cluster counts; that the other one died is told all the same.
        "moved": (dead, queue(f"ggg{FINE * minutes}", ledger="two"), ABSENT, 0),
        "stale": (stale, gone, OUTDATED, 1),
    }
    promtool(
        tmp_path,
        *(
            {
                "name": name,
                "interval": "1m",
                "input_series": [*of_ledger(one), *of_ledger(other)],
                "promql_expr_test": [
                    *(fires(each, minutes * 60, alerts=int(each == told)) for each in (ABSENT, OUTDATED)),
                    fires(OF_QUEUES, minutes * 60, alerts=waits),
                ],
            }
            for name, (one, other, told, waits) in cases.items()
        ),
    )


@pytest.mark.prometheus
def test_a_sole_ledger_is_missed_for_ever_and_one_of_several_over_a_weekend(tmp_path: Path) -> None:
    """An hour stands for the three days, in steps shorter than the time for which Prometheus looks back."""
    rules = rules_file({}, Policy(), dashboard_url="https://gpu.example")
    assert "[3d]" in rules
    (tmp_path / "rules.yaml").write_text(rules.replace("[3d]", "[1h]"))
    minutes = 4

    def told(ledger: str, cluster: str, values: str) -> dict[str, str]:
        labels = f'{{ledger="{ledger}",cluster="{cluster}"}}'
        return {"series": f"gpuledger_measured_timestamp_seconds{labels}", "values": values}

    dead, living = told("one", "east", "0+240x5 stale"), told("two", "west", "0+240x30")
    # What an earlier version told had no name; that it is not told any more is no end of a ledger.
    unnamed = {"series": "gpuledger_measured_timestamp_seconds", "values": dead["values"]}
    cases = {
        # By its own name still: without it it would be another alert, which inhibits nothing.
        "sole": ([dead], {40: 1, 76: 1, 100: 1}),
        "one of two": ([dead, living], {40: 1, 76: 1, 100: 0}),
        "upgraded": ([unnamed, living], {40: 0}),
    }
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{minutes}m",
        "tests": [
            {
                "name": name,
                "interval": f"{minutes}m",
                "input_series": series,
                "promql_expr_test": [
                    fires(f'{ABSENT}",ledger="one' if alerts else ABSENT, minute * 60, alerts=alerts)
                    for minute, alerts in known.items()
                ],
            }
            for name, (series, known) in cases.items()
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content))
    run_promtool(tmp_path)


MEASURED, SEEN = "gpuledger_measured_timestamp_seconds", "gpuledger_source_seen_timestamp_seconds"


def typed(name: str, values: str, **labels: str) -> dict[str, str]:
    named = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return {"series": f"{name}{{{named}}}", "values": values}


@pytest.mark.prometheus
def test_what_a_ledger_told_of_itself_stays_while_it_is_silent(tmp_path: Path) -> None:
    east = {"ledger": "one", "cluster": "east"}
    series = [
        typed(MEASURED, "0+60x15 stale", **east),
        typed(SEEN, "0x15 stale", **east),
        # What is current as the ledger dies does not become stale.
        typed(MEASURED, "0+60x15 stale", ledger="one", cluster="west"),
        typed(SEEN, "0+60x15 stale", ledger="one", cluster="west"),
        typed("gpuledger_alarm", "1x15 stale", ledger="one", alarm="metric_failed"),
    ]
    known = [fires(name, 40 * 60, alerts=1) for name in ("GpuledgerSourceStale", "GpuledgerAlarm")]
    promtool(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": known})


@pytest.mark.prometheus
def test_of_a_cluster_that_is_taken_out_alerts_about_the_ledger_end_at_once_both_ways(
    tmp_path: Path,
) -> None:
    minutes = 40
    gone, rest = {"ledger": "one", "cluster": "gone"}, {"ledger": "one", "cluster": "rest"}
    series = [
        typed(name, values, **labels)
        for name in (MEASURED, SEEN)
        for labels, values in ((gone, "0x15 stale"), (rest, f"0+60x{minutes}"))
    ]
    names = ("GpuledgerSourceStale", OUTDATED)
    expected_of = []
    for name in names:
        alerts: Mapping[Identity, Alert] = {}
        states = ""
        for minute in range(minutes):
            samples = [Sample(labels=rest, value=0.0)]
            samples += [Sample(labels=gone, value=minute * 60.0)] if minute <= 15 else []
            alerts = Evaluation(
                declared=[OF_NAME[name]],
                samples={name: samples},
                policy=Policy(),
                annotate=_nothing,
                at_ms=minute * MINUTE_MS,
                now_ms=minute * MINUTE_MS,
            ).after(alerts)
            states += "!" if firing(alerts) else "."
        assert "!" in states
        expected_of += expected(name, states)
    promtool(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": expected_of})


@pytest.mark.prometheus
def test_what_only_ages_while_its_cluster_is_not_read_ends_nothing(tmp_path: Path) -> None:
    """Not read from minute 10 to 60: the value is below its limit from 20 on, and breaches as it is read."""
    east = {"ledger": "one", "cluster": "east"}
    waits = {"cluster": "east", "queue": "q", "service_class": "interactive"}
    series = [
        typed(MEASURED, "0+60x90", **east),
        typed(SEEN, "0+60x10 600x48 3600+60x30", **east),
        typed("gpuledger_wait_target_seconds", "300x90", cluster="east", service_class="interactive"),
        typed("gpuledger_starvation_index_seconds", "900x19 0x39 900x10 0x20", **waits),
        typed("gpuledger_budget_burned_ratio", "1.5x19 0x39 1.5x10 0x20", ledger="one", team="nlp"),
    ]
    known = [
        fires(name, minute * 60, alerts=int(minute < 80))
        for name in (OF_QUEUES, OF_TEAMS)
        for minute in (15, 30, 50, 58, 62, 69, 89)
    ]
    promtool(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": known})


@pytest.mark.prometheus
@pytest.mark.parametrize("silent", [1, 8])
def test_a_cluster_that_is_not_read_is_not_read_again_because_its_ledger_was_silent(
    silent: int, tmp_path: Path
) -> None:
    """Not read from minute 10 on, below its limit from 20 on, and not scraped for some minutes from 40 on."""
    east = {"ledger": "one", "cluster": "east"}
    waits = {"cluster": "east", "queue": "q", "service_class": "interactive"}
    rest = 90 - 40 - silent
    away = "stale " + f"_x{silent - 1} " * (silent > 1)
    series = [
        typed(MEASURED, f"0+60x39 {away}{(40 + silent) * 60}+60x{rest - 1}", **east),
        typed(SEEN, f"0+60x10 600x28 {away}600x{rest - 1}", **east),
        typed(
            "gpuledger_wait_target_seconds", f"300x39 {away}300x{rest - 1}",
            cluster="east", service_class="interactive",
        ),
        typed("gpuledger_starvation_index_seconds", f"900x19 0x19 {away}0x{rest - 1}", **waits),
        typed("gpuledger_budget_burned_ratio", f"1.5x19 0x19 {away}0x{rest - 1}", ledger="one", team="nlp"),
    ]  # fmt: skip
    known = [
        fires(name, minute * 60, alerts=1)
        for name in (OF_QUEUES, OF_TEAMS)
        for minute in (15, 39, 40, 40 + silent, 60, 89)
    ]
    promtool(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": known})


@pytest.mark.prometheus
def test_a_cluster_that_another_ledger_reads_is_read_though_one_that_did_not_is_dead(tmp_path: Path) -> None:
    one, two = {"ledger": "one", "cluster": "east"}, {"ledger": "two", "cluster": "east"}
    waits = {"cluster": "east", "queue": "q", "service_class": "interactive"}
    series = [
        typed(MEASURED, "0+60x39 stale", **one),
        typed(MEASURED, "0+60x90", **two),
        typed(SEEN, "0+60x10 600x28 stale", **one),
        typed(SEEN, "0+60x10 600x34 2700+60x44", **two),
        typed("gpuledger_wait_target_seconds", "300x90", cluster="east", service_class="interactive"),
        typed("gpuledger_starvation_index_seconds", "900x19 0x70", **waits),
    ]
    known = [fires(OF_QUEUES, minute * 60, alerts=int(minute < 50)) for minute in (15, 39, 44, 89)]
    promtool(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": known})


@pytest.mark.prometheus
def test_what_is_held_against_a_limit_that_is_gone_ends_to_prometheus_too(tmp_path: Path) -> None:
    series = [
        typed(MEASURED, "0+60x60", ledger="one", cluster="east"),
        typed(SEEN, "0+60x60", ledger="one", cluster="east"),
        typed(
            "gpuledger_wait_target_seconds", "300x20 stale", cluster="east", service_class="interactive"
        ),
        typed(
            "gpuledger_starvation_index_seconds", "900x60",
            cluster="east", queue="q", service_class="interactive",
        ),
    ]  # fmt: skip
    known = [fires(OF_QUEUES, minute * 60, alerts=int(minute < 41)) for minute in (15, 30, 45)]
    promtool(tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": known})


def of_ledger(site: Site) -> list[dict[str, str]]:
    """What Prometheus scrapes of one ledger of several."""
    return input_series(site.scrapes, instance=site.ledger)
