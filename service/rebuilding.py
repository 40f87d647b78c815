"""Make the books anew from the journals, and lose nothing of what they held: docs/adr/0068."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from collector.journal_reading import Run, course_of
from collector.replay import replay
from domain.errors import StoreError
from store import adoption
from store.carrying import Carrier
from store.embedded import Store


@dataclass(slots=True)
class Rebuilt:
    """
    What a rebuild came to: `carried` are facts that no journal told, `damages` say where one is broken.

    `not_read` counts entries that nobody reads any more, by the reason.
    """

    entries: int = 0
    carried: int = 0
    damages: list[str] = field(default_factory=list)
    not_read: Counter[str] = field(default_factory=Counter)

    def words(self) -> str:
        """In a sentence."""
        told = [f"{self.entries:,} entries were read again"]
        if self.carried:
            told.append(f"{self.carried:,} facts that no journal tells were taken over as they were")
        told += [f"{count:,} entries were not read ({because})" for because, count in self.not_read.items()]
        return "; ".join(told + self.damages)


def rebuild(
    store: Store, earlier: Path, journals: Sequence[tuple[str, Path]], checkpoint_keys: Sequence[str]
) -> Rebuilt:
    """
    Fill an empty store from an earlier one and from journals.

    Args:
        store: the empty one.
        earlier: the file of the books as they are, that nobody has open.
        journals: clusters, each with the folder of its journal; others are taken over as they are.
        checkpoint_keys: annotations in which objects tell of checkpoints.

    Raises:
        StoreError: the earlier books hold what the new ones would not; they are not to be exchanged.
    """
    adoption.adopt(store, earlier, [cluster for cluster, _ in journals])
    rebuilt, lacking = Rebuilt(), Counter[str]()
    with adoption.at_hand(store, earlier):
        for cluster, folder in journals:
            course = course_of(folder)
            carrier = Carrier(store, cluster, course.instants, doubtful=course.doubtful, ends=course.ends)
            summary = replay(
                folder,
                cluster,
                store,
                checkpoint_keys=checkpoint_keys,
                before_run=partial(_carry_until, carrier, iter(course.runs)),
            )
            carrier.finish()
            lacking.update({f"{cluster}: {what}": of for what, of in carrier.lacking().items()})
            rebuilt.entries += summary.entries
            rebuilt.carried += carrier.facts
            told_apart = {damage.because for damage in course.damages}
            rebuilt.not_read.update(
                {because: of for because, of in course.not_read.items() if because not in told_apart}
            )
            rebuilt.damages += [
                f"journal of {cluster}: {damage.words()}" for damage in course.damages if not damage.by_kill
            ]
    if lacking:
        counts = ", ".join(f"{what} of {of:,} objects" for what, of in sorted(lacking.items()))
        message = (
            f"the books are as they were: a rebuild from the journal would lose facts ({counts}), though"
            " the journal tells of their instants; keep the journal, and report this with what wrote it"
        )
        raise StoreError(message)
    return rebuilt


def _carry_until(carrier: Carrier, runs: Iterator[Run]) -> bool:
    """Carry what the journal does not tell of the time before its next run; whether there was anything."""
    run = next(runs)
    return run.first_ms is not None and carrier.carry(run.first_ms, run.marks)
