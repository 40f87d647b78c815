"""
What a reader of one kind does next: discover, list or watch, and how long it waits before.

Pure: `next_place` and `wait_seconds` are functions of where the reader is and what it was answered.
The protocol is that of client-go's reflector, with every ending of a watch that real servers show.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

# From here on doubling a delay changes nothing, it only makes the number large.
_MOST_DOUBLINGS = 16
# A list whose continue tokens expired so often is asked for in one piece, as client-go's pager does.
_EXPIRED_LISTS = 2


class Action(StrEnum):
    """What to ask next."""

    DISCOVER = "discover"
    LIST = "list"
    WATCH = "watch"


class Outcome(StrEnum):
    """
    How an action ended.

    LOST: the position is of no use any more (410 in any form, an ERROR line, a history that went
    back): only a new list tells what happened. BROKEN: the same question may be asked again.
    VANISHED: what discovery had found is not there: its version or CRD was taken away.
    """

    FOUND = "found"
    PAGE = "page"
    LISTED = "listed"
    CLOSED = "closed"
    LOST = "lost"
    BROKEN = "broken"
    VANISHED = "vanished"
    NO_PERMISSION = "no_permission"
    NOT_INSTALLED = "not_installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """
    Sizes and times of the reading.

    `silence_seconds` is granted beyond the watch's own end. Of a kind that was seen to get
    bookmarks, about one a minute, no silence longer than `bookmark_seconds` is believed. A server
    may wish for no longer pause than `longest_wish_seconds`.
    """

    page_limit: int = 500
    watch_seconds: int = 300
    silence_seconds: float = 30.0
    bookmark_seconds: float = 150.0
    request_seconds: float = 60.0
    first_delay_seconds: float = 0.8
    longest_delay_seconds: float = 60.0
    longest_wish_seconds: float = 600.0
    probe_seconds: float = 600.0
    flush_seconds: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    Where the reader of one kind is.

    `resource_version` is what a watch starts from; `next_page` asks for the next page of a list, and
    is empty for the first. `failures` counts those in a row, `expired_lists` the lists that were
    cut short by an expired token.
    """

    action: Action = Action.DISCOVER
    version: str = ""
    resource_version: str = ""
    next_page: str = ""
    failures: int = 0
    expired_lists: int = 0

    @property
    def whole_list(self) -> bool:
        """Whether to list in one piece: paging was too slow for the server's memory."""
        return self.expired_lists >= _EXPIRED_LISTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """
    What came of an action.

    Args:
        lived: a watch gave something or lasted: the server is well, so the delays start anew.
        removed: of a kind that is not installed: no version of its group serves it, also none that we cannot
            read. With its definition its objects went.
        because: what went wrong, for people; empty when all is well.
        retry_after_seconds: the server's wish.
    """

    outcome: Outcome
    version: str = ""
    resource_version: str = ""
    next_page: str = ""
    lived: bool = False
    removed: bool = False
    because: str = ""
    retry_after_seconds: float = 0.0


def next_place(place: Place, answered: Answered) -> Place:
    """Where the reader is after an answer."""
    failed = (0 if answered.lived else place.failures) + 1
    match answered.outcome:
        case Outcome.FOUND:
            return replace(place, action=Action.LIST, version=answered.version, next_page="")
        case Outcome.PAGE:
            return replace(place, next_page=answered.next_page)
        case Outcome.LISTED:
            # Only a watch that lives ends a row of failures: a list that works and a watch that
            # fails at once, for ever, must slow down.
            version = answered.resource_version
            return replace(
                place, action=Action.WATCH, resource_version=version, next_page="", expired_lists=0
            )
        case Outcome.CLOSED:
            failures = 0 if answered.lived else failed
            return replace(place, resource_version=answered.resource_version, failures=failures)
        case Outcome.LOST:
            expired = place.expired_lists + 1 if place.action is Action.LIST else 0
            return replace(
                place,
                action=Action.LIST,
                resource_version="",
                next_page="",
                failures=failed,
                expired_lists=expired,
            )
        case Outcome.BROKEN:
            version = answered.resource_version or place.resource_version
            return replace(place, resource_version=version, failures=failed)
        case Outcome.VANISHED | Outcome.NO_PERMISSION | Outcome.NOT_INSTALLED:
            return Place(failures=failed)


def wait_seconds(place: Place, answered: Answered, pace: Pace, *, draw: float) -> float:
    """
    How long to wait before acting at `place`, to which `answered` led.

    Args:
        place: what `next_place` gave.
        answered: what it gave it for.
        pace: of the reading.
        draw: a random number in [0, 1).
    """
    match answered.outcome:
        case Outcome.FOUND | Outcome.PAGE | Outcome.LISTED:
            return 0.0
        case Outcome.NOT_INSTALLED:
            return pace.probe_seconds
        case Outcome.NO_PERMISSION:
            # A server that starts forbids everything until it has read its rules: that is over in seconds.
            probing = replace(pace, longest_delay_seconds=pace.probe_seconds)
            return delay_seconds(place.failures, probing, draw=draw)
        case _ if place.failures == 0:
            return 0.0
        case _:
            wish = min(answered.retry_after_seconds, pace.longest_wish_seconds)
            return max(delay_seconds(place.failures, pace, draw=draw), wish)


def delay_seconds(failures: int, pace: Pace, *, draw: float) -> float:
    """
    The delay after so many failures in a row, at least one.

    Delays double from the first to the longest, less a random part of up to a half, so that
    readers which failed together do not return together.

    >>> [delay_seconds(failures, Pace(), draw=0.0) for failures in (1, 2, 3, 99)]
    [0.8, 1.6, 3.2, 60.0]
    """
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    delay = min(pace.first_delay_seconds * float(2**doublings), pace.longest_delay_seconds)
    return delay * (1 - draw / 2)


def outcome_of(status: int) -> Outcome:
    """
    What an HTTP status other than 200 means to a reader.

    401 is worth another try: the credentials are renewed. Any other refusal of the question
    itself (400, 410, 422) can only be answered by starting from a new list.

    >>> outcome_of(410), outcome_of(503), outcome_of(403)
    (<Outcome.LOST: 'lost'>, <Outcome.BROKEN: 'broken'>, <Outcome.NO_PERMISSION: 'no_permission'>)
    """
    match status:
        case 403:
            return Outcome.NO_PERMISSION
        case 404:
            return Outcome.VANISHED
        case 400 | 410 | 422:
            return Outcome.LOST
        case _:
            return Outcome.BROKEN
