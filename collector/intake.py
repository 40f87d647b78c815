"""
From readings of objects to facts that are appended once.

A watch repeats itself after each reconnect, and a list shows again what the watch has told. A
reading that is not newer than the known one is dropped; of a newer one only what it adds is kept.
Facts are committed together with the positions they stand for, so that a restart replays and does
not repair. When `append` fails, make a new intake from what the sink knows.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from collector.aside import Aside
from collector.checkpoints import ANNOTATION, Annotations
from collector.decoding import (
    UNREADABLE,
    Head,
    Line,
    Payload,
    Status,
    is_older,
    line_decoder,
    read_object,
)
from collector.kind import SIGHTS
from collector.news import News
from collector.position import Position, Positions
from collector.raw import RawObject
from collector.sink import FactSink
from collector.translator import Translator
from collector.wording import uid_of
from domain.errors import DataError
from domain.facts import Known, ObjectKind, ObjectState
from domain.window import CLOCK_SKEW_MS

# 30,000 would save 1.5 of the 40 microseconds of a Pod event, and hold up those who wait three times as long.
FLUSH_ROWS = 10_000
# To find a member of an enum takes Python as long as to make a fact of it.
_EVENT, _NAMESPACE = ObjectKind.EVENT, ObjectKind.NAMESPACE


class Intake:
    """
    Takes in the readings of one cluster. `readings` counts those newer than what was known.

    `checkpoint_keys` are the annotations in which objects tell of checkpoints. What is gone for longer than
    `forget_after_ms` is forgotten; see `Gone`. Readings that are `live` are of now, in their order, and none
    is a replay: a clock that was ahead before it was set right hides nothing. `aside` counts what is not
    understood.
    """

    def __init__(  # noqa: PLR0913 - everything that it uses is given to it
        self,
        cluster: str,
        sink: FactSink,
        known: Known,
        *,
        flush_rows: int = FLUSH_ROWS,
        checkpoint_keys: Sequence[str] = (ANNOTATION,),
        forget_after_ms: int | None = None,
        live: bool = False,
        aside: Aside | None = None,
    ) -> None:
        self.cluster = cluster
        self._annotations = Annotations(checkpoint_keys)
        self.readings = 0
        self._sink = sink
        self._flush_rows = flush_rows
        self._objects = known.objects
        self._news = News(cluster, known, forget_after_ms)
        self._aside = Aside() if aside is None else aside
        self._is_live = live
        self._positions = Positions(known.marks, is_live=live)

    def __len__(self) -> int:
        """Rows that wait to be committed."""
        return self._news.rows + len(self._aside)

    @property
    def histories(self) -> int:
        """How often a kind's history, or the cluster's, was seen to begin anew."""
        return self._positions.histories

    # ------------------------------------------------------------ what comes in

    def see(
        self,
        translator: Translator,
        event_type: str,
        payload: Payload,
        observed_ms: int,
        *,
        read: RawObject | None = None,
    ) -> None:
        """
        Take in one watch event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and its object.

        `read` is the object where the caller has decoded it.
        """
        if read is not None:
            self._take(translator, event_type, read, observed_ms=observed_ms, payload=payload)
            return
        try:
            if event_type == "ERROR":
                self.troubled(translator, read_object(payload, Status).words(), observed_ms)
                return
            raw = read_object(payload, translator.raw)
        except UNREADABLE as cause:
            self._unreadable(translator, event_type, payload, because=str(cause), observed_ms=observed_ms)
            return
        self._take(translator, event_type, raw, observed_ms=observed_ms, payload=payload)

    def see_line(self, translator: Translator, line: bytes, observed_ms: int) -> None:
        """As `see`, from one line of a watch stream, which is decoded only once."""
        try:
            read = line_decoder(translator.raw).decode(line)
        except UNREADABLE as cause:
            self._unreadable_line(translator, line, because=str(cause), observed_ms=observed_ms)
            return
        if read.type == "ERROR":
            self._unreadable_line(translator, line, because="", observed_ms=observed_ms)
            return
        self._take(translator, read.type, read.object, observed_ms=observed_ms, payload=line)

    def relisted(
        self, translator: Translator, items: Iterable[Payload], resource_version: str, observed_ms: int
    ) -> None:
        """
        Take in a complete list of a kind; known objects that are not in it are gone.

        When they went nobody saw: after the stream was last known to be good, before now. A list
        below our position shows that the cluster's history began anew (restored from a backup,
        or made again); one of before what we have read is a replay and ends nothing, unless it is live.
        """
        read, present = self._read_items(translator, list(items), observed_ms)
        for raw, _ in read:
            self._meet_cluster(translator, raw)
        position = self._positions.of(translator.kind)
        position.sighted(observed_ms, resumed=False)
        known_good_ms = position.seen_ms
        anew = position.begins_anew(resource_version, observed_ms)
        if anew:
            self._begin_anew(translator.kind, position)
        for raw, item in read:
            self._take(translator, "LISTED", raw, observed_ms=observed_ms, payload=item)
        if anew or position.is_news(observed_ms):
            # An item that does not say who it is may be any of those that are missing.
            if known_good_ms and None not in present:
                self._end_absent(translator, present, known_good_ms, observed_ms)
            position.listed(resource_version, observed_ms)
        self._flush_when_full()

    def removed(self, translator: Translator, observed_ms: int) -> None:
        """
        The cluster does not serve a kind any more since then: what is known of it is gone.

        Nothing where it was never read. Should it be served again, its history begins anew.
        """
        position = self._positions.of(translator.kind)
        if position.seen_ms:
            self._end_absent(translator, set(), position.seen_ms, observed_ms)
        if position.resource_version:
            self._forget_versions(translator.kind, position)

    def identify(self, cluster_uid: str) -> None:
        """Tell which cluster this is: the uid of its kube-system. Another one lists all kinds anew."""
        self._positions.identify(cluster_uid)

    def troubled(self, translator: Translator, because: str, observed_ms: int) -> None:
        """Note what keeps a kind from being read; empty when it is read again."""
        position = self._positions.of(translator.kind)
        position.last_error = because
        # A recording that is read again tells of trouble that was counted.
        position.restarts += bool(because) and observed_ms >= position.seen_ms
        if not because:
            position.sighted(observed_ms, resumed=True)
            position.good(observed_ms)

    def accepted(self, translator: Translator, observed_ms: int) -> None:
        """The API server took the watch up again: the trouble is over. That anything was seen is not said."""
        position = self._positions.of(translator.kind)
        if position.is_live or observed_ms >= position.seen_ms:
            position.last_error = ""

    def set_aside(
        self, source: str, because: str, sample: Payload | str, observed_ms: int, *, count: int = 1
    ) -> None:
        """Keep and count something that was read and not understood."""
        self._aside.add(source, because, sample, observed_ms=observed_ms, count=count)

    def flush(self) -> int:
        """Commit what has been taken in, with the positions; gives the number of rows."""
        batch = self._news.taken()
        batch.set_aside = self._aside.taken()
        batch.marks = self._positions.changed()
        batch.sights = self._positions.sights()
        appended = self._sink.append(batch)
        self._news.forget()
        return appended

    # ------------------------------------------------------------ one object

    def _take(
        self, translator: Translator, event_type: str, raw: RawObject, *, observed_ms: int, payload: Payload
    ) -> None:
        kind = translator.kind
        if event_type != "LISTED":
            self._positions.of(kind).advance(raw.metadata.resource_version or "", observed_ms)
            if event_type == "BOOKMARK":
                return
        try:
            translator.check(event_type, raw)
            uid = uid_of(raw)
            before = self._objects.get(uid)
            if before is not None:
                translator.check_same(before)
                if self._is_known(before, raw, event_type, observed_ms):
                    return
            facts = translator.facts(raw, observed_ms)
            if self._annotations.stamps(raw.metadata):
                facts += self._annotations.told(
                    raw, facts, lambda why, text: self.set_aside(kind, why, text, observed_ms)
                )
        except (DataError, OverflowError, *UNREADABLE) as cause:
            self._misread(
                translator, event_type, raw, because=str(cause), sample=payload, observed_ms=observed_ms
            )
            return
        if kind is _NAMESPACE:
            self._meet_cluster(translator, raw)
        self.readings += 1
        gone = event_type == "DELETED"
        last_sight_ms = before.seen_ms if before is not None else None
        if last_sight_ms is not None and last_sight_ms > observed_ms and self._is_live:
            last_sight_ms = None  # by a clock that was ahead: nobody knows when it was
        if doubt := self._news.add(facts, last_sight_ms=last_sight_ms, expired=gone):
            self.set_aside(kind, doubt, payload, observed_ms)
        self._remember(translator, uid, raw, observed_ms=observed_ms, gone=gone)
        self._flush_when_full()

    def _is_known(self, before: ObjectState, raw: RawObject, event_type: str, observed_ms: int) -> bool:
        """Whether a reading is not newer than the known one; the same one again is still a sight."""
        version = raw.metadata.resource_version or ""
        if not version or not before.resource_version:
            return False
        if version != before.resource_version:
            return is_older(version, before.resource_version)
        if before.gone_ms is not None:
            return True
        if event_type == "DELETED":
            return False
        if observed_ms > before.seen_ms or (self._is_live and observed_ms < before.seen_ms - CLOCK_SKEW_MS):
            self._news.keep(replace(before, seen_ms=observed_ms))
        return True

    def _remember(
        self, translator: Translator, uid: str, raw: RawObject, *, observed_ms: int, gone: bool
    ) -> None:
        # Of Events we only need to know which reading was the newest: they are very many.
        kind, metadata = translator.kind, raw.metadata
        named = kind is not _EVENT
        state = ObjectState(
            uid=uid,
            kind=kind,
            namespace=(metadata.namespace or "") if named else "",
            name=(metadata.name or "") if named else "",
            resource_version=metadata.resource_version or "",
            seen_ms=observed_ms,
        )
        self._news.keep(state)
        if gone:
            self._end(translator, state, earliest_ms=None, observed_ms=observed_ms)

    def _end(
        self, translator: Translator, state: ObjectState, *, earliest_ms: int | None, observed_ms: int
    ) -> None:
        self._news.end(state, earliest_ms=earliest_ms, observed_ms=observed_ms)
        self._annotations.forget(state.uid)
        translator.forget(state.uid)

    # ------------------------------------------------------------ what cannot be read

    def _unreadable(
        self, translator: Translator, event_type: str, payload: Payload, *, because: str, observed_ms: int
    ) -> RawObject | None:
        try:
            head = read_object(payload, Head)
        except UNREADABLE:
            self.set_aside(translator.kind, because, payload, observed_ms)
            return None
        self._misread(translator, event_type, head, because=because, sample=payload, observed_ms=observed_ms)
        return head

    def _unreadable_line(
        self, translator: Translator, line: bytes, *, because: str, observed_ms: int
    ) -> None:
        try:
            read = read_object(line, Line[msgspec.Raw])
        except UNREADABLE as cause:
            self.set_aside(translator.kind, because or str(cause), line, observed_ms)
            return
        if read.type == "ERROR":
            self.see(translator, "ERROR", read.object, observed_ms)
        else:
            self._unreadable(translator, read.type, read.object, because=because, observed_ms=observed_ms)

    def _misread(
        self,
        translator: Translator,
        event_type: str,
        head: RawObject,
        *,
        because: str,
        sample: Payload,
        observed_ms: int,
    ) -> None:
        """Set aside a reading of which only the head makes sense: that it was seen, or is gone, counts."""
        uid = head.metadata.uid
        before = self._objects.get(uid or "")
        is_another = before is not None and before.kind != translator.kind
        if not is_another and before is not None and self._is_known(before, head, event_type, observed_ms):
            return
        self.set_aside(translator.kind, because, sample, observed_ms)
        if uid and event_type in SIGHTS and not is_another:
            gone = event_type == "DELETED"
            self._remember(translator, uid, head, observed_ms=observed_ms, gone=gone)

    def _read_items(
        self, translator: Translator, items: list[Payload], observed_ms: int
    ) -> tuple[list[tuple[RawObject, Payload]], set[str | None]]:
        """The items that can be read, and the uids of all; None among them for one without."""
        read: list[tuple[RawObject, Payload]] = []
        present: set[str | None] = set()
        for item in items:
            head: RawObject | None
            try:
                head = read_object(item, translator.raw)
                read.append((head, item))
            except UNREADABLE as cause:
                head = self._unreadable(
                    translator, "LISTED", item, because=str(cause), observed_ms=observed_ms
                )
            present.add(head.metadata.uid if head is not None else None)
        return read, present

    # ------------------------------------------------------------ lists and epochs

    def _meet_cluster(self, translator: Translator, raw: RawObject) -> None:
        if translator.kind is _NAMESPACE and raw.metadata.name == "kube-system":
            self.identify(raw.metadata.uid or "")

    def _begin_anew(self, kind: ObjectKind, position: Position) -> None:
        self._forget_versions(kind, position)
        self._positions.histories += 1

    def _forget_versions(self, kind: ObjectKind, position: Position) -> None:
        """Versions of the old history say nothing about the new one."""
        if position.resource_version:
            for state in [s for s in self._objects.values() if s.kind == kind]:
                self._news.keep(replace(state, resource_version=""))
        position.epoch += 1
        position.resource_version = ""

    def _end_absent(
        self, translator: Translator, present: set[str | None], known_good_ms: int, observed_ms: int
    ) -> None:
        absent = [
            state
            for state in self._objects.values()
            if state.kind == translator.kind and state.gone_ms is None and state.uid not in present
        ]
        for state in absent:
            # A sight of the future was stamped by a clock that was ahead: only what it told itself is left.
            sights = [ms for ms in (known_good_ms, state.seen_ms) if ms <= observed_ms]
            earliest_ms = max(sights) if sights else self._news.newest_ms(state.uid, observed_ms)
            self._end(translator, state, earliest_ms=earliest_ms, observed_ms=observed_ms)

    def _flush_when_full(self) -> None:
        if self._news.rows + len(self._aside) >= self._flush_rows:
            self.flush()
