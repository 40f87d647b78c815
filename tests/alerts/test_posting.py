"""When an Alertmanager is told what: soon, again before it would forget, and for a while after the end."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.posting import WATCHDOG, Line, Rhythm, Told, body

RHYTHM = Rhythm(resend_ms=60_000, expire_ms=3_600_000)
ALERT = Told(
    labels={"alertname": "A", "queue": "q"},
    annotations={"summary": "s"},
    link="https://g/queues",
    starts_ms=1_000,
)
QUARTER = 15 * 60_000


def sent_at(line: Line, told: list[Told], *instants_ms: int) -> list[int]:
    """At which of these instants something is sent, and taken."""
    found = []
    for now_ms in instants_ms:
        due = line.due(told, now_ms)
        if due:
            line.taken(due, now_ms)
            found.append(now_ms)
    return found


def test_the_body_is_that_of_api_v2_with_the_end_ahead() -> None:
    assert body(ALERT, 60_000, RHYTHM) == {
        "labels": {"alertname": "A", "queue": "q"},
        "annotations": {"summary": "s"},
        "startsAt": "1970-01-01T00:00:01.000Z",
        "endsAt": "1970-01-01T01:01:00.000Z",
        "generatorURL": "https://g/queues",
    }
    assert body(replace(ALERT, ends_ms=30_000), 60_000, RHYTHM)["endsAt"] == "1970-01-01T00:00:30.000Z"


def test_by_a_clock_that_was_set_back_nothing_ends_before_it_began() -> None:
    ended = body(replace(ALERT, starts_ms=900_000, ends_ms=300_000), 300_000, RHYTHM)
    assert (ended["startsAt"], ended["endsAt"]) == ("1970-01-01T00:05:00.000Z",) * 2
    watchdog = replace(ALERT, labels={"alertname": WATCHDOG}, starts_ms=900_000)
    lives = body(watchdog, 300_000, RHYTHM)
    assert (lives["startsAt"], lives["endsAt"]) == ("1970-01-01T00:09:00.000Z",) * 2


def test_the_watchdog_is_missed_after_four_messages_that_did_not_come() -> None:
    watchdog = replace(ALERT, labels={"alertname": WATCHDOG})
    assert body(watchdog, 0, RHYTHM)["endsAt"] == "1970-01-01T00:04:00.000Z"


def test_what_fires_is_sent_at_once_and_again_each_minute() -> None:
    instants = range(0, 181_000, 15_000)
    assert sent_at(Line(rhythm=RHYTHM), [ALERT], *instants) == [0, 60_000, 120_000, 180_000]


def test_an_end_is_sent_at_once_and_again_until_nobody_holds_the_alert_any_more() -> None:
    line = Line(rhythm=Rhythm(resend_ms=60_000, expire_ms=QUARTER))
    assert sent_at(line, [ALERT], 0) == [0]
    ended = [replace(ALERT, ends_ms=20_000)]
    instants = [20_000, 30_000, 80_000, 20_000 + QUARTER, 20_001 + QUARTER + 60_000]
    assert sent_at(line, ended, *instants) == [20_000, 80_000, 20_000 + QUARTER]


def test_an_end_that_was_taken_is_told_for_a_while_and_one_that_was_missed_as_long_as_it_stands() -> None:
    ended = [replace(ALERT, ends_ms=20_000)]
    later = [20_000 + QUARTER + 1, RHYTHM.expire_ms - 1, RHYTHM.expire_ms + 20_001]
    taken, missed = Line(rhythm=RHYTHM), Line(rhythm=RHYTHM)
    for line in (taken, missed):
        assert sent_at(line, [ALERT], 0) == [0]
    assert sent_at(taken, ended, 20_000, *later) == [20_000]
    assert taken.wait_ms(ended, later[0]) == RHYTHM.resend_ms
    assert missed.due(ended, 20_000) == ended
    missed.failed(20_000)
    assert sent_at(missed, ended, *later) == [later[0]]
    # Nobody knows whether one that refuses some of what it is told has taken the end.
    refusing = Line(rhythm=RHYTHM)
    assert sent_at(refusing, [ALERT], 0) == [0]
    refusing.refused(ended, 20_000)
    assert refusing.due(ended, 30_000) == []
    assert [bool(refusing.due(ended, now_ms)) for now_ms in later] == [True, True, False]
    # A new process does not know what its forerunner told.
    assert [bool(Line(rhythm=RHYTHM).due(ended, now_ms)) for now_ms in later] == [True, True, False]


def test_an_alert_that_comes_back_is_news() -> None:
    line = Line(rhythm=RHYTHM)
    assert sent_at(line, [replace(ALERT, ends_ms=0)], 0) == [0]
    assert sent_at(line, [replace(ALERT, starts_ms=10_000)], 10_000) == [10_000]


def test_a_new_process_tells_everything_once_more() -> None:
    told = [ALERT, replace(ALERT, labels={"alertname": "B"}, ends_ms=5_000)]
    assert Line(rhythm=RHYTHM).due(told, 10_000) == told


def test_one_that_does_not_answer_is_left_alone_ever_longer_and_then_told_all() -> None:
    line = Line(rhythm=RHYTHM)
    asked = []
    for now_ms in range(0, 200_000, 500):
        if line.due([ALERT], now_ms):
            asked.append(now_ms)
            line.failed(now_ms)
    assert asked == [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000]
    assert line.failures == len(asked)
    assert line.due([ALERT], 243_000) == [ALERT]
    line.taken([ALERT], 243_000)
    assert line.failures == 0


def test_a_clock_set_back_silences_nothing() -> None:
    line = Line(rhythm=RHYTHM)
    assert sent_at(line, [ALERT], 10_000_000) == [10_000_000]
    assert line.due([ALERT], 5_000_000) == [ALERT]
    assert line.wait_ms([ALERT], 5_000_000) == RHYTHM.resend_ms
    line.failed(10_000_000)
    assert line.due([ALERT], 10_000_500) == []
    assert line.due([ALERT], 5_000_000) == [ALERT]


@settings(max_examples=30)
@given(start=st.integers(1, 300), length=st.integers(1, 180))
def test_an_outage_of_three_minutes_lets_no_alert_expire_that_stands_for_five_and_a_bit(
    start: int, length: int
) -> None:
    """At worst it was told a minute before the outage, and is asked again a minute after it."""
    line = Line(rhythm=RHYTHM)
    until = 0
    for second in range(start + length + 70):
        if line.due([ALERT], second * 1_000):
            if start <= second < start + length:
                line.failed(second * 1_000)
            else:
                line.taken([ALERT], second * 1_000)
                until = second + 301
        assert until > second
    assert until >= start + length + 301


def test_it_waits_until_something_is_due_and_no_longer() -> None:
    line = Line(rhythm=RHYTHM)
    assert line.wait_ms([ALERT], 0) == 0
    line.taken([ALERT], 0)
    assert [line.wait_ms([ALERT], now_ms) for now_ms in (0, 59_000, 61_000)] == [60_000, 1_000, 0]
    line.failed(61_000)
    assert line.wait_ms([ALERT], 61_000) == 1_000
    assert line.wait_ms([], 63_000) == 60_000
