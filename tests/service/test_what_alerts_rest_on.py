"""What is told beside an alert: how much of its data was observed, and which other one is told instead."""

from alerts.declared import OWN
from api.answers import ReportQuestion
from domain.facts import Batch, ObjectKind, SourceMark
from store import alerts
from tests.service.test_alerting import MINUTE, RED, START, Site, site


def test_what_is_not_told_because_another_one_says_it_is_listed_with_the_name_of_that() -> None:
    with site(None) as here:
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        assert [row["inhibited_by"] for row in here.listed()] == [""]
        # The cluster is not read any more, for long enough to be told.
        for minute in range(2, 8):
            here.measured(minute, {RED: 500.0}, seen=1)
        assert [row["inhibited_by"] for row in here.listed(filters={"queue": ("red",)})] == [
            "GpuledgerSourceStale"
        ]
        # It is read again, and that it was not has ended too.
        for minute in range(8, 16):
            here.measured(minute, {RED: 500.0})
        assert stands(here) == {
            ("GpuledgerSourceStale", "resolved", ""),
            ("GpuQueueWaitTooLong", "firing", ""),
        }
        for minute in range(16, 30):
            here.measured(minute, {RED: 0.0})
        # Stale once more: what has ended is told by nobody else.
        for minute in range(30, 36):
            here.measured(minute, {RED: 0.0}, seen=29)
        assert ("GpuledgerSourceStale", "firing", "") in stands(here)
        assert [(row["state"], row["inhibited_by"]) for row in here.listed()] == [("resolved", "")]


def stands(here: Site) -> set[tuple[str, str, str]]:
    """How all alerts stand, and by what they are inhibited."""
    rows = here.answers.alerts(ReportQuestion(as_of_ms=here.clock.at_ms)).rows
    return {(row["alert"], row["state"], row["inhibited_by"]) for row in rows}


def test_it_says_how_much_of_what_it_rests_on_was_observed_when_it_began_to_fire() -> None:
    read = SourceMark(kind=ObjectKind.POD, resource_version="1", epoch=0, seen_ms=START + MINUTE)
    refused = SourceMark(kind=ObjectKind.NODE, resource_version="", epoch=0, seen_ms=0)
    with site(None) as here:
        here.store.append(Batch(cluster="east", marks={read.kind: read, refused.kind: refused}))
        here.measured(0, {RED: 400.0})
        here.measured(1, {RED: 460.0})
        # One of the two kinds of its cluster.
        assert [row["coverage"] for row in here.listed()] == [0.5]
        assert [alert["coverage"] for alert in alerts.states(here.store)] == [0.5]


def test_what_the_ledger_knows_of_itself_is_what_its_alerts_ask_for() -> None:
    with site(None) as here:
        here.measured(0, {})
        asked = {one.source for one in here.alerting._own}
        assert asked == here.alerting._own_samples().keys()
        assert asked == {each.rule.name for each in OWN} - {
            "GpuledgerMeasurementsAbsent", "GpuledgerNameShared",
        }  # fmt: skip
