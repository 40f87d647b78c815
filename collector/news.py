"""What is known of the objects of one cluster, and what of it is not committed yet."""

from collections.abc import Iterable

from msgspec.structs import replace

from collector.gone import Gone
from collector.history import History
from collector.wording import OF_THE_FUTURE
from domain.facts import (
    Batch,
    Description,
    Fact,
    Known,
    Moment,
    ObjectKind,
    ObjectState,
    Transition,
)
from domain.window import LAST_KEPT_MS

# To find a member of an enum takes Python as long as to make a fact of it.
_CREATED = Moment.CREATED
_NO_HISTORY = History()
_NO_CREATION = "has no creationTimestamp; first sight is used"


class News:
    """
    Of facts and states what is not known yet, gathered in a batch.

    `objects` are the states that are known, by uid; `rows` counts those that wait. For `forget_after_ms` see
    `Gone`.
    """

    def __init__(self, cluster: str, known: Known, forget_after_ms: int | None) -> None:
        self.objects = known.objects
        self.rows = 0
        self._cluster = cluster
        self._keys = known.keys
        self._bodies = known.bodies
        self._histories: dict[str, History] = {}
        self._batch = Batch(cluster=cluster, seen_since_ms=LAST_KEPT_MS)
        self._gone = Gone(forget_after_ms, known.objects)

    def add(self, facts: Iterable[Fact], *, last_sight_ms: int | None, expired: bool) -> str:
        """
        Take what is new of the facts that a reading shows; tells what was wrong with a stamp, if one was.

        Args:
            facts: as the translator gives them.
            last_sight_ms: when the object was seen before.
            expired: the object is gone, and if it is an Event that undoes nothing.
        """
        doubt = ""
        uid, history = "", _NO_HISTORY
        for fact in facts:
            if isinstance(fact, Transition):
                if fact.uid is not uid:
                    uid, history = fact.uid, self._history(fact.uid)
                if fact.moment in history.once:
                    continue  # by far the commonest
                added = history.news(fact, last_sight_ms)
                if added is not None:
                    self._batch.transitions.append(added)
                    self.rows += 1
                    if added.earliest_ms is not None:
                        doubt = _doubt(added) or doubt
            elif isinstance(fact, Description):
                self._described(fact, last_sight_ms)
            elif not expired:
                self._batch.events.append(fact)
                self.rows += 1
        return doubt

    def keep(self, state: ObjectState) -> None:
        """The newest state of an object."""
        uid, batch = state.uid, self._batch
        before = self.objects.get(uid)
        if before is not None and before.seen_ms < batch.seen_since_ms:
            batch.seen_since_ms = before.seen_ms
        self.objects[uid] = batch.objects[uid] = state

    def end(self, state: ObjectState, *, earliest_ms: int | None, observed_ms: int) -> None:
        """An object is gone: it was so when we looked, and not yet at `earliest_ms`."""
        uid = state.uid
        if state.kind != ObjectKind.EVENT:
            gone = Transition(
                uid=uid,
                kind=state.kind,
                moment=Moment.GONE,
                at_ms=observed_ms,
                observed_ms=observed_ms,
                earliest_ms=None if earliest_ms is None else min(earliest_ms, observed_ms),
            )
            self.add([gone], last_sight_ms=None, expired=False)
        self.keep(replace(state, gone_ms=observed_ms))
        self._gone.add(uid, observed_ms)
        self._histories.pop(uid, None)
        self._keys.pop(uid, None)
        self._bodies.pop(uid, None)

    def newest_ms(self, uid: str, up_to_ms: int) -> int:
        """When something happened to an object last, of what is known to have happened by then; else then."""
        newest_ms = self._history(uid).newest_ms(up_to_ms)
        return up_to_ms if newest_ms is None else newest_ms

    def taken(self) -> Batch:
        """All that waits; from here on it is gathered anew."""
        batch = self._batch
        self._batch = Batch(cluster=self._cluster, seen_since_ms=LAST_KEPT_MS)
        self.rows = 0
        return batch

    def forget(self) -> None:
        """Forget what is gone for long."""
        self._gone.forget()

    def _history(self, uid: str) -> History:
        history = self._histories.get(uid)
        if history is None:
            history = self._histories[uid] = History(self._keys.pop(uid, ()))
        return history

    def _described(self, read: Description, last_sight_ms: int | None) -> None:
        body = self._bodies.get(read.uid)
        if body == read.body:
            return
        self._bodies[read.uid] = read.body
        if body is not None:
            earliest_ms = None if last_sight_ms is None else min(last_sight_ms, read.observed_ms)
            read = replace(read, from_ms=read.observed_ms, earliest_ms=earliest_ms)
        self._batch.descriptions.append(read)
        self.rows += 1


def _doubt(added: Transition) -> str:
    """What is wrong with the stamp of a transition that has none."""
    if added.moment is _CREATED:
        return _NO_CREATION
    return OF_THE_FUTURE if added.detail == OF_THE_FUTURE else ""
