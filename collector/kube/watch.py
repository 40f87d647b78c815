"""
List and watch one kind of one cluster, for ever.

The objects travel as raw bytes to the intake; only the type of a line is looked at here. What to
do next after each answer, `watch_steps` says.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Generic

import msgspec

from collector.decoding import UNREADABLE, Line, Read, is_older
from collector.kube.client import Connection, LineStream
from collector.kube.discovery import discover, version_path
from collector.kube.refusal import refused, told_by_line
from collector.kube.watch_steps import (
    Action,
    Answered,
    Outcome,
    Pace,
    Place,
    next_place,
    wait_seconds,
)
from collector.raw import RawObject
from collector.shared_intake import SharedIntake
from collector.translator import Translator
from domain.errors import UnreachableError
from domain.window import CLOCK_SKEW_MS, Clock

_OK = 200
# A watch that the server closes sooner, with nothing said, did not live: closing at once for ever
# must not become a busy loop.
_LIVED_SECONDS = 5.0
_LINE_START = b'{"type":"'
_OBJECT_START = b',"object":'
_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
# How an API server begins a line of each type.
_STARTS = {of: _LINE_START + of.encode() + b'"' + _OBJECT_START for of in _TYPES}


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Head(msgspec.Struct, gc=False):
    """Of any object only its metadata."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Page(msgspec.Struct, gc=False):
    metadata: _Metadata
    kind: str = ""
    items: list[msgspec.Raw] | None = None

    @property
    def is_list(self) -> bool:
        """Whether this is a list: anything else at status 200 would tell that all objects are gone."""
        return bool(self.metadata.resource_version) and (not self.kind or self.kind.endswith("List"))


class _Event(Line[Read], Generic[Read], gc=False, forbid_unknown_fields=True):
    """A line whose object is all that comes after its type."""


_HEAD = msgspec.json.Decoder(_Head)
_PAGE = msgspec.json.Decoder(_Page)
_LINE = msgspec.json.Decoder(Line[msgspec.Raw])


def split_line(line: bytes) -> tuple[str, bytes]:
    """
    The event type of a line of a watch, and the bytes of its object.

    >>> split_line(b'{"type":"ADDED","object":{"kind":"Pod"}}')
    ('ADDED', b'{"kind":"Pod"}')

    Raises:
        msgspec.MsgspecError: the line is no watch event.
    """
    # API servers write exactly this; anything else is parsed.
    if line.startswith(_LINE_START) and line.endswith(b"}"):
        quote = line.find(b'"', len(_LINE_START))
        start = quote + 1 + len(_OBJECT_START)
        if line[quote + 1 : start] == _OBJECT_START:
            return line[len(_LINE_START) : quote].decode(), line[start:-1]
    parsed = _LINE.decode(line)
    return parsed.type, bytes(parsed.object)


@dataclass(slots=True)
class _Listing:
    """The pages of a list so far; of one snapshot, that of the first page."""

    items: list[msgspec.Raw]
    observed_ms: int
    version: str = ""


class KindReader:
    """Reads one kind until told to stop. One thread runs it; another one may only call `settle`."""

    def __init__(  # noqa: PLR0913 - everything that it uses is given to it
        self,
        translator: Translator,
        *,
        connection: Connection,
        intake: SharedIntake,
        clock: Clock,
        stop: threading.Event,
        pace: Pace,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._translator = translator
        self._connection = connection
        self._intake = intake
        self._clock = clock
        self._stop = stop
        self._pace = pace
        self._draw = draw
        # The whole line at once: what one object takes to decode, an event takes.
        self._decode = msgspec.json.Decoder(_Event[translator.raw]).decode  # type: ignore[name-defined]
        self._listing = _Listing([], 0)
        self._at = ""
        self._seen_ms = 0
        self._listed = ""
        self._histories = 0
        self._gets_bookmarks = False
        self._removed_ms: int | None = None
        self._told_removed = False
        # Since when a watch is open of which nothing was heard yet, after a trouble. Two threads look at it.
        self._accepted: float | None = None
        self._in_trouble = False
        self._accepting = threading.Lock()

    def run(self) -> None:
        """Discover, list and watch until `stop` is set."""
        place = Place()
        while not self._stop.is_set():
            answered = self._act(place)
            if self._stop.is_set():
                return
            if answered.because:
                label = answered.outcome if answered.outcome in _UNTIL_PROBED else "retry"
                because = f"{label}: {answered.because}"
                with self._accepting:
                    self._accepted, self._in_trouble = None, True
                    self._intake.troubled(self._translator, because, self._clock.now_ms())
            self._note_removal(answered)
            place = next_place(place, answered)
            self._stop.wait(wait_seconds(place, answered, self._pace, draw=self._draw()))

    def settle(self) -> None:
        """
        End the trouble of a watch that was taken up again and is open for a while, without an error.

        Kinds without bookmarks may have nothing to say for long. Another thread calls this now and then.
        """
        with self._accepting:
            accepted = self._accepted  # looked at once: its watch may end meanwhile
            if accepted is None or monotonic() - accepted < _LIVED_SECONDS:
                return
            self._accepted, self._in_trouble = None, False
            self._intake.accepted(self._translator, self._now_ms(after_ms=self._seen_ms))

    def _now_ms(self, *, after_ms: int) -> int:
        """
        The clock's time, but no earlier than what was stamped already: clocks are set back a little.

        One that is set back far was wrong before; to wait until it is there again would hide what happens.
        """
        now_ms = self._clock.now_ms()
        return now_ms if now_ms < after_ms - CLOCK_SKEW_MS else max(now_ms, after_ms)

    def _note_removal(self, answered: Answered) -> None:
        """
        A kind that was read and is not served any more took its objects with it.

        Believed when the cluster has said so twice, a probe apart: a server that starts may not know yet.
        """
        if not answered.removed:
            self._removed_ms, self._told_removed = None, False
        elif self._removed_ms is None:
            self._removed_ms = self._clock.now_ms()
        elif not self._told_removed:
            self._intake.removed(self._translator, self._removed_ms)
            self._told_removed = True

    def _act(self, place: Place) -> Answered:
        try:
            match place.action:
                case Action.DISCOVER:
                    return discover(self._connection, self._translator)
                case Action.LIST:
                    return self._if_there(self._list(place))
                case Action.WATCH:
                    return self._if_there(self.watch(place))
        except (UnreachableError, *UNREADABLE) as cause:
            return Answered(outcome=Outcome.BROKEN, because=str(cause))

    def _if_there(self, answered: Answered) -> Answered:
        """As answered; but a CRD that was taken away answers 403 to some accounts, and is no more."""
        if answered.outcome is not Outcome.NO_PERMISSION:
            return answered
        found = discover(self._connection, self._translator)
        return found if found.outcome is Outcome.NOT_INSTALLED else answered

    def _path(self, place: Place) -> str:
        return f"{version_path(self._translator, place.version)}/{self._translator.resource}"

    def _list(self, place: Place) -> Answered:
        params = {} if place.whole_list else {"limit": str(self._pace.page_limit)}
        if place.next_page:
            # A later page must not name a version: the token holds that of the first.
            params["continue"] = place.next_page
        path = self._path(place)
        answer = self._connection.get(path, params, read_seconds=self._pace.request_seconds)
        if answer.status != _OK:
            return refused(f"list {path}", answer.status, answer.body, answer.headers)
        page = _PAGE.decode(answer.body)
        if not page.is_list:
            because = f"list {path}: expected a list with a resourceVersion, got {answer.body[:80]!r}"
            return Answered(outcome=Outcome.BROKEN, because=because)
        if not place.next_page:
            self._histories = self._intake.histories()
            # A list lies behind what the watch told, so that what it ends has bounds.
            observed_ms = self._now_ms(after_ms=self._seen_ms + 1)
            self._listing = _Listing([], observed_ms, page.metadata.resource_version)
        elif page.metadata.resource_version != self._listing.version:
            # What was deleted between two versions would be missing from both halves.
            because = f"list {path}: a page is of another version than the first"
            return Answered(outcome=Outcome.LOST, because=because)
        self._listing.items.extend(page.items or ())
        if page.metadata.continue_:
            return Answered(outcome=Outcome.PAGE, next_page=page.metadata.continue_)
        listing, self._listing = self._listing, _Listing([], 0)
        version = page.metadata.resource_version
        if not self._stop.is_set():
            self._seen_ms, self._listed = listing.observed_ms, version
            self._intake.relisted(self._translator, listing.items, version, listing.observed_ms)
        return Answered(outcome=Outcome.LISTED, resource_version=version)

    def watch(self, place: Place) -> Answered:
        """Follow one watch from a place until it ends, and say how it ended."""
        # Spread over one to two times the length, so that not all watches end at once.
        seconds = round(self._pace.watch_seconds * (1 + self._draw()))
        params = {
            "watch": "1",
            "resourceVersion": place.resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        path = self._path(place)
        silence = seconds + self._pace.silence_seconds
        if self._gets_bookmarks:
            silence = min(silence, self._pace.bookmark_seconds)
        self._gets_bookmarks = False
        # What is older than the question is told, however long the answer takes.
        asked_ms = self._clock.now_ms()
        stream = self._connection.stream(path, params, read_seconds=silence)
        try:
            if stream.status != _OK:
                return refused(f"watch {path}", stream.status, stream.body(), stream.headers)
            if self._in_trouble:
                self._accepted = monotonic()
            return self._unless_anew(self._follow(stream, path, place.resource_version, asked_ms))
        finally:
            self._accepted = None
            self._connection.release(stream)

    def _unless_anew(self, answered: Answered) -> Answered:
        """
        As answered, but for a cluster that was restored to an earlier version.

        A watch from a version of the future gets no error: what happens before that version is
        left out. Kinds with bookmarks notice, and here tell those without.
        """
        if answered.outcome is Outcome.LOST or self._intake.histories() == self._histories:
            return answered
        because = "the history of another kind began anew: listing this one again"
        return replace(answered, outcome=Outcome.LOST, because=because)

    def _follow(self, stream: LineStream, path: str, resource_version: str, asked_ms: int) -> Answered:
        began = monotonic()
        self._at = resource_version
        gave = False

        def lasted() -> bool:
            return monotonic() - began >= _LIVED_SECONDS

        def ended(outcome: Outcome, because: str = "") -> Answered:
            # To be given something and then lose the place is no life: it would list again and again.
            lived = (gave and outcome is not Outcome.LOST) or lasted()
            return Answered(outcome=outcome, resource_version=self._at, lived=lived, because=because)

        try:
            for line in stream:
                if self._stop.is_set():
                    return ended(Outcome.CLOSED)
                against = self._take(line)
                if against is not None:
                    return replace(against, lived=lasted(), because=f"watch {path}: {against.because}")
                gave = True
        except UnreachableError as cause:
            # Whoever cuts idle connections may cut each of them before a bookmark comes.
            if not gave and lasted():
                self._intake.troubled(self._translator, "", asked_ms)
            return ended(Outcome.BROKEN, str(cause))
        except UNREADABLE as cause:
            # A line that is no event: one may be lost, and only a list tells which.
            return ended(Outcome.LOST, f"watch {path}: unreadable line: {cause}")
        if not gave and not lasted():
            return ended(Outcome.CLOSED, f"watch {path}: the API server closed it at once")
        if not gave:
            # Nothing was said, and no 410: whatever had happened before the start would have been.
            self._intake.troubled(self._translator, "", asked_ms)
        return ended(Outcome.CLOSED)

    def _take(self, line: bytes) -> Answered | None:
        """Deliver one line; gives what speaks against going on."""
        event_type, payload, read = self._read(line)
        if event_type == "ERROR":
            return told_by_line(bytes(payload))
        self._gets_bookmarks |= event_type == "BOOKMARK"
        seen = (
            (read.metadata.resource_version or "")
            if read
            else _HEAD.decode(payload).metadata.resource_version
        )
        is_old = is_older(seen, self._at)
        if event_type == "BOOKMARK" and is_old:
            # A replayed event may be old; a bookmark says where the server is now.
            because = f"the server is at {seen}, we were at {self._at}: it was restored"
            return Answered(outcome=Outcome.LOST, because=because)
        if is_old and is_older(seen, self._listed):
            # It may be about an object that was gone before the list, and would end nowhere.
            because = f"an event of {seen}, from before the list at {self._listed}"
            return Answered(outcome=Outcome.LOST, because=because)
        self._seen_ms = self._now_ms(after_ms=self._seen_ms)
        self._intake.see(self._translator, event_type, payload, self._seen_ms, read=read)
        if seen and not is_old:
            self._at = seen
        return None

    def _read(self, line: bytes) -> tuple[str, bytes | memoryview, RawObject | None]:
        """The type of an event, its object as written, and the object, where it can be read."""
        try:
            event = self._decode(line)
        except UNREADABLE:
            # The intake must say what is wrong with the object; that this is an event is seen here.
            event_type, payload = split_line(line)
            return event_type, payload, None
        start = _STARTS.get(event.type)
        if start is not None and line.startswith(start) and line.endswith(b"}"):
            return event.type, memoryview(line)[len(start) : -1], event.object
        return event.type, split_line(line)[1], event.object


_UNTIL_PROBED = (Outcome.NO_PERMISSION, Outcome.NOT_INSTALLED)
