"""
The declared alerts, evaluated on our own measurements: what Prometheus would make of the exported series.

Pure: how every alert stood and what was measured go in, how every alert stands comes out. Beyond what
Prometheus can, a value that is undefined, a metric that could not be measured and a source that is not read
in time keep the state: only good news resolves.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeAlias

from alerts.declared import Declared
from alerts.posting import Identity, Told
from alerts.readings import Reading, readings
from alerts.standing import Heard, Standing, State, Timing, resumed, step
from domain.metric import Sample
from domain.policy import Policy

ALERT_NAME = "alertname"
Annotate: TypeAlias = Callable[[Declared, Reading], Mapping[str, str]]
Samples: TypeAlias = Mapping[str, Sequence[Sample]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """
    An alert that stands, and what that rests on.

    Args:
        labels: its identity.
        annotations: as at its last breach.
        metric: whose value breached; empty where it is about the ledger itself.
        value: the last one that breached; `worst_value` the one farthest beyond the limit.
        because: why there is no value now; empty where there is one.
        starts_ms: since when it fires by the machine's clock; `ends_ms` when it resolved.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    standing: Standing
    metric: str = ""
    value: float | None = None
    worst_value: float | None = None
    limit: float | None = None
    coverage: float | None = None
    because: str = ""
    starts_ms: int | None = None
    ends_ms: int | None = None

    @property
    def identity(self) -> Identity:
        """What makes it the same alert at every evaluation."""
        return tuple(sorted(self.labels.items()))

    @property
    def told(self) -> Told | None:
        """As it is announced; None while it is pending."""
        if self.starts_ms is None:
            return None
        return Told(
            labels=self.labels,
            annotations=self.annotations,
            link=self.annotations.get("dashboard_url", ""),
            starts_ms=self.starts_ms,
            ends_ms=self.ends_ms,
        )


Alerts: TypeAlias = Mapping[Identity, Alert]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """
    One evaluation of some declarations.

    Args:
        declared: which; alerts of others are left as they are.
        samples: what was measured, by metric or, of alerts about the ledger itself, by alert. A
            metric that is not among them could not be measured.
        at_ms: the instant that the samples are about; `now_ms` that of the machine's clock.
        stale: clusters that are not read in time, with the reason; what is measured of them says nothing.
        resumes: whether it is the first one after a time in which there was none.
    """

    declared: Sequence[Declared]
    samples: Samples
    policy: Policy
    annotate: Annotate
    at_ms: int
    now_ms: int
    stale: Mapping[str, str] = field(default_factory=dict)
    resumes: bool = False

    def after(self, before: Alerts) -> dict[Identity, Alert]:
        """How alerts stand afterwards, those that are inactive left out."""
        found = dict(before)
        for one in self.declared:
            mine = {identity: alert for identity, alert in before.items() if _is_of(alert, one)}
            for identity, alert in self._of(one, mine).items():
                if alert is None:
                    found.pop(identity, None)
                else:
                    found[identity] = alert
        return found

    def _of(self, declared: Declared, before: Alerts) -> dict[Identity, Alert | None]:
        measured = declared.source in self.samples
        found: dict[Identity, Alert | None] = {}
        for reading in readings(declared, self.samples, self.policy) if measured else ():
            identity = tuple(sorted(reading.labels.items()))
            heard, because = self._heard(declared, reading, before.get(identity))
            found[identity] = self._stepped(declared, before.get(identity), heard, reading, because)
        for identity, alert in before.items():
            if identity not in found:
                heard, because = self._missing(declared, alert, measured=measured)
                found[identity] = self._stepped(declared, alert, heard, None, because)
        return found

    def _heard(self, declared: Declared, reading: Reading, before: Alert | None) -> tuple[Heard, str]:
        if because := self._stale(declared, reading.labels):
            return Heard.UNKNOWN, because
        if reading.breaches is None:
            # A limit that is gone stands as a value does that is gone: by it this may still be fine.
            if reading.is_gone and before is not None and _is_fine_by(declared, before.limit, reading.value):
                return Heard.FINE, ""
            return (Heard.GONE if reading.is_gone else Heard.UNKNOWN), reading.because
        return (Heard.BREACH if reading.breaches else Heard.FINE), ""

    def _missing(self, declared: Declared, alert: Alert, *, measured: bool) -> tuple[Heard, str]:
        if not measured:
            return Heard.UNKNOWN, f"{declared.source} could not be measured"
        if because := self._stale(declared, alert.labels):
            return Heard.UNKNOWN, because
        return Heard.GONE, "there is no such series any more"

    def _stale(self, declared: Declared, labels: Mapping[str, str]) -> str:
        """
        Why what is measured of its cluster says nothing; of the ledger itself everything counts.

        What is of no cluster, as a team's budget, rests on all of them.
        """
        if declared.metric is None:
            return ""
        if "cluster" in declared.rule.identity:
            return self.stale.get(labels.get("cluster", ""), "")
        return next(iter(self.stale.values()), "")

    def _stepped(
        self,
        declared: Declared,
        before: Alert | None,
        heard: Heard,
        reading: Reading | None,
        because: str,
    ) -> Alert | None:
        timing, stood = timing_of(declared), before.standing if before else None
        if self.resumes and stood is not None:
            stood = resumed(stood, self.at_ms, timing)
        standing = step(stood, heard, self.at_ms, timing)
        if standing is None:
            return None
        fired = before is not None and before.standing.state is State.FIRING
        if before is None:
            assert reading is not None, "only a value begins an alert"
            before = Alert(labels=reading.labels, annotations={}, standing=standing)
        elif standing.active_ms != before.standing.active_ms:
            before = replace(before, value=None, worst_value=None, coverage=None)
        if heard is Heard.GONE and standing.state is not State.RESOLVED:
            # Its last value still stands.
            because = ""
        now = replace(before, standing=standing, because=because)
        if heard is Heard.BREACH:
            assert reading is not None, "a breach is a value"
            now = self._breaching(now, declared, reading)
        if standing.state is State.FIRING and not fired:
            return replace(now, starts_ms=self.now_ms, ends_ms=None)
        if standing.state is State.RESOLVED and fired:
            return replace(now, ends_ms=self.now_ms)
        return now

    def _breaching(self, alert: Alert, declared: Declared, reading: Reading) -> Alert:
        worst = alert.worst_value
        if worst is None or _is_worse(declared, reading.value, worst):
            worst = reading.value
        return replace(
            alert,
            annotations=self.annotate(declared, reading),
            metric=declared.metric.name if declared.metric else "",
            value=reading.value,
            worst_value=worst,
            limit=reading.limit,
        )


def without_undeclared(before: Alerts, declared: Iterable[Declared], now_ms: int) -> dict[Identity, Alert]:
    """Alerts after a change of the declarations: one that no declaration makes any more has resolved."""
    names = {one.rule.name for one in declared}
    found: dict[Identity, Alert] = {}
    for identity, alert in before.items():
        if alert.labels.get(ALERT_NAME) in names or alert.standing.state is State.RESOLVED:
            found[identity] = alert
        elif alert.standing.state is State.FIRING:
            ended = replace(alert.standing, state=State.RESOLVED, resolved_ms=now_ms)
            found[identity] = replace(
                alert, standing=ended, ends_ms=now_ms, because="it is not declared any more"
            )
    return found


def timing_of(declared: Declared) -> Timing:
    """How long a breach lasts, an alert stays, and a value stands for missing ones."""
    rule = declared.rule
    return Timing(hold_ms=_ms(rule.hold), keep_ms=_ms(rule.keep), window_ms=_ms(rule.window))


def firing(alerts: Alerts) -> Collection[Alert]:
    """Those that fire."""
    return [alert for alert in alerts.values() if alert.standing.state is State.FIRING]


def _is_of(alert: Alert, declared: Declared) -> bool:
    return alert.labels.get(ALERT_NAME) == declared.rule.name


def _is_fine_by(declared: Declared, limit: float | None, value: float | None) -> bool:
    if limit is None or value is None:
        return False
    return not declared.rule.comparison.breaches(value, limit)


def _is_worse(declared: Declared, value: float | None, than: float) -> bool:
    return value is not None and declared.rule.comparison.breaches(value, than)


def _ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
