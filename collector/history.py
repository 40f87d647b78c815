"""
What is already known to have happened to one object: decides whether a reading adds to it.

An object shows its state again and again, in each reading; a transition is taken once.
"""

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from domain.facts import Moment, Transition, TransitionKey

# What happens at most once in an object's life: the first instant that we hear counts. A later
# reading may give another one (deletionTimestamp moves backwards), and that is not a second one.
_ONCE = frozenset({Moment.CREATED, Moment.BOUND, Moment.ENDED, Moment.DELETE_REQUESTED, Moment.GONE})


class _Past(Struct, frozen=True, gc=False):
    state: str
    reason: str
    at_ms: int
    amount: int | None


# What a transition that may come again is compared with: others of its moment and subject.
_Place: TypeAlias = tuple[str, str]


class History:
    """Transitions of one object, in the order in which they were taken."""

    __slots__ = ("_earlier", "_latest", "once")

    def __init__(self, keys: Iterable[TransitionKey] = ()) -> None:
        # When what cannot happen again happened: most of what a reading shows.
        self.once: dict[Moment | str, int] = {}
        self._latest: dict[_Place, _Past] = {}
        # Most places see one transition only, and most objects need no list.
        self._earlier: dict[_Place, list[_Past]] | None = None
        for _, moment, subject, state, reason, at_ms, amount in keys:
            if moment in _ONCE:
                self.once[moment] = at_ms
            else:
                self._take((moment, subject), _Past(state, reason, at_ms, amount))

    def news(self, read: Transition, last_sight_ms: int | None) -> Transition | None:
        """
        The transition that a reading adds; None when it is known.

        Args:
            read: as the translator gives it.
            last_sight_ms: when we saw the object before; None when this is the first time.

        Returns:
            The transition to append. Where its instant is only our observation, its
            `earliest_ms` is the last sight, or the object's creation if that is later.
        """
        moment = read.moment
        if moment in self.once:
            return None
        added = read
        if moment in _ONCE:
            self.once[moment] = read.at_ms
        else:
            place = moment, read.subject
            latest = self._latest.get(place)
            if latest is not None:
                if (
                    latest.at_ms == read.at_ms
                    and latest.state == read.state
                    and latest.reason == read.reason
                    and latest.amount == read.amount
                ):
                    return None
                again = _added(read, [*(self._earlier or {}).get(place, ()), latest])
                if again is None:
                    return None
                added = again
            self._take(place, _Past(added.state, added.reason, added.at_ms, added.amount))
        earliest_ms = added.earliest_ms
        if earliest_ms is not None and last_sight_ms is not None and last_sight_ms > earliest_ms:
            added = replace(added, earliest_ms=min(last_sight_ms, added.at_ms))
        return added

    def newest_ms(self, up_to_ms: int) -> int | None:
        """When the last of these transitions happened that happened by then; None without one."""
        instants = (*self.once.values(), *(past.at_ms for past in self._latest.values()))
        return max((at_ms for at_ms in instants if at_ms <= up_to_ms), default=None)

    def _take(self, place: _Place, past: _Past) -> None:
        latest = self._latest.get(place)
        if latest is not None:
            if self._earlier is None:
                self._earlier = {}
            self._earlier.setdefault(place, []).append(latest)
        self._latest[place] = past


def _added(read: Transition, past: list[_Past]) -> Transition | None:
    if read.moment == Moment.CONDITION:
        return _condition(read, past)
    if read.moment == Moment.RESTARTS:
        # The count can fall when the kubelet loses dead containers; only a new highest is news.
        most = max(one.amount or 0 for one in past)
        return read if (read.amount or 0) > most else None
    if read.earliest_ms is None:
        known = any(one.at_ms == read.at_ms and one.state == read.state for one in past)
    elif read.moment == Moment.PHASE:
        known = past[-1].state == read.state
    else:
        known = any(
            (one.state, one.reason, one.amount) == (read.state, read.reason, read.amount) for one in past
        )
    return None if known else read


def _condition(read: Transition, past: list[_Past]) -> Transition | None:
    """
    A condition's stamp moves with its status only, and names a whole second.

    A condition that flips twice within its second shows a known stamp again: it is news, and
    lies later in that second. Where only the reason is another, or Kueue has counted one more
    eviction, something happened that no stamp shows: its instant is our observation.
    """
    latest = past[-1]
    if read.earliest_ms is not None:
        return None if (latest.state, latest.reason) == (read.state, read.reason) else read
    second_end_ms = read.at_ms + 999
    if latest.state != read.state:
        if not any(one.state == read.state and read.at_ms <= one.at_ms <= second_end_ms for one in past):
            return read
        at_ms = min(max(read.observed_ms, read.at_ms), second_end_ms)
        return replace(read, at_ms=at_ms, earliest_ms=read.at_ms)
    if read.at_ms > latest.at_ms:
        return read
    counted_more = read.amount is not None and read.amount > (latest.amount or 0)
    if latest.reason == read.reason and not counted_more:
        return None
    return replace(read, at_ms=max(read.observed_ms, read.at_ms), earliest_ms=read.at_ms)
