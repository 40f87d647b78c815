"""Where the reading of each kind of a cluster stands, and when its history began anew."""

from dataclasses import dataclass, field

from collector.decoding import is_older
from domain.facts import ObjectKind, SourceMark
from domain.observed import Stretch, merged
from domain.policy import patience_ms
from domain.window import CLOCK_SKEW_MS


@dataclass(slots=True)
class Position:
    """
    Where the reading of one kind stands.

    `seen_ms` 0 means that it was never read. An empty `resource_version` of a kind that was read
    means that the next list begins a new history. Where it `is_live`, what is read is of now, whatever our
    clock said before: a clock that was ahead is set right one day. Else it may be a replay.
    """

    resource_version: str = ""
    epoch: int = 0
    seen_ms: int = 0
    last_error: str = ""
    restarts: int = 0
    patience_ms: int = 0
    is_live: bool = False
    # The stretch that is going on is three numbers: each line of a watch makes it longer.
    _begun_ms: int = 0
    _last_ms: int | None = None
    _resumed: bool = False
    _sights: list[Stretch] = field(default_factory=list)

    def sighted(self, at_ms: int, *, resumed: bool) -> None:
        """
        The kind was seen at an instant, by its watch (`resumed`) or anew, by a list.

        A watch that went on after a silence has missed nothing of it.
        """
        last_ms = self._last_ms
        if last_ms is not None and self._begun_ms <= at_ms <= last_ms:
            self._resumed &= resumed or at_ms > self._begun_ms
        elif last_ms is not None and last_ms < at_ms <= last_ms + self.patience_ms:
            self._last_ms = at_ms
        else:
            self._end_stretch()
            self._begun_ms = self._last_ms = at_ms
            self._resumed = resumed

    def sights(self) -> list[Stretch]:
        """What was seen since it was asked last."""
        self._end_stretch()
        given, self._sights = merged(self._sights, self.patience_ms), []
        return given

    def _end_stretch(self) -> None:
        if self._last_ms is not None:
            stretch = Stretch(start_ms=self._begun_ms, end_ms=self._last_ms, resumed=self._resumed)
            self._sights.append(stretch)
            self._last_ms = None

    def advance(self, resource_version: str, observed_ms: int) -> None:
        """A line of the watch was read; one that is replayed does not take us back."""
        last_ms = self._last_ms
        if last_ms is not None and last_ms < observed_ms <= last_ms + self.patience_ms:
            self._last_ms = observed_ms  # as `sighted` does, for all but the first of very many lines
        else:
            self.sighted(observed_ms, resumed=True)
        if resource_version and not is_older(resource_version, self.resource_version):
            self.resource_version = resource_version
        self.good(observed_ms)
        self.last_error = ""

    def good(self, observed_ms: int) -> None:
        """The kind was read and complete then; an earlier instant is a replay, or our clock was set right."""
        if observed_ms > self.seen_ms or (self.is_live and observed_ms < self.seen_ms - CLOCK_SKEW_MS):
            self.seen_ms = observed_ms

    def listed(self, resource_version: str, observed_ms: int) -> None:
        """A list was read that is news: the watch goes on from its version."""
        self.resource_version = resource_version
        self.seen_ms = observed_ms
        self.last_error = ""

    def is_news(self, observed_ms: int) -> bool:
        """Whether a list tells of after our position: one of before is a replay, where none is live."""
        return self.is_live or observed_ms > self.seen_ms

    def begins_anew(self, resource_version: str, observed_ms: int) -> bool:
        """Whether a list that is news shows a history that began anew: its version lies below ours."""
        if not self.seen_ms:
            return False
        is_below = is_older(resource_version, self.resource_version)
        return not self.resource_version or (is_below and self.is_news(observed_ms))


class Positions:
    """
    The positions of all kinds of one cluster, and what of them is not committed yet.

    `histories` counts how often a kind's history, or the whole cluster, was seen to begin anew. For `is_live`
    see `Position`.
    """

    def __init__(self, marks: dict[ObjectKind, SourceMark], *, is_live: bool = False) -> None:
        self.histories = 0
        self._is_live = is_live
        self._committed = dict(marks)
        self._cluster_uid = next((mark.cluster_uid for mark in marks.values() if mark.cluster_uid), "")
        self._by_kind = {
            kind: Position(
                resource_version=mark.resource_version,
                epoch=mark.epoch,
                seen_ms=mark.seen_ms,
                last_error=mark.last_error,
                restarts=mark.restarts,
                patience_ms=patience_ms(kind),
                is_live=is_live,
            )
            for kind, mark in marks.items()
        }

    def of(self, kind: ObjectKind) -> Position:
        """The position of a kind; a new one where it was never read."""
        position = self._by_kind.get(kind)
        if position is None:
            position = self._by_kind[kind] = Position(patience_ms=patience_ms(kind), is_live=self._is_live)
        return position

    def identify(self, cluster_uid: str) -> None:
        """This is the cluster whose kube-system has that uid; with another one all begins anew."""
        if self._cluster_uid and cluster_uid != self._cluster_uid:
            for position in self._by_kind.values():
                position.resource_version = ""
            self.histories += 1
        self._cluster_uid = cluster_uid

    def changed(self) -> dict[ObjectKind, SourceMark]:
        """The marks that differ from those given last."""
        changed = {}
        for kind, position in self._by_kind.items():
            mark = self._mark(kind, position)
            if mark != self._committed.get(kind):
                changed[kind] = self._committed[kind] = mark
        return changed

    def sights(self) -> dict[ObjectKind, list[Stretch]]:
        """What was seen of each kind since it was asked last."""
        found = {kind: position.sights() for kind, position in self._by_kind.items()}
        return {kind: sights for kind, sights in found.items() if sights}

    def _mark(self, kind: ObjectKind, position: Position) -> SourceMark:
        return SourceMark(
            kind=kind,
            resource_version=position.resource_version,
            epoch=position.epoch,
            seen_ms=position.seen_ms,
            cluster_uid=self._cluster_uid,
            last_error=position.last_error,
            restarts=position.restarts,
        )
