"""When a source is stale, and what the alert on stale data hears."""

from typing import Any

from api.answers import SourceState
from domain.facts import Batch, Moment, ObjectKind, SourceMark, Transition
from domain.policy import Policy
from domain.window import format_instant
from service import sources
from store.embedded import Store
from tests.build import at

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
    assert state(mark("Event", 15.1)) is SourceState.STALE


def test_only_what_was_read_once_can_go_stale() -> None:
    assert state(mark("Pod", None)) is SourceState.NEVER_READ
    assert state(mark("Pod", None, error="no_permission: pods")) is SourceState.NEVER_READ
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
    assert sources.coverage(marks, NOW, policy=POLICY, clusters=("south",)) is None


def test_the_alert_hears_of_events_only_when_they_are_past_their_own_threshold() -> None:
    def heard(*marks: dict[str, Any]) -> dict[str, int]:
        return sources.last_good(marks, NOW, policy=POLICY, clusters={"north"})

    assert heard(mark("Pod", 1), mark("Event", 10), mark("Node", None)) == {"north": at(59)}
    assert heard(mark("Pod", 1), mark("Event", 20)) == {"north": at(40)}
    assert heard(mark("Pod", 1), mark("Node", 5)) == {"north": at(55)}
    assert heard(mark("Pod", 1, cluster="imported"), mark("Event", None)) == {}


def test_at_an_instant_of_the_past_a_source_tells_what_had_been_read_by_then() -> None:
    store = Store.open(None)
    seen = {
        kind: SourceMark(kind=kind, resource_version="1", epoch=0, seen_ms=at(minutes))
        for kind, minutes in ((ObjectKind.POD, 60), (ObjectKind.NODE, 20), (ObjectKind.JOB, 60))
    }
    first = [
        Transition(uid="u", kind=kind, moment=Moment.CREATED, at_ms=at(0), observed_ms=at(minutes))
        for kind, minutes in ((ObjectKind.POD, 10), (ObjectKind.NODE, 15))
    ]
    store.append(Batch(cluster="north", marks=seen, transitions=first))

    def told(minutes: float) -> dict[str, tuple[str, str | None, float | None]]:
        marks = sources.marks(store, at(minutes))
        rows = sources.rows(marks, (), at(minutes), policy=POLICY)
        return {row["kind"]: (row["state"], row["seen_at"], row["lag_seconds"]) for row in rows}

    def stamp(minutes: float) -> str:
        return format_instant(at(minutes))

    never = ("never_read", None, None)
    assert told(5) == {"Job": never, "Node": never, "Pod": never}
    # Nothing came in of jobs: they are read since the cluster is.
    assert told(12) == {"Job": ("read", stamp(12), 0.0), "Node": never, "Pod": ("read", stamp(12), 0.0)}
    assert told(16)["Node"] == ("read", stamp(16), 0.0)
    assert told(22)["Node"] == ("read", stamp(20), 120.0)
    assert told(30)["Node"] == ("stale", stamp(20), 600.0)
    assert told(61)["Pod"] == ("read", stamp(60), 60.0)
    assert sources.coverage(sources.marks(store, at(30)), at(30), policy=POLICY) == 2 / 3
    assert sources.coverage(sources.marks(store, at(5)), at(5), policy=POLICY) == 0.0
    store.close()
