"""Parts that stand in for real ones in tests."""

import threading
from dataclasses import dataclass, field

from domain.facts import (
    Batch,
    Description,
    EventSighting,
    Known,
    ObjectKind,
    ObjectState,
    SetAside,
    SourceMark,
    Transition,
)


@dataclass(slots=True)
class MemorySink:
    """
    Keeps the facts of one cluster in lists; what it knows is made from them, as in the store.

    `troubles` are all that marks ever told, in order.
    """

    transitions: list[Transition] = field(default_factory=list)
    descriptions: list[Description] = field(default_factory=list)
    events: list[EventSighting] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    objects: dict[str, ObjectState] = field(default_factory=dict)
    marks: dict[ObjectKind, SourceMark] = field(default_factory=dict)
    batches: int = 0
    troubles: list[str] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def known(self, cluster: str) -> Known:  # noqa: ARG002 - it keeps one cluster only
        """As the store's: keys and bodies of objects that are not gone."""
        known = Known(objects=dict(self.objects), marks=dict(self.marks))
        live = {uid for uid, state in self.objects.items() if state.gone_ms is None}
        for transition in self.transitions:
            if transition.uid in live:
                known.keys.setdefault(transition.uid, []).append(transition.key)
        known.bodies = {said.uid: said.body for said in self.descriptions if said.uid in live}
        return known

    def set_aside_of(self, cluster: str) -> list[SetAside]:  # noqa: ARG002 - it keeps one cluster only
        """As the store's."""
        return list(self.set_aside)

    def append(self, batch: Batch) -> int:
        """Keep a batch; whoever holds the lock while looking sees all of it or nothing, as in the store."""
        with self.lock:
            self.transitions += batch.transitions
            self.descriptions += batch.descriptions
            self.events += batch.events
            self.set_aside += batch.set_aside
            self.objects |= batch.objects
            self.marks |= batch.marks
            self.troubles += [mark.last_error for mark in batch.marks.values() if mark.last_error]
            self.batches += 1
        return len(batch)
