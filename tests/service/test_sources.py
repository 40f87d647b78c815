"""When a source is stale, and what the alert on stale data hears."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.metrics import REGISTRY
from api.answers import Question, SourceState
from api.readiness import verbose
from domain.facts import Batch, ObjectKind, SourceMark
from domain.gpu_sample import GPU_METRICS
from domain.observed import Stretch
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, format_instant
from service import sources
from service.alarms import Alarms
from service.answers import Answers
from service.cli.doctor import examine, source_findings
from service.cli.finding import Finding, Verdict
from service.settings_file import load_settings
from store.embedded import Store
from store.gpu_samples import Read
from tests.build import at
from tests.service.test_activity import COLUMNS, sample

POLICY = Policy()
NOW = at(60)


def mark(kind: str, minutes_ago: float | None, *, cluster: str = "north", error: str = "") -> dict[str, Any]:
    seen_ms = 0 if minutes_ago is None else at(60 - minutes_ago)
    return {
        "cluster": cluster,
        "kind": kind,
        "seen_ms": seen_ms,
        "last_error": error,
        "epoch": 0,
        "restarts": 0,
    }


def state(found: dict[str, Any]) -> SourceState:
    return sources.state_of(found, NOW, policy=POLICY)


def test_a_quiet_watch_of_events_is_stale_later_than_a_kind_with_bookmarks() -> None:
    assert [state(mark(kind, 4)) for kind in ("Pod", "Event")] == [SourceState.STALE, SourceState.READ]
    assert state(mark("Event", 14.9)) is SourceState.READ
    assert state(mark("Event", 15)) is SourceState.READ
    assert state(mark("Event", 15.1)) is SourceState.STALE


def test_only_what_was_read_once_can_go_stale() -> None:
    assert state(mark("Pod", None)) is SourceState.NEVER_READ
    assert state(mark("Pod", None, error="retry: pods")) is SourceState.NEVER_READ
    assert state(mark("Pod", None, error="no_permission: pods")) is SourceState.NOT_PERMITTED
    assert state(mark("Pod", 1, error="no_permission: pods")) is SourceState.READ
    assert state(mark("Pod", 4, error="not_installed: pods")) is SourceState.NOT_INSTALLED


def test_coverage_counts_what_was_never_read_and_not_what_is_not_there() -> None:
    marks = [
        mark("Pod", 1),
        mark("Event", 10),
        mark("Node", None),
        mark("Queue", None, error="not_installed: q"),
    ]
    assert sources.coverage(marks, NOW, policy=POLICY) == 2 / 3
    assert sources.coverage(marks[3:], NOW, policy=POLICY) is None
    # Jobs tell of checkpoints when they have one: that nobody does is no gap.
    assert sources.coverage([*marks, mark("Checkpoint", 50)], NOW, policy=POLICY) == 2 / 3
    assert sources.coverage(marks, NOW, policy=POLICY, clusters=("south",)) is None


def test_the_alert_hears_of_events_only_when_they_are_past_their_own_threshold() -> None:
    def heard(*marks: dict[str, Any]) -> dict[str, int]:
        return sources.last_good(marks, NOW, policy=POLICY, clusters={"north"}, since_ms=at(7))

    assert heard(mark("Pod", 1), mark("Event", 10), mark("Node", None)) == {"north": at(59)}
    assert heard(mark("Pod", 1), mark("Event", 20)) == {"north": at(40)}
    assert heard(mark("Pod", 1), mark("Node", 5)) == {"north": at(55)}
    # Of a cluster that was never reached nothing is known since we began to try.
    assert heard(mark("Pod", 1, cluster="imported"), mark("Event", None)) == {"north": at(7)}
    assert heard() == {"north": at(7)}


def test_at_an_instant_of_the_past_a_source_tells_what_had_been_read_by_then() -> None:
    store = Store.open(None)
    stretches = {
        ObjectKind.POD: [(10, 60)],
        ObjectKind.NODE: [(15, 20), (40, 41)],
        ObjectKind.JOB: [(60, 60)],
    }
    marks = {
        kind: SourceMark(kind=kind, resource_version="1", epoch=0, seen_ms=at(seen[-1][1]))
        for kind, seen in stretches.items()
    }
    sights = {
        kind: [Stretch(start_ms=at(start), end_ms=at(end)) for start, end in seen]
        for kind, seen in stretches.items()
    }
    store.append(Batch(cluster="north", marks=marks, sights=sights))

    def told(minutes: float) -> dict[str, tuple[str, str | None, float | None]]:
        marks = sources.marks(store, at(minutes))
        rows = sources.rows(marks, (), at(minutes), policy=POLICY)
        return {row["kind"]: (row["state"], row["seen_at"], row["lag_seconds"]) for row in rows}

    def stamp(minutes: float) -> str:
        return format_instant(at(minutes))

    never = ("never_read", None, None)
    assert told(5) == {"Job": never, "Node": never, "Pod": never}
    assert told(12) == {"Job": never, "Node": never, "Pod": ("read", stamp(12), 0.0)}
    assert told(16)["Node"] == ("read", stamp(16), 0.0)
    assert told(22)["Node"] == ("read", stamp(20), 120.0)
    # That it was read again later changes nothing.
    assert told(30)["Node"] == ("stale", stamp(20), 600.0)
    assert told(61)["Pod"] == ("read", stamp(60), 60.0)
    assert sources.coverage(sources.marks(store, at(30)), at(30), policy=POLICY) == 1 / 3
    assert sources.coverage(sources.marks(store, at(5)), at(5), policy=POLICY) == 0.0
    instants = [at(minutes) for minutes in (5, 12, 16, 22, 30, 61)]
    # Of many instants, the last of which lies after all that was read, each is told as if it was asked alone.
    assert sources.marks_at(store, instants) == [sources.marks(store, at_ms) for at_ms in instants]
    store.close()


# ------------------------------------------------------------ GPU metrics

NEAR, AWAY, PROMETHEUS = "exporter/n1:9400", "exporter/n2:9400", "http://prometheus:9090"


def give(store: Store, source: str, *minutes: float, answered: float, error: str = "") -> None:
    """A reading of the source, which gave samples of these minutes."""
    frame = pl.DataFrame([sample(0, 0.5) | {"at_ms": at(minute)} for minute in minutes], schema=COLUMNS)
    store.append_samples(
        "north",
        source,
        frame,
        Read(until_ms=at(answered), seen_ms=at(answered), error=error),
        set_aside={"blank": len(minutes)} if minutes else {},
    )


def fill(store: Store) -> None:
    """Pods and one exporter are read until minute 60; the Prometheus answers, and has nothing after 40."""
    pods = SourceMark(kind=ObjectKind.POD, resource_version="1", epoch=0, seen_ms=at(60))
    seen = [Stretch(start_ms=at(0), end_ms=at(60))]
    store.append(Batch(cluster="north", marks={ObjectKind.POD: pods}, sights={ObjectKind.POD: seen}))
    give(store, NEAR, 30, 59, answered=59)
    give(store, PROMETHEUS, 10, 40, answered=40)
    give(store, PROMETHEUS, answered=60)
    store.mark_samples("north", {AWAY: Read(until_ms=0, seen_ms=0, error=f"{AWAY} gave no answer")})


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.open(None)
    fill(store)
    yield store
    store.close()


def told_of(store: Store, minutes: float) -> dict[str, tuple[str, float | None]]:
    answers = Answers(store, Tenancy(), POLICY, FixedClock(at(minutes)))
    rows = [row for row in answers.sources().rows if row["kind"] == GPU_METRICS]
    return {row["source"]: (row["state"], row["lag_seconds"]) for row in rows}


def test_gpu_metrics_are_as_fresh_as_their_newest_sample_and_not_as_the_last_answer(store: Store) -> None:
    assert told_of(store, 60) == {
        NEAR: ("read", 60.0), AWAY: ("never_read", None), PROMETHEUS: ("stale", 1200.0),
    }  # fmt: skip
    answers = Answers(store, Tenancy(), POLICY, FixedClock(at(60)))
    [near] = [row for row in answers.sources().rows if row["source"] == NEAR]
    assert near["set_aside_causes"] == [{"because": "blank", "count": 2}]
    # At an earlier instant a source tells what it had given by then: a sample stands for 90 s.
    assert told_of(store, 20)[PROMETHEUS] == ("read", 510.0)
    assert told_of(store, 20)[NEAR] == ("never_read", None)


def test_a_sample_of_a_clock_that_was_ahead_hides_no_outage(store: Store) -> None:
    give(store, NEAR, 6_000, answered=6_000)
    assert told_of(store, 61)[NEAR] == ("read", 30.0)
    assert told_of(store, 90)[NEAR] == ("stale", 1_770.0)


def test_a_source_that_is_silent_for_days_was_taken_away_unless_all_are_silent(store: Store) -> None:
    week = POLICY.gpu_source_gone_after / timedelta(minutes=1)
    assert set(told_of(store, 40 + week)) == {NEAR, AWAY, PROMETHEUS}
    assert set(told_of(store, 41 + week)) == {NEAR, AWAY}
    assert set(told_of(store, 61 + week)) == {NEAR, AWAY, PROMETHEUS}


def test_metrics_that_rest_on_samples_are_covered_by_their_sources_too(store: Store) -> None:
    answers = Answers(store, Tenancy(), POLICY, FixedClock(at(60)))
    # Pods and one of three sources of samples are read in time.
    assert answers.metric("never_active_gpus", Question()).coverage == 2 / 4
    assert answers.metric("never_active_gpus", Question(filters={"cluster": ("north",)})).coverage == 2 / 4
    assert answers.metric("held_gpus", Question()).coverage == 1.0


def test_every_metric_of_what_gpus_did_says_that_it_rests_on_samples() -> None:
    resting = {name for name, metric in REGISTRY.items() if metric.rests_on_samples}
    views = ("gpu_seen", "device_level", "device_memory", "own_failure_waiting")
    assert {name for name, metric in REGISTRY.items() if any(view in metric.sql for view in views)} <= resting
    assert all(
        any(view in REGISTRY[name].sql for view in (*views, "gpu_time", "gpu_sample")) for name in resting
    )


@pytest.mark.parametrize("watched", [[{"cluster": "north", "prometheus": PROMETHEUS}], []])
def test_doctor_tells_of_silent_gpu_metrics_where_they_are_watched(
    watched: list[dict[str, str]], tmp_path: Path
) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path, "gpu_metrics": watched})
    store = Store.open(settings.store_file)
    fill(store)
    store.close()
    findings = [each for each in examine(settings) if GPU_METRICS in each.text]
    [failing] = [each for each in findings if "cannot be read" in each.text]
    assert failing == Finding(
        Verdict.WARNING,
        f"north/GPU metrics/{AWAY} cannot be read: {AWAY} gave no answer; meanwhile what its GPUs did is "
        "unknown: no activity, no idle time by cause, no wastage",
        "is the address in gpu_metrics right, and does it answer from this machine?",
    )
    silent = [each for each in findings if each.verdict is Verdict.WRONG]
    assert [each.text.partition(" was last read")[0] for each in silent] == (
        [f"north/GPU metrics/{name}" for name in (NEAR, PROMETHEUS)] if watched else []
    )
    assert all("does dcgm-exporter run" in each.remedy for each in silent)


def test_what_the_ledger_suffers_itself_is_told_wherever_sources_are() -> None:
    store, alarms = Store.open(None), Alarms()
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(60)), alarms=alarms)
    assert list(answers.sources().rows) == []
    alarms.sound("credentials_end/north", "cluster north: its token ends; renew it")
    # Of an instant that is over nobody knows what sounded then.
    assert list(answers.sources(at(30)).rows) == []
    rows = list(answers.sources().rows)
    told = verbose(rows)
    assert told.startswith("[-]credentials_end/north cluster north: its token ends; renew it: ")
    [finding] = [one for one in source_findings(rows, load_settings()) if one.verdict is Verdict.WARNING]
    assert finding.text.startswith("credentials_end/north: cluster north: its token ends; renew it: ")
    store.close()
