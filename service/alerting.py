"""
Alerts without a Prometheus: each measurement is evaluated, how alerts stand kept, Alertmanagers are told.

Evaluated they are in any case, for the page, the command line and the API.
"""

import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from alerts.declared import (
    ALARM,
    MEASUREMENTS_STALE,
    SOURCE_STALE,
    Declared,
    declared,
    read_by,
    refuse_unknown_limits,
)
from alerts.evaluation import Alert, Evaluation, without_undeclared
from alerts.exporter import LEDGER, Outside, told_of
from alerts.posting import WATCHDOG, Identity, Told
from alerts.readings import Reading, annotations
from alerts.standing import State
from alerts.whose import LEDGER_LABEL, of_ledger
from alerts.wording import Links
from domain.errors import StoreError
from domain.metric import Measurement, Sample
from domain.window import MS_PER_SECOND, Clock
from domain.words import count
from service import alert_rows
from service.alerting_settings import AlertingSettings
from service.announcing import announcers, rhythm_of
from service.answers import Answers
from service.clocks import stands
from store import alerts as kept

log = logging.getLogger("gpuledger.alerting")

_NO_DATA: Final = "alerts_without_data"
# As long as most breaches must last, and somewhat more.
_LOOKED_BACK: Final = tuple(timedelta(minutes=minutes) for minutes in (20, 15, 10, 5))


class Alerting:
    """
    The alerts of a running service. Safe to use from many threads.

    Args:
        answers: whose store, policy and alarms it uses.
        links: where alerts point.
        every: how long it usually takes until the next measurement.
        clock: the machine's; what was measured has its own.
        ledger: this ledger's name, in the alerts about itself.

    Raises:
        SettingsError: a file with a secret cannot be read.
        PolicyError: the policy sets the limit of an alert that there is not.
    """

    def __init__(
        self,
        answers: Answers,
        settings: AlertingSettings,
        *,
        links: Links,
        every: timedelta,
        clock: Clock,
        ledger: str = LEDGER,
    ) -> None:
        self._answers = answers
        self._links = links
        self._pause = max(answers.policy.source_stale_after, 2 * every)
        self._clock = clock
        self._ledger = {LEDGER_LABEL: ledger}
        known = declared(answers.registry())
        refuse_unknown_limits(known, answers.policy)
        self._of_work = [one for one in known if one.metric is not None]
        self._own = [one for one in known if one.metric is None and (not one.only_prometheus or _wakes(one))]
        self._lock = threading.Lock()
        now_ms = clock.now_ms()
        stood = [alert_rows.alert_of(row) for row in kept.states(answers.store)]
        before = {alert.identity: alert for alert in stood}
        self._alerts = without_undeclared(before, known, now_ms)
        self._unsaved: tuple[list[Alert], list[Alert]] = ([], _ended(before, self._alerts))
        self._saved: tuple[int | None, list[dict[str, object]]] = (None, [])
        self._measured_ms = now_ms
        self._resumes = True
        self._as_of_ms = kept.evaluated_ms(answers.store)
        self._sources: Mapping[str, int] = {}
        self._clusters: Collection[str] = _told_before(stood)
        self._is_measured = False
        self._retention_ms = rhythm_of(settings).retention_ms
        self._announcers = announcers(settings, self.told, alarms=answers.alarms, clock=clock)

    def start(self) -> None:
        """Begin to tell Alertmanagers."""
        for one in self._announcers:
            one.start()

    def stop(self) -> None:
        """Tell them nothing more; what fires stays as it is there."""
        for one in self._announcers:
            one.stop()

    def take(self, measurements: Iterable[Measurement], as_of_ms: int, sources: Mapping[str, int]) -> None:
        """
        Evaluate what was measured.

        Args:
            measurements: all of one instant.
            as_of_ms: that instant.
            sources: when each live source last was good, by cluster.
        """
        found: dict[str, list[Sample]] = {}
        for measurement in measurements:
            found.setdefault(measurement.metric, []).append(measurement.sample)
        samples = self._whose(found)
        with self._lock:
            now_ms = self._clock.now_ms()
            self._resumes |= timedelta(milliseconds=now_ms - self._measured_ms) > self._pause
            if stands(self._answers.clock):
                self._look_back(as_of_ms)
            self._measured_ms, self._as_of_ms, self._sources = now_ms, as_of_ms, dict(sources)
            self._is_measured = True
            self._clusters = told_of((one for found in samples.values() for one in found), sources)
            self._evaluate(self._of_work, samples, as_of_ms, stale=dict(self._stale(as_of_ms)))
            self._resumes = False
            self._say_what_has_no_data(as_of_ms)
            self._evaluate(self._own, self._own_samples(), self._clock.now_ms())
            self._save()

    def watch(self) -> None:
        """Evaluate the alerts about ourselves, which must not wait for a measurement."""
        with self._lock:
            before = self._alerts
            self._evaluate(self._own, self._own_samples(), self._clock.now_ms())
            if _states(before) != _states(self._alerts):
                self._save()

    def told(self) -> Sequence[Told]:
        """What is to be announced now."""
        return [told for alert in self._alerts.values() if (told := alert.told) is not None]

    def outside(self) -> Iterator[Outside]:
        """How well it goes to tell Alertmanagers, for export."""
        for one in self._announcers:
            yield from one.outside()

    def _look_back(self, as_of_ms: int) -> None:
        """
        Evaluate some instants before this one, by a clock that stands.

        Nothing would ever last long enough to fire, though it is known how it was before.
        """
        registry = self._answers.registry()
        names = {name for one in self._of_work for name in read_by(one)}
        for before in _LOOKED_BACK:
            at_ms = as_of_ms - before // timedelta(milliseconds=1)
            if self._as_of_ms is None or at_ms > self._as_of_ms:
                found = {name: self._answers.measure(registry[name], at_ms) for name in sorted(names)}
                samples = self._whose(
                    {name: [one.sample for one in measured] for name, measured in found.items()}
                )
                self._evaluate(self._of_work, samples, at_ms)
                self._resumes = False

    def _whose(self, found: Mapping[str, Iterable[Sample]]) -> dict[str, list[Sample]]:
        """What is of no cluster is this ledger's."""
        return {name: of_ledger(samples, self._ledger[LEDGER_LABEL]) for name, samples in found.items()}

    def _evaluate(
        self,
        of: Sequence[Declared],
        samples: Mapping[str, Sequence[Sample]],
        at_ms: int,
        *,
        stale: Mapping[str, str] | None = None,
    ) -> None:
        now_ms, before = self._clock.now_ms(), self._alerts
        evaluation = Evaluation(
            declared=of,
            samples=samples,
            policy=self._answers.policy,
            annotate=self._annotations,
            at_ms=at_ms,
            now_ms=now_ms,
            stale=stale or {},
            resumes=self._resumes,
        )
        after = {
            identity: alert
            for identity, alert in evaluation.after(before).items()
            if alert.standing.state is not State.RESOLVED or self._is_recent(alert, now_ms)
        }
        began = _begun(before, after)
        after |= {alert.identity: alert for alert in self._covered(began, at_ms)}
        self._unsaved[0].extend(after[alert.identity] for alert in began)
        self._unsaved[1].extend(_ended(before, after))
        self._alerts = after
        if _states(before) != _states(after):
            for one in self._announcers:
                one.wake()

    def _save(self) -> None:
        began, ended = self._unsaved
        # What watches over an alert's end is not part of what fires.
        rows = [alert_rows.state_row(alert) for alert in self._alerts.values() if not _is_watchdog(alert)]
        if self._saved == (self._as_of_ms, rows):
            return
        try:
            kept.keep(
                self._answers.store,
                self._as_of_ms or self._measured_ms,
                standing=rows,
                began=[alert_rows.firing_row(alert) for alert in began if not _is_watchdog(alert)],
                ended=[alert_rows.ended_row(alert) for alert in ended],
            )
        except StoreError:
            # They are told all the same, and kept with the next ones.
            log.exception("how alerts stand was not kept")
            return
        self._unsaved, self._saved = ([], []), (self._as_of_ms, rows)

    def _own_samples(self) -> dict[str, list[Sample]]:
        """
        What is known of the ledger itself.

        Before anything was measured nobody knows whether sources are read again, and what sounded before the
        stop may sound on.
        """
        now_ms = self._clock.now_ms()
        sounding = {*self._answers.alarms.sounding()}
        if not self._is_measured:
            sounding |= {one.labels["alarm"] for one in self._alerts.values() if _is_firing(one, ALARM)}
        samples = {
            MEASUREMENTS_STALE: [
                Sample(
                    labels={**self._ledger, "cluster": cluster}, value=_seconds(now_ms - self._measured_ms)
                )
                for cluster in self._clusters
            ],
            SOURCE_STALE: [
                Sample(labels={**self._ledger, "cluster": cluster}, value=_seconds(now_ms - seen_ms))
                for cluster, seen_ms in self._sources.items()
            ],
            ALARM: [Sample(labels={**self._ledger, "alarm": alarm}, value=1.0) for alarm in sorted(sounding)],
            WATCHDOG: [Sample(labels=self._ledger, value=1.0)],
        }
        if not self._is_measured:
            del samples[SOURCE_STALE]
        return samples

    def _stale(self, as_of_ms: int) -> Iterator[tuple[str, str]]:
        for cluster, seen_ms in self._sources.items():
            if self._is_old(as_of_ms - seen_ms):
                yield cluster, f"cluster {cluster} is not read in time"

    def _annotations(self, one: Declared, reading: Reading) -> Mapping[str, str]:
        return annotations(one, reading, self._links)

    def _covered(self, began: Iterable[Alert], at_ms: int) -> Iterator[Alert]:
        """Those that begin to fire, with how much of what they rest on was observed."""
        known: dict[tuple[str, str], float | None] = {}
        for alert in began:
            if not alert.metric:
                continue
            asked = (alert.metric, alert.labels.get("cluster", ""))
            if asked not in known:
                known[asked] = self._answers.coverage_of(*asked, at_ms)
            yield replace(alert, coverage=known[asked])

    def _say_what_has_no_data(self, at_ms: int) -> None:
        """An alert that is kept because nothing is known of it must not pass for one that is known."""
        kept_on = [
            alert.labels["alertname"]
            for alert in self._alerts.values()
            if _fires(alert)
            and alert.metric
            and alert.because
            and self._is_old(at_ms - alert.standing.heard_ms)
        ]
        if kept_on:
            names = ", ".join(sorted(set(kept_on)))
            self._answers.alarms.sound(
                _NO_DATA,
                f"{count(len(kept_on), 'alert')} ({names}) still firing, though what that rests on is not"
                " known now; the page Alerts says why",
            )
        else:
            self._answers.alarms.end(_NO_DATA)

    def _is_old(self, age_ms: int) -> bool:
        return timedelta(milliseconds=age_ms) > self._answers.policy.source_stale_after

    def _is_recent(self, alert: Alert, now_ms: int) -> bool:
        return alert.ends_ms is None or now_ms - alert.ends_ms <= self._retention_ms


def _begun(before: Mapping[Identity, Alert], after: Mapping[Identity, Alert]) -> list[Alert]:
    """Alerts that fire since this evaluation."""
    return [alert for identity, alert in after.items() if _fires(alert) and not _fires(before.get(identity))]


def _ended(before: Mapping[Identity, Alert], after: Mapping[Identity, Alert]) -> list[Alert]:
    """Alerts that fired until this evaluation."""
    return [alert for identity, alert in after.items() if _fires(before.get(identity)) and not _fires(alert)]


def _fires(alert: Alert | None) -> bool:
    return alert is not None and alert.standing.state is State.FIRING


def _is_firing(alert: Alert, name: str) -> bool:
    return _fires(alert) and alert.labels["alertname"] == name


def _told_before(stood: Iterable[Alert]) -> Collection[str]:
    """The clusters of a ledger that was stopped as it did not measure; an empty name where there is none."""
    stale = {one.labels.get("cluster", "") for one in stood if _is_firing(one, MEASUREMENTS_STALE)}
    return frozenset(stale or {""})


def _states(alerts: Mapping[Identity, Alert]) -> Collection[tuple[Identity, State]]:
    return {(identity, alert.standing.state) for identity, alert in alerts.items()}


def _wakes(one: Declared) -> bool:
    return one.rule.name == WATCHDOG


def _is_watchdog(alert: Alert) -> bool:
    return alert.labels["alertname"] == WATCHDOG


def _seconds(length_ms: int) -> float:
    return max(length_ms, 0) / MS_PER_SECOND
