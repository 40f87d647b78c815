"""
Which alerts there are: the same for Prometheus' rules and without Prometheus.

Those about work are declared with their metric; those about the ledger itself stand here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from alerts.posting import WATCHDOG
from alerts.recorded import MEASURED, SILENT, SOUNDING, SOURCE_AGE
from alerts.whose import CLUSTER, LEDGER_LABEL
from alerts.wording import Words
from domain.alert import KEEP, AlertRule, Limit, Severity
from domain.errors import PolicyError
from domain.metric import Metric, Unit
from domain.policy import Policy

WORK, LEDGER = "work", "ledger"
# One for each cluster that a ledger tells of: it inhibits those of that cluster, and no others.
_WHOSE: Final = (LEDGER_LABEL, CLUSTER)
# What the ledger knows of itself, by the alert that it becomes.
MEASUREMENTS_STALE: Final = "GpuledgerMeasurementsStale"
SOURCE_STALE: Final = "GpuledgerSourceStale"
ALARM: Final = "GpuledgerAlarm"
NAME_SHARED: Final = "GpuledgerNameShared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """
    An alert with the metric that it is about, or the expression of Prometheus that finds its value.

    `metric` is None where the alert is about the ledger itself. Such a value is not measured, but told
    by who knows it; `only_prometheus` where only Prometheus can know it.
    """

    rule: AlertRule
    metric: Metric | None = None
    expression: str = ""
    only_prometheus: bool = False

    @property
    def about(self) -> str:
        """`work`, or `ledger` where other alerts cannot be trusted while this one fires."""
        return LEDGER if self.metric is None else WORK

    @property
    def source(self) -> str:
        """The name under which `readings` looks for its samples."""
        return self.rule.name if self.metric is None else self.metric.name

    @property
    def identity(self) -> tuple[str, ...]:
        """The labels that tell one alert from another: of no cluster, it is its ledger's."""
        names = self.rule.identity
        return names if self.metric is None or CLUSTER in names else (LEDGER_LABEL, *names)

    @property
    def limit_on(self) -> tuple[str, ...]:
        """The labels that a value and the series of its limit share: the cluster always."""
        return tuple(dict.fromkeys((CLUSTER, *self.rule.limit.on)))

    @property
    def unit(self) -> Unit:
        """The unit of its value and its limit; about the ledger an age, or that something is so: 1."""
        if self.metric is not None:
            return self.metric.unit
        return Unit.TOTAL if self.rule.limit.is_own else Unit.SECONDS

    @property
    def words(self) -> Words:
        """How its numbers are written."""
        return Words.of(self.unit)

    @property
    def meaning(self) -> str:
        """The description's template, and what the metric is."""
        more = "" if self.metric is None else f" {self.metric.title}: {self.metric.definition}"
        return self.rule.description + more.replace("{", "{{").replace("}", "}}")


def declared(registry: Mapping[str, Metric]) -> tuple[Declared, ...]:
    """All alerts: those of the metrics in the registry's order, then those about the ledger."""
    of_metrics = (
        Declared(rule=rule, metric=metric) for metric in registry.values() for rule in metric.alerts
    )
    return (*of_metrics, *OWN)


def labels(alert: Declared, identity: Mapping[str, str]) -> dict[str, str]:
    """
    The labels of an alert as Alertmanager gets them; equal labels are the same alert.

    To Prometheus a label without a value, as the queue of work that is in none, is no label.
    """
    return {
        "alertname": alert.rule.name,
        "severity": str(alert.rule.severity),
        **{name: identity[name] for name in alert.identity if identity[name]},
    }


def read_by(alert: Declared) -> tuple[str, ...]:
    """What must be measured for an alert: its own value, the gauge of its limit, and of its count."""
    return tuple(name for name in (alert.source, alert.rule.limit.gauge, alert.rule.counted) if name)


def limit_gauges(alerts: Sequence[Declared]) -> frozenset[str]:
    """The metrics that are limits of others."""
    return frozenset(alert.rule.limit.gauge for alert in alerts) - {""}


def factor(alert: Declared, policy: Policy) -> float:
    """
    The part of the limit that is known before anything is measured.

    Lengths are in seconds.
    """
    limit = alert.rule.limit
    if limit.is_own:
        return policy.alert_limits.get(alert.rule.name, limit.times)
    setting = getattr(policy, limit.setting) if limit.setting else 1.0
    number = setting / timedelta(seconds=1) if isinstance(setting, timedelta) else float(setting)
    return limit.times * number


def refuse_unknown_limits(alerts: Sequence[Declared], policy: Policy) -> None:
    """
    A limit that the site sets must be one of an alert, and past those of the alerts that it silences.

    Raises:
        PolicyError: there is no such alert, its limit is a setting or a gauge, or an alert of the same metric
            that is silenced by it is told later.
    """
    own = {alert.rule.name: alert for alert in alerts if alert.rule.limit.is_own and alert.metric}
    for name in policy.alert_limits:
        if name not in own:
            message = f"policy.alert_limits.{name}: expected one of {', '.join(sorted(own))}"
            raise PolicyError(message)
    for alert in own.values():
        for louder in (own[name] for name in alert.rule.inhibited_by if name in own):
            first, then = factor(alert, policy), factor(louder, policy)
            if (
                louder.metric is alert.metric
                and louder.rule.comparison.breaches(first, then)
                and first != then
            ):
                message = (
                    f"policy.alert_limits.{louder.rule.name} = {then:g}: expected at least {first:g}, the"
                    f" limit of {alert.rule.name}, which it silences"
                )
                raise PolicyError(message)


_SOURCES: Final = "sources"
_SHORT: Final = timedelta(minutes=1)
# Longer than the alerts that cannot be trusted stay by themselves: what was over before anything is known
# again ends in silence, and nobody is told of it a second time.
_OUTLASTING: Final = KEEP + _SHORT
_UNTRUSTED: Final = "What waits and who holds what may be old; silence of the other alerts means nothing."

OWN: Final = (
    Declared(
        rule=AlertRule(
            name=MEASUREMENTS_STALE,
            summary="ledger {ledger} has not measured cluster {cluster} for {value}",
            description=f"It answers scrapes with figures older than {{limit}}. {_UNTRUSTED}",
            link=_SOURCES,
            limit=Limit(setting="source_stale_after"),
            identity=_WHOSE,
            window=timedelta(),
            keep=_OUTLASTING,
            severity=Severity.CRITICAL,
        ),
        expression=f"time() - max by (ledger, cluster) ({MEASURED})",
    ),
    Declared(
        rule=AlertRule(
            name="GpuledgerMeasurementsAbsent",
            summary="Prometheus gets no measurement of cluster {cluster} from ledger {ledger}",
            description=(
                "That ledger, or each where none is named, is down, cannot be reached, or has not measured"
                " yet. Where a ledger is named and no cluster, another ledger reads what it read."
                f" {_UNTRUSTED}"
            ),
            link=_SOURCES,
            limit=Limit(times=0.0),
            identity=_WHOSE,
            window=timedelta(),
            keep=_OUTLASTING,
            severity=Severity.CRITICAL,
        ),
        # Of no cluster where another ledger tells of it: what that one tells is not to be inhibited.
        expression=(
            f"({SILENT} unless on (cluster) {MEASURED}"
            f" or max by (ledger) ({SILENT} and on (cluster) {MEASURED})"
            f" or (absent({MEASURED}) unless on () {SILENT}))"
        ),
        only_prometheus=True,
    ),
    Declared(
        rule=AlertRule(
            name=SOURCE_STALE,
            summary="ledger {ledger} has not read all of cluster {cluster} for {value}",
            description=(
                "At least one kind of its objects was not known to be current for more than {limit}:"
                f" `gpuledger doctor` and the page Sources say which, and why. {_UNTRUSTED}"
            ),
            link=_SOURCES,
            limit=Limit(setting="source_stale_after"),
            identity=_WHOSE,
            window=timedelta(),
            keep=_OUTLASTING,
            severity=Severity.CRITICAL,
        ),
        expression=SOURCE_AGE,
    ),
    Declared(
        rule=AlertRule(
            name=NAME_SHARED,
            summary="{value} instances call themselves ledger {ledger}",
            description=(
                "The end of one of them would not be told, and their alerts are taken for each other's. Give"
                " each ledger a `server.name` of its own, and let Prometheus scrape each once."
            ),
            link=_SOURCES,
            limit=Limit(times=1.0),
            identity=(LEDGER_LABEL,),
            # Longer than a pod that is replaced overlaps with the next one.
            hold=timedelta(minutes=5),
            keep=_SHORT,
        ),
        expression=f"count by (ledger) (count by (ledger, instance) ({MEASURED}))",
        only_prometheus=True,
    ),
    Declared(
        rule=AlertRule(
            name=ALARM,
            summary="ledger {ledger} reports {alarm} about itself",
            description=(
                "The page Sources and `/readyz?verbose` say why, and what to do. While it sounds, figures may"
                " be old or missing."
            ),
            link=_SOURCES,
            limit=Limit(times=0.0),
            identity=(LEDGER_LABEL, "alarm"),
            # What sounds is known at every moment: an alarm that is not there has ended.
            window=timedelta(),
            keep=_SHORT,
        ),
        expression=SOUNDING,
    ),
    Declared(
        rule=AlertRule(
            name=WATCHDOG,
            summary="alerts of gpuledger reach you",
            description=(
                "It always fires. Let somebody outside of this Prometheus and its Alertmanager notice when it"
                " stops: then no alert gets through."
            ),
            link=_SOURCES,
            limit=Limit(times=0.0),
            # Where a ledger tells it itself, it is that ledger's; by Prometheus it is nobody's.
            identity=(LEDGER_LABEL,),
            hold=timedelta(),
            keep=timedelta(),
            severity=Severity.INFO,
        ),
        expression="vector(1)",
        only_prometheus=True,
    ),
)
