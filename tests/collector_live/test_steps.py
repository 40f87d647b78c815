"""What a reader does next, without sockets."""

from dataclasses import replace

import pytest

from collector.kube.watch import split_line
from collector.kube.watch_steps import (
    Action,
    Answered,
    Outcome,
    Pace,
    Place,
    delay_seconds,
    next_place,
    outcome_of,
    wait_seconds,
)

WATCHING = Place(action=Action.WATCH, version="v1", resource_version="180")
PACE = Pace()


def test_a_kind_is_discovered_listed_page_by_page_and_watched() -> None:
    listing = next_place(Place(), Answered(outcome=Outcome.FOUND, version="v1beta2"))
    assert listing == Place(action=Action.LIST, version="v1beta2")
    second = next_place(listing, Answered(outcome=Outcome.PAGE, next_page="t"))
    assert (second.action, second.next_page) == (Action.LIST, "t")
    watching = next_place(second, Answered(outcome=Outcome.LISTED, resource_version="100"))
    assert watching == Place(action=Action.WATCH, version="v1beta2", resource_version="100")


def test_a_watch_that_ends_in_good_order_goes_on_at_once_from_its_last_version() -> None:
    closed = Answered(outcome=Outcome.CLOSED, resource_version="200", lived=True)
    place = next_place(WATCHING, closed)
    assert (place.action, place.resource_version) == (Action.WATCH, "200")
    assert wait_seconds(place, closed, PACE, draw=0.0) == 0.0


def test_a_watch_that_is_closed_at_once_for_ever_slows_down() -> None:
    place, closed = WATCHING, Answered(outcome=Outcome.CLOSED, resource_version="180")
    waits = []
    for _ in range(9):
        place = next_place(place, closed)
        waits.append(wait_seconds(place, closed, PACE, draw=0.0))
    assert waits == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0]


def test_a_list_that_works_and_a_watch_that_fails_for_ever_slow_down() -> None:
    lost = Answered(outcome=Outcome.LOST)
    place = next_place(WATCHING, lost)
    place = next_place(place, Answered(outcome=Outcome.LISTED, resource_version="500"))
    place = next_place(place, lost)
    assert (place.action, place.failures) == (Action.LIST, 2)


def test_a_lost_position_is_answered_by_a_list_from_its_first_page() -> None:
    place = next_place(WATCHING, Answered(outcome=Outcome.LOST, lived=True))
    assert place == Place(action=Action.LIST, version="v1", failures=1)


def test_a_broken_watch_resumes_from_the_last_version_it_gave() -> None:
    broken = Answered(outcome=Outcome.BROKEN, resource_version="190", lived=True)
    place = next_place(WATCHING, broken)
    assert (place.action, place.resource_version, place.failures) == (Action.WATCH, "190", 1)


def test_a_broken_page_is_asked_for_again() -> None:
    place = next_place(Place(action=Action.LIST, next_page="t"), Answered(outcome=Outcome.BROKEN))
    assert (place.action, place.next_page) == (Action.LIST, "t")


def test_a_list_whose_tokens_expire_twice_is_asked_for_in_one_piece() -> None:
    place = Place(action=Action.LIST, version="v1", next_page="t")
    once = next_place(place, Answered(outcome=Outcome.LOST))
    assert (once.next_page, once.whole_list) == ("", False)
    twice = next_place(
        next_place(once, Answered(outcome=Outcome.PAGE, next_page="t")), Answered(outcome=Outcome.LOST)
    )
    assert twice.whole_list
    assert not next_place(twice, Answered(outcome=Outcome.LISTED, resource_version="9")).whole_list


@pytest.mark.parametrize(
    ("outcome", "first_seconds"), [(Outcome.NO_PERMISSION, 0.8), (Outcome.NOT_INSTALLED, 600)]
)
def test_what_is_forbidden_or_absent_is_probed_and_in_the_end_every_ten_minutes(
    outcome: Outcome, first_seconds: float
) -> None:
    answered = Answered(outcome=outcome)
    place = next_place(WATCHING, answered)
    assert place == Place(failures=1)
    assert next_place(replace(WATCHING, expired_lists=2, failures=3), answered) == Place(failures=4)
    assert wait_seconds(place, answered, PACE, draw=0.0) == first_seconds
    assert wait_seconds(Place(failures=11), answered, PACE, draw=0.0) == 600


def test_the_servers_wish_to_wait_is_honoured() -> None:
    busy = Answered(outcome=Outcome.BROKEN, retry_after_seconds=17)
    assert wait_seconds(next_place(WATCHING, busy), busy, PACE, draw=0.9) == 17
    mistaken = Answered(outcome=Outcome.BROKEN, retry_after_seconds=86_400)
    assert wait_seconds(next_place(WATCHING, mistaken), mistaken, PACE, draw=0.9) == 600


def test_a_delay_loses_up_to_a_half_at_random() -> None:
    assert delay_seconds(1, PACE, draw=1.0) == PACE.first_delay_seconds / 2


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (401, Outcome.BROKEN),
        (403, Outcome.NO_PERMISSION),
        (404, Outcome.VANISHED),
        (400, Outcome.LOST),
        (410, Outcome.LOST),
        (422, Outcome.LOST),
        (429, Outcome.BROKEN),
        (503, Outcome.BROKEN),
        (504, Outcome.BROKEN),
    ],
)
def test_a_status_says_whether_to_ask_again_to_list_or_to_give_up(status: int, outcome: Outcome) -> None:
    assert outcome_of(status) is outcome


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"a":1}}',
        b' { "type" : "ADDED", "object" : {"a":1} }',
        b'{"object":{"a":1},"type":"ADDED"}',
        b'{"type":"ADDED","more":0,"object":{"a":1}}',
    ],
)
def test_a_line_is_split_however_it_is_spelt(line: bytes) -> None:
    assert split_line(line) == ("ADDED", b'{"a":1}')
