"""
Which Workloads are copies that MultiKueue made in a worker cluster of one in the cluster that manages.

A copy has the name, namespace and labels of its original, and a label with the origin. Nothing else
leads from one to the other: their uids differ, and a worker's name in the manager's status is not ours.

Source: Kueue, pkg/controller/admissionchecks/multikueue, cloneForCreate.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from analytics.identity import Known
from domain import objects

ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
# Clocks of two clusters may differ by so much: a copy is made after its original.
_SKEW_MS: Final = 60_000


class Place(NamedTuple):
    """An object of one of the clusters."""

    cluster: str
    uid: str


def is_copy(body: objects.Body) -> bool:
    """Whether MultiKueue made it in a worker cluster."""
    return isinstance(body, objects.Workload) and ORIGIN in body.labels


def is_dispatched(body: objects.Body) -> bool:
    """Whether MultiKueue gave it to a worker cluster."""
    return isinstance(body, objects.Workload) and bool(body.dispatched_to)


@dataclass(slots=True)
class Copies:
    """An index of the Workloads of several clusters; they may be added in any order and more than once."""

    _known: dict[Place, Known] = field(default_factory=dict)
    _by_name: dict[tuple[str, str], dict[Place, None]] = field(default_factory=dict)

    def add(self, cluster: str, known: Known) -> None:
        """Take in a Workload, or its newer description."""
        place = Place(cluster, known.uid)
        self._known[place] = known
        self._by_name.setdefault((known.namespace, known.name), {})[place] = None

    def original_of(self, place: Place) -> Place | None:
        """The Workload in another cluster of which this one is a copy; None where none was read."""
        copy = self._known.get(place)
        if copy is None or not is_copy(copy.body):
            return None
        found = [
            known
            for known in self._of_that_name(place)
            if not is_copy(self._known[known].body)
            and self._known[known].created_ms <= copy.created_ms + _SKEW_MS
        ]
        # Names are used again, and two clusters may have one: then the job's uid tells, or who dispatched it.
        return max(found, key=lambda known: self._likeness(known, copy), default=None)

    def copies_of(self, place: Place) -> list[Place]:
        """The copies of a Workload in other clusters, the oldest first."""
        if place not in self._known or is_copy(self._known[place].body):
            return []
        found = [known for known in self._of_that_name(place) if self.original_of(known) == place]
        return sorted(found, key=lambda known: (self._known[known].created_ms, known))

    def linked(self, places: Iterable[Place]) -> Iterator[Place]:
        """What counts differently when one of these has news: its original, or its copies."""
        for place in places:
            original = self.original_of(place)
            if original is not None:
                yield original
            yield from self.copies_of(place)

    def _of_that_name(self, place: Place) -> Iterator[Place]:
        known = self._known[place]
        for other in self._by_name[known.namespace, known.name]:
            if other.cluster != place.cluster:
                yield other

    def _likeness(self, place: Place, copy: Known) -> tuple[bool, bool, int, Place]:
        known = self._known[place]
        mine, its = known.body, copy.body
        assert isinstance(mine, objects.Workload)
        assert isinstance(its, objects.Workload)
        same_job = bool(mine.job_uid) and mine.job_uid == its.job_uid
        return (same_job, bool(mine.dispatched_to), known.created_ms, place)
