"""What is measured becomes alerts: one identity per label set, whatever happens to values and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from alerts.declared import Declared, declared, read_by
from alerts.evaluation import Alert, Evaluation, without_undeclared
from alerts.posting import Identity
from alerts.readings import NO_LIMIT, UNKNOWN_LIMIT, Reading, annotations, readings
from alerts.standing import State
from alerts.wording import Links
from analytics.evaluate import evaluate, exported_asks
from analytics.metrics import REGISTRY
from domain.alert import AlertRule, Comparison, Limit, Severity
from domain.errors import PolicyError
from domain.metric import Metric, Sample, Unit
from domain.policy import Policy

MINUTE = 60_000
LINKS = Links(dashboard_url="https://gpu.example/tools/fair", runbooks_url="https://book.example")
RULE = AlertRule(
    name="GpuWait",
    summary="{queue} waits {value}",
    description="More than {limit}.",
    link="queues?queue={queue}",
    limit=Limit(times=300.0),
    identity=("cluster", "queue"),
    hold=timedelta(minutes=2),
    window=timedelta(minutes=3),
    keep=timedelta(minutes=1),
)
METRIC = Metric(
    name="wait_seconds",
    unit=Unit.SECONDS,
    title="Wait",
    definition="How long.",
    source="here",
    sql="select 1",
    labels=("cluster", "queue"),
    alerts=(RULE,),
)
WAIT = Declared(rule=RULE, metric=METRIC)


def wait(seconds: float | None, queue: str = "red", cluster: str = "east") -> Sample:
    labels = {"cluster": cluster, "queue": queue}
    if seconds is None:
        return Sample.undefined(labels, "its clock is wrong")
    return Sample(labels=labels, value=seconds)


def annotate(one: Declared, reading: Reading) -> Mapping[str, str]:
    return annotations(one, reading, LINKS)


def evaluated(
    before: Mapping[Identity, Alert],
    minute: int,
    samples: Sequence[Sample] | None,
    *,
    stale: Mapping[str, str] | None = None,
    of: Declared = WAIT,
) -> dict[Identity, Alert]:
    evaluation = Evaluation(
        declared=[of],
        samples={} if samples is None else {METRIC.name: samples},
        policy=Policy(),
        annotate=annotate,
        at_ms=minute * MINUTE,
        now_ms=minute * MINUTE + 7,
        stale=stale or {},
    )
    return evaluation.after(before)


def fired(*samples: Sample) -> dict[Identity, Alert]:
    alerts: dict[Identity, Alert] = {}
    for minute in (0, 1, 2):
        alerts = evaluated(alerts, minute, samples or [wait(400)])
    return alerts


def only(alerts: Mapping[Identity, Alert]) -> Alert:
    (alert,) = alerts.values()
    return alert


def test_an_alert_tells_its_numbers_in_annotations_and_has_the_labels_that_prometheus_gives_it() -> None:
    alert = only(fired(wait(400), wait(299, queue="blue")))
    assert alert.labels == {
        "alertname": "GpuWait", "severity": "warning", "cluster": "east", "queue": "red",
    }  # fmt: skip
    assert (alert.value, alert.limit, alert.metric) == (400, 300, "wait_seconds")
    assert alert.annotations["summary"] == "red waits 6m 40s"
    told = alert.told
    assert told is not None
    assert (told.starts_ms, told.ends_ms) == (2 * MINUTE + 7, None)
    assert told.link == "https://gpu.example/tools/fair/queues?queue=red"


def test_the_identity_stays_while_the_value_changes_and_the_worst_is_remembered() -> None:
    before = fired()
    worse = evaluated(before, 3, [wait(900)])
    better = evaluated(worse, 4, [wait(500)])
    assert list(better) == list(before)
    assert (only(better).value, only(better).worst_value) == (500, 900)
    assert only(better).starts_ms == only(before).starts_ms


@pytest.mark.parametrize(
    ("samples", "stale", "because"),
    [
        ([wait(None)], {}, "its clock is wrong"),
        (None, {}, "wait_seconds could not be measured"),
        ([wait(0)], {"east": "cluster east is not read in time"}, "cluster east is not read in time"),
        ([], {"east": "cluster east is not read in time"}, "cluster east is not read in time"),
    ],
)
def test_what_is_not_known_keeps_the_alert_for_as_long_as_it_is_not(
    samples: Sequence[Sample] | None, stale: Mapping[str, str], because: str
) -> None:
    alerts = fired()
    for minute in range(3, 200, 10):
        alerts = evaluated(alerts, minute, samples, stale=stale)
        alert = only(alerts)
        assert (alert.standing.state, alert.because) == (State.FIRING, because)
    alerts = evaluated(alerts, 200, [wait(100)])
    assert (only(alerts).standing.state, only(alerts).because) == (State.FIRING, "")
    alerts = evaluated(alerts, 201, [wait(100)])
    for minute in (201, 202, 203):
        # When it ended is told again and again, and is the same each time.
        assert (only(alerts).standing.state, only(alerts).ends_ms) == (State.RESOLVED, 201 * MINUTE + 7)
        alerts = evaluated(alerts, minute + 1, [wait(100)])


def test_what_was_worst_is_that_of_one_time_only() -> None:
    alerts = fired(wait(900))
    for minute in (3, 4):
        alerts = evaluated(alerts, minute, [wait(0)])
    assert (only(alerts).standing.state, only(alerts).worst_value) == (State.RESOLVED, 900)
    for minute in (5, 6, 7):
        alerts = evaluated(alerts, minute, [wait(400)])
    assert (only(alerts).standing.state, only(alerts).worst_value) == (State.FIRING, 400)


def test_what_is_not_known_begins_no_alert() -> None:
    assert evaluated({}, 0, [wait(400)], stale={"east": "not read"}) == {}
    assert evaluated({}, 0, [wait(None)]) == {}


def test_one_cluster_that_is_not_read_keeps_no_alert_of_another_one() -> None:
    alerts = fired(wait(400), wait(400, cluster="west"))
    for minute in (3, 4, 5):
        alerts = evaluated(alerts, minute, [wait(1), wait(1, cluster="west")], stale={"east": "not read"})
    assert {alert.labels["cluster"]: alert.standing.state for alert in alerts.values()} == {
        "east": State.FIRING,
        "west": State.RESOLVED,
    }


def test_what_is_of_no_cluster_is_kept_while_any_is_not_read() -> None:
    rule = replace(RULE, identity=("team",), link="", summary="{team} {value}")
    budget = Declared(rule=rule, metric=replace(METRIC, labels=("team",), alerts=(rule,)))
    alerts: dict[Identity, Alert] = {}
    for minute in (0, 1, 2):
        alerts = evaluated(alerts, minute, [Sample(labels={"team": "nlp"}, value=400.0)], of=budget)
    spent = [Sample(labels={"team": "nlp"}, value=0.0)]
    why = "cluster west is not read"
    for minute in (3, 4, 5):
        alerts = evaluated(alerts, minute, spent, of=budget, stale={"west": why})
        assert (only(alerts).standing.state, only(alerts).because) == (State.FIRING, why)
    for minute in (6, 7):
        alerts = evaluated(alerts, minute, spent, of=budget)
    assert only(alerts).standing.state is State.RESOLVED


def test_a_queue_that_is_deleted_ends_its_alert_when_its_last_value_is_too_old() -> None:
    alerts = fired()
    states = []
    for minute in range(3, 8):
        alerts = evaluated(alerts, minute, [wait(1, queue="blue")])
        states.append(only(alerts).standing.state)
        told = only(alerts).because
        assert told == ("there is no such series any more" if states[-1] is State.RESOLVED else "")
    # The last value stands from minute 2 to 5; then a minute without a breach.
    assert states == [State.FIRING, State.FIRING, State.FIRING, State.FIRING, State.RESOLVED]


def test_an_alert_reads_its_own_series_only_and_of_several_counts_the_largest() -> None:
    rule = replace(RULE, match={"quantile": "0.99"}, counted="past_target_workloads")
    red = {"cluster": "east", "queue": "red"}
    samples = {
        METRIC.name: [
            Sample(labels=red | {"quantile": quantile}, value=value)
            for quantile, value in (("0.5", 900), ("0.99", 400), ("0.9", 800))
        ],
        "past_target_workloads": [Sample(labels=red, value=number) for number in (3, 7, 5)],
    }
    (found,) = readings(Declared(rule=rule, metric=METRIC), samples, Policy())
    assert (found.value, found.count, found.breaches) == (400, 7, True)


@pytest.mark.parametrize(("comparison", "limit"), [(Comparison.ABOVE, 200.0), (Comparison.BELOW, 500.0)])
def test_of_several_limits_the_one_counts_that_is_breached_first(
    comparison: Comparison, limit: float
) -> None:
    rule = replace(RULE, comparison=comparison, limit=Limit(gauge="promised_seconds", on=("cluster",)))
    promised = [Sample(labels={"cluster": "east"}, value=value) for value in (300.0, 200.0, None, 500.0)]
    samples = {METRIC.name: [wait(400)], "promised_seconds": promised}
    (found,) = readings(Declared(rule=rule, metric=METRIC), samples, Policy())
    assert (found.limit, found.breaches) == (limit, True)


@pytest.mark.parametrize(
    ("limits", "state", "because"),
    [
        # What is held against nothing is over, as to Prometheus; an unknown limit ends nothing.
        ([Sample(labels={"cluster": "west"}, value=300)], State.RESOLVED, NO_LIMIT),
        ([Sample.undefined({"cluster": "east"}, "no nodes are read")], State.FIRING, UNKNOWN_LIMIT),
        ([Sample.undefined({}, "no nodes are read")], State.FIRING, UNKNOWN_LIMIT),
        ([], State.FIRING, UNKNOWN_LIMIT),
        ([Sample(labels={"cluster": "east"}, value=500)], State.FIRING, ""),
    ],
)
def test_a_limit_that_is_gone_ends_an_alert_and_one_that_is_unknown_does_not(
    limits: list[Sample], state: State, because: str
) -> None:
    rule = replace(RULE, limit=Limit(gauge="promised_seconds", on=("cluster",)))
    of, alerts = Declared(rule=rule, metric=METRIC), dict[Identity, Alert]()
    for minute in range(12):
        promised = [Sample(labels={"cluster": "east"}, value=300)] if minute < 4 else limits
        alerts = Evaluation(
            declared=[of],
            samples={METRIC.name: [wait(900)], "promised_seconds": promised},
            policy=Policy(),
            annotate=annotate,
            at_ms=minute * MINUTE,
            now_ms=minute * MINUTE,
        ).after(alerts)
    assert (only(alerts).standing.state, only(alerts).because) == (state, because)


def test_what_is_fine_by_a_limit_that_is_gone_begins_no_alert() -> None:
    """A breach that lasts for less than it must, and then a limit that is not there while all is well."""
    rule = replace(RULE, limit=Limit(gauge="promised_seconds", on=("cluster",)))
    of, alerts = Declared(rule=rule, metric=METRIC), dict[Identity, Alert]()
    elsewhere = Sample(labels={"cluster": "west"}, value=300)
    for minute in range(6):
        promised = [elsewhere, Sample(labels={"cluster": "east"}, value=300)][: 2 if minute < 2 else 1]
        alerts = Evaluation(
            declared=[of],
            samples={METRIC.name: [wait(900 if minute < 2 else 0)], "promised_seconds": promised},
            policy=Policy(),
            annotate=annotate,
            at_ms=minute * MINUTE,
            now_ms=minute * MINUTE,
        ).after(alerts)
        assert [one.standing.state for one in alerts.values()] == [State.PENDING] * (minute < 2)


def test_a_changed_severity_ends_the_old_identity_and_begins_a_new_one() -> None:
    alerts = fired()
    louder = Declared(rule=replace(RULE, severity=Severity.CRITICAL), metric=METRIC)
    for minute in range(3, 8):
        alerts = evaluated(alerts, minute, [wait(400)], of=louder)
    assert {alert.labels["severity"]: alert.standing.state for alert in alerts.values()} == {
        "warning": State.RESOLVED,
        "critical": State.FIRING,
    }


def test_an_alert_that_is_not_declared_any_more_is_resolved_and_a_pending_one_forgotten() -> None:
    firing = fired()
    pending = evaluated({}, 2, [wait(400)])
    assert without_undeclared(firing, [WAIT], 9 * MINUTE) == firing
    gone = only(without_undeclared(firing, [], 9 * MINUTE))
    assert (gone.standing.state, gone.ends_ms) == (State.RESOLVED, 9 * MINUTE)
    assert gone.told is not None
    assert without_undeclared(pending, [], 9 * MINUTE) == {}


def test_a_metric_with_an_alert_never_tells_nothing_at_all() -> None:
    """Else nobody could tell that there is nothing from that it was not measured."""
    named = {one.metric.name for one in declared(REGISTRY) if one.metric is not None}
    silent = [
        name
        for name in sorted(named)
        for ask in exported_asks(REGISTRY[name], 1_800_000_000_000, Policy())
        if not evaluate(REGISTRY[name], [], ask)
    ]
    assert silent == []


def test_what_an_alert_rests_on_is_measured_at_each_tick() -> None:
    of = [one for one in declared(REGISTRY) if one.metric is not None]
    named = {name for one in of for name in read_by(one)}
    assert [name for name in sorted(named) if not REGISTRY[name].exported] == []


def test_alerts_of_a_metric_agree_on_what_an_undefined_value_means() -> None:
    other = replace(RULE, name="GpuWaitMore", fine_if_undefined=True)
    with pytest.raises(PolicyError, match="wait_seconds: its alerts differ in fine_if_undefined"):
        replace(METRIC, alerts=(RULE, other))
